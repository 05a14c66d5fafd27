"""Whether the arrays of a loaded table are those of a table: what kernels rely on, looked at once before they run.

Kernels follow row numbers without looking where they lead. In a table that was built here they lead where layout.py
says; in a file with right checksums they may be anybody's. So everything that a kernel follows is checked when a file
is loaded, in one pass over each array: where a column points, that lists end, that no two pieces overlap, that what is
counted is there. It is what table/check.py asserts, fast enough for every load: about a microsecond for each
filter.

    guard_operands   tags, texts, hashes, handles           guard_chains    the hash over operands, its free list
    guard_tries      patterns in tries
    guard_filters    constraints, postings, covered, groups guard_forest    what covers what has no cycle
    guard_lists      postings, thresholds, free pieces      guard_sums      counts and references

Each returns 0, or what is wrong, as a place in `FAULTS`. `Marks` is their memory: what has been met so far. A list that
meets a piece twice is refused there, so every walk ends.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from contrada.forwarding.kernels.change.adding import I_COUNT, I_FIRST
from contrada.forwarding.kernels.change.choosing import value_kind, word_span
from contrada.forwarding.kernels.change.filing import LOW_HALF, payload_of
from contrada.forwarding.kernels.match.patterns import (
    DIGITS,
    LONGEST_AFFIX,
    POSTED_PREFIXES,
    POSTED_SUBSTRINGS,
    POSTED_SUFFIXES,
)
from contrada.forwarding.kernels.match.thresholds import FIRST_BLOCK, ROWS
from contrada.forwarding.kernels.memory.interning import bucket_of, has_text, scalar_hash
from contrada.forwarding.kernels.memory.keys import mix, reversed_hash, text_hash, text_key
from contrada.forwarding.kernels.memory.layout import (
    ACTIVE,
    ANY,
    CELL,
    CONTAINS,
    COVERED,
    EQ,
    EXISTS,
    F_ACCESS,
    F_BACK,
    F_CHILD,
    F_CODE,
    F_ELDER,
    F_FOLLOWING,
    F_GROUP,
    F_GROUP_NEXT,
    F_GROUP_PREVIOUS,
    F_IFACE,
    F_MASK,
    F_PARENT,
    F_PREVIOUS,
    F_SIZE,
    F_STATE,
    F_YOUNGER,
    FREE,
    GE,
    GHOST,
    GROUP,
    GT,
    IN,
    IS,
    KINDS,
    LE,
    LT,
    N_ABOVE,
    N_BELOW,
    N_COUNTS,
    N_PREFIXES,
    N_SUFFIXES,
    N_TRIES,
    N_USES,
    N_WIDE,
    NE,
    NODE,
    NUMBER,
    O_HASH,
    O_KEY,
    O_LEN,
    O_LOW,
    O_NEXT,
    O_POSTED,
    O_REFS,
    O_TAG,
    PATTERN_CONTAINS,
    PATTERN_PREFIX,
    PATTERN_SUFFIX,
    PLUG,
    PLUGGED,
    POINT,
    POSTED_ABOVE,
    POSTED_ALWAYS,
    POSTED_BELOW,
    POSTED_NOWHERE,
    POSTED_OPERAND,
    POSTED_SEVERAL,
    POSTED_WIDE,
    PREFIX,
    S_ACTIVE,
    S_ALWAYS,
    S_BASE,
    S_BUCKET_MASK,
    S_BUCKETS,
    S_CONSTRAINTS,
    S_COVERED,
    S_FILTER_COUNT,
    S_FILTER_FREE,
    S_FILTERS,
    S_GHOST,
    S_GHOSTS,
    S_LARGEST,
    S_OPERAND_COUNT,
    S_OPERAND_FREE,
    S_OPERANDS,
    S_POSTING_COUNT,
    S_POSTING_FREE,
    S_THRESHOLD_COUNT,
    S_THRESHOLD_FREE,
    S_VOID,
    S_WORD_FREE,
    S_WORDS,
    STRING,
    VOID,
    WHOLE_KIND,
    Bytes,
    Index,
    Ints,
)
from contrada.forwarding.kernels.memory.postings import COUNT, block_rows
from contrada.forwarding.kernels.memory.words import size_class
from contrada.forwarding.kernels.substrings.fingerprints import fingerprint, high_bit
from contrada.forwarding.kernels.substrings.tries import fattest, salt_of, top_power
from contrada.spatial.storage.jit import bare_kernel, inner_kernel

FAULTS: Final = (
    "",
    "an operand speaks of a name, a kind, a string or a handle that there is not",
    "the hash over operands does not lead to each of them once",
    "a filter's constraints are not constraints",
    "a filter's postings are not where it says",
    "the filters of an interface are not one list",
    "covered filters do not hang under one another as a forest",
    "filters of a group, or ghosts, are not one list",
    "a posting list leads astray",
    "a directory of thresholds leads astray",
    "a field's masks or counters are none",
    "pieces of memory overlap, or lie outside",
    "counts do not add up",
    "a list of free rows leads astray",
    "a trie of patterns is none",
)
OPERAND: Final = 1
CHAIN: Final = 2
CODE: Final = 3
POSTED: Final = 4
INTERFACE: Final = 5
FOREST: Final = 6
GROUPED: Final = 7
LIST: Final = 8
DIRECTORY: Final = 9
FIELD: Final = 10
PIECE: Final = 11
SUM: Final = 12
FREED: Final = 13
TRIE: Final = 14

# Places in `Marks.sums`.
M_LIVE: Final = 0  # operands
M_CLAIMS: Final = 1  # postings that filters say they have
M_CROSSING: Final = 2  # filters posted under thresholds
M_CONSTRAINTS: Final = 3
M_STATES: Final = 4  # filters by state: 4 to 8
M_ENTRIES: Final = 9  # of posting lists
M_CROSSED: Final = 10  # entries of thresholds
SUMS: Final = 11

_ALWAYS: Final = -1  # whose posting it is: an operand's, this list's, or below it a field's
_COUNTERS: Final = 256
_WIDEST_CELL: Final = 61
_LARGEST_PIECE: Final = 40  # as a power of two


class Marks(NamedTuple):
    """What has been met. All zero at the beginning."""

    words: Bytes  # taken by a piece
    postings: Bytes  # rows of blocks
    thresholds: Bytes
    operands: Bytes  # chained, or free
    owners: Ints  # by posting: the list that a filter says it is in
    crossing: Ints  # by filter: field << 1 | side, plus 1, of its threshold
    refs: Ints  # by operand: who holds it
    uses: Ints  # by field
    tries: Ints  # by field: what its N_TRIES should be
    counts: Ints  # by interface
    sums: Ints


@inner_kernel
def _take(marks: Bytes, place: int, size: int) -> bool:
    """Mark a run; whether it lies inside and nobody has it yet."""
    if place < 1 or size < 1 or size > marks.shape[0] or place > marks.shape[0] - size:
        return False
    for i in range(place, place + size):
        if marks[i] != 0:
            return False
        marks[i] = 1
    return True


@inner_kernel
def _take_words(marks: Marks, place: int, count: int) -> bool:
    """Mark the piece that was taken for `count` words."""
    return 0 <= count <= marks.words.shape[0] and _take(marks.words, place, 1 << size_class(count))


@inner_kernel
def _hash_of(index: Index, o: int) -> int:
    """The hash that an operand should have; its string, if it has one, is in range."""
    row = index.operands[o]
    kind = row[O_TAG] & 255
    if not has_text(kind):
        return scalar_hash(row[O_TAG], row[O_KEY], row[O_LOW])
    if kind == PATTERN_SUFFIX:
        return mix(reversed_hash(index.text, row[O_LOW], row[O_LEN]), row[O_TAG])
    return mix(text_hash(index.text, row[O_LOW], row[O_LEN]), row[O_TAG])


@bare_kernel
def guard_operands(index: Index, names: int, handles: Ints, marks: Marks) -> int:
    """Each operand by itself. There are `names` numbers of names and `handles[kind]` of each plugged-in type."""
    operands = index.operands
    for o in range(1, index.state[S_OPERANDS]):
        row = operands[o]
        name = row[O_TAG] >> 8
        kind = row[O_TAG] & 255
        if row[O_REFS] == 0:
            if row[O_TAG] != 0:
                return OPERAND
            continue
        if row[O_REFS] < 0 or kind > GROUP or (kind == GROUP) != (name == 0) or name < 0 or name >= names:
            return OPERAND
        if PLUGGED <= kind < PATTERN_PREFIX and (kind >= KINDS or row[O_KEY] < 0 or row[O_KEY] >= handles[kind]):
            return OPERAND
        if kind == CELL and (row[O_LOW] & 255 > POINT or row[O_LOW] >> 8 < 0 or row[O_LOW] >> 8 > _WIDEST_CELL):
            return OPERAND
        if kind == NODE:
            if row[O_LOW] < 0 or row[O_POSTED] < 0 or row[O_REFS] > 256 or row[O_LEN] < 1:
                return TRIE
            marks.sums[M_LIVE] += 1
            continue
        if kind == GROUP and (row[O_LEN] < 1 or row[O_LEN] >= index.state[S_FILTERS]):
            return OPERAND
        if has_text(kind):
            length = row[O_LEN]
            if length < 0 or length > 8 * marks.words.shape[0] or row[O_LOW] < 0 or row[O_LOW] & 7 != 0:
                return OPERAND
            if length > 0 and not _take_words(marks, row[O_LOW] >> 3, (length + 7) >> 3):
                return PIECE
            if length == 0 and row[O_LOW] != 0:
                return OPERAND
            if kind == STRING and row[O_KEY] != text_key(index.text, row[O_LOW], length):
                return OPERAND
        if row[O_HASH] != _hash_of(index, o):
            return OPERAND
        marks.sums[M_LIVE] += 1
    return 0


@bare_kernel
def guard_chains(index: Index, marks: Marks) -> int:
    """Each operand is in the chain of its hash, or free."""
    operands, state, met = index.operands, index.state, marks.operands
    top, buckets, mask = state[S_OPERANDS], state[S_BUCKETS], state[S_BUCKET_MASK]
    if mask < 1 or mask & (mask + 1) != 0 or buckets <= mask >> 1 or buckets > mask:
        return CHAIN
    chained = 0
    for bucket in range(buckets):
        o = index.heads[bucket]
        while o != 0:
            if o < 0 or o >= top or met[o] != 0 or operands[o, O_REFS] == 0:
                return CHAIN
            if bucket_of(index, operands[o, O_HASH]) != bucket:
                return CHAIN
            met[o] = 1
            chained += 1
            o = operands[o, O_NEXT]
    if chained != marks.sums[M_LIVE] or chained != state[S_OPERAND_COUNT]:
        return CHAIN
    o = state[S_OPERAND_FREE]
    while o != 0:
        if o < 0 or o >= top or met[o] != 0 or operands[o, O_REFS] != 0:
            return FREED
        met[o] = 1
        chained += 1
        o = operands[o, O_NEXT]
    return 0 if chained + 1 == top else FREED


@inner_kernel
def _in_trie(tag: int, length: int) -> bool:
    kind = tag & 255
    return kind == PATTERN_CONTAINS or (PATTERN_PREFIX <= kind <= PATTERN_SUFFIX and length > LONGEST_AFFIX)


@inner_kernel
def _is_node(index: Index, o: int, tag: int) -> bool:
    return 1 <= o < index.state[S_OPERANDS] and index.operands[o, O_TAG] == tag and index.operands[o, O_REFS] != 0


@inner_kernel
def _guard_node(index: Index, node: int) -> bool:
    """What a node of a trie points at: each knows it, and is longer or shorter as it should be."""
    operands = index.operands
    row = operands[node]
    tag = row[O_TAG]
    parent, pattern = row[O_LOW] >> 32, row[O_LOW] & LOW_HALF
    child, sibling = row[O_POSTED] >> 32, row[O_POSTED] & LOW_HALF
    if parent != 0 and (not _is_node(index, parent, tag) or operands[parent, O_LEN] >= row[O_LEN]):
        return False
    if child != 0 and (not _is_node(index, child, tag) or operands[child, O_LOW] >> 32 != node):
        return False
    if sibling != 0 and (parent == 0 or not _is_node(index, sibling, tag) or operands[sibling, O_LOW] >> 32 != parent):
        return False
    if pattern == 0:
        return child != 0
    return (
        pattern < index.state[S_OPERANDS]
        and operands[pattern, O_REFS] != 0
        and _in_trie(operands[pattern, O_TAG], operands[pattern, O_LEN])
        and operands[pattern, O_TAG] >> 8 == tag >> 8
        and operands[pattern, O_LEN] == row[O_LEN]
        and operands[pattern, O_KEY] == node
    )


@inner_kernel
def _guard_handle(index: Index, node: int) -> bool:
    """A node is filed under the hash of its handle, and has the fingerprint of its extent."""
    operands, base = index.operands, index.state[S_BASE]
    row = operands[node]
    below = node
    while operands[below, O_LOW] & LOW_HALF == 0:  # a pattern that begins with the extent
        below = operands[below, O_POSTED] >> 32
    pattern = operands[operands[below, O_LOW] & LOW_HALF]
    first, step = pattern[O_LOW], 1
    if pattern[O_TAG] & 255 == PATTERN_SUFFIX:
        first, step = pattern[O_LOW] + pattern[O_LEN] - 1, -1
    parent, length = row[O_LOW] >> 32, row[O_LEN]
    handle = 1 << top_power(length)
    if parent != 0:
        handle = fattest(operands[parent, O_LEN], length)
        if row[O_REFS] != 1 + index.text[first + operands[parent, O_LEN] * step]:
            return False
    if row[O_HASH] != fingerprint(index.text, first, step, handle, base) ^ salt_of(index, pattern[O_TAG]):
        return False
    return row[O_KEY] == fingerprint(index.text, first, step, length, base)


@bare_kernel
def guard_tries(index: Index, marks: Marks) -> int:
    """Every node of the tries, and every pattern that is in one. The hash over operands has been looked at."""
    operands, tries = index.operands, marks.tries
    for o in range(1, index.state[S_OPERANDS]):
        tag, length = operands[o, O_TAG], operands[o, O_LEN]
        if operands[o, O_REFS] == 0:
            continue
        if tag & 255 == NODE and not _guard_node(index, o):
            return TRIE
        if _in_trie(tag, length):
            if length < 1 or not _is_node(index, operands[o, O_KEY], tag >> 8 << 8 | NODE):
                return TRIE
            if operands[operands[o, O_KEY], O_LOW] & LOW_HALF != o:
                return TRIE
            posted = POSTED_SUBSTRINGS
            if tag & 255 == PATTERN_CONTAINS:
                tries[(tag >> 8) * KINDS + STRING] |= 1 << top_power(length)
            else:
                posted = POSTED_PREFIXES if tag & 255 == PATTERN_PREFIX else POSTED_SUFFIXES
            tries[(tag >> 8) * KINDS + STRING] |= 1 << (DIGITS + high_bit(length))
            if operands[o, O_POSTED] != 0:
                tries[(tag >> 8) * KINDS + STRING] |= 1 << posted
    # Siblings are one list: each is named once, by its parent or by the sibling before.
    for o in range(1, index.state[S_OPERANDS]):
        if operands[o, O_REFS] != 0 and operands[o, O_TAG] & 255 == NODE:
            for other in (operands[o, O_POSTED] >> 32, operands[o, O_POSTED] & LOW_HALF):
                if other != 0:
                    if marks.operands[other] != 1:
                        return TRIE
                    marks.operands[other] = 2
    for o in range(1, index.state[S_OPERANDS]):
        if operands[o, O_REFS] == 0 or operands[o, O_TAG] & 255 != NODE:
            continue
        if (marks.operands[o] == 2) != (operands[o, O_LOW] >> 32 != 0) or not _guard_handle(index, o):
            return TRIE
    return 0


@inner_kernel
def _fits(op: int, kind: int) -> bool:
    """Whether an operator compares with operands of a kind."""
    if op <= GE:
        return NUMBER <= kind <= POINT
    if op == EXISTS:
        return kind == ANY
    if op == IS:
        return kind == WHOLE_KIND
    if op <= CONTAINS:
        return kind == PATTERN_PREFIX + op - PREFIX
    return op == PLUG and PLUGGED <= kind < KINDS


@inner_kernel
def _hold(index: Index, marks: Marks, word: int) -> int:
    """The operand of a constraint's word, held once more; 0 when it is none."""
    o = word >> 4
    if o < 1 or o >= index.state[S_OPERANDS] or index.operands[o, O_REFS] == 0:
        return 0
    tag = index.operands[o, O_TAG]
    if not _fits(word & 15, tag & 255):
        return 0
    marks.refs[o] += 1
    kind = value_kind(tag & 255)
    marks.uses[(tag >> 8) * KINDS + kind] += 1
    if kind != ANY:
        marks.uses[(tag >> 8) * KINDS] += 1
    return o


