"""The matching kernel: which interfaces, or which filters, a batch of notifications satisfies.

For each notification: decode its attributes and look each value up among the operands; then, per attribute, walk what
is posted under the operands the value hits, under the thresholds it satisfies and under its name (walking.py). What the
walks leave, candidates, is examined after each attribute (verifying.py), together with the filters they cover where
filters and not interfaces are asked for. When all interfaces have matched, that is the end.

Nothing here writes to the index; all scratch belongs to the call.
"""

from __future__ import annotations

from contrada.forwarding.kernels.match.batch import FLOAT, Batch, read_scalar
from contrada.forwarding.kernels.match.finding import find_affixes, find_cells, find_long_affixes
from contrada.forwarding.kernels.match.masks import name_bit, value_bit
from contrada.forwarding.kernels.match.patterns import POSTED_PREFIXES, POSTED_SUBSTRINGS
from contrada.forwarding.kernels.match.prefetching import prefetch
from contrada.forwarding.kernels.match.thresholds import FIRST_BLOCK, cut_thresholds
from contrada.forwarding.kernels.match.verifying import (
    A_KEY,
    A_KIND,
    A_LENGTH,
    A_LOW,
    A_NAME,
    A_OPERAND,
    A_ORDER,
    A_PASS,
    A_SCANNED,
    A_START,
    A_VALUE,
    C_CANDIDATES,
    C_FOUND,
    C_FULL,
    C_GENERATION,
    C_LEFT,
    C_NEXT,
    C_PAIRS,
    C_PENDING,
    C_POSTPONED,
    C_REFUSED,
    C_SPARE,
    C_SUSPECTS,
    C_VERIFIED,
    EXAMINED,
    SEARCHED,
    SIFTED,
    SUSPECTS,
    Message,
    Scratch,
    examine,
    finish,
    search_substrings,
)
from contrada.forwarding.kernels.match.walking import walk, walk_run
from contrada.forwarding.kernels.memory.bits import (
    payload_alone,
    payload_counted,
    payload_filter,
    payload_interface,
    status_now,
    status_rest,
    tag_of,
)
from contrada.forwarding.kernels.memory.interning import find_scalar, find_text
from contrada.forwarding.kernels.memory.keys import mix, text_hash, text_key
from contrada.forwarding.kernels.memory.layout import (
    ANY,
    F_ACCESS,
    F_CHILD,
    F_CODE,
    F_INTERFACE,
    F_PARENT,
    F_STATE,
    F_YOUNGER,
    GHOST,
    KINDS,
    N_ABOVE,
    N_BELOW,
    N_PREFIXES,
    N_SUFFIXES,
    N_TRIES,
    N_USES,
    N_WIDE,
    NUMBER,
    O_POSTED,
    PLUGGED,
    POINT,
    S_ALWAYS,
    S_INTERFACES,
    S_MATCHING,
    SELECTIVE,
    STRING,
    TIME,
    Index,
    Ints,
)
from contrada.spatial.storage.jit import bare_inline_kernel, bare_kernel

_AHEAD = 8  # candidates, and operands, that are fetched ahead of the one at hand
_ENOUGH = 256  # candidates that are examined before more are collected
_FEW = 8  # operands that a value hits, up to which those of the values after it are fetched with them
_SORTED = 64  # attributes that are put in order, at most


@bare_kernel
def _report(scratch: Scratch, what: int) -> None:
    cursor = scratch.cursor
    if cursor[C_FOUND] >= scratch.found.shape[0]:
        cursor[C_FULL] = 1
        return
    scratch.found[cursor[C_FOUND]] = what
    cursor[C_FOUND] += 1


@bare_inline_kernel
def _matched(scratch: Scratch, interface: int) -> None:
    """An interface has matched, for the first time."""
    scratch.stamps[interface] = scratch.cursor[C_GENERATION]
    scratch.cursor[C_LEFT] -= 1
    _report(scratch, interface)


