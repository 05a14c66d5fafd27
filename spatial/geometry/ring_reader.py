"""Many rings into a heap at once: each validated, in canonical form, and once however often it comes.

Reading and proving are apart, so that another thread can prove rings simple while this one reads on. `read_rings`
takes a ring through a few short passes while it is in the cache: its corners are found and copied from the smallest
on, counter-clockwise. A ring on which one of them stumbles goes through `canonical_ring`, as every `Region` does,
which decides. Rings are told apart by hash. `prove_rings` then finds the stored rings that touch themselves. What is
stored and proved is what the `Region` would be. O(n log n) for a ring of n vertices, O(n) for nearly all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.geometry.canonical import MAX_VERTICES, SOUND, canonical_ring, contact
from contrada.spatial.geometry.compound.rows import MARK, fill_region_boxes
from contrada.spatial.geometry.predicates import MAX_MAGNITUDE, MIN_MAGNITUDE, orient
from contrada.spatial.geometry.ring_arena import USED, allocate, ring_boxes, ring_hash, ring_xy, same_ring
from contrada.spatial.geometry.rings import RUN
from contrada.spatial.geometry.simple import surely_simple, word_count
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.spatial.geometry.ring_arena import Floats, Ints

_FILTER: Final = 4e-16  # above the error bound of an orientation in doubles

# What is known of a distinct ring.
BLOCK_AT: Final = 0
EDGES_AT: Final = 1
HASH_AT: Final = 2
_CHAIN: Final = 3
RING_SIZE: Final = 4

_1, _2 = np.uint64(1), np.uint64(2)

# From here on `coords` is flat, for speed: vertex k is (coords[2·k], coords[2·k + 1]), a ring is vertices low to high-1


@kernel
def read_rings(
    coords: Floats,
    offsets: Ints,
    first: int,
    last: int,
    heap: Floats,
    heap_state: Ints,
    rings: Ints,
    boxes: Floats,
    which: Ints,
    table: Ints,
    corners: Floats,
    trusted: bool,
) -> tuple[int, int]:
    """Store rings first to last-1, numbering the distinct ones from `first` on.

    Of `trusted` ones, what begins with MARK is the rows of a compound region, and stored as it is.

    Return the number after the last, and -1 or the first ring that is no region. `which` gets each ring's number;
    `rings` and `boxes` get, by number, where it is stored and its MBR. `table` finds numbers by hash and is all -1 at
    first; `corners` is scratch.
    """
    count = first
    for i in range(first, last):
        low, high = offsets[i], offsets[i + 1]
        while high - low > 1 and _same(coords, low, high - 1):  # closed
            high -= 1
        block = heap_state[USED]
        if trusted and coords[2 * low] == MARK:
            edges = _copy_rows(coords, low, high, heap, heap_state, boxes[count])
        else:
            edges = _store(coords, low, high, heap, heap_state, boxes[count], corners)
        if edges == 0:
            edges = _store_with_care(coords, low, high, heap, heap_state, boxes[count])
            if edges == 0:
                return count, i
        if edges <= RUN:  # one run, whose box is the MBR: most rings, spared a view
            for side in range(4):
                heap[block + 2 * (edges + 1) + side] = boxes[count, side]
        else:
            fill_region_boxes(ring_xy(heap, block, edges), ring_boxes(heap, block, edges))
        rings[count, BLOCK_AT] = block
        rings[count, EDGES_AT] = edges
        rings[count, HASH_AT] = ring_hash(heap, block, edges)
        k = find_ring(heap, rings, table, count)
        if k >= 0:
            heap_state[USED] = block  # it was the last one
        else:
            k = count
            count += 1
            file_ring(rings, table, k)
        which[i] = k
    return count, -1


@kernel
def find_ring(heap: Floats, rings: Ints, table: Ints, number: int) -> int:
    """Return the number of the filed ring that is the same as the one of that number, or -1."""
    block, edges, hashed = rings[number, BLOCK_AT], rings[number, EDGES_AT], rings[number, HASH_AT]
    k: int = table[hashed & (table.shape[0] - 1)]
    while k >= 0:
        if (
            rings[k, HASH_AT] == hashed
            and rings[k, EDGES_AT] == edges
            and same_ring(heap, rings[k, BLOCK_AT], ring_xy(heap, block, edges))
        ):
            break
        k = rings[k, _CHAIN]
    return k


@kernel
def file_ring(rings: Ints, table: Ints, number: int) -> None:
    """Let `find_ring` find the ring of that number."""
    bucket = rings[number, HASH_AT] & (table.shape[0] - 1)
    rings[number, _CHAIN] = table[bucket]
    table[bucket] = number


@kernel
def prove_rings(heap: Floats, rings: Ints, boxes: Floats, first: int, last: int) -> int:
    """Return the first of the stored rings numbered first to last-1 that touches itself, or -1."""
    longest = 0
    for k in range(first, last):
        longest = max(longest, rings[k, EDGES_AT])
    words = np.empty(word_count(longest), np.uint64)
    for k in range(first, last):
        block, edges = rings[k, BLOCK_AT], rings[k, EDGES_AT]
        if (
            not surely_simple(heap, block, edges, boxes[k, 0], boxes[k, 1], boxes[k, 2], boxes[k, 3], words)
            and contact(ring_xy(heap, block, edges), ring_boxes(heap, block, edges))[0] >= 0
        ):
            return k
    return -1


@kernel
def _store(coords: Floats, low: int, high: int, heap: Floats, heap_state: Ints, box: Floats, corners: Floats) -> int:
    """Store a ring and return how many edges it has; 0 when it takes `canonical_ring` to judge it."""
    if not 3 <= high - low <= MAX_VERTICES:
        return 0
    ring = coords
    if not _all_corners(coords, low, high):
        low, high = 0, _copy_corners(coords, low, high, corners)
        ring = corners
        if high < 3:
            return 0
    lowest = _measure(ring, low, high, box)
    if lowest < 0:
        return 0
    edges = high - low
    block = allocate(heap, heap_state, edges)
    _turn(ring, low, high, lowest, heap, block)
    return edges


@kernel
def _copy_rows(coords: Floats, low: int, high: int, heap: Floats, heap_state: Ints, box: Floats) -> int:
    """Store the rows of a compound region, and return one less than they are."""
    edges = high - low - 1
    block = allocate(heap, heap_state, edges)
    heap[block : block + 2 * (high - low)] = coords[2 * low : 2 * high]
    boxes = ring_boxes(heap, block, edges)
    fill_region_boxes(ring_xy(heap, block, edges), boxes)
    box[:] = boxes[boxes.shape[0] - 1]
    return edges


@kernel
def _store_with_care(coords: Floats, low: int, high: int, heap: Floats, heap_state: Ints, box: Floats) -> int:
    """Store a ring and return how many edges it has; 0 when it is no region."""
    if high - low > MAX_VERTICES:
        return 0
    fault, _, _, _, _, xy, boxes = canonical_ring(coords[2 * low : 2 * high].reshape((high - low, 2)))
    if fault != SOUND:
        return 0
    edges: int = xy.shape[0] - 1
    ring_xy(heap, allocate(heap, heap_state, edges), edges)[:] = xy
    box[:] = boxes[boxes.shape[0] - 1]
    return edges


@kernel
def _same(coords: Floats, i: int, j: int) -> bool:
    return bool(coords[2 * i] == coords[2 * j] and coords[2 * i + 1] == coords[2 * j + 1])


@kernel
def _all_corners(coords: Floats, low: int, high: int) -> bool:
    """Whether the floating filter of an orientation proves every vertex to be a corner."""
    k = np.uint64(2 * high)
    bx, by = coords[k - _2], coords[k - _1]
    ax, ay = coords[k - _2 - _2], coords[k - _2 - _1]
    k = np.uint64(2 * low)
    doubtful = 0
    for _ in range(low, high):
        cx, cy = coords[k], coords[k + _1]
        k += _2
        left = (ax - cx) * (by - cy)
        right = (ay - cy) * (bx - cx)
        # What is not a number compares false.
        doubtful += 0 if abs(left - right) > _FILTER * (abs(left) + abs(right)) else 1
        ax, ay, bx, by = bx, by, cx, cy
    return doubtful == 0


@kernel
def _copy_corners(coords: Floats, low: int, high: int, corners: Floats) -> int:
    """Copy a ring's corners, leaving out what is in line between its neighbours; 0 when there are repeats or spikes."""
    size = 0
    ax, ay = coords[2 * high - 2], coords[2 * high - 1]
    bx, by = coords[2 * low], coords[2 * low + 1]
    for k in range(low, high):
        after = k + 1 if k + 1 < high else low
        cx, cy = coords[2 * after], coords[2 * after + 1]
        if orient(ax, ay, bx, by, cx, cy) != 0:
            corners[2 * size] = bx
            corners[2 * size + 1] = by
            size += 1
        elif not ((ax < bx < cx or cx < bx < ax) if ax != cx else (ay < by < cy or cy < by < ay)):
            return 0
        ax, ay, bx, by = bx, by, cx, cy
    return size


