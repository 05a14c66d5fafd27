"""Circles by the cells of a grid: what a point is within is told by one cell, without a walk down a tree.

A tree of the boxes around many small circles spends its time on the boxes that a point just misses. A grid whose cells
are about as wide as the circles leads to those near it at once. It is made of circles that stay as they are, quickly
and as a whole; whoever changes them drops it, and makes it anew when that pays (`pays`).

    corner  (x0, y0, width, ratio, verge)   where the grid begins, how wide a cell is, one over that, and how far
                                     squares of distances may be off
    shape   (columns, rows)
    starts  int64 (cells + 1,)       cell k has members starts[k] to starts[k + 1]; cells go row by row
    near    float32 (members, 4)     centre, seen from the middle of the cell, square of the radius, and which circle

A circle is a member of all cells that its box, rounded outwards, meets. The cell of a coordinate is found by the same
roundings for circles and points, and these never exchange two coordinates: so no circle is missed. Distances are told
in single precision, whose errors are bounded; on the verge the circles' own numbers decide (`comparing`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contrada.spatial.distance.comparing import points_within
from contrada.spatial.distance.planar import less, more
from contrada.spatial.storage.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.geometry.rings import Floats

    Ints = NDArray[np.int64]

_MEMBERS: Final = 10  # for each circle, at most
_CROWD: Final = 256  # members of the cell of a circle, on average: from there on a tree is better
_FEWEST: Final = 64
_MOST: Final = 1 << 24  # numbers that single precision has exactly
_AHEAD: Final = 32  # points whose cells are fetched together
_LINE: Final = 4  # members that are fetched at once
_SMALLEST: Final = 1e-15  # radius, and largest number, with whose squares single precision has room
_LARGEST: Final = 1e15
_VERGE: Final = 2.0**-20  # above all roundings, relative to the square of all that is added up


class Cells(NamedTuple):
    """The arrays; see the module's docstring."""

    corner: Floats
    shape: Ints
    starts: Ints
    near: NDArray[np.float32]
    circles: Floats  # (n, 3): x, y and radius, as they are
    ids: Ints


def pays(asked: int, circles: int) -> bool:
    """Whether a grid of so many circles is worth making once so many points have been searched for without."""
    return circles >= _FEWEST and 8 * asked >= circles


def make_cells(circles: Floats, ids: Ints) -> Cells | None:
    """The grid of circles (n, 3); None where they lie so unevenly, or are so unlike, that it would be of no use."""
    radii = circles[:, 2]
    if len(circles) > _MOST or not (radii > _SMALLEST).all() or not (np.abs(circles) < _LARGEST).all():
        return None
    low = (circles[:, :2] - radii[:, None]).min(axis=0)
    wide, high = ((circles[:, :2] + radii[:, None]).max(axis=0) - low).tolist()
    count = len(circles)
    width = float(radii.mean())
    while (
        np.square(2.0 * radii / width + 1.0).sum() > _MEMBERS * count
        or (wide / width + 1) * (high / width + 1) > _MEMBERS * count
    ):
        width *= 1.25
    margin = 1e-9 * (np.abs(low).max() + wide + high)  # the corner is left of and below all boxes, rounded as they are
    most = 3.1 * float(radii.max()) + 2.1 * width  # more than the coordinates and the radius of a member, and a point's
    corner = np.array((low[0] - margin, low[1] - margin, width, 1.0 / width, _VERGE * most * most))
    shape = np.array((int((wide + 3 * margin) / width) + 2, int((high + 3 * margin) / width) + 2), np.int64)
    starts = np.zeros(int(shape[0] * shape[1]) + 1, np.int64)
    if not _count_members(corner, shape, circles, starts):
        return None
    members = int(starts[-1])
    if np.square(np.diff(starts)).sum() > _CROWD * members:
        return None
    made = Cells(corner, shape, starts, np.empty((members, 4), np.float32), circles, ids)
    _fill_members(made)
    return made


@inline_kernel
def _cell(coordinate: float, start: float, ratio: float) -> int:
    return int((coordinate - start) * ratio)


@kernel
def _span(corner: Floats, circles: Floats, k: int) -> tuple[int, int, int, int]:
    """The first and last column and row that the box of a circle meets."""
    x, y, r = circles[k, 0], circles[k, 1], circles[k, 2]
    x1, x2 = _cell(less(x, r), corner[0], corner[3]), _cell(more(x, r), corner[0], corner[3])
    return x1, x2, _cell(less(y, r), corner[1], corner[3]), _cell(more(y, r), corner[1], corner[3])


