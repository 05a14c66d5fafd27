"""A partition tree's memory: one arena of 32-bit words that holds every node, and the blocks it is cut into.

Pointers are word offsets into the arena. Word 0 is never a node, so 0 is the null pointer; word 1 points to the root.
Nodes begin with four words, and then (c cuts; columns × rows = n cells; capacity k):

    query node    kind, WEIGHT, k, RETRY      keys[k], then k records of slot x1 y1 x2 y2
    keyword node  kind, WEIGHT, c, UPDATES    low[c] high[c] child[c+2] old[c+2]      child c: dummy cut, c+1: gap
    spatial node  kind, WEIGHT, columns | rows << 16, UPDATES
                                              xs[columns-1] ys[rows-1] child[n+1] old[n+1]      child n: dummy cell
    directory     kind, WEIGHT, w, unused     child[w]                                          by word; only as root

WEIGHT is how many subscriptions are below. RETRY is the weight at which a query node is next considered for a split.
UPDATES counts the changes since the partition was last held against `old`, the children's weights at construction.
Boxes in query nodes and grid lines are float32. Rounding is monotone, so two different float32 compare as their
originals do; only equal ones need the store's doubles, and nearly every candidate is decided within its leaf.

A key says what the path to the leaf has not proved: -1 when all keywords of the subscription are known to be in the
message; else twice the rarest keyword that is not, plus one when there are others.

Freed blocks are kept in bins of quarter octaves and used again, so the arena never needs compaction. The kind's upper
bits are the tag: which bin the block goes to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.spatial.textual.store import Rows

QUERY, KEYWORD, SPATIAL, DIRECTORY = 0, 1, 2, 3
WEIGHT, SHAPE, UPDATES = 1, 2, 3  # after the kind and tag
RETRY = UPDATES
HEADER = 4
RECORD = 5  # words of an entry of a query node, without its key
ROOT = 1  # the word that points to the root
FIRST_BLOCK = 4
MIRROR = 2**30  # no word's id is larger

USED = 0  # in `meta`: words handed out so far; then the heads of the bins
BINS = 1
META_SIZE = 1 + 128

Arena = NDArray[np.int32]
Meta = NDArray[np.int64]


@kernel
def _bin(words: int) -> int:
    """Return the bin whose blocks have at most `words`, for words >= 4."""
    octave = 0
    while words >= 8:
        words >>= 1
        octave += 1
    return 4 * octave + words - 4


@kernel
def _bin_words(b: int) -> int:
    return (4 + b % 4) << (b // 4)


@kernel
def allocate(arena: Arena, meta: Meta, words: int, exact: bool) -> tuple[Arena, int, int, int]:
    """Return a block of at least `words`: the arena, perhaps moved, its pointer, its size and its tag.

    A block that is cut from the end of the arena has the size of a bin, or with `exact` just the words asked for.
    """
    b = _bin(words)
    up = b if _bin_words(b) == words else b + 1
    head = meta[BINS + up]
    if head:
        meta[BINS + up] = arena[head]
        return arena, head, _bin_words(up), up << 2
    if not exact:
        b = up
        words = _bin_words(up)
    p = meta[USED]
    end = p + words
    if end > arena.size:
        if end >= 2**31:
            raise MemoryError("an AP-tree can hold 2**31 words; split the subscriptions over several indexes")
        larger = np.zeros(min(2**31 - 1, end + end // 2), np.int32)
        larger[:p] = arena[:p]
        arena = larger
    meta[USED] = end
    return arena, p, words, b << 2


@kernel
def free(arena: Arena, meta: Meta, p: int) -> None:
    """Give a node's block back to the bin that its tag names."""
    b = arena[p] >> 2
    arena[p] = meta[BINS + b]
    meta[BINS + b] = p


@kernel
def kind_of(arena: Arena, p: int) -> int:
    """QUERY, KEYWORD, SPATIAL or DIRECTORY."""
    return int(arena[p] & 3)


@kernel
def node_words(arena: Arena, p: int) -> int:
    """How many words a node takes."""
    shape = arena[p + SHAPE]
    if kind_of(arena, p) == QUERY:
        return int(HEADER + (1 + RECORD) * shape)
    if kind_of(arena, p) == DIRECTORY:
        return int(HEADER + shape)
    if kind_of(arena, p) == KEYWORD:
        return int(HEADER + 2 * shape + 2 * (shape + 2))
    columns, rows = shape & 0xFFFF, shape >> 16
    return int(HEADER + columns + rows - 2 + 2 * (columns * rows + 1))


@kernel
def children(arena: Arena, p: int) -> tuple[int, int]:
    """Where an inner node's child pointers begin, and how many there are. `old` follows them, but in a directory."""
    shape = arena[p + SHAPE]
    if kind_of(arena, p) == DIRECTORY:
        return int(p + HEADER), int(shape)
    if kind_of(arena, p) == KEYWORD:
        return int(p + HEADER + 2 * shape), int(shape + 2)
    columns, rows = shape & 0xFFFF, shape >> 16
    return int(p + HEADER + columns + rows - 2), int(columns * rows + 1)


@kernel
def word_at(rows: Rows, slot: int, offset: int, rare: bool) -> int:
    """Return a subscription's keyword at an offset in the tree's order, as the tree's nodes write it.

    Frequent keywords first, as numbered; or with `rare` the rarest first, mirrored, so that they ascend as well.
    """
    if rare:
        return int(MIRROR - rows.keywords[rows.start[slot] + rows.length[slot] - 1 - offset])
    return int(rows.keywords[rows.start[slot] + offset])