@inner_kernel
def _guard_code(index: Index, f: int, marks: Marks) -> int:
    """A filter's constraints."""
    words, operands = index.words, index.operands
    code = index.filters[f, F_CODE]
    active, total = index.filters[f, F_SIZE] & LOW_HALF, index.filters[f, F_SIZE] >> 32
    if active > total or total > index.state[S_LARGEST] or not _take_words(marks, code, total):
        return CODE
    at = code
    end = code + total
    mask = 0
    while at < end:
        word = words[at]
        span = 1
        first = at
        if word & 15 == IN:
            span = 1 + (word >> 4)
            first = at + 1
            if span < 2 or span > end - at:
                return CODE
        if at < code + active < at + span:
            return CODE
        for i in range(first, at + span):
            if first > at and (words[i] & 15 != EQ or (i > first and words[i] <= words[i - 1])):
                return CODE
            if _hold(index, marks, words[i]) == 0:
                return CODE
        if at < code + active:
            mask |= 1 << (operands[words[first] >> 4, O_TAG] >> 8 & 63)
            marks.sums[M_CONSTRAINTS] += 1
        at += span
    return 0 if mask == index.filters[f, F_MASK] else CODE


@inner_kernel
def _claim(marks: Marks, place: int, owner: int) -> bool:
    """Note down that a posting is in a list, as a filter says; whether nobody else says so."""
    if place < 1 or place >= marks.owners.shape[0] or marks.owners[place] != 0:
        return False
    marks.owners[place] = owner
    marks.sums[M_CLAIMS] += 1
    return True