@bare_kernel
def _descend(index: Index, message: Message, scratch: Scratch, n: int, root: int, by_filter: bool) -> None:
    """Examine the filters that `root` covers, and those they cover; report filters `by_filter`, else the interface."""
    filters = index.filters
    f = filters[root, F_CHILD]
    while f != 0:
        scratch.cursor[C_SPARE] -= EXAMINED
        verdict = examine(index, message, scratch, n, f, 0)
        if verdict == 1:
            if by_filter:
                _report(scratch, f)
            else:
                _matched(scratch, filters[f, F_INTERFACE])
                return
        if verdict != 0 and filters[f, F_CHILD] != 0 and by_filter:
            f = filters[f, F_CHILD]
            continue
        while f != root and filters[f, F_YOUNGER] == 0:
            f = filters[f, F_PARENT]
        if f == root:
            return
        f = filters[f, F_YOUNGER]


@bare_kernel
def suspect(scratch: Scratch, f: int) -> None:
    """Note a filter down. The gap to the next is uneven, so as not to keep step with lists of one length."""
    cursor = scratch.cursor
    if cursor[C_SUSPECTS] < SUSPECTS:
        scratch.suspects[cursor[C_SUSPECTS]] = f
        cursor[C_SUSPECTS] += 1
    met = cursor[C_VERIFIED] + cursor[C_REFUSED]
    cursor[C_NEXT] = met + 128 + (mix(met, f) & 255)


