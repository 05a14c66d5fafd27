"""The shapes of distance constraints: paths in one arena, and a row for each handle.

    rows  int64 (handles, 4)  where the path is, what it is of, and the length (spatial/distance/searching.py)
    heap  float64             the paths (spatial/geometry/ring_arena.py)

A relation to a point or line is one at no distance from it, for which there is a path, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from contrada.forwarding.language.constraint import Operator
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.lonlat import other_side
from contrada.forwarding.state.growable import GrowableArray
from contrada.spatial.distance import searching
from contrada.spatial.distance.near import path_of
from contrada.spatial.geometry import ring_arena
from contrada.spatial.geometry.compound.rows import MARK, locate_in
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box
from contrada.spatial.geometry.rings import IN, ON, locate
from contrada.spatial.lines.line import Line
from contrada.spatial.relations.relation import CONTAINS, DISJOINT, MEETS
from contrada.spatial.storage.jit import kernel
from contrada.spatial.storage.row_numbers import check_lengths, check_rows, check_shapes, check_that

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.spatial.relations.relate import Rings

_SHAPES: Final = {
    "paths.heap": (np.int64, ()),
    "paths.rows": (np.int64, (searching.COLUMNS,)),
    "paths.state": (np.int64, ()),
}


def distance_of(value: object, degrees: bool) -> Distance | None:
    """The distance that a constraint of this operand asks for at least; None of relations to regions."""
    if degrees and other_side(value) is not None:
        return Distance(0.0, cast("Point", value), "m")
    if isinstance(value, Point | Line):
        return Distance(0.0, value)
    return value if isinstance(value, Distance) else None


def box_of(distance: Distance, degrees: bool) -> Box:
    """The box that whatever is near meets; all around, where points at 180 may touch what ends at -180."""
    x1, y1, x2, y2 = distance.bounds
    if degrees and not distance.unit and not -180 < distance.of.bounds[0] <= distance.of.bounds[2] < 180:
        x1, x2 = -180.0, 180.0
    return Box.trusted_corners(x1, y1, x2, y2)


class Paths:
    """Paths by handle."""

    def __init__(self) -> None:
        self._heap = GrowableArray(0, 256)
        self._rows = GrowableArray(searching.COLUMNS, 16)
        self._state: Ints = np.full(ring_arena.STATE_SIZE, -1, np.int64)
        self._state[ring_arena.USED] = 0

    @property
    def rows(self) -> Ints:
        """A row for each handle."""
        return self._rows.array

    @property
    def heap(self) -> Floats:
        """The paths."""
        return self._heap.array.view(np.float64)

    @property
    def growing(self) -> tuple[GrowableArray, GrowableArray]:
        """What `heap` and `rows` are the arrays of."""
        return self._heap, self._rows

    def store(self, handle: int, op: Operator, distance: Distance) -> None:
        """Take in the shape of a constraint."""
        xy = path_of(distance.of)[0]
        edges = len(xy) - 1
        self._rows.reserve(handle + 1)
        self._heap.reserve(int(self._state[ring_arena.USED]) + 2 * ring_arena.ring_size(edges) + 8)
        block = ring_arena.store(self.heap, self._state, xy)
        self.rows[handle] = block, edges, _flags(op, distance), np.float64(distance.length).view(np.int64)

    def release(self, handle: int) -> None:
        """Give the room of a shape back."""
        block, edges, *_ = self.rows[handle].tolist()
        ring_arena.release(self.heap, self._state, block, edges)

    def arrays(self, handles: int) -> dict[str, NDArray[Any]]:
        """All of it, of so many handles, for a file."""
        rows = np.zeros((handles, searching.COLUMNS), np.int64)
        known = self.rows[:handles]
        rows[: len(known)] = known
        heap = self._heap.array[: self._state[ring_arena.USED]]
        return {"paths.heap": heap, "paths.rows": rows, "paths.state": self._state}

    def restore(self, arrays: Mapping[str, NDArray[Any]], mine: Ints, handles: int) -> None:
        """Take it back, mapped or not; `mine` are the handles that have paths, of so many."""
        check_shapes("distances", arrays, _SHAPES)
        rows, state = arrays["paths.rows"], arrays["paths.state"]
        check_lengths("distances", handles, rows)
        check_lengths("distances", ring_arena.STATE_SIZE, state)
        blocks, edges, flags, lengths = rows[mine].T
        ring_arena.guard_rings(arrays["paths.heap"].view(np.float64), state, blocks, edges, 1)
        check_rows("distances: flags", flags, searching.METRES << 1)
        check_that("distances: a length that is none", np.ascontiguousarray(lengths).view(np.float64) >= 0)
        self._heap, self._rows = GrowableArray.over(arrays["paths.heap"]), GrowableArray.over(rows)
        self._state = state

    def _check(self, handle: int, op: Operator, distance: Distance) -> None:
        """Assert that a handle has the path of its constraint."""
        block, edges, flags, length = self.rows[handle].tolist()
        assert (ring_arena.ring_xy(self.heap, block, edges) == path_of(distance.of)[0]).all()
        assert flags == _flags(op, distance)
        assert np.int64(length).view(np.float64) == distance.length


def _flags(op: Operator, distance: Distance) -> int:
    of = searching.POINT if isinstance(distance.of, Point) else 0 if isinstance(distance.of, Line) else searching.FILLED
    return of | searching.BEYOND * (op is Operator.BEYOND) | searching.METRES * bool(distance.unit)


@kernel
def locate_pairs(
    heap: Floats, blocks: Ints, places: Floats, rings: Rings, numbers: Ints, wanted: Ints, held: NDArray[np.bool_]
) -> None:
    """Whether the value of each number is in a wanted relation to the point at each block; points are in none."""
    for i in range(numbers.shape[0]):
        k = int(places[numbers[i], 0])
        held[i] = False
        if k >= 0:
            axy = rings.xy[rings.starts[k] : rings.starts[k + 1]]
            aboxes = rings.boxes[rings.box_starts[k] : rings.box_starts[k + 1]]
            x, y = heap[blocks[i]], heap[blocks[i] + 1]
            where = locate(x, y, axy, aboxes) if axy[0, 0] != MARK else locate_in(x, y, axy, aboxes)
            held[i] = wanted[i] >> (CONTAINS if where == IN else MEETS if where == ON else DISJOINT) & 1 == 1