@inner_kernel
def _claim_several(index: Index, f: int, marks: Marks) -> bool:
    words = index.words
    back, code = index.filters[f, F_BACK], index.filters[f, F_CODE]
    if back < 1 or back >= marks.words.shape[0]:
        return False
    count = words[back]
    if count < 1 or count > marks.words.shape[0] or not _take_words(marks, back, 1 + 2 * count):
        return False
    members = words[code] & 15 == IN
    if members and count != words[code] >> 4:
        return False
    for i in range(count):
        o = words[back + 1 + 2 * i]
        if members:
            if o != words[code + 1 + i] >> 4:
                return False
        else:
            if o < 1 or o >= index.state[S_OPERANDS] or index.operands[o, O_REFS] == 0:
                return False
            if index.operands[o, O_TAG] & 255 != CELL:
                return False
            marks.refs[o] += 1
        if not _claim(marks, words[back + 2 + 2 * i], o):
            return False
    return True


@inner_kernel
def _guard_access(index: Index, f: int, marks: Marks) -> bool:
    """Where a filter says that it is posted."""
    row = index.filters[f]
    access, skip = row[F_ACCESS] & 255, row[F_ACCESS] >> 8
    active = row[F_SIZE] & LOW_HALF
    state = row[F_STATE] & 255
    if skip < 0 or skip > active or (access != POSTED_NOWHERE) != (state in (ACTIVE, GHOST)):
        return False
    if access == POSTED_NOWHERE:
        return skip == 0
    if access == POSTED_ALWAYS:
        return active == 0 and _claim(marks, row[F_BACK], _ALWAYS)
    if active == 0:
        return False
    word = index.words[row[F_CODE]]
    op = word & 15
    if access == POSTED_SEVERAL:
        spans = op == IN and skip == word_span(word)
        return (spans or (GT <= op <= GE and skip == 0)) and _claim_several(index, f, marks)
    if op == IN:
        return False
    tag = index.operands[word >> 4, O_TAG]
    field = (tag >> 8) * KINDS + value_kind(tag & 255)
    if access == POSTED_OPERAND:
        wanted = op == EQ or PREFIX <= op <= PLUG
        return wanted and skip == 1 and _claim(marks, row[F_BACK], word >> 4)
    if access == POSTED_WIDE:
        wanted = (op == NE and skip == 0) or (op in (IS, EXISTS) and skip == 1)
        return wanted and _claim(marks, row[F_BACK], -2 - field)
    if skip != 1:
        return False
    if access == POSTED_BELOW:
        marks.crossing[f] = 1 + (field << 1)
        marks.sums[M_CROSSING] += 1
        return LT <= op <= LE
    if access == POSTED_ABOVE:
        marks.crossing[f] = 1 + (field << 1 | 1)
        marks.sums[M_CROSSING] += 1
        return GT <= op <= GE
    return False


