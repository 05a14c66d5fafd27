"""Filters into the table and out of it: interning their constraints, choosing where to post them, posting.

Selective matching posts a filter under one constraint, its *access*: the one expected to be hit least often, judged by
the table's own contents (choosing.py). What is expected changes as filters and notifications come; `repost_filter` is
for those whose access has turned out wrong. That is an access-predicate algorithm ([ACCESS]), and ours in how it
chooses: the rest of a filter is verified if its access held and its names are there. Counting, the algorithm of [SFF]
and [SIENA-2D], posts it under all (counted.py); `auto` is whichever is expected to make less work, filter by filter.
"""

from __future__ import annotations

from contrada.forwarding.kernels.change.choosing import (
    access_cost,
    best_access,
    cells_of,
    counting_pays,
    late_share,
    value_kind,
    word_span,
)
from contrada.forwarding.kernels.change.counted import count_constraints, post_counted, unpost_counted
from contrada.forwarding.kernels.change.listing import drop, drop_operand, payload_of, push_operand
from contrada.forwarding.kernels.match.patterns import drop_pattern, keep_pattern, say
from contrada.forwarding.kernels.match.thresholds import insert_threshold, remove_threshold
from contrada.forwarding.kernels.memory.bits import (
    high_half,
    low_half,
    status_now,
    status_of,
    tag_kind,
    tag_name,
    tag_of,
    word_of,
    word_operand,
    word_operator,
)
from contrada.forwarding.kernels.memory.interning import free_operand, intern_scalar, intern_text
from contrada.forwarding.kernels.memory.keys import reversed_hash, text_hash, text_key
from contrada.forwarding.kernels.memory.layout import (
    ABSENT,
    ANY,
    CELL,
    CONTAINS,
    COUNTING,
    EQ,
    EVENT_HANDLE_FREE,
    EVENT_NAME_FREE,
    EXISTS,
    F_ACCESS,
    F_BACK,
    F_CODE,
    F_MASK,
    F_SIZE,
    GE,
    GT,
    IN,
    IS,
    KINDS,
    LE,
    LIKE,
    LT,
    MOST_COUNTED,
    N_ABOVE,
    N_BELOW,
    N_COUNTS,
    N_USES,
    N_WIDE,
    NE,
    NOT,
    O_KEY,
    O_LEN,
    O_REFS,
    O_TAG,
    PATTERN_LIKE,
    PATTERN_PREFIX,
    PATTERN_SUFFIX,
    PLUG,
    PLUGGED,
    POSTED_ABOVE,
    POSTED_ALL,
    POSTED_ALWAYS,
    POSTED_BELOW,
    POSTED_NOWHERE,
    POSTED_OPERAND,
    POSTED_SEVERAL,
    POSTED_WIDE,
    PREFIX,
    S_ALWAYS,
    S_MATCHING,
    SEARCHING,
    SELECTIVE,
    STOPPING,
    STRING,
    WHOLE_KIND,
    Bytes,
    Index,
    Ints,
)
from contrada.forwarding.kernels.memory.postings import push_posting
from contrada.forwarding.kernels.memory.words import give_words, take_words
from contrada.spatial.storage.jit import bare_kernel

_COUNTERS = 256
_WORTH_MOVING = 2.0  # how many times fewer hits make another access worth the move


@bare_kernel
def intern_constraint(
    index: Index, name: int, op: int, kind: int, key: int, low: int, text: Bytes, start: int, length: int
) -> int:
    """The word of a constraint, its operand interned and held once more. The key of NOT is the kind of its pattern."""
    fields = index.fields
    if op in (EXISTS, ABSENT):
        operand = intern_scalar(index, tag_of(name, ANY), 0, 0)
    elif PREFIX <= op <= CONTAINS and length == 0:
        operand = intern_scalar(index, tag_of(name, WHOLE_KIND), op, 0)  # the operator, to give it back as it came
        op = IS
    elif PREFIX <= op <= CONTAINS or op in (NOT, LIKE):
        pattern = key if op == NOT else PATTERN_LIKE if op == LIKE else PATTERN_PREFIX + op - PREFIX
        suffix = pattern == PATTERN_SUFFIX
        h = reversed_hash(text, start, length) if suffix else text_hash(text, start, length)
        operand = intern_text(index, tag_of(name, pattern), h, 0, text, start, length)
        if index.operands[operand, O_REFS] == 0:
            keep_pattern(index, operand)
    elif kind == STRING:
        h = text_hash(text, start, length)
        operand = intern_text(index, tag_of(name, STRING), h, text_key(text, start, length), text, start, length)
    elif kind >= PLUGGED:
        operand = intern_scalar(index, tag_of(name, kind), low_half(key), 0)
        if high_half(key) != 0:
            index.operands[operand, O_LEN] = high_half(key)
    else:
        operand = intern_scalar(index, tag_of(name, kind), key, low)
    index.operands[operand, O_REFS] += 1
    fields[name * KINDS + kind, N_USES] += 1
    if kind != ANY:
        fields[name * KINDS, N_USES] += 1
    return word_of(operand, op)