@kernel
def _measure(ring: Floats, low: int, high: int, box: Floats) -> int:
    """Compute a ring's MBR and return its smallest vertex, or -1 when coordinates are out of range."""
    first = np.uint64(2 * low)
    x1 = x2 = ring[first]
    y1 = y2 = ring[first + _1]
    lowest = low
    tiny = 0
    for vertex in range(low, high):
        k = np.uint64(2 * vertex)
        x, y = ring[k], ring[k + _1]
        if x <= x1 and (x < x1 or y < ring[np.uint64(2 * lowest + 1)]):
            lowest = vertex
            x1 = x
        x2 = x if x > x2 else x2
        y1 = y if y < y1 else y1
        y2 = y if y > y2 else y2
        tiny += (abs(x) < MIN_MAGNITUDE) & (x != 0.0)
        tiny += (abs(y) < MIN_MAGNITUDE) & (y != 0.0)
    box[0], box[1], box[2], box[3] = x1 + 0.0, y1 + 0.0, x2 + 0.0, y2 + 0.0
    most = max(max(abs(x1), abs(x2)), max(abs(y1), abs(y2)))
    return lowest if tiny == 0 and most <= MAX_MAGNITUDE else -1


@kernel
def _turn(ring: Floats, low: int, high: int, lowest: int, target: Floats, at: int) -> None:
    """Write a ring of corners to target[at:], closed, counter-clockwise from its smallest, which is `lowest`."""
    a, b = 2 * (lowest - 1 if lowest > low else high - 1), 2 * lowest
    c = 2 * (lowest + 1 if lowest + 1 < high else low)
    to = np.uint64(at)
    # Adding 0.0 makes 0.0 of -0.0: equal rings are equal bits.
    if orient(ring[a], ring[a + 1], ring[b], ring[b + 1], ring[c], ring[c + 1]) > 0:
        for k in range(2 * lowest, 2 * high):
            target[to] = ring[np.uint64(k)] + 0.0
            to += _1
        for k in range(2 * low, 2 * lowest + 2):
            target[to] = ring[np.uint64(k)] + 0.0
            to += _1
        return
    for k in range(lowest, low - 1, -1):
        target[to], target[to + _1] = ring[np.uint64(2 * k)] + 0.0, ring[np.uint64(2 * k + 1)] + 0.0
        to += _2
    for k in range(high - 1, lowest - 1, -1):
        target[to], target[to + _1] = ring[np.uint64(2 * k)] + 0.0, ring[np.uint64(2 * k + 1)] + 0.0
        to += _2