@inner_kernel
def _is_filter(index: Index, f: int) -> bool:
    return 1 <= f < index.state[S_FILTERS] and index.filters[f, F_STATE] & 255 != FREE


@inner_kernel
def _guard_interface(index: Index, interfaces: Ints, f: int, marks: Marks) -> bool:
    """The list of a filter's interface, on both sides of it."""
    filters = index.filters
    owner = filters[f, F_IFACE]
    marks.counts[owner] += 1
    before, behind = filters[f, F_PREVIOUS], filters[f, F_FOLLOWING]
    if before == 0:
        if interfaces[owner, I_FIRST] != f:
            return False
    elif (
        not _is_filter(index, before)
        or filters[before, F_STATE] & 255 == GHOST
        or filters[before, F_FOLLOWING] != f
        or filters[before, F_IFACE] != owner
    ):
        return False
    return behind == 0 or (
        _is_filter(index, behind) and filters[behind, F_STATE] & 255 != GHOST and filters[behind, F_PREVIOUS] == f
    )


@inner_kernel
def _guard_kin(index: Index, f: int) -> bool:
    """The filter that covers a filter, those beside it, and the first that it covers."""
    filters = index.filters
    parent, child = filters[f, F_PARENT], filters[f, F_CHILD]
    elder, younger = filters[f, F_ELDER], filters[f, F_YOUNGER]
    state = filters[f, F_STATE] & 255
    if child != 0:
        if not _is_filter(index, child) or filters[child, F_PARENT] != f or filters[child, F_ELDER] != 0:
            return False
        if state == VOID:
            return False
    elif state == GHOST:
        return False
    if (parent != 0) != (state == COVERED):
        return False
    if parent == 0:
        return elder == 0 and younger == 0
    if not _is_filter(index, parent) or filters[parent, F_IFACE] != filters[f, F_IFACE]:
        return False
    if elder == 0:
        if filters[parent, F_CHILD] != f:
            return False
    elif not _is_filter(index, elder) or filters[elder, F_YOUNGER] != f or filters[elder, F_PARENT] != parent:
        return False
    return younger == 0 or (_is_filter(index, younger) and filters[younger, F_ELDER] == f)


