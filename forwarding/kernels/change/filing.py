"""Filters into the table and out of it: interning their constraints, choosing where to post them, posting.

A filter is posted under one constraint, its *access*: the one expected to be hit least often, judged by the table's own
contents (how many constraints share the operand, how many speak of the name). This is the counting algorithm of
[SIENA-2D], section 2.2, taken to its limit: SFF counts satisfied constraints per filter, the selective ones first; here
the first is looked up, and the rest, which decide whether the count would have been reached, are verified only for
filters whose first held and whose names the notification has. No counters are touched for the many that fail.
"""

from __future__ import annotations

from contrada.forwarding.kernels.match.patterns import drop_pattern, file_operand, keep_pattern, say, unfile_operand
from contrada.forwarding.kernels.match.thresholds import insert_threshold, remove_threshold
from contrada.forwarding.kernels.memory.interning import find_scalar, free_operand, intern_scalar, intern_text
from contrada.forwarding.kernels.memory.keys import reversed_hash, text_hash, text_key
from contrada.forwarding.kernels.memory.layout import (
    ACTIVE,
    ANY,
    CELL,
    CONTAINS,
    EQ,
    EVENT_HANDLE_FREE,
    EVENT_NAME_FREE,
    EXISTS,
    F_ACCESS,
    F_BACK,
    F_CODE,
    F_IFACE,
    F_MASK,
    F_SIZE,
    F_STATE,
    GE,
    GT,
    IN,
    IS,
    KINDS,
    LE,
    LT,
    N_ABOVE,
    N_BELOW,
    N_COUNTS,
    N_USES,
    N_WIDE,
    NE,
    NUMBER,
    O_KEY,
    O_POSTED,
    O_REFS,
    O_TAG,
    PATTERN_PREFIX,
    PLUG,
    PLUGGED,
    POSTED_ABOVE,
    POSTED_ALWAYS,
    POSTED_BELOW,
    POSTED_NOWHERE,
    POSTED_OPERAND,
    POSTED_SEVERAL,
    POSTED_WIDE,
    PREFIX,
    S_ALWAYS,
    STRING,
    SUFFIX,
    TIME,
    WHOLE_KIND,
    Bytes,
    Index,
    Ints,
)
from contrada.forwarding.kernels.memory.postings import drop_posting, push_posting
from contrada.forwarding.kernels.memory.words import give_words, take_words
from contrada.spatial.storage.jit import inner_kernel

LOW_HALF = (1 << 32) - 1
_COUNTERS = 256
_FEW = 8  # postings of one filter that are searched one by one; more than a range has cells
_WIDEST_CELL = 61


@inner_kernel
def value_kind(operand_kind: int) -> int:
    """The kind of the values that an operand of that kind is compared with."""
    return STRING if operand_kind >= PATTERN_PREFIX else operand_kind


@inner_kernel
def intern_constraint(
    index: Index, name: int, op: int, kind: int, key: int, low: int, text: Bytes, start: int, length: int
) -> int:
    """The word of a constraint, its operand interned and held once more."""
    fields = index.fields
    if op == EXISTS:
        operand = intern_scalar(index, name << 8 | ANY, 0, 0)
    elif PREFIX <= op <= CONTAINS and length == 0:
        operand = intern_scalar(index, name << 8 | WHOLE_KIND, op, 0)  # the operator, to give it back as it came
        op = IS
    elif PREFIX <= op <= CONTAINS:
        pattern = PATTERN_PREFIX + op - PREFIX
        h = reversed_hash(text, start, length) if op == SUFFIX else text_hash(text, start, length)
        operand = intern_text(index, name << 8 | pattern, h, 0, text, start, length)
        if index.operands[operand, O_REFS] == 0:
            keep_pattern(index, operand)
    elif kind == STRING:
        h = text_hash(text, start, length)
        operand = intern_text(index, name << 8 | STRING, h, text_key(text, start, length), text, start, length)
    else:
        operand = intern_scalar(index, name << 8 | kind, key, low)
    index.operands[operand, O_REFS] += 1
    fields[name * KINDS + kind, N_USES] += 1
    if kind != ANY:
        fields[name * KINDS, N_USES] += 1
    return operand << 4 | op


