"""How prefixes, suffixes, substrings and intervals are filed, so that values find them (finding.py).

**Prefixes and suffixes** of up to 62 bytes are found by hash: the name's field has one bit per length that occurs,
and reading a string once gives the hash of each of its prefixes (from the other end, of each suffix).

**Substrings**, and longer prefixes and suffixes, are filed under one of their *grams*: `2**k` consecutive bytes, the
longest power of two up to 32 that fits, and of eight spread over the pattern the one that the fewest patterns share.
A gram is an operand of its own kind whose posting list holds (offset of the gram in the pattern, pattern). Searching
rolls one hash along the text for each k that occurs at that name, and compares bytes where a gram is hit.

An Aho-Corasick automaton would find all patterns in one pass with a worst case that does not depend on them, but it is
static: adding one pattern means building it again. Here a pattern is added or removed without that, and a search is
about as fast on ordinary text (benchmarks/forwarding.py measures both); only patterns that share all eight sampled
grams, and text full of that gram, cost more than their matches.

**Intervals**: a two-sided range of numbers is filed under the one or two dyadic cells, of the smallest size not below
its own, that it touches, in the space of order-preserving keys. A value looks its cell up once per size that occurs.
"""

from __future__ import annotations

from contrada.forwarding.index.keys import gram_hash
from contrada.forwarding.index.layout import (
    CELL,
    EVENT_POSTED,
    EVENT_UNPOSTED,
    GRAM,
    KINDS,
    N_COUNTS,
    N_GRAMS,
    N_PREFIXES,
    N_SUFFIXES,
    O_KEY,
    O_LEN,
    O_LOW,
    O_POSTED,
    O_REFS,
    O_TAG,
    PATTERN_CONTAINS,
    PATTERN_PREFIX,
    PATTERN_SUFFIX,
    PLUGGED,
    S_EVENTS,
    STRING,
    Index,
    Ints,
)
from contrada.forwarding.index.operands import find_text, free_operand, intern_text
from contrada.forwarding.index.postings import drop_posting, push_posting
from contrada.forwarding.index.words import take_words
from contrada.spatial._jit import inner_kernel

LONGEST_AFFIX = 62
_LONGEST_GRAM = 5  # as a power of two
_SAMPLES = 8
_COUNTERS = 256


@inner_kernel
def say(index: Index, events: Ints, what: int, tag: int, value: int) -> None:
    """Leave an event for the Python side."""
    n = index.state[S_EVENTS]
    events[n, 0] = what
    events[n, 1] = tag
    events[n, 2] = value
    index.state[S_EVENTS] = n + 1


@inner_kernel
def _count_bit(index: Index, field: int, column: int, bit: int, change: int) -> None:
    """Count one more or one less behind a bit of a field's mask, and set the mask accordingly."""
    fields, words = index.fields, index.words
    if fields[field, N_COUNTS] == 0:
        place = take_words(index, _COUNTERS)
        for i in range(_COUNTERS):
            words[place + i] = 0
        fields[field, N_COUNTS] = place
    at = fields[field, N_COUNTS] + (column - N_PREFIXES) * 64 + bit
    words[at] += change
    if words[at] == 0:
        fields[field, column] &= ~(1 << bit)
    else:
        fields[field, column] |= 1 << bit


@inner_kernel
def gram_power(length: int) -> int:
    """The power of two of the gram that a pattern of that length is filed under."""
    power = 0
    while power < _LONGEST_GRAM and (2 << power) <= length:
        power += 1
    return power


@inner_kernel
def _file_pattern(index: Index, pattern: int) -> None:
    operands = index.operands
    start = operands[pattern, O_LOW]
    length = operands[pattern, O_LEN]
    name = operands[pattern, O_TAG] >> 8
    tag = name << 8 | GRAM
    power = gram_power(length)
    size = 1 << power
    best = 0
    fewest = -1
    step = max(1, (length - size) // (_SAMPLES - 1))
    for offset in range(0, length - size + 1, step):
        gram = find_text(index, tag, gram_hash(index.text, start + offset, size), index.text, start + offset, size)
        sharing = operands[gram, O_REFS] if gram != 0 else 0
        if fewest < 0 or sharing < fewest:
            best = offset
            fewest = sharing
            if sharing == 0:
                break
    state = gram_hash(index.text, start + best, size)
    gram = intern_text(index, tag, state, 0, index.text, start + best, size)
    operands[gram, O_REFS] += 1
    operands[gram, O_POSTED], operands[pattern, O_KEY] = push_posting(index, operands[gram, O_POSTED], best, pattern)
    _count_bit(index, name * KINDS + STRING, N_GRAMS, power, 1)


@inner_kernel
def _unfile_pattern(index: Index, pattern: int) -> None:
    operands = index.operands
    place = operands[pattern, O_KEY]
    name = operands[pattern, O_TAG] >> 8
    power = gram_power(operands[pattern, O_LEN])
    at = operands[pattern, O_LOW] + index.postings[place, 0]
    gram = find_text(index, name << 8 | GRAM, gram_hash(index.text, at, 1 << power), index.text, at, 1 << power)
    operands[gram, O_POSTED], moved, other = drop_posting(index, operands[gram, O_POSTED], place)
    if moved != 0:
        operands[other, O_KEY] = place
    operands[gram, O_REFS] -= 1
    if operands[gram, O_REFS] == 0:
        free_operand(index, gram)
    _count_bit(index, name * KINDS + STRING, N_GRAMS, power, -1)


@inner_kernel
def file_operand(index: Index, operand: int, events: Ints) -> None:
    """Make searches find an operand that a filter has just been posted under for the first time."""
    tag = index.operands[operand, O_TAG]
    kind = tag & 255
    field = (tag >> 8) * KINDS + STRING
    length = index.operands[operand, O_LEN]
    if kind == CELL:
        low = index.operands[operand, O_LOW]
        _count_bit(index, (tag >> 8) * KINDS + (low & 255), N_PREFIXES, low >> 8, 1)
    elif kind == PATTERN_PREFIX and length <= LONGEST_AFFIX:
        _count_bit(index, field, N_PREFIXES, length, 1)
    elif kind == PATTERN_SUFFIX and length <= LONGEST_AFFIX:
        _count_bit(index, field, N_SUFFIXES, length, 1)
    elif PATTERN_PREFIX <= kind <= PATTERN_CONTAINS:
        _file_pattern(index, operand)
    elif PLUGGED <= kind < KINDS:
        say(index, events, EVENT_POSTED, tag, index.operands[operand, O_KEY])


@inner_kernel
def unfile_operand(index: Index, operand: int, events: Ints) -> None:
    """Undo `file_operand`, when the last filter posted there is gone."""
    tag = index.operands[operand, O_TAG]
    kind = tag & 255
    field = (tag >> 8) * KINDS + STRING
    length = index.operands[operand, O_LEN]
    if kind == CELL:
        low = index.operands[operand, O_LOW]
        _count_bit(index, (tag >> 8) * KINDS + (low & 255), N_PREFIXES, low >> 8, -1)
    elif kind == PATTERN_PREFIX and length <= LONGEST_AFFIX:
        _count_bit(index, field, N_PREFIXES, length, -1)
    elif kind == PATTERN_SUFFIX and length <= LONGEST_AFFIX:
        _count_bit(index, field, N_SUFFIXES, length, -1)
    elif PATTERN_PREFIX <= kind <= PATTERN_CONTAINS:
        _unfile_pattern(index, operand)
    elif PLUGGED <= kind < KINDS:
        say(index, events, EVENT_UNPOSTED, tag, index.operands[operand, O_KEY])