@inner_kernel
def _guard_group(index: Index, f: int, marks: Marks) -> bool:
    """The chain of a filter's group, or that of ghosts, on both sides of it."""
    filters = index.filters
    group, state = filters[f, F_GROUP], filters[f, F_STATE] & 255
    if group != 0:
        if state != ACTIVE or group < 1 or group >= index.state[S_OPERANDS]:
            return False
        if index.operands[group, O_TAG] != GROUP or index.operands[group, O_REFS] == 0:
            return False
        if index.operands[group, O_LOW] != filters[f, F_IFACE]:
            return False
        marks.refs[group] += 1
        first = index.operands[group, O_LEN]
    elif state == GHOST:
        first = index.state[S_GHOST]
    else:
        return True
    before, behind = filters[f, F_GROUP_PREVIOUS], filters[f, F_GROUP_NEXT]
    if before == 0:
        if first != f:
            return False
    elif (
        not _is_filter(index, before)
        or filters[before, F_GROUP_NEXT] != f
        or filters[before, F_GROUP] != group
        or (group == 0 and filters[before, F_STATE] & 255 != GHOST)
    ):
        return False
    return behind == 0 or (
        _is_filter(index, behind)
        and filters[behind, F_GROUP_PREVIOUS] == f
        and filters[behind, F_GROUP] == group
        and (group != 0 or filters[behind, F_STATE] & 255 == GHOST)
    )