@inner_kernel
def release_operand(index: Index, operand: int, events: Ints) -> None:
    """Hold an operand once less; the last hold frees it and perhaps its name."""
    operands, fields = index.operands, index.fields
    tag = operands[operand, O_TAG]
    name = tag >> 8
    kind = value_kind(tag & 255)
    operands[operand, O_REFS] -= 1
    fields[name * KINDS + kind, N_USES] -= 1
    if kind != ANY:
        fields[name * KINDS, N_USES] -= 1
    if operands[operand, O_REFS] == 0:
        drop_pattern(index, operand)
        if PLUGGED <= kind < KINDS:
            say(index, events, EVENT_HANDLE_FREE, tag, operands[operand, O_KEY])
        free_operand(index, operand)
    if fields[name * KINDS, N_USES] == 0:
        for kind in range(KINDS):
            row = name * KINDS + kind
            if fields[row, N_COUNTS] != 0:
                give_words(index, fields[row, N_COUNTS], _COUNTERS)
                fields[row, N_COUNTS] = 0
        say(index, events, EVENT_NAME_FREE, name, 0)


@inner_kernel
def _cells(index: Index, code: int, size: int, at: int) -> tuple[int, int, int]:
    """The dyadic cells of the range that the `>` word at `at` opens and a `<` word closes: level, first, last.

    The level is -1 when there is no such range or it is too wide to be worth a cell.
    """
    words, operands = index.words, index.operands
    tag = operands[words[at] >> 4, O_TAG]
    kind = tag & 255
    if kind != NUMBER and kind != TIME:
        return -1, 0, 0
    bottom = operands[words[at] >> 4, O_KEY]
    for i in range(code, code + size):
        op = words[i] & 15
        if op == IN:
            return -1, 0, 0
        if LT <= op <= LE and operands[words[i] >> 4, O_TAG] == tag:
            top = operands[words[i] >> 4, O_KEY]
            if top < bottom or (bottom < 0 and top >= 0):
                return -1, 0, 0
            level = 0
            while level <= _WIDEST_CELL and (1 << level) < top - bottom:
                level += 1
            if level > _WIDEST_CELL:
                return -1, 0, 0
            return level, bottom >> level, top >> level
    return -1, 0, 0


@inner_kernel
def _expected_hits(index: Index, code: int, size: int, at: int) -> float:
    """How many filters are expected to be looked at for a notification, were all like this posted under `at`."""
    words, operands, fields = index.words, index.operands, index.fields
    op = words[at] & 15
    if op == IN:
        total = 0.0
        for i in range(at + 1, at + 1 + (words[at] >> 4)):
            total += 1.0 + operands[words[i] >> 4, O_REFS]
        return total
    operand = words[at] >> 4
    tag = operands[operand, O_TAG]
    shared = float(operands[operand, O_REFS])
    uses = float(fields[(tag >> 8) * KINDS + value_kind(tag & 255), N_USES])
    if op == EQ:
        return shared
    if PREFIX <= op <= SUFFIX:
        return shared + uses / 64.0
    if op == CONTAINS:
        return shared + uses / 32.0 + 2.0
    if op == PLUG:
        return shared + uses / 8.0 + 4.0
    if GT <= op <= GE:
        level, first, last = _cells(index, code, size, at)
        if level >= 0:
            total = 1.0 + uses / 64.0
            for cell in range(first, last + 1):
                o = find_scalar(index, (tag >> 8) << 8 | CELL, cell, level << 8 | (tag & 255))
                if o != 0:
                    total += operands[o, O_REFS]
            return total
    if LT <= op <= GE:
        return uses / 2.0 + 1.0
    return uses + 2.0


@inner_kernel
def word_span(word: int) -> int:
    """How many words the constraint that begins with this one takes."""
    return 1 + (word >> 4) if word & 15 == IN else 1