@kernel
def key_of(rows: Rows, slot: int, proved: int, rare: bool) -> int:
    """Tell what is left to check of a subscription's keywords when its first `proved` are in the message."""
    length = rows.length[slot]
    if length <= proved:
        return -1
    last = length - 1 - (proved if rare else 0)
    return int(2 * rows.keywords[rows.start[slot] + last] + (1 if length - 1 > proved else 0))


@kernel
def put_entry(arena: Arena, leaf: int, i: int, slot: int, key: int, boxes: NDArray[np.float64]) -> None:
    """Write entry `i` of a query node."""
    at = leaf + HEADER + arena[leaf + SHAPE] + RECORD * i
    real = arena.view(np.float32)
    arena[leaf + HEADER + i] = key
    arena[at] = slot
    for side in range(4):
        real[at + 1 + side] = boxes[slot, side]


@kernel
def move_entry(arena: Arena, leaf: int, i: int, to_leaf: int, j: int) -> None:
    """Copy entry `i` of one query node to entry `j` of another, or of the same."""
    arena[to_leaf + HEADER + j] = arena[leaf + HEADER + i]
    at = leaf + HEADER + arena[leaf + SHAPE] + RECORD * i
    to = to_leaf + HEADER + arena[to_leaf + SHAPE] + RECORD * j
    for field in range(RECORD):
        arena[to + field] = arena[at + field]


@kernel
def new_leaf(arena: Arena, meta: Meta, room: int, retry: int, exact: bool) -> tuple[Arena, int]:
    """Make an empty query node with room for at least `room` entries."""
    arena, p, words, tag = allocate(arena, meta, HEADER + (1 + RECORD) * room, exact)
    arena[p] = QUERY | tag
    arena[p + WEIGHT] = 0
    arena[p + SHAPE] = (words - HEADER) // (1 + RECORD)
    arena[p + RETRY] = retry
    return arena, p


@kernel
def find_cut(arena: Arena, p: int, word: int) -> int:
    """Return the bucket of a keyword node that a word falls into: a cut, or the gap."""
    cuts = arena[p + SHAPE]
    low, high = p + HEADER, p + HEADER + cuts
    a, b = 0, cuts
    while a < b:
        middle = (a + b) >> 1
        if arena[low + middle] <= word:
            a = middle + 1
        else:
            b = middle
    if a > 0 and word <= arena[high + a - 1]:
        return int(a - 1)
    return int(cuts + 1)


@kernel
def find_line(real: NDArray[np.float32], first: int, lines: int, x: float) -> int:
    """Which of the half-open strips between the grid lines holds x: how many lines are at or below it."""
    a, b = 0, lines
    while a < b:
        middle = (a + b) >> 1
        if real[first + middle] <= x:
            a = middle + 1
        else:
            b = middle
    return a


@kernel
def spans(boxes: NDArray[np.float64], slot: int, region: NDArray[np.float64], universe: NDArray[np.float64]) -> bool:
    """Whether a subscription belongs in the dummy cell: its box covers the region as far as there is a universe.

    Regions at the rim reach to infinity, which no box covers; only what the universe holds of them counts.
    """
    return bool(
        boxes[slot, 0] <= max(region[0], universe[0])
        and boxes[slot, 1] <= max(region[1], universe[1])
        and boxes[slot, 2] >= min(region[2], universe[2])
        and boxes[slot, 3] >= min(region[3], universe[3])
    )


@kernel
def cell_region(
    real: NDArray[np.float32], p: int, columns: int, rows: int, column: int, row: int, region: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the region of one cell of a spatial node."""
    xs, ys = p + HEADER, p + HEADER + columns - 1
    cell = region.copy()
    if column > 0:
        cell[0] = real[xs + column - 1]
    if row > 0:
        cell[1] = real[ys + row - 1]
    if column < columns - 1:
        cell[2] = real[xs + column]
    if row < rows - 1:
        cell[3] = real[ys + row]
    return cell


@kernel
def gather(arena: Arena, meta: Meta, p: int) -> NDArray[np.int32]:
    """All slots below a node, each once and ascending. Frees the node and everything below."""
    slots = np.empty(max(16, 2 * arena[p + WEIGHT]), np.int32)
    count = 0
    stack = np.empty(64, np.int32)
    stack[0] = p
    top = 1
    while top:
        top -= 1
        q = stack[top]
        if kind_of(arena, q) == QUERY:
            weight, k = arena[q + WEIGHT], arena[q + SHAPE]
            if count + weight > slots.size:
                more_slots = np.empty(2 * (count + weight), np.int32)
                more_slots[:count] = slots[:count]
                slots = more_slots
            for at in range(q + HEADER + k, q + HEADER + k + RECORD * weight, RECORD):
                slots[count] = arena[at]
                count += 1
        else:
            first, n = children(arena, q)
            if top + n > stack.size:
                more_stack = np.empty(2 * (top + n), np.int32)
                more_stack[:top] = stack[:top]
                stack = more_stack
            for i in range(first, first + n):
                if arena[i]:
                    stack[top] = arena[i]
                    top += 1
        free(arena, meta, q)
    slots = np.sort(slots[:count])
    unique = 0
    for i in range(count):
        if i == 0 or slots[i] != slots[i - 1]:
            slots[unique] = slots[i]
            unique += 1
    return slots[:unique].copy()