@bare_kernel
def guard_filters(index: Index, interfaces: Ints, known: int, marks: Marks) -> int:
    """Each filter. There are `known` numbers of interfaces."""
    filters, state = index.filters, index.state
    for f in range(1, state[S_FILTERS]):
        now = filters[f, F_STATE] & 255
        if filters[f, F_STATE] < 0 or now > GHOST:
            return CODE
        marks.sums[M_STATES + now] += 1
        if now == FREE:
            continue
        if filters[f, F_IFACE] < 1 or filters[f, F_IFACE] >= known:
            return INTERFACE
        fault = _guard_code(index, f, marks)
        if fault != 0:
            return fault
        if not _guard_access(index, f, marks):
            return POSTED
        if now != GHOST and not _guard_interface(index, interfaces, f, marks):
            return INTERFACE
        if not _guard_kin(index, f):
            return FOREST
        if not _guard_group(index, f, marks):
            return GROUPED
    free = 0
    f = state[S_FILTER_FREE]
    while f != 0:
        if f < 1 or f >= state[S_FILTERS] or filters[f, F_STATE] & 255 != FREE or free > marks.sums[M_STATES + FREE]:
            return FREED
        free += 1
        f = filters[f, F_FOLLOWING]
    if free != marks.sums[M_STATES + FREE]:
        return FREED
    for number in range(1, known):
        first, count = interfaces[number, I_FIRST], interfaces[number, I_COUNT]
        if count != marks.counts[number] or (first == 0) != (count == 0):
            return INTERFACE
        if first != 0:
            if not _is_filter(index, first) or filters[first, F_IFACE] != number:
                return INTERFACE
            if filters[first, F_PREVIOUS] != 0 or filters[first, F_STATE] & 255 == GHOST:
                return INTERFACE
    return 0