@inner_kernel
def payload_of(index: Index, f: int) -> int:
    """What the postings of a filter carry, see kernels/memory/postings.py."""
    row = index.filters[f]
    alone = 1 if row[F_ACCESS] >> 8 == row[F_SIZE] & LOW_HALF and row[F_STATE] & 255 == ACTIVE else 0
    return f << 33 | alone << 32 | row[F_IFACE]


@inner_kernel
def _push_operand(index: Index, f: int, operand: int, events: Ints) -> int:
    """Post `f` under an operand; the posting's place."""
    operands = index.operands
    if operands[operand, O_POSTED] == 0:
        file_operand(index, operand, events)
    operands[operand, O_POSTED], place = push_posting(
        index, operands[operand, O_POSTED], index.filters[f, F_MASK], payload_of(index, f)
    )
    return place


@inner_kernel
def _drop(index: Index, head: int, place: int, operand: int) -> int:
    """Remove a posting from an operand's list (or from no operand's, 0); the list's new head.

    The filter whose posting took its place is told.
    """
    head, moved, payload = drop_posting(index, head, place)
    if moved != 0:
        g = payload >> 33
        if index.filters[g, F_ACCESS] & 255 == POSTED_SEVERAL:
            back = index.filters[g, F_BACK]
            index.words[back + 2 + 2 * _which(index, back, operand)] = place
        else:
            index.filters[g, F_BACK] = place
    return head


@inner_kernel
def _which(index: Index, back: int, operand: int) -> int:
    """Which of a filter's several postings is under an operand. Those of `in` ascend; a range has few cells."""
    words = index.words
    count = words[back]
    if count <= _FEW:
        i = 0
        while words[back + 1 + 2 * i] != operand:
            i += 1
        return i
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) >> 1
        if words[back + 1 + 2 * middle] < operand:
            low = middle + 1
        else:
            high = middle
    return low


@inner_kernel
def _to_front(index: Index, code: int, at: int) -> None:
    """Make the constraint whose words begin at `at` the first of its filter; the others keep their order."""
    words = index.words
    end = at + word_span(words[at])
    if at == code:
        return
    # A rotation is three reversals, linear however many members an `in` has.
    _reverse(words, code, at)
    _reverse(words, at, end)
    _reverse(words, code, end)