@bare_kernel
def _examine_candidates(index: Index, message: Message, scratch: Scratch, n: int, by_filter: bool) -> None:
    """Decide the filters that the walks over one attribute left."""
    cursor, filters, stamps = scratch.cursor, index.filters, scratch.stamps
    count = cursor[C_CANDIDATES]
    for i in range(min(count, _AHEAD)):
        prefetch(filters, payload_filter(scratch.candidates[i]))
    for i in range(count):
        payload = scratch.candidates[i]
        if i + _AHEAD < count:
            prefetch(filters, payload_filter(scratch.candidates[i + _AHEAD]))
        if i + _AHEAD // 2 < count:
            prefetch(index.words, filters[payload_filter(scratch.candidates[i + _AHEAD // 2]), F_CODE])
        f = payload_filter(payload)
        interface = payload_interface(payload)
        if not by_filter and stamps[interface] == cursor[C_GENERATION]:
            continue
        cursor[C_SPARE] -= EXAMINED
        if cursor[C_SPARE] < 0:
            break
        counted = payload_counted(payload)
        if counted and cursor[C_POSTPONED] == SEARCHED:
            verdict = 1 if finish(index, message, scratch, f) else 0
        elif counted or cursor[C_POSTPONED] == SIFTED:
            verdict = examine(index, message, scratch, n, f, 0)
        elif payload_alone(payload):
            cursor[C_VERIFIED] += 1
            verdict = 1
        else:
            verdict = examine(index, message, scratch, n, f, status_rest(filters[f, F_ACCESS]))
        if verdict == 0:
            if not counted and cursor[C_VERIFIED] + cursor[C_REFUSED] >= cursor[C_NEXT]:
                suspect(scratch, f)
            continue
        ghost = status_now(filters[f, F_STATE]) == GHOST
        if ghost:
            if verdict == 2:  # the ghost itself is not asked for
                cursor[C_PENDING] -= 1
                cursor[C_PAIRS] = scratch.pending[cursor[C_PENDING] - 1, 2] if cursor[C_PENDING] > 0 else 0
        elif verdict == 1:
            if by_filter:
                _report(scratch, f)
            else:
                _matched(scratch, interface)
        if (by_filter or ghost) and filters[f, F_CHILD] != 0:
            _descend(index, message, scratch, n, f, by_filter)
    cursor[C_CANDIDATES] = 0


@bare_kernel
def decode(index: Index, batch: Batch, first: int, last: int, start: int, message: Message) -> tuple[int, int]:
    """Fill the message with rows `first` to `last`, whose strings begin at `start`; its bits, and where they end."""
    attributes, slots = message.attributes, message.slots
    bits = 0
    for r in range(first, last):
        name = batch.rows[r, 0] >> 8
        kind = batch.rows[r, 0] & 15
        value = batch.rows[r, 1]
        row = attributes[r - first]
        row[A_NAME] = name
        row[A_VALUE] = value
        row[A_PASS] = 0
        row[A_SCANNED] = 0
        if kind == STRING:
            row[A_KEY] = text_key(batch.text, start, value)
            row[A_START] = start
            row[A_LENGTH] = value
            state = text_hash(batch.text, start, value)
            row[A_OPERAND] = find_text(index, tag_of(name, STRING), state, batch.text, start, value)
            start += value
        else:
            key, low = read_scalar(kind, value, batch.floats)
            row[A_KEY] = key
            row[A_LOW] = low
            row[A_LENGTH] = -1
            if kind == FLOAT:
                kind = NUMBER
            if kind == POINT:
                row[A_VALUE] = value >> 32
            row[A_OPERAND] = find_scalar(index, tag_of(name, kind), key, low) if kind < PLUGGED else 0
        row[A_KIND] = kind
        bits |= name_bit(name)
        if row[A_OPERAND] != 0:
            bits |= value_bit(row[A_OPERAND])
        at = name & (slots.shape[0] - 1)
        while slots[at] != 0:
            at = (at + 1) & (slots.shape[0] - 1)
        slots[at] = r - first + 1
    return bits, start


@bare_inline_kernel
def _fetch_ahead(index: Index, scratch: Scratch, hits: Ints, i: int) -> None:
    """Begin to load what the hits of the next notifications lead to, each step by what the step before has brought."""
    most = hits.shape[0]
    if i + 3 * _FEW < most:
        prefetch(index.operands, hits[i + 3 * _FEW])
    if i + 2 * _FEW < most:
        prefetch(index.postings, index.operands[hits[i + 2 * _FEW], O_POSTED])
    if i + _FEW < most:
        payload = index.postings[index.operands[hits[i + _FEW], O_POSTED] + 1, 1]
        prefetch(index.filters, payload_filter(payload))


@bare_kernel
def _hit_operands(index: Index, message: Message, scratch: Scratch, a: int, hits: Ints, hit_ends: Ints) -> int:
    """The operands with postings that an attribute hits, into `scratch.operands`; how many, or -1 without room."""
    room = scratch.operands
    row = message.attributes[a]
    name = row[A_NAME]
    kind = row[A_KIND]
    field = index.fields[name * KINDS + kind]
    count = 0
    if row[A_OPERAND] != 0 and index.operands[row[A_OPERAND], O_POSTED] != 0:
        room[0] = row[A_OPERAND]
        count = 1
    if kind == STRING:
        if field[N_PREFIXES] | field[N_SUFFIXES] != 0:
            count = find_affixes(index, name, message.text, row[A_START], row[A_LENGTH], room, count)
        if field[N_TRIES] >> POSTED_PREFIXES & 3 and count >= 0:
            count = find_long_affixes(
                index,
                name,
                message.text,
                row[A_START],
                row[A_LENGTH],
                scratch.hashes,
                scratch.marks,
                scratch.cursor,
                room,
                count,
            )
        if field[N_TRIES] >> POSTED_SUBSTRINGS & 1 and count >= 0:
            count = search_substrings(index, message, scratch, a, count, True)
    elif kind in (NUMBER, TIME) and field[N_PREFIXES] != 0:
        count = find_cells(index, name, kind, row[A_KEY], room, count)
    elif kind >= POINT:
        value = row[A_VALUE]
        first, last = hit_ends[value - 1] if value > 0 else 0, hit_ends[value]
        for i in range(first, last):
            if count == room.shape[0]:
                return -1
            room[count] = hits[i]
            count += 1
        if last - first <= _FEW:
            for i in range(first, last):
                _fetch_ahead(index, scratch, hits, i)
    return count


@bare_kernel
def _order_attributes(index: Index, message: Message, count: int) -> None:
    """Selective names first: those of the fewest constraints, so that what comes last is spared most often."""
    attributes, fields = message.attributes, index.fields
    for a in range(count):
        uses = fields[attributes[a, A_NAME] * KINDS, N_USES]
        at = a
        while at > 0 and fields[attributes[attributes[at - 1, A_ORDER], A_NAME] * KINDS, N_USES] > uses:
            attributes[at, A_ORDER] = attributes[at - 1, A_ORDER]
            at -= 1
        attributes[at, A_ORDER] = a


@bare_kernel
def _match_one(
    index: Index,
    message: Message,
    count: int,
    bits: int,
    hits: Ints,
    hit_ends: Ints,
    scratch: Scratch,
    n: int,
    by_filter: bool,
) -> None:
    missing = ~bits
    fields, postings, thresholds, words = index.fields, index.postings, index.thresholds, index.words
    stamps, found, candidates, cursor = scratch.stamps, scratch.found, scratch.candidates, scratch.cursor
    operands = scratch.operands
    ordered = index.state[S_MATCHING] != SELECTIVE and 1 < count <= _SORTED
    if ordered:
        _order_attributes(index, message, count)
    for place in range(count):
        if cursor[C_LEFT] == 0:
            return
        a = message.attributes[place, A_ORDER] if ordered else place
        row = message.attributes[a]
        number = row[A_NAME] * KINDS + row[A_KIND]
        hit = _hit_operands(index, message, scratch, a, hits, hit_ends)
        if hit < 0:
            cursor[C_FULL] = 1
            return
        for i in range(hit):
            if i + _AHEAD < hit:
                prefetch(index.operands, operands[i + _AHEAD])
            operands[i] = index.operands[operands[i], O_POSTED]
        taken = cursor[C_CANDIDATES] + cursor[C_FOUND]
        walk(postings, operands, hit, missing, by_filter, index.filters, words, stamps, found, candidates, cursor)
        if row[A_KIND] >= POINT and hit > cursor[C_CANDIDATES] + cursor[C_FOUND] - taken:
            cursor[C_REFUSED] += hit - (cursor[C_CANDIDATES] + cursor[C_FOUND] - taken)
            if cursor[C_VERIFIED] + cursor[C_REFUSED] >= cursor[C_NEXT]:
                suspect(scratch, payload_filter(postings[operands[mix(cursor[C_REFUSED], a) % hit] + 1, 1]))
        for side in (N_BELOW, N_ABOVE):
            directory = fields[number, side]
            if directory == 0:
                continue
            blocks = words[directory + 1]
            cut, place_of_cut = cut_thresholds(
                index, directory, row[A_KEY], row[A_LOW], message.text, row[A_START], row[A_LENGTH]
            )
            above = side == N_ABOVE
            for rank in range(0 if above else max(cut, 0), cut + 1 if above else blocks):
                block = words[directory + FIRST_BLOCK + rank]
                start = block + 1
                end = block + 1 + thresholds[block, 0]
                if rank == cut:
                    if above:
                        end = block + place_of_cut
                    else:
                        start = block + place_of_cut
                walk_run(
                    thresholds, start, end, missing, by_filter, index.filters, words, stamps, found, candidates, cursor
                )
                if cursor[C_CANDIDATES] >= _ENOUGH:  # their interfaces may all have matched then
                    _examine_candidates(index, message, scratch, n, by_filter)
        lists = 0
        for wide in (number, row[A_NAME] * KINDS + ANY):
            if fields[wide, N_WIDE] != 0:
                operands[lists] = fields[wide, N_WIDE]
                lists += 1
        if lists:
            walk(postings, operands, lists, missing, by_filter, index.filters, words, stamps, found, candidates, cursor)
        if cursor[C_CANDIDATES] != 0:
            _examine_candidates(index, message, scratch, n, by_filter)
    if index.state[S_ALWAYS] != 0:
        operands[0] = index.state[S_ALWAYS]
        walk(postings, operands, 1, missing, by_filter, index.filters, words, stamps, found, candidates, cursor)
        if cursor[C_CANDIDATES] != 0:
            _examine_candidates(index, message, scratch, n, by_filter)


@bare_kernel
def forget(message: Message, count: int) -> None:
    """Empty the table of names."""
    last = message.slots.shape[0] - 1
    for a in range(count):
        at = message.attributes[a, A_NAME] & last
        while message.slots[at] != 0:
            message.slots[at] = 0
            at = (at + 1) & last


@bare_kernel
def begin(scratch: Scratch) -> None:
    """Forget what was found before."""
    cursor = scratch.cursor
    cursor[C_FOUND] = 0
    cursor[C_PENDING] = 0
    cursor[C_PAIRS] = 0
    cursor[C_SUSPECTS] = 0


@bare_kernel
def match_decoded(
    index: Index,
    message: Message,
    count: int,
    bits: int,
    hits: Ints,
    hit_ends: Ints,
    given: Ints,
    scratch: Scratch,
    n: int,
    by_filter: bool,
) -> bool:
    """Match notification n, of `count` attributes, decoded, and empty the table of its names.

    False when an output is full, and then nothing of it is found.
    """
    cursor = scratch.cursor
    cursor[C_GENERATION] += 1
    found, pending, pairs = cursor[C_FOUND], cursor[C_PENDING], cursor[C_PAIRS]
    cursor[C_LEFT] = -1 if by_filter else index.state[S_INTERFACES]
    for i in range(given.shape[0]):
        _matched(scratch, given[i])
    _match_one(index, message, count, bits, hits, hit_ends, scratch, n, by_filter)
    forget(message, count)
    if cursor[C_FULL] == 0:
        return True
    cursor[C_FULL] = 0
    cursor[C_CANDIDATES] = 0
    cursor[C_FOUND], cursor[C_PENDING], cursor[C_PAIRS] = found, pending, pairs
    return False


@bare_kernel
def match_batch(
    index: Index,
    batch: Batch,
    hits: Ints,
    hit_ends: Ints,
    given: Ints,
    given_ends: Ints,
    scratch: Scratch,
    ends: Ints,
    first: int,
    by_filter: bool,
) -> int:
    """Match notifications from `first` on; `ends[n]` is set to where notification n's answers end in `found`.

    `hits[hit_ends[v - 1] : hit_ends[v]]` are the operands that plugged-in value v hits; `given`, with ends likewise for
    each notification if there are any, are interfaces that are known to match. Returns the notification to go on with
    when an output is full, the number of notifications when all are done.
    """
    start = 0
    if first == 0:
        begin(scratch)
    for r in range(batch.ends[first - 1] if first > 0 else 0):
        if batch.rows[r, 0] & 15 == STRING:
            start += batch.rows[r, 1]
    message = Message(scratch.attributes, scratch.slots, batch.text)
    for n in range(first, batch.ends.shape[0]):
        row = batch.ends[n - 1] if n > 0 else 0
        bits, start = decode(index, batch, row, batch.ends[n], start, message)
        mine = given
        if given_ends.shape[0] != 0:
            mine = given[given_ends[n - 1] if n > 0 else 0 : given_ends[n]]
        count = batch.ends[n] - row
        if not match_decoded(index, message, count, bits, hits, hit_ends, mine, scratch, n, by_filter):
            return n
        ends[n] = scratch.cursor[C_FOUND]
    return batch.ends.shape[0]
