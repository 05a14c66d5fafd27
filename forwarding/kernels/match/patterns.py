"""How prefixes, suffixes, substrings and intervals are filed, so that values find them (finding.py).

**Prefixes and suffixes** of up to 62 bytes are found by hash: the name's field has one bit per length that occurs,
and reading a string once gives the hash of each of its prefixes (from the other end, of each suffix).

**Substrings**, and longer prefixes and suffixes, are in tries (tries.py) from when they are interned to when they are
freed. The field's N_TRIES has a bit for each size of tops that occurs among the substrings, one each for whether such
substrings, prefixes and suffixes have filters posted under them, and one for each number of binary digits in a length
that occurs, which bounds how far a search must look. A text is searched once for all substrings, those that filters are
posted under and those that are only verified: O(text * log(longest pattern) + patterns found), whatever they are.

An Aho-Corasick automaton would need O(text + matches), but it is static: adding one pattern means building it again.
Here a pattern is added or removed without that, and a search is about as fast (benchmarks/forwarding.py measures both).

**Intervals**: a two-sided range of numbers is filed under the one or two dyadic cells, of the smallest size not below
its own, that it touches, in the space of order-preserving keys. A value looks its cell up once per size that occurs.
"""

from __future__ import annotations

from contrada.forwarding.kernels.memory.bits import halves, tag_kind, tag_name
from contrada.forwarding.kernels.memory.layout import (
    CELL,
    EVENT_POSTED,
    EVENT_UNPOSTED,
    KINDS,
    N_COUNTS,
    N_PREFIXES,
    N_SUFFIXES,
    N_TRIES,
    O_KEY,
    O_LEN,
    O_LOW,
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
from contrada.forwarding.kernels.memory.words import take_words
from contrada.forwarding.kernels.substrings.fingerprints import high_bit
from contrada.forwarding.kernels.substrings.tries import insert_pattern, remove_pattern, top_power
from contrada.spatial.storage.jit import bare_kernel

LONGEST_AFFIX = 62
_COUNTERS = 256

# Bits of N_TRIES, above those of the sizes of tops.
POSTED_PREFIXES = 6
POSTED_SUFFIXES = 7
POSTED_SUBSTRINGS = 8
DIGITS = 9  # the first of those that say how long patterns are


@bare_kernel
def say(index: Index, events: Ints, what: int, tag: int, value: int) -> None:
    """Leave an event for the Python side."""
    n = index.state[S_EVENTS]
    events[n, 0] = what
    events[n, 1] = tag
    events[n, 2] = value
    index.state[S_EVENTS] = n + 1


@bare_kernel
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


@bare_kernel
def _in_trie(tag: int, length: int) -> bool:
    kind = tag_kind(tag)
    return kind == PATTERN_CONTAINS or (PATTERN_PREFIX <= kind <= PATTERN_SUFFIX and length > LONGEST_AFFIX)


@bare_kernel
def keep_pattern(index: Index, operand: int) -> None:
    """Put a pattern that has just been interned where searches look; other operands are left as they are."""
    tag, length = index.operands[operand, O_TAG], index.operands[operand, O_LEN]
    if _in_trie(tag, length):
        insert_pattern(index, operand)
        _count_pattern(index, tag, length, 1)


@bare_kernel
def drop_pattern(index: Index, operand: int) -> None:
    """Undo `keep_pattern`, before the operand is freed."""
    tag, length = index.operands[operand, O_TAG], index.operands[operand, O_LEN]
    if _in_trie(tag, length):
        remove_pattern(index, operand)
        _count_pattern(index, tag, length, -1)


@bare_kernel
def _count_pattern(index: Index, tag: int, length: int, change: int) -> None:
    field = tag_name(tag) * KINDS + STRING
    if tag_kind(tag) == PATTERN_CONTAINS:
        _count_bit(index, field, N_TRIES, top_power(length), change)
    _count_bit(index, field, N_TRIES, DIGITS + high_bit(length), change)


@bare_kernel
def _count_posted(index: Index, operand: int, events: Ints, change: int) -> None:
    """Count one more or one less operand that filters are posted under."""
    tag = index.operands[operand, O_TAG]
    kind = tag_kind(tag)
    field = tag_name(tag) * KINDS + STRING
    length = index.operands[operand, O_LEN]
    if kind == CELL:
        low = index.operands[operand, O_LOW]
        _count_bit(index, tag_name(tag) * KINDS + (low & 255), N_PREFIXES, low >> 8, change)
    elif kind == PATTERN_CONTAINS:
        _count_bit(index, field, N_TRIES, POSTED_SUBSTRINGS, change)
    elif kind == PATTERN_PREFIX and length <= LONGEST_AFFIX:
        _count_bit(index, field, N_PREFIXES, length, change)
    elif kind == PATTERN_SUFFIX and length <= LONGEST_AFFIX:
        _count_bit(index, field, N_SUFFIXES, length, change)
    elif kind == PATTERN_PREFIX:
        _count_bit(index, field, N_TRIES, POSTED_PREFIXES, change)
    elif kind == PATTERN_SUFFIX:
        _count_bit(index, field, N_TRIES, POSTED_SUFFIXES, change)
    elif PLUGGED <= kind < KINDS:
        handle = index.operands[operand, O_KEY]
        if change > 0:
            say(index, events, EVENT_POSTED, tag, halves(operand, handle))
        else:
            say(index, events, EVENT_UNPOSTED, tag, handle)


@bare_kernel
def file_operand(index: Index, operand: int, events: Ints) -> None:
    """Make searches find an operand that a filter has just been posted under for the first time."""
    _count_posted(index, operand, events, 1)


@bare_kernel
def unfile_operand(index: Index, operand: int, events: Ints) -> None:
    """Undo `file_operand`, when the last filter posted there is gone."""
    _count_posted(index, operand, events, -1)