@kernel
def _count_members(corner: Floats, shape: Ints, circles: Floats, starts: Ints) -> bool:
    """Fill in where members start; false if a circle is beyond the grid."""
    for k in range(circles.shape[0]):
        x1, x2, y1, y2 = _span(corner, circles, k)
        if x1 < 0 or y1 < 0 or x2 >= shape[0] or y2 >= shape[1]:
            return False
        for row in range(y1, y2 + 1):
            for column in range(x1, x2 + 1):
                starts[row * shape[0] + column + 1] += 1
    for cell in range(starts.shape[0] - 1):
        starts[cell + 1] += starts[cell]
    return True


@kernel
def _fill_members(c: Cells) -> None:
    filled = c.starts[:-1].copy()
    for k in range(c.circles.shape[0]):
        x1, x2, y1, y2 = _span(c.corner, c.circles, k)
        for row in range(y1, y2 + 1):
            y = c.corner[1] + (row + 0.5) * c.corner[2]
            for column in range(x1, x2 + 1):
                cell = row * c.shape[0] + column
                at = filled[cell]
                filled[cell] += 1
                c.near[at, 0] = c.circles[k, 0] - (c.corner[0] + (column + 0.5) * c.corner[2])
                c.near[at, 1] = c.circles[k, 1] - y
                c.near[at, 2] = c.circles[k, 2] * c.circles[k, 2]
                c.near[at, 3] = k


@kernel
def _fetch(c: Cells, places: Floats, first: int, spans: Ints) -> float:
    """Fill in the members of the cells of some places, none where there is no cell, and look at them.

    One after another, each cell would be waited for; memory gives many at once.
    """
    x0, y0, ratio = c.corner[0], c.corner[1], c.corner[3]
    some = min(_AHEAD, places.shape[0] - first)
    for n in range(some):
        px, py = places[first + n, 0], places[first + n, 1]
        spans[n, 0] = spans[n, 1] = 0
        if px >= x0 and py >= y0 and (px - x0) * ratio < c.shape[0] and (py - y0) * ratio < c.shape[1]:
            cell = _cell(py, y0, ratio) * c.shape[0] + _cell(px, x0, ratio)
            spans[n, 0], spans[n, 1] = c.starts[cell], c.starts[cell + 1]
    looked = 0.0
    for n in range(some):
        for k in range(spans[n, 0], spans[n, 1], _LINE):
            looked += c.near[k, 0]
    return looked


@inline_kernel
def _look_through(c: Cells, px: float, py: float, start: int, end: int, out: Ints, count: int) -> int:
    """Write the ids of the circles that a place is within, among some members of its cell, to out[count:]."""
    x0, y0, width, ratio, verge = c.corner[0], c.corner[1], c.corner[2], c.corner[3], c.corner[4]
    near, circles, ids = c.near, c.circles, c.ids
    before = count
    column, row = _cell(px, x0, ratio), _cell(py, y0, ratio)
    qx, qy = px - (x0 + (column + 0.5) * width), py - (y0 + (row + 0.5) * width)
    for k in range(start, end):
        dx, dy = near[k, 0] - qx, near[k, 1] - qy
        over = dx * dx + dy * dy - near[k, 2]
        inside = over < -verge
        if abs(over) <= verge:
            i = int(near[k, 3])
            inside = points_within(circles[i, 0], circles[i, 1], px, py, circles[i, 2])
        out[count] = int(near[k, 3])  # kept or written over: no branch, which would be guessed wrong
        count += inside
    for k in range(before, count):
        out[k] = ids[out[k]]
    return count


@kernel
def search_cells(c: Cells, places: Floats, first: int, out: Ints, ends: Ints) -> int:
    """Write the ids of the circles that each place from `first` on is within, one answer behind another.

    `ends` says where each's end. Returns the place to go on with, less than there are when `out` is full.
    """
    count = ends[first - 1] if first > 0 else 0
    spans, looked = np.empty((_AHEAD, 2), np.int64), np.zeros(1)
    for n in range(first, places.shape[0]):
        px, py = places[n, 0], places[n, 1]
        ahead = (n - first) % _AHEAD
        if ahead == 0:
            looked[0] += _fetch(c, places, n, spans)
        start, end = spans[ahead, 0], spans[ahead, 1]
        if out.shape[0] - count <= end - start:
            return n
        if start < end:
            count = _look_through(c, px, py, start, end, out, count)
        ends[n] = count
    return len(places)


@kernel
def search_cell(c: Cells, px: float, py: float, out: Ints) -> int:
    """As `search_cells` of one place, to `out` with room for all circles and one more; how many."""
    x0, y0, ratio = c.corner[0], c.corner[1], c.corner[3]
    if not (px >= x0 and py >= y0 and (px - x0) * ratio < c.shape[0] and (py - y0) * ratio < c.shape[1]):
        return 0
    cell = _cell(py, y0, ratio) * c.shape[0] + _cell(px, x0, ratio)
    return _look_through(c, px, py, c.starts[cell], c.starts[cell + 1], out, 0)
