"""Rings of a bulk load, read and proved in several threads.

Rings are cut into as many *parts* as there are threads, each with about as many vertices. A part is read by one thread
into its own share of one heap (`ring_reader`); then the parts are joined: a ring that an earlier part has too gives its
block back, the others are numbered on, and what a part did not use of its share becomes free blocks.

    heap    | part 0 … | free | part 1 … | free | part 2 …         numbers   0 … | 1 … | 2 …

After that, portions of the stored rings are proved simple by other threads, while the caller packs its tree over them.
Kernels run without the GIL. No two threads write at the same place, and what one wrote another reads only when it is
done.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contrada.spatial.cr_tree.rows import table_size
from contrada.spatial.geometry.canonical import MAX_VERTICES
from contrada.spatial.geometry.ring_arena import (
    SMALLEST,
    STATE_SIZE,
    USED,
    class_size,
    give_back,
    release,
    ring_size,
    size_class,
)
from contrada.spatial.geometry.ring_reader import (
    BLOCK_AT,
    EDGES_AT,
    RING_SIZE,
    file_ring,
    find_ring,
    prove_rings,
    read_rings,
)
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from contrada.spatial.geometry.ring_arena import Floats, Ints

THREADS: Final = os.cpu_count() or 1
"""How many threads read and prove rings."""

_LEAST: Final = 1 << 15  # vertices that are worth a thread


class StoredRings(NamedTuple):
    """Distinct rings in a heap, numbered in the order they first came in."""

    heap: Floats
    heap_state: Ints
    distinct: int
    where: Ints
    """by number: block, edges and hash, as `ring_reader` has them"""
    boxes: Floats
    """by number: the MBR"""
    which: Ints
    """by place in the order given: the number"""


def load_rings(coords: Floats, offsets: Ints, pool: Executor, *, trusted: bool) -> tuple[StoredRings, int]:
    """Store rings, where ring i is vertices offsets[i] to offsets[i+1], or of `trusted` ones rows of a region.

    Return them, not yet proved simple, and -1 or the place of the first that was seen to be no region; from there on
    they are not stored.
    """
    places = len(offsets) - 1
    lengths = np.diff(offsets)
    cuts = _cut(offsets)
    shares = np.array([_room(lengths[first:last]) for first, last in pairwise(cuts)])
    ends = np.cumsum(shares)
    heap = np.zeros(int(ends[-1]))
    where = np.empty((places, RING_SIZE), np.int64)
    boxes = np.empty((places, 4))
    which = np.empty(places, np.int64)
    table = np.full(table_size(places), -1, np.int64)
    flat = coords.reshape(-1)

    def read(part: int) -> tuple[int, int, Ints]:
        first, last = cuts[part], cuts[part + 1]
        state = np.full(STATE_SIZE, -1, np.int64)
        state[USED] = ends[part] - shares[part]
        own = table if part == 0 else np.full(table_size(last - first), -1, np.int64)
        corners = np.empty(2 * min(int(lengths[first:last].max()), MAX_VERTICES))
        count, wrong = read_rings(flat, offsets, first, last, heap, state, where, boxes, which, own, corners, trusted)
        return count, wrong, state

    parts = list(pool.map(read, range(len(shares))))
    state = parts[0][2]
    used = np.array([state[USED] for _, _, state in parts])
    taken = int((used - ends + shares).sum())
    if 2 * taken < len(heap):  # many rings were the same
        heap = np.concatenate([heap[end - share : top] for end, share, top in zip(ends, shares, used, strict=True)])
        shifts = np.cumsum(ends - used) - (ends - used)
        for (first, _), (count, _, _), shift in zip(pairwise(cuts), parts, shifts, strict=True):
            where[first:count, BLOCK_AT] -= shift
        used -= shifts
        ends = used
    for end, top in zip(ends[:-1].tolist(), used[:-1].tolist(), strict=True):
        give_back(heap, state, top, end - top)
    state[USED] = used[-1]
    total, wrong, _ = parts[0]
    for (first, last), (count, fault, _) in zip(pairwise(cuts[1:]), parts[1:], strict=True):
        if wrong >= 0:
            break
        wrong = fault
        total = _join(heap, state, where, boxes, which, table, total, first, last if wrong < 0 else wrong, count)
    return StoredRings(heap, state, total, where, boxes, which), wrong


def prove(rings: StoredRings, pool: Executor) -> list[Future[int]]:
    """Begin to prove stored rings simple: what becomes the number of a ring that touches itself, or -1, by portions."""
    edges = np.zeros(rings.distinct + 1, np.int64)
    np.cumsum(rings.where[: rings.distinct, EDGES_AT], out=edges[1:])
    cuts = _cut(edges)
    return [
        pool.submit(prove_rings, rings.heap, rings.where, rings.boxes, first, last) for first, last in pairwise(cuts)
    ]


def _cut(offsets: Ints) -> list[int]:
    """Cut rings into parts of about as many vertices each; return the places of the cuts, first and last included."""
    begin, end = int(offsets[0]), int(offsets[-1])
    count = max(1, min(THREADS, (end - begin) // _LEAST))
    inner = np.searchsorted(offsets, np.linspace(begin, end, count + 1)[1:-1])
    return [0, *np.unique(inner[(inner > 0) & (inner < len(offsets) - 1)]).tolist(), len(offsets) - 1]


@kernel
def _room(lengths: Ints) -> int:
    """How many numbers rings of at most so many vertices take, and a smallest block."""
    room = SMALLEST
    for length in lengths:
        room += class_size(size_class(ring_size(max(length, 3))))
    return room


@kernel
def _join(
    heap: Floats,
    heap_state: Ints,
    where: Ints,
    boxes: Floats,
    which: Ints,
    table: Ints,
    total: int,
    first: int,
    last: int,
    end: int,
) -> int:
    """Number the rings of a part, first to end-1 until now, after the `total` before it; return how many there are now.

    The part is places first to last-1. Where an earlier part has the same ring, its number is taken.
    """
    numbers = np.empty(end - first, np.int64)
    for k in range(first, end):
        block, edges = where[k, BLOCK_AT], where[k, EDGES_AT]
        number = find_ring(heap, where, table, k)
        if number >= 0:
            release(heap, heap_state, block, edges)
        else:
            number = total
            total += 1
            for column in range(RING_SIZE):
                where[number, column] = where[k, column]
            for side in range(4):
                boxes[number, side] = boxes[k, side]
            file_ring(where, table, number)
        numbers[k - first] = number
    for place in range(first, last):
        which[place] = numbers[which[place] - first]
    return total