@inner_kernel
def _reverse(words: Ints, first: int, last: int) -> None:
    for i in range((last - first) // 2):
        words[first + i], words[last - 1 - i] = words[last - 1 - i], words[first + i]


@inner_kernel
def post_filter(index: Index, f: int, events: Ints) -> None:
    """Choose a filter's access and post it there."""
    words, filters, operands, fields = index.words, index.filters, index.operands, index.fields
    code = filters[f, F_CODE]
    size = filters[f, F_SIZE] & LOW_HALF
    if size == 0:
        filters[f, F_ACCESS] = POSTED_ALWAYS
        index.state[S_ALWAYS], filters[f, F_BACK] = push_posting(index, index.state[S_ALWAYS], 0, payload_of(index, f))
        return
    best = code
    fewest = -1.0
    at = code
    while at < code + size:
        expected = _expected_hits(index, code, size, at)
        if fewest < 0.0 or expected < fewest:
            best = at
            fewest = expected
        at += word_span(words[at])
    level, first, last = -1, 0, 0
    if words[best] & 15 == GT or words[best] & 15 == GE:
        level, first, last = _cells(index, code, size, best)
    _to_front(index, code, best)
    op = words[code] & 15
    operand = words[code + 1] >> 4 if op == IN else words[code] >> 4
    tag = operands[operand, O_TAG]
    name = tag >> 8
    kind = tag & 255
    if level >= 0:
        filters[f, F_ACCESS] = POSTED_SEVERAL
        back = take_words(index, 1 + 2 * (last - first + 1))
        words[back] = last - first + 1
        for i in range(last - first + 1):
            cell = intern_scalar(index, name << 8 | CELL, first + i, level << 8 | kind)
            operands[cell, O_REFS] += 1
            words[back + 1 + 2 * i] = cell
            words[back + 2 + 2 * i] = _push_operand(index, f, cell, events)
        filters[f, F_BACK] = back
    elif op == IN:
        count = words[code] >> 4
        filters[f, F_ACCESS] = POSTED_SEVERAL | (1 + count) << 8
        back = take_words(index, 1 + 2 * count)
        words[back] = count
        filters[f, F_BACK] = back
        for i in range(count):
            words[back + 1 + 2 * i] = words[code + 1 + i] >> 4
            words[back + 2 + 2 * i] = _push_operand(index, f, words[code + 1 + i] >> 4, events)
    elif LT <= op <= LE:
        filters[f, F_ACCESS] = POSTED_BELOW | 1 << 8
        field = name * KINDS + kind
        fields[field, N_BELOW] = insert_threshold(
            index, fields[field, N_BELOW], operand, op - LT, filters[f, F_MASK], payload_of(index, f)
        )
    elif GT <= op <= GE:
        filters[f, F_ACCESS] = POSTED_ABOVE | 1 << 8
        field = name * KINDS + kind
        fields[field, N_ABOVE] = insert_threshold(
            index, fields[field, N_ABOVE], operand, GE - op, filters[f, F_MASK], payload_of(index, f)
        )
    elif op in (NE, IS, EXISTS):
        filters[f, F_ACCESS] = POSTED_WIDE | (0 if op == NE else 1) << 8
        field = name * KINDS + value_kind(kind)
        fields[field, N_WIDE], filters[f, F_BACK] = push_posting(
            index, fields[field, N_WIDE], filters[f, F_MASK], payload_of(index, f)
        )
    else:
        filters[f, F_ACCESS] = POSTED_OPERAND | 1 << 8
        filters[f, F_BACK] = _push_operand(index, f, operand, events)


@inner_kernel
def unpost_filter(index: Index, f: int, events: Ints) -> None:
    """Take a filter's postings away."""
    words, filters, operands, fields = index.words, index.filters, index.operands, index.fields
    code = filters[f, F_CODE]
    access = filters[f, F_ACCESS] & 255
    payload = payload_of(index, f)
    back = filters[f, F_BACK]
    if access == POSTED_ALWAYS:
        index.state[S_ALWAYS] = _drop(index, index.state[S_ALWAYS], back, 0)
    elif access == POSTED_SEVERAL:
        count = words[back]
        cells = words[code] & 15 != IN
        for i in range(count):
            operand = words[back + 1 + 2 * i]
            operands[operand, O_POSTED] = _drop(index, operands[operand, O_POSTED], words[back + 2 + 2 * i], operand)
            words[back + 2 + 2 * i] = 0
            if operands[operand, O_POSTED] == 0:
                unfile_operand(index, operand, events)
            if cells:
                operands[operand, O_REFS] -= 1
                if operands[operand, O_REFS] == 0:
                    free_operand(index, operand)
        give_words(index, back, 1 + 2 * count)
    else:
        operand = words[code] >> 4
        op = words[code] & 15
        tag = operands[operand, O_TAG]
        field = (tag >> 8) * KINDS + value_kind(tag & 255)
        if access == POSTED_OPERAND:
            operands[operand, O_POSTED] = _drop(index, operands[operand, O_POSTED], back, operand)
            if operands[operand, O_POSTED] == 0:
                unfile_operand(index, operand, events)
        elif access == POSTED_WIDE:
            fields[field, N_WIDE] = _drop(index, fields[field, N_WIDE], back, 0)
        elif access == POSTED_BELOW:
            fields[field, N_BELOW] = remove_threshold(index, fields[field, N_BELOW], operand, op - LT, payload)
        elif access == POSTED_ABOVE:
            fields[field, N_ABOVE] = remove_threshold(index, fields[field, N_ABOVE], operand, GE - op, payload)
    filters[f, F_ACCESS] = POSTED_NOWHERE
