"""A compound region in kernels: several rings in the place of one ring's vertices.

A region is an array of rows (x, y). Of a single ring they are its closed vertices (`rings`). A region with holes or
several parts begins with a row that no vertex can be, and says where its rings are:

    row 0            (inf, R)                  R rings
    row 1            (P, T)                    P parts, T points at which rings touch one another
    rows 2 ...       (start, edges) and (box, role) of each ring: its first row and how many edges it has; the first row
                     of its run boxes; and p for the shell of part p, -1 - p for a hole in it
    then             the rings' MBRs, and MBRs of 16 of these, and so on, as run boxes are over runs; a box takes two
                     rows, (x1, y1) and (x2, y2); the last one is the MBR of the region
    then             run boxes of the rings of more than 16 edges; a smaller ring's only one is its MBR
    then             the T points, in the order of their coordinates
    then             the closed vertices of each ring, one ring after another

Shells are counter-clockwise and holes clockwise, so that the interior is to the left of every edge. Each ring starts at
its smallest vertex; a shell is followed by its holes, parts and holes ascend by their first two vertices. Interiors of
parts are connected, and rings touch at points only; then parts and rings are determined by the set of points, and
equal regions are equal rows.

What goes with the rows where run boxes go with a ring is MBRs of the whole: the last one is what is needed of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.geometry.rings import IN, ON, OUT, RUN, box_rows, fill_boxes, fill_upper_boxes, locate, next_run
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.geometry.rings import Floats

    Ints = NDArray[np.int64]

MARK: Final = np.inf
"""The first number of a compound region, which no coordinate is."""

_DIRECTORY: Final = 2  # where the directory begins


@kernel
def is_compound(xy: Floats) -> bool:
    """Whether rows are those of a compound region."""
    return bool(xy[0, 0] == MARK)


@kernel
def ring_count(xy: Floats) -> int:
    """How many rings a region has, single or compound."""
    return int(xy[0, 1]) if xy[0, 0] == MARK else 1


@kernel
def part_count(xy: Floats) -> int:
    """How many parts a region has, single or compound."""
    return int(xy[1, 0]) if xy[0, 0] == MARK else 1


@kernel
def _box_view(xy: Floats, first: int, count: int) -> Floats:
    return xy[first : first + 2 * count].reshape((count, 4))


@kernel
def ring_mbrs(xy: Floats) -> Floats:
    """The MBRs of a compound region's rings, with those over them: boxes as `next_run` walks them, a ring to a run."""
    rings = int(xy[0, 1])
    return _box_view(xy, _DIRECTORY + 2 * rings, box_rows(RUN * rings))


@kernel
def ring_xy_at(xy: Floats, k: int) -> Floats:
    """The closed vertices of ring k of a region, single or compound."""
    if xy[0, 0] != MARK:
        return xy
    start = int(xy[_DIRECTORY + 2 * k, 0])
    return xy[start : start + int(xy[_DIRECTORY + 2 * k, 1]) + 1]


@kernel
def ring_boxes_at(xy: Floats, boxes: Floats, k: int) -> Floats:
    """The run boxes of ring k of a region, single or compound."""
    if xy[0, 0] != MARK:
        return boxes
    return _box_view(xy, int(xy[_DIRECTORY + 2 * k + 1, 0]), box_rows(int(xy[_DIRECTORY + 2 * k, 1])))


@kernel
def next_ring(xy: Floats, k: int, x1: float, y1: float, x2: float, y2: float) -> int:
    """Return the first ring from k on whose MBR meets the closed window, or how many rings there are.

    The only ring of a single one may be returned though it does not.
    """
    if xy[0, 0] != MARK:
        return min(k, 1)
    return next_run(ring_mbrs(xy), int(xy[0, 1]), k, x1, y1, x2, y2)


@kernel
def ring_role(xy: Floats, k: int) -> int:
    """Return p when ring k of a region is the shell of part p, and -1 - p when it is a hole in it."""
    return int(xy[_DIRECTORY + 2 * k + 1, 1]) if xy[0, 0] == MARK else 0


@kernel
def touch_points(xy: Floats) -> Floats:
    """The points at which rings of a compound region touch one another."""
    first = int(xy[_DIRECTORY, 0])
    return xy[first - int(xy[1, 1]) : first]


@kernel
def closed_rings(xy: Floats) -> tuple[Floats, Ints]:
    """The closed vertices of all rings of a region, single or compound, and the rows at which they start and end."""
    rings = ring_count(xy)
    offsets = np.zeros(rings + 1, np.int64)
    if xy[0, 0] != MARK:
        offsets[1] = xy.shape[0]
        return xy, offsets
    for k in range(rings):
        offsets[k + 1] = offsets[k] + int(xy[_DIRECTORY + 2 * k, 1]) + 1
    return xy[int(xy[_DIRECTORY, 0]) :], offsets