@bare_kernel
def release_operand(index: Index, operand: int, events: Ints) -> None:
    """Hold an operand once less; the last hold frees it and perhaps its name."""
    operands, fields = index.operands, index.fields
    tag = operands[operand, O_TAG]
    name = tag_name(tag)
    kind = value_kind(tag_kind(tag))
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


@bare_kernel
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


@bare_kernel
def _reverse(words: Ints, first: int, last: int) -> None:
    for i in range((last - first) // 2):
        words[first + i], words[last - 1 - i] = words[last - 1 - i], words[first + i]


@bare_kernel
def _back_in_order(index: Index, code: int, size: int) -> None:
    """Put the first constraint of a filter behind those that are cheaper to verify; undoes `_to_front`."""
    words = index.words
    first = word_span(words[code])
    at = code + first
    while at < code + size and word_operator(words[at]) < word_operator(words[code]):
        at += word_span(words[at])
    if at > code + first:
        _reverse(words, code, code + first)
        _reverse(words, code + first, at)
        _reverse(words, code, at)


@bare_kernel
def is_counted(index: Index, code: int, size: int, best: int, fewest: float) -> bool:
    """Whether a filter is posted under all of its constraints; its best access is at `best` and makes so much work."""
    matching = index.state[S_MATCHING]
    if matching in (SELECTIVE, STOPPING) or not 1 < count_constraints(index, code, size) < MOST_COUNTED:
        return False
    if matching == SEARCHING and late_share(index, code, size) >= 0.0 and index.words[best] & 15 not in (EQ, IN, PLUG):
        return True
    return matching == COUNTING or counting_pays(index, code, size, best, fewest)


@bare_kernel
def repost_filter(index: Index, f: int, events: Ints) -> bool:
    """Post a filter that is posted under one of several constraints under another, if that is clearly better."""
    filters = index.filters
    code = filters[f, F_CODE]
    size = low_half(filters[f, F_SIZE])
    if index.state[S_MATCHING] == COUNTING:
        return False
    late = late_share(index, code, size)
    best, fewest = best_access(index, code, size, late)
    counted = status_now(filters[f, F_ACCESS]) == POSTED_ALL
    # Only by a factor: what is as good as before stays, or filters would go to and fro.
    if counted == is_counted(index, code, size, best, fewest) and (
        counted or best == code or access_cost(index, code, size, code, late) < _WORTH_MOVING * fewest
    ):
        return False
    unpost_filter(index, f, events)
    if not counted:
        _back_in_order(index, code, size)
    post_filter(index, f, events)
    return True


@bare_kernel
def post_filter(index: Index, f: int, events: Ints) -> None:
    """Choose a filter's access and post it there."""
    words, filters, operands, fields = index.words, index.filters, index.operands, index.fields
    code = filters[f, F_CODE]
    size = low_half(filters[f, F_SIZE])
    best, fewest = code, 0.0
    if size != 0:
        best, fewest = best_access(index, code, size, late_share(index, code, size))
    if size == 0 or word_operator(words[best]) == ABSENT:
        filters[f, F_ACCESS] = POSTED_ALWAYS
        index.state[S_ALWAYS], filters[f, F_BACK] = push_posting(index, index.state[S_ALWAYS], 0, payload_of(index, f))
        return
    if is_counted(index, code, size, best, fewest):
        post_counted(index, f, count_constraints(index, code, size), events)
        return
    level, first, last = -1, 0, 0
    if word_operator(words[best]) == GT or word_operator(words[best]) == GE:
        level, first, last = cells_of(index, code, size, best)
    _to_front(index, code, best)
    op = word_operator(words[code])
    operand = word_operand(words[code + 1]) if op == IN else word_operand(words[code])
    tag = operands[operand, O_TAG]
    name = tag_name(tag)
    kind = tag_kind(tag)
    if level >= 0:
        filters[f, F_ACCESS] = POSTED_SEVERAL
        back = take_words(index, 1 + 2 * (last - first + 1))
        words[back] = last - first + 1
        for i in range(last - first + 1):
            cell = intern_scalar(index, tag_of(name, CELL), first + i, level << 8 | kind)
            operands[cell, O_REFS] += 1
            words[back + 1 + 2 * i] = cell
            words[back + 2 + 2 * i] = push_operand(index, f, cell, events)
        filters[f, F_BACK] = back
    elif op == IN:
        count = word_operand(words[code])
        filters[f, F_ACCESS] = status_of(1 + count, POSTED_SEVERAL)
        back = take_words(index, 1 + 2 * count)
        words[back] = count
        filters[f, F_BACK] = back
        for i in range(count):
            words[back + 1 + 2 * i] = word_operand(words[code + 1 + i])
            words[back + 2 + 2 * i] = push_operand(index, f, word_operand(words[code + 1 + i]), events)
    elif LT <= op <= LE:
        filters[f, F_ACCESS] = status_of(1, POSTED_BELOW)
        field = name * KINDS + kind
        fields[field, N_BELOW] = insert_threshold(
            index, fields[field, N_BELOW], operand, op - LT, filters[f, F_MASK], payload_of(index, f)
        )
    elif GT <= op <= GE:
        filters[f, F_ACCESS] = status_of(1, POSTED_ABOVE)
        field = name * KINDS + kind
        fields[field, N_ABOVE] = insert_threshold(
            index, fields[field, N_ABOVE], operand, GE - op, filters[f, F_MASK], payload_of(index, f)
        )
    elif op in (NE, IS, EXISTS, NOT, LIKE):
        filters[f, F_ACCESS] = status_of(1 if op in (IS, EXISTS) else 0, POSTED_WIDE)
        field = name * KINDS + value_kind(kind)
        fields[field, N_WIDE], filters[f, F_BACK] = push_posting(
            index, fields[field, N_WIDE], filters[f, F_MASK], payload_of(index, f)
        )
    else:
        filters[f, F_ACCESS] = status_of(1, POSTED_OPERAND)
        filters[f, F_BACK] = push_operand(index, f, operand, events)


@bare_kernel
def unpost_filter(index: Index, f: int, events: Ints) -> None:
    """Take a filter's postings away."""
    words, filters, operands, fields = index.words, index.filters, index.operands, index.fields
    code = filters[f, F_CODE]
    access = status_now(filters[f, F_ACCESS])
    payload = payload_of(index, f)
    back = filters[f, F_BACK]
    if access == POSTED_ALL:
        unpost_counted(index, f, events)
    elif access == POSTED_ALWAYS:
        index.state[S_ALWAYS] = drop(index, index.state[S_ALWAYS], back, 0)
    elif access == POSTED_SEVERAL:
        count = words[back]
        cells = word_operator(words[code]) != IN
        for i in range(count):
            operand = words[back + 1 + 2 * i]
            drop_operand(index, operand, words[back + 2 + 2 * i], events)
            words[back + 2 + 2 * i] = 0
            if cells:
                operands[operand, O_REFS] -= 1
                if operands[operand, O_REFS] == 0:
                    free_operand(index, operand)
        give_words(index, back, 1 + 2 * count)
    else:
        operand = word_operand(words[code])
        op = word_operator(words[code])
        tag = operands[operand, O_TAG]
        field = tag_name(tag) * KINDS + value_kind(tag_kind(tag))
        if access == POSTED_OPERAND:
            drop_operand(index, operand, back, events)
        elif access == POSTED_WIDE:
            fields[field, N_WIDE] = drop(index, fields[field, N_WIDE], back, 0)
        elif access == POSTED_BELOW:
            fields[field, N_BELOW] = remove_threshold(index, fields[field, N_BELOW], operand, op - LT, payload)
        elif access == POSTED_ABOVE:
            fields[field, N_ABOVE] = remove_threshold(index, fields[field, N_ABOVE], operand, GE - op, payload)
    filters[f, F_ACCESS] = POSTED_NOWHERE
