"""Pairs of a value and a region constraint that the table leaves to be decided: one kernel call for all of a batch.

`relate_pairs` answers each pair by itself. `relate_pending` is given the filters that the pairs belong to and stops
where the table would: at the first pair of a filter that does not hold, and at an interface that has matched. Of the
pairs of a filter it looks first at what MBRs tell, so that no relation is evaluated beside a pair that fails by them.

    rows      (n, 3)  by handle: where a constraint's ring is in the arena, its edges, the mask of relations it wants
    places    (n, 3)  by the number of a value: (-1, x, y) of a point, (k, 0, 0) of the k-th ring
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contrada.forwarding.batches.encode import PointColumn
from contrada.spatial.cr_tree.edges import PER_EDGE
from contrada.spatial.cr_tree.search import PER_PAIR
from contrada.spatial.cr_tree.sifting import possible_of_parts, possible_relations
from contrada.spatial.geometry.compound.rows import MARK, locate_in
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Region
from contrada.spatial.geometry.ring_arena import is_box, ring_boxes, ring_size, ring_xy
from contrada.spatial.geometry.rings import IN, ON, locate
from contrada.spatial.relations.compound.relating import relate_regions
from contrada.spatial.relations.exact import relate_rings
from contrada.spatial.relations.mbr import relate_boxes
from contrada.spatial.relations.relate import pack
from contrada.spatial.relations.relation import DISJOINT, INSIDE, MEETS
from contrada.spatial.relations.uniform import relate_uniform, sampling_cost
from contrada.spatial.storage.jit import bare_inline_kernel, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.spatial.relations.relate import Rings

# Columns of a constraint's row.
BLOCK: Final = 0
EDGES: Final = 1
MASK: Final = 2

# How relations are decided.
EXACTLY: Final = 0
SAMPLED: Final = 1
SAMPLED_HALO: Final = 2

# What became of a pair, or of a filter.
FAILED: Final = 0
HELD: Final = 1
NOT_ASKED: Final = 2

_PER_MBR: Final = 16  # nanoseconds, about, that MBRs take to be compared
_MEMO: Final = 1024  # pairs remembered: filters that share a region ask about it one after another
_NO_RINGS: Final = pack(())


def placed(values: Sequence[Any], numbers: Ints) -> tuple[Floats, Rings]:
    """Values as kernels that decide pairs have them: (-1, x, y) of a point, (k, 0, 0) of the k-th ring; the rings.

    Those of the numbers, which the pairs are of: the others may stay out.
    """
    places = np.zeros((len(values), 3))
    if isinstance(values, PointColumn):
        places[:, 0], places[:, 1:] = -1.0, values.xy
        return places, _NO_RINGS
    regions: list[Region] = []
    for i in range(len(values)) if len(numbers) >= len(values) else np.unique(numbers).tolist():
        value = values[i]
        if type(value) is Point:
            places[i] = -1.0, value.x, value.y
        elif isinstance(value, Region):
            places[i, 0] = len(regions)
            regions.append(value)
    return places, pack(regions) if regions else _NO_RINGS


@kernel
def _at_point(heap: Floats, block: int, edges: int, x: float, y: float) -> int:
    """The code of the relation of a point to a stored region: by its MBR, which is all there is to know of a box."""
    mbr = block + ring_size(edges) - 4
    x1, y1, x2, y2 = heap[mbr], heap[mbr + 1], heap[mbr + 2], heap[mbr + 3]
    if x < x1 or x > x2 or y < y1 or y > y2:
        return DISJOINT
    if is_box(heap, block, edges):
        return INSIDE if x1 < x < x2 and y1 < y < y2 else MEETS
    bxy, bboxes = ring_xy(heap, block, edges), ring_boxes(heap, block, edges)
    where = locate(x, y, bxy, bboxes) if heap[block] != MARK else locate_in(x, y, bxy, bboxes)
    return INSIDE if where == IN else MEETS if where == ON else DISJOINT


@bare_inline_kernel
def _by_mbrs(
    heap: Floats,
    block: int,
    edges: int,
    wanted: int,
    xy: Floats,
    starts: Ints,
    boxes: Floats,
    box_starts: Ints,
    k: int,
    how: int,
) -> int:
    """Whether the k-th ring is in a wanted relation to a stored region, if their MBRs tell; below 0 if they do not.

    Any two MBRs of boxes do. `Rings` come as its arrays, and no rows of either are taken out, so that no references are
    counted.
    """
    mbr, last = block + ring_size(edges) - 4, box_starts[k + 1] - 1
    x1, y1, x2, y2 = boxes[last, 0], boxes[last, 1], boxes[last, 2], boxes[last, 3]
    bx1, by1, bx2, by2 = heap[mbr], heap[mbr + 1], heap[mbr + 2], heap[mbr + 3]
    at = starts[k]
    possible = possible_relations(x1, y1, x2, y2, bx1, by1, bx2, by2)
    if possible < 0:
        possible = possible_of_parts(x1, x2, bx1, bx2, xy[at, 0] == MARK or heap[block] == MARK)
    if possible & wanted == 0:
        return FAILED
    if possible & ~wanted == 0:
        return HELD
    if how != EXACTLY or starts[k + 1] - at != 5 or not is_box(heap, block, edges):
        return -1
    low = xy[at, 1] == xy[at + 1, 1] and xy[at + 1, 0] == xy[at + 2, 0]
    if low and xy[at + 2, 1] == xy[at + 3, 1] and xy[at + 3, 0] == xy[at, 0]:
        return wanted >> relate_boxes(x1, y1, x2, y2, bx1, by1, bx2, by2) & 1
    return -1


@kernel
def _of_ring(heap: Floats, block: int, edges: int, rings: Rings, k: int, density: float, how: int, left: Ints) -> int:
    """The code of the relation of the k-th ring to a stored region; none, below 0, if that is more than is left."""
    bxy, bboxes = ring_xy(heap, block, edges), ring_boxes(heap, block, edges)
    axy = rings.xy[rings.starts[k] : rings.starts[k + 1]]
    aboxes = rings.boxes[rings.box_starts[k] : rings.box_starts[k + 1]]
    left[0] -= PER_EDGE * (axy.shape[0] + bxy.shape[0])
    if how != EXACTLY:
        left[0] -= sampling_cost(axy, aboxes, bxy, bboxes, density)
    if left[0] < 0:
        return -1
    if how != EXACTLY:
        return relate_uniform(axy, aboxes, bxy, bboxes, density, how == SAMPLED_HALO)
    if axy[0, 0] != MARK and bxy[0, 0] != MARK:
        return relate_rings(axy, aboxes, bxy, bboxes)
    return relate_regions(axy, aboxes, bxy, bboxes)


@kernel
def _remembered(
    heap: Floats,
    rows: Ints,
    rings: Rings,
    k: int,
    density: float,
    how: int,
    number: int,
    handle: int,
    memo: Ints,
    left: Ints,
) -> int:
    """As `_of_ring`, of the value of a number to the region of a constraint, unless that is known."""
    at = handle & (_MEMO - 1)
    if memo[at, 0] == number and memo[at, 1] >> 8 == handle:
        return int(memo[at, 1] & 255)
    code = _of_ring(heap, rows[handle, BLOCK], rows[handle, EDGES], rings, k, density, how, left)
    if code >= 0:
        memo[at, 0] = number
        memo[at, 1] = handle << 8 | code
    return code


@kernel
def relate_pairs(
    heap: Floats,
    rows: Ints,
    places: Floats,
    rings: Rings,
    density: float,
    how: int,
    numbers: Ints,
    handles: Ints,
    held: NDArray[np.bool_],
    left: Ints,
) -> None:
    """Whether the value of each number is in a wanted relation to the region of each handle.

    Ends when nothing is `left` (`allowance`).
    """
    memo = np.full((_MEMO, 2), -1, np.int64)
    xy, starts, boxes, box_starts = rings
    for i in range(numbers.shape[0]):
        number, handle = numbers[i], handles[i]
        k = int(places[number, 0])
        block, edges, wanted = rows[handle, BLOCK], rows[handle, EDGES], rows[handle, MASK]
        if k < 0:
            holds = wanted >> _at_point(heap, block, edges, places[number, 1], places[number, 2]) & 1
        else:
            holds = _by_mbrs(heap, block, edges, wanted, xy, starts, boxes, box_starts, k, how)
            if holds < 0:
                holds = wanted >> _remembered(heap, rows, rings, k, density, how, number, handle, memo, left) & 1
        left[0] -= PER_PAIR + (edges >> 2)
        if left[0] < 0:
            return
        held[i] = holds == HELD


@kernel
def relate_pending(
    heap: Floats,
    rows: Ints,
    places: Floats,
    rings: Rings,
    density: float,
    how: int,
    pending: Ints,
    pairs: Ints,
    owners: Ints,
    matched: Ints,
    verdicts: NDArray[np.int8],
    held: NDArray[np.int8],
    left: Ints,
) -> None:
    """What becomes of each pending filter, (notification, filter, end of its pairs), and of each pair.

    `owners` are the interfaces of the filters. `matched` has room for all of them, zeroed, where one filter of each is
    enough, and is empty where all are asked for. Ends when nothing is `left` (`allowance`).
    """
    memo = np.full((_MEMO, 2), -1, np.int64)
    xy, starts, boxes, box_starts = rings
    start = 0
    for i in range(pending.shape[0]):
        end = pending[i, 2]
        first = matched.shape[0] != 0
        verdict = NOT_ASKED if first and matched[owners[i]] == pending[i, 0] + 1 else HELD
        for j in range(start, end):
            held[j] = NOT_ASKED
            number, handle = pairs[j, 0], pairs[j, 2]
            k = int(places[number, 0])
            if verdict == HELD and k >= 0:
                block, edges, wanted = rows[handle, BLOCK], rows[handle, EDGES], rows[handle, MASK]
                holds = _by_mbrs(heap, block, edges, wanted, xy, starts, boxes, box_starts, k, how)
                left[0] -= _PER_MBR
                if holds >= 0:
                    held[j] = verdict = holds
        for j in range(start, end):
            if verdict == HELD and held[j] == NOT_ASKED:
                number, handle = pairs[j, 0], pairs[j, 2]
                k = int(places[number, 0])
                if k < 0:
                    x, y = places[number, 1], places[number, 2]
                    code = _at_point(heap, rows[handle, BLOCK], rows[handle, EDGES], x, y)
                else:
                    code = _remembered(heap, rows, rings, k, density, how, number, handle, memo, left)
                left[0] -= PER_PAIR + (rows[handle, EDGES] >> 2)
                if left[0] < 0:
                    return
                held[j] = verdict = rows[handle, MASK] >> code & 1
        if verdict == HELD and first:
            matched[owners[i]] = pending[i, 0] + 1
        verdicts[i] = verdict
        start = end
