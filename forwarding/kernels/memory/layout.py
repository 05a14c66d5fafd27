"""What the forwarding table's arrays hold: eight growable arrays of 64-bit integers, and nothing else.

    operands   (n, 8)   what constraints compare with, each once: a name and a value, interned by hash
    filters    (n, 16)  one row per filter: its interface, names, constraints, where it is posted, what covers it
    fields     (n, 8)   one row per (name, kind): the indexes over the filters posted under that name
    postings   (n, 2)   blocks of posting lists: who must be looked at when an operand is hit      (postings.py)
    thresholds (n, 4)   sorted blocks of order constraints                                       (thresholds.py)
    heads      (n,)     buckets of the hash over operands, grown one bucket at a time              (interning.py)
    words      (n,)     strings, constraint lists, directories: a power-of-two allocator              (words.py)
    state      (64,)    tops and free lists of all of these, and counts

Zero is "none" everywhere (row 0 of every array is never used), so freshly grown memory, which the system hands out
zeroed, is already empty. A NamedTuple of nine arrays crosses into compiled code in about two microseconds; with one
array per column it would be ten times that, which is why rows are wide.

An *operand* is a triple (name, kind, value): the right side of a constraint. `price < 100`, `price = 100` and
`price != 100` share one. A constraint inside a filter is the word `operand << 4 | operator`; `in` is the word
`count << 4 | IN` followed by its operands' EQ words in ascending order.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]
Floats: TypeAlias = NDArray[np.float64]


class Index(NamedTuple):
    """The arrays, as kernels see them. `text` is `words` seen as bytes."""

    operands: Ints
    filters: Ints
    fields: Ints
    postings: Ints
    thresholds: Ints
    heads: Ints
    words: Ints
    text: Bytes
    state: Ints


# Kinds of values. Operands of a kind from PLUGGED on belong to a plugged-in type; their value is its handle.
ANY: Final = 0  # of `exists`, which asks for no kind
NUMBER: Final = 1
STRING: Final = 2
BOOL: Final = 3
TIME: Final = 4
POINT: Final = 5  # a value like a number for `=`, and what plugged-in regions are also asked about
PLUGGED: Final = 6
REGION: Final = 6
GEOTEXT: Final = 7
SET: Final = 8
KINDS: Final = 16  # room for types to come, and FLOAT of kernels/match/batch.py
# Kinds of operands that no value has: patterns, and what indexes intern for themselves.
PATTERN_PREFIX: Final = 16
PATTERN_SUFFIX: Final = 17
PATTERN_CONTAINS: Final = 18
NODE: Final = 19  # of the tries that patterns are in (kernels/substrings/tries.py)
CELL: Final = 20  # a dyadic interval that two-sided ranges are filed under
WHOLE_KIND: Final = 21  # "is a string": what an empty pattern asks; the key is the operator it came with
GROUP: Final = 22  # the filters of one interface that ask for the same names (kernels/change/simplifying.py)
PATTERN_LIKE: Final = 23

# Operators of constraint words, cheapest to verify first.
EQ: Final = 0
NE: Final = 1
LT: Final = 2
LE: Final = 3
GT: Final = 4
GE: Final = 5
EXISTS: Final = 6
IN: Final = 7
IS: Final = 8
PREFIX: Final = 9
SUFFIX: Final = 10
CONTAINS: Final = 11
PLUG: Final = 12
NOT: Final = 13  # a string without the pattern that its operand is
LIKE: Final = 14
OPERATORS: Final = 16
ABSENT: Final = 15  # no value at all: `not exists`, whose operand is that of `exists`

# Columns of `operands`.
O_HASH: Final = 0
O_NEXT: Final = 1  # next operand of the hash bucket, or of the free list
O_TAG: Final = 2  # name << 8 | kind
O_REFS: Final = 3  # constraints (of all filters) that hold it; 0: free
O_KEY: Final = 4  # order-preserving integer: of a number, of a string's first eight bytes; or a handle
O_LOW: Final = 5  # what the key of a number rounded away; a string's place in `text`
O_LEN: Final = 6  # a string's length in bytes; the first filter of a group; the share of a plugged-in operand
O_POSTED: Final = 7  # posting list of the filters to look at when this operand is hit

# A plugged-in operand's share of the values under its name that are expected to satisfy it, in these units; 0 for one
# that nobody has estimated.
SHARES: Final = 1 << 31

# Columns of `filters`.
F_MASK: Final = 0  # what it needs of a notification (kernels/match/masks.py)
F_INTERFACE: Final = 1
F_CODE: Final = 2  # its constraints' place in `words`
F_SIZE: Final = 3  # words to verify | words in all << 32; those in between are redundant (rule 2)
F_ACCESS: Final = (
    4  # how it is posted: one of the POSTED_ values | words that this decides << 8, or of POSTED_ALL: constraints
)
F_BACK: Final = 5  # place of its posting, or place in `words` of several
F_STATE: Final = 6  # state | generation << 8
F_PREVIOUS: Final = 7  # the filters of one interface
F_FOLLOWING: Final = 8
F_PARENT: Final = 9  # the filter that covers it
F_CHILD: Final = 10  # first of those it covers
F_ELDER: Final = 11
F_YOUNGER: Final = 12
F_GROUP: Final = 13  # the operand that chains the active filters of its interface with the same names
F_GROUP_PREVIOUS: Final = 14  # these two chain ghosts as well
F_GROUP_NEXT: Final = 15

FREE: Final = 0
ACTIVE: Final = 1  # posted: matching finds it
COVERED: Final = 2  # examined only when its parent matched
VOID: Final = 3  # nothing satisfies it (rule 1)
GHOST: Final = 4  # removed, but still posted for those it covers, which are moved away a few per operation

POSTED_NOWHERE: Final = 0
POSTED_OPERAND: Final = 1  # in the list of its first constraint's operand
POSTED_SEVERAL: Final = 2  # in the lists of several operands: F_BACK -> words: count, then operand, place pairs
POSTED_WIDE: Final = 3  # in the list of its first constraint's (name, kind)
POSTED_BELOW: Final = 4  # among the `<` and `<=` thresholds of its first constraint's (name, kind)
POSTED_ABOVE: Final = 5  # among the `>` and `>=` thresholds
POSTED_ALWAYS: Final = 6  # asks for no attribute to be there: has no constraints, or all are ABSENT
POSTED_ALL: Final = 7  # under each of its constraints: F_BACK -> words: a place for each word, 0 for a threshold's

# How filters of several constraints are posted (S_MATCHING).
SELECTIVE: Final = 0  # under the one that makes the least work
COUNTING: Final = 1  # under all
AUTO: Final = 2  # whichever of these is expected to make less, for each
STOPPING: Final = 3  # auto, where most interfaces match most notifications: as SELECTIVE, which finds that out sooner
SEARCHING: Final = 4  # auto, where much is left to plugged-in types: filters with their constraints are COUNTING
MOST_COUNTED: Final = 1 << 20  # constraints of a filter that is counted: fewer

# Columns of `fields`, row name * KINDS + kind.
N_WIDE: Final = 0  # posting list of filters that hold on most values of that kind
N_BELOW: Final = 1  # directory of thresholds
N_ABOVE: Final = 2
N_PREFIXES: Final = 3  # bit n set: there are prefixes of n bytes to look up
N_SUFFIXES: Final = 4
N_TRIES: Final = 5  # which patterns its tries have (kernels/match/patterns.py)
N_COUNTS: Final = 6  # words: how many patterns stand behind each bit of the three masks, 64 each; then of cells
N_USES: Final = 7  # constraints on that name and kind; in the row of kind ANY, on that name

# Places in `state`.
S_OPERANDS: Final = 0  # top: rows in use or free
S_OPERAND_FREE: Final = 1
S_OPERAND_COUNT: Final = 2
S_FILTERS: Final = 3
S_FILTER_FREE: Final = 4
S_FILTER_COUNT: Final = 5
S_POSTINGS: Final = 6
S_POSTING_FREE: Final = 7  # three size classes: 7, 8, 9
S_THRESHOLDS: Final = 10
S_THRESHOLD_FREE: Final = 11
S_BUCKETS: Final = 12
S_BUCKET_MASK: Final = 13
S_WORDS: Final = 14
S_ALWAYS: Final = 15  # posting list of the filters that are POSTED_ALWAYS
S_EVENTS: Final = 16
S_POSTING_COUNT: Final = 17
S_THRESHOLD_COUNT: Final = 18
S_ACTIVE: Final = 19
S_COVERED: Final = 20
S_VOID: Final = 21
S_GHOSTS: Final = 22  # how many
S_GHOST: Final = 23  # one of them, linked by F_GROUP_NEXT
S_CONSTRAINTS: Final = 24
S_LARGEST: Final = 25  # words of the largest filter there has been
S_BASE: Final = 26  # of fingerprints (kernels/substrings/fingerprints.py), drawn by each table
S_INVERSE: Final = 27  # one divided by it
S_MATCHING: Final = 28  # how filters are posted: SELECTIVE, COUNTING or AUTO
S_INTERFACES: Final = 29  # how many have filters
S_PLUGS: Final = 30  # constraints of plugged-in types of the filter that has had most
S_COUNTED: Final = 31  # filters posted under all of their constraints
S_WORD_FREE: Final = 32  # by power of two: 32 to 63
STATE_SIZE: Final = 64

# Events tell the Python side what a change did to names and to plugged-in types.
EVENT_NAME_FREE: Final = 1  # name
EVENT_HANDLE_FREE: Final = 2  # tag, handle: no constraint holds it any more
EVENT_POSTED: Final = 3  # tag, operand << 32 | handle: searches must find it
EVENT_UNPOSTED: Final = 4
