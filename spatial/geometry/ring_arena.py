"""Rings of many regions in one array of doubles, with room given back when a region goes.

A ring of n edges is one block: its closed vertices, 2(n+1) numbers, then its run boxes, 4·box_rows(n) numbers, laid
out as `rings` has them. A block is named by the index of its first number. A compound region is a block like a ring's
with n + 1 rows (`compound.rows`).

    heap   float64   blocks, one after another; below `state[USED]` every number belongs to a block
    state  int64     USED, then for every size class the first free block, or -1 for none

Blocks come in size classes, four to every doubling (4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ...), so that at most a fifth of
a block is unused. A freed block is the first of its class's free list and its first number is the next one: exact,
since indexes are below 2**53. Blocks are never split or merged, so the heap is at most the sum over the classes of
the most room each ever needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.geometry.compound.rows import MARK, fill_region_boxes, sound_rows
from contrada.spatial.geometry.rings import RUN, box_rows
from contrada.spatial.storage.hashing import GOLDEN, THIRD
from contrada.spatial.storage.jit import kernel
from contrada.spatial.storage.row_numbers import check_rows, check_that

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

USED: Final = 0
_FREE: Final = 1
CLASSES: Final = 112
SMALLEST: Final = 4  # numbers in a block of the smallest class
STATE_SIZE: Final = _FREE + CLASSES

_SHIFT: Final = np.uint64(31)


@kernel
def ring_size(edges: int) -> int:
    """How many numbers a ring of that many edges takes."""
    return 2 * (edges + 1) + 4 * box_rows(edges)


@kernel
def size_class(size: int) -> int:
    """Return the smallest class whose blocks hold `size` numbers; size is at least 4."""
    shift = 0
    while (size - 1) >> shift >= 8:
        shift += 1
    return 4 * shift + ((size - 1) >> shift) - 3


@kernel
def class_size(which: int) -> int:
    """How many numbers a block of the class holds."""
    return (4 + which % 4) << (which // 4)


@kernel
def has_room(heap: Floats, state: Ints, edges: int) -> bool:
    """Whether `store` would find room for a ring of that many edges."""
    which = size_class(ring_size(edges))
    room: bool = state[_FREE + which] >= 0 or state[USED] + class_size(which) <= heap.shape[0]
    return room


@kernel
def allocate(heap: Floats, state: Ints, edges: int) -> int:
    """Take a block for a ring of that many edges. There must be room."""
    which = size_class(ring_size(edges))
    block: int = state[_FREE + which]
    if block >= 0:
        state[_FREE + which] = np.int64(heap[block])
    else:
        block = state[USED]
        state[USED] += class_size(which)
    return block


@kernel
def store(heap: Floats, state: Ints, xy: Floats) -> int:
    """Copy a closed ring into a block, compute its boxes, and return the block. There must be room."""
    edges = xy.shape[0] - 1
    block = allocate(heap, state, edges)
    k = block
    for i in range(edges + 1):
        heap[k] = xy[i, 0] + 0.0  # -0.0 becomes 0.0: equal rings are equal bits
        heap[k + 1] = xy[i, 1] + 0.0
        k += 2
    fill_region_boxes(ring_xy(heap, block, edges), ring_boxes(heap, block, edges))
    return block


@kernel
def give_back(heap: Floats, state: Ints, start: int, size: int) -> None:
    """Make free blocks of `size` numbers from `start` on: none, or as many as the smallest block has at least."""
    while size > 0:
        which = size_class(size)
        while class_size(which) > size or 0 < size - class_size(which) < SMALLEST:
            which -= 1
        heap[start] = state[_FREE + which]
        state[_FREE + which] = start
        start += class_size(which)
        size -= class_size(which)


@kernel
def release(heap: Floats, state: Ints, block: int, edges: int) -> None:
    """Give a ring's block back."""
    give_back(heap, state, block, class_size(size_class(ring_size(edges))))