@bare_kernel
def guard_forest(index: Index, marks: Marks) -> int:
    """From those that nothing covers every covered filter is reached, so none is above itself."""
    filters = index.filters
    reached = 0
    for root in range(1, index.state[S_FILTERS]):
        if filters[root, F_STATE] & 255 == FREE or filters[root, F_PARENT] != 0 or filters[root, F_CHILD] == 0:
            continue
        f = filters[root, F_CHILD]
        while f != root:
            reached += 1
            if filters[f, F_CHILD] != 0:
                f = filters[f, F_CHILD]
                continue
            while f != root and filters[f, F_YOUNGER] == 0:
                f = filters[f, F_PARENT]
            if f != root:
                f = filters[f, F_YOUNGER]
    return 0 if reached == marks.sums[M_STATES + COVERED] else FOREST


@inner_kernel
def _guard_list(index: Index, head: int, owner: int, marks: Marks) -> int:
    """A posting list: of an operand, of a field, or of all."""
    postings, filters = index.postings, index.filters
    first = True
    while head != 0:
        if head < 1 or head >= marks.postings.shape[0]:
            return LIST
        size, count = postings[head, 1] >> 32, postings[head, 1] & COUNT
        if size < 0 or size > 2 or count < 1 or count >= block_rows(size):
            return LIST
        if not _take(marks.postings, head, block_rows(size)) or (not first and count + 1 != block_rows(size)):
            return LIST
        for place in range(head + 1, head + 1 + count):
            payload = postings[place, 1]
            f = payload >> 33
            if not _is_filter(index, f) or payload != payload_of(index, f):
                return LIST
            if postings[place, 0] != (0 if owner == _ALWAYS else filters[f, F_MASK]):
                return LIST
            if marks.owners[place] != owner:
                return LIST
            marks.sums[M_ENTRIES] += 1
        head = postings[head, 0]
        first = False
    return 0


@inner_kernel
def _guard_directory(index: Index, directory: int, field: int, side: int, marks: Marks) -> int:
    """The thresholds of a field, on one side."""
    words, thresholds = index.words, index.thresholds
    if directory < 1 or directory > marks.words.shape[0] - 4:
        return DIRECTORY
    size, blocks = words[directory], words[directory + 1]
    if size < 4 or size > marks.words.shape[0] or size & (size - 1) != 0 or blocks < 1 or blocks > size - FIRST_BLOCK:
        return DIRECTORY
    if not _take(marks.words, directory, size):
        return PIECE
    met = 0
    for at in range(directory + FIRST_BLOCK, directory + FIRST_BLOCK + blocks):
        block = words[at]
        if not _take(marks.thresholds, block, ROWS):
            return DIRECTORY
        count = thresholds[block, 0]
        if count < 1 or count >= ROWS:
            return DIRECTORY
        for row in range(block + 1, block + 1 + count):
            f = thresholds[row, 2] >> 33
            if not _is_filter(index, f) or thresholds[row, 2] != payload_of(index, f):
                return DIRECTORY
            if marks.crossing[f] != 1 + (field << 1 | side) or thresholds[row, 1] != index.filters[f, F_MASK]:
                return DIRECTORY
            operand = index.words[index.filters[f, F_CODE]] >> 4
            if thresholds[row, 3] >> 16 != operand or thresholds[row, 0] != index.operands[operand, O_KEY]:
                return DIRECTORY
            marks.crossing[f] = 0
            met += 1
    marks.sums[M_CROSSED] += met
    return 0 if met == words[directory + 2] else DIRECTORY