@kernel
def edge_count(xy: Floats) -> int:
    """How many edges a region has, single or compound."""
    if xy[0, 0] != MARK:
        return int(xy.shape[0] - 1)
    return int(xy.shape[0] - xy[_DIRECTORY, 0] - xy[0, 1])


@kernel
def edge_rows(xy: Floats, rows: Ints) -> None:
    """Fill in the rows at which the edges of a region, single or compound, start; the next row is where each ends."""
    if xy[0, 0] != MARK:
        for i in range(xy.shape[0] - 1):
            rows[i] = i
        return
    n = 0
    row = int(xy[_DIRECTORY, 0])
    for k in range(int(xy[0, 1])):
        for _ in range(int(xy[_DIRECTORY + 2 * k, 1])):
            rows[n] = row
            n += 1
            row += 1
        row += 1


@kernel
def fill_region_boxes(xy: Floats, boxes: Floats) -> None:
    """Compute what goes with the rows of a region, single or compound, into `boxes`, which has `box_rows` rows."""
    if xy[0, 0] != MARK:
        fill_boxes(xy, boxes)
        return
    mbrs = ring_mbrs(xy)
    boxes[:] = mbrs[mbrs.shape[0] - 1]


@kernel
def locate_in(px: float, py: float, xy: Floats, boxes: Floats) -> int:
    """Where a point is: IN the interior of a region, single or compound, ON its boundary or OUT. Exact."""
    if xy[0, 0] != MARK:
        return locate(px, py, xy, boxes)
    rings = int(xy[0, 1])
    mbrs = ring_mbrs(xy)
    inside = False
    k = next_run(mbrs, rings, 0, px, py, px, py)
    while k < rings:
        where = locate(px, py, ring_xy_at(xy, k), ring_boxes_at(xy, boxes, k))
        if where == ON:
            return ON
        inside ^= where == IN
        k = next_run(mbrs, rings, k + 1, px, py, px, py)
    return IN if inside else OUT


@kernel
def _whole(number: float, least: float, most: float) -> bool:
    return bool(least <= number <= most and number == np.floor(number))


@kernel
def sound_rows(xy: Floats, fewest: int = 3) -> bool:
    """Whether rows that begin with MARK, of whatever origin, lead kernels nowhere but to themselves.

    Rings have at least so many edges; open ones, the parts of a line, may have one.
    """
    size = xy.shape[0]
    if size < _DIRECTORY + 1 or not _whole(xy[0, 1], 2, size) or not _whole(xy[1, 0], 1, size):
        return False
    rings = int(xy[0, 1])
    boxes = _DIRECTORY + 2 * rings
    if boxes + 2 * box_rows(RUN * rings) > size or not _whole(xy[_DIRECTORY, 0], boxes, size):
        return False
    start = int(xy[_DIRECTORY, 0])
    if not _whole(xy[1, 1], 0, start - boxes):
        return False
    for k in range(rings):
        at = _DIRECTORY + 2 * k
        if xy[at, 0] != start or not _whole(xy[at, 1], fewest, size):
            return False
        start += int(xy[at, 1]) + 1
        if start > size or not _whole(xy[at + 1, 0], boxes, size - 2 * box_rows(int(xy[at, 1]))):
            return False
        if not _whole(xy[at + 1, 1], -xy[1, 0], xy[1, 0] - 1):
            return False
    return bool(start == size)


@kernel
def compose(vertices: Floats, offsets: Ints, roles: Ints, touches: Floats) -> Floats:
    """Return the rows of a compound region: ring k, closed, is vertices[offsets[k] : offsets[k + 1]]."""
    rings = offsets.shape[0] - 1
    levels = box_rows(RUN * rings)
    first = _DIRECTORY + 2 * rings + 2 * levels
    for k in range(rings):
        edges = offsets[k + 1] - offsets[k] - 1
        if edges > RUN:
            first += 2 * box_rows(edges)
    first += touches.shape[0]
    xy = np.empty((first + vertices.shape[0], 2))
    xy[0, 0], xy[0, 1] = MARK, rings
    xy[1, 0], xy[1, 1] = 0.0, touches.shape[0]
    xy[first - touches.shape[0] : first] = touches
    xy[first:] = vertices
    own = _DIRECTORY + 2 * rings
    mbrs = _box_view(xy, own, levels)
    box = own + 2 * levels
    for k in range(rings):
        edges = offsets[k + 1] - offsets[k] - 1
        at = _DIRECTORY + 2 * k
        xy[at, 0], xy[at, 1] = first + offsets[k], edges
        xy[at + 1, 0], xy[at + 1, 1] = own + 2 * k if edges <= RUN else box, roles[k]
        xy[1, 0] = max(xy[1, 0], roles[k] + 1)
        boxes = ring_boxes_at(xy, mbrs, k)
        fill_boxes(ring_xy_at(xy, k), boxes)
        if edges > RUN:
            box += 2 * box_rows(edges)
            mbrs[k] = boxes[boxes.shape[0] - 1]
    fill_upper_boxes(mbrs, rings)
    return xy
