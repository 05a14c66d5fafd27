"""What the guards share: what can be wrong with a loaded table, and what has been met of it so far.

`Marks` is all zero at the beginning. A list that meets a piece of memory twice is refused there, so every walk ends.

What is called for each row takes the arrays that it needs, or is inlined: an `Index` and `Marks` are 150 numbers, and
handing them on took longer than all that is looked at.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from contrada.forwarding.kernels.memory.layout import Bytes, Ints  # noqa: TC001  # the fields of a NamedTuple are looked up
from contrada.forwarding.kernels.memory.words import size_class
from contrada.spatial.storage.jit import bare_inline_kernel, bare_kernel

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
M_CROSSING: Final = 2  # thresholds that filters say they are posted under
M_CONSTRAINTS: Final = 3
M_STATES: Final = 4  # filters by state: 4 to 8
M_ENTRIES: Final = 9  # of posting lists
M_CROSSED: Final = 10  # entries of thresholds
M_INTERFACES: Final = 11  # that have filters
M_COUNTED: Final = 12  # filters posted under all of their constraints
SUMS: Final = 13

ALWAYS: Final = -1  # whose posting it is: an operand's, this list's, or below it a field's (`wide_owner`)
MOST_NAMES: Final = 1 << 22  # so that a tag fits into half a word


class Marks(NamedTuple):
    """What has been met."""

    words: Bytes  # taken by a piece: 1; 2 for a constraint that is among the thresholds, if its filter is counted
    postings: Bytes  # rows of blocks
    thresholds: Bytes
    named: Bytes  # nodes of tries, by their parent or the sibling before
    holders: Ints  # by operand: halves(its tag, who has yet to be found of those that hold it), 0 for one that is free
    links: Ints  # by operand: halves(1 + bucket, the next of its chain), 0 for one that is free; -1 when met
    owners: Ints  # by posting: the list that a filter says it is in
    crossing: Ints  # by filter: `crossing_of` its threshold
    uses: Ints  # by field
    tries: Ints  # by field: what its N_TRIES should be
    counts: Ints  # by interface number
    sums: Ints


@bare_inline_kernel
def take(marks: Bytes, place: int, size: int) -> bool:
    """Mark a run; whether it lies inside and nobody has it yet."""
    if place < 1 or size < 1 or size > marks.shape[0] or place > marks.shape[0] - size:
        return False
    for i in range(place, place + size):
        if marks[i] != 0:
            return False
        marks[i] = 1
    return True


@bare_inline_kernel
def take_piece(words: Bytes, place: int, count: int) -> bool:
    """Mark the piece that was taken for `count` words."""
    return 0 <= count <= words.shape[0] and take(words, place, 1 << size_class(count))


@bare_kernel
def wide_owner(field: int) -> int:
    """The owner of postings in the list of a field."""
    return ALWAYS - 1 - field


@bare_kernel
def crossing_of(field: int, side: int) -> int:
    """The mark of a filter that is posted under a threshold, below (0) or above (1); never 0."""
    return 1 + (field << 1 | side)


@bare_inline_kernel
def is_operand(holders: Ints, o: int) -> bool:
    """Whether it is the row of an operand that is in use. Operands have been looked at, each by itself."""
    return 1 <= o < holders.shape[0] and holders[o] != 0