@bare_kernel
def guard_lists(index: Index, names: int, marks: Marks) -> int:
    """Every list of postings and thresholds, and every free piece of memory."""
    fields, state = index.fields, index.state
    for o in range(1, state[S_OPERANDS]):
        if index.operands[o, O_REFS] != 0 and index.operands[o, O_POSTED] != 0:
            if index.operands[o, O_TAG] & 255 == NODE:
                continue
            fault = _guard_list(index, index.operands[o, O_POSTED], o, marks)
            if fault != 0:
                return fault
    fault = _guard_list(index, state[S_ALWAYS], _ALWAYS, marks)
    if fault != 0:
        return fault
    for row in range(names * KINDS):
        field = fields[row]
        if field[N_WIDE] != 0:
            fault = _guard_list(index, field[N_WIDE], -2 - row, marks)
            if fault != 0:
                return fault
        for side in range(2):
            directory = field[N_ABOVE] if side else field[N_BELOW]
            if directory != 0:
                fault = _guard_directory(index, directory, row, side, marks)
                if fault != 0:
                    return fault
        if field[N_PREFIXES] < 0 or field[N_SUFFIXES] < 0 or field[N_TRIES] != marks.tries[row]:
            return FIELD
        if field[N_COUNTS] != 0 and not _take_words(marks, field[N_COUNTS], _COUNTERS):
            return FIELD
    for size in range(3):
        block = state[S_POSTING_FREE + size]
        while block != 0:
            if not _take(marks.postings, block, block_rows(size)) or index.postings[block, 1] >> 32 != size:
                return FREED
            block = index.postings[block, 0]
    block = state[S_THRESHOLD_FREE]
    while block != 0:
        if not _take(marks.thresholds, block, ROWS):
            return FREED
        block = index.thresholds[block, 1]
    for power in range(state.shape[0] - S_WORD_FREE):
        place = state[S_WORD_FREE + power]
        while place != 0:
            if power > _LARGEST_PIECE or not _take(marks.words, place, 1 << power):
                return FREED
            place = index.words[place]
    return 0


@bare_kernel
def guard_sums(index: Index, names: int, marks: Marks) -> int:
    """What is counted is there, and is held as often as it says."""
    state, sums = index.state, marks.sums
    for o in range(1, state[S_OPERANDS]):
        if index.operands[o, O_REFS] != marks.refs[o] and index.operands[o, O_TAG] & 255 != NODE:
            return SUM
    for row in range(names * KINDS):
        if index.fields[row, N_USES] != marks.uses[row]:
            return SUM
    counted = sums[M_STATES + ACTIVE] + sums[M_STATES + COVERED] + sums[M_STATES + VOID]
    agree = (
        counted == state[S_FILTER_COUNT]
        and sums[M_STATES + ACTIVE] == state[S_ACTIVE]
        and sums[M_STATES + COVERED] == state[S_COVERED]
        and sums[M_STATES + VOID] == state[S_VOID]
        and sums[M_STATES + GHOST] == state[S_GHOSTS]
        and (state[S_GHOST] == 0) == (state[S_GHOSTS] == 0)
        and sums[M_CONSTRAINTS] == state[S_CONSTRAINTS]
        and sums[M_ENTRIES] == state[S_POSTING_COUNT]
        and sums[M_CLAIMS] == sums[M_ENTRIES]
        and 0 <= state[S_LARGEST] <= state[S_WORDS]
        and sums[M_CROSSED] == state[S_THRESHOLD_COUNT]
        and sums[M_CROSSING] == sums[M_CROSSED]
    )
    return 0 if agree else SUM