@kernel
def ring_xy(heap: Floats, block: int, edges: int) -> Floats:
    """Return the closed vertices of a stored ring, as a view."""
    return heap[block : block + 2 * (edges + 1)].reshape((edges + 1, 2))


@kernel
def ring_boxes(heap: Floats, block: int, edges: int) -> Floats:
    """Return the run boxes of a stored ring, as a view."""
    rows = box_rows(edges)
    start = block + 2 * (edges + 1)
    return heap[start : start + 4 * rows].reshape((rows, 4))


@kernel
def is_box(heap: Floats, block: int, edges: int) -> bool:
    """Whether a stored ring, canonical as it is, is an axis-parallel rectangle."""
    return (
        edges == 4
        and heap[block + 1] == heap[block + 3]
        and heap[block + 2] == heap[block + 4]
        and (heap[block + 5] == heap[block + 7] and heap[block + 6] == heap[block])
    )


@kernel
def ring_hash(numbers: Floats, start: int, edges: int) -> np.int64:
    """Return a hash of the closed ring whose coordinates are numbers[start:], the same for rings that compare equal."""
    h = np.uint64(0)
    place = GOLDEN
    k = np.uint64(start)  # unsigned: no tests for negative indexes
    for _ in range(edges):
        # A product for each vertex, depending on its place, and all of them added: no step waits for another.
        x = np.float64(numbers[k] + 0.0).view(np.uint64)
        y = np.float64(numbers[k + np.uint64(1)] + 0.0).view(np.uint64)
        k += np.uint64(2)
        h += (x ^ (x >> _SHIFT) ^ place) * ((y ^ (y >> _SHIFT)) * THIRD ^ place | np.uint64(1))
        place += GOLDEN
    h = (h ^ (h >> _SHIFT)) * THIRD
    return np.int64((h ^ (h >> _SHIFT)) >> np.uint64(1))


@kernel
def same_ring(heap: Floats, block: int, xy: Floats) -> bool:
    """Whether the stored ring, of as many edges as `xy` has, is the same ring."""
    k = block
    for i in range(xy.shape[0]):
        if heap[k] != xy[i, 0] or heap[k + 1] != xy[i, 1]:
            return False
        k += 2
    return True


@kernel
def in_one_part(heap: Floats, block: int) -> bool:
    """Whether a stored region has one part."""
    return bool(heap[block] != MARK or heap[block + 2] == 1.0)


@kernel
def _sound_blocks(heap: Floats, blocks: Ints, edges: Ints, fewest: int) -> bool:
    """Whether what claims to be a compound region is one that kernels may follow."""
    for k in range(blocks.shape[0]):
        if heap[blocks[k]] == MARK and not sound_rows(ring_xy(heap, blocks[k], edges[k]), fewest):
            return False
    return True


def guard_rings(heap: Floats, state: Ints, blocks: Ints, edges: Ints, fewest: int = 3) -> None:
    """Refuse blocks, as a file gives them, that are no rings in the heap, and free ones that lead astray.

    A path that is no ring may have fewer edges.
    """
    used = int(state[USED])
    check_that("rings: a heap that ends before its rings", 0 <= used <= len(heap))
    check_rows("rings: edges", edges, used + 1, fewest)
    count = (edges + (RUN - 1)) // RUN
    boxes = count.copy()
    while (more := count > 1).any():
        count = np.where(more, (count + (RUN - 1)) // RUN, 0)
        boxes += count
    check_rows("rings", blocks, used + 1)
    check_that("rings: a ring beyond the heap", blocks + 2 * (edges + 1) + 4 * boxes <= used)
    check_that("rings: a region whose rings are not where it says", _sound_blocks(heap, blocks, edges, fewest))
    met: set[int] = set()
    for which in range(CLASSES):
        block = int(state[_FREE + which])
        size = (4 + which % 4) << (which // 4)
        while block >= 0:
            check_that("rings: free blocks that lead astray", block not in met and block + size <= used)
            met.add(block)
            number = float(heap[block])
            check_that("rings: free blocks that lead astray", number == int(number) if -1 <= number < used else False)
            block = int(number)
