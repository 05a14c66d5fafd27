"""Regions: simple polygons of one ring ([SIENA-2D], Definition 1), and boxes, the axis-parallel ones.

A region is validated once, on entry, and kept in canonical form (`canonical`): counter-clockwise, from its
lexicographically smallest vertex, without repeated or exactly collinear vertices. So `==` holds exactly when two
regions are the same set of points, whatever ring they were given as, and kernels take it as it is (`ring_of`).

Definition 1 allows no contact of a boundary with itself: a vertex that touches an edge or another vertex is refused
like a crossing. Coordinates are doubles, zero or of a magnitude from 1e-100 to 1e100, the range in which orientation
is decided exactly; a third dimension is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self, cast

import numpy as np

from contrada.errors import InvalidRegion
from contrada.spatial.geometry.canonical import (
    CONTACT,
    MAGNITUDE,
    MAX_VERTICES,
    NOT_FINITE,
    SOUND,
    SPIKE,
    TOO_FEW,
    ZERO_AREA,
    canonical_ring,
)
from contrada.spatial.geometry.point import Point, coordinate
from contrada.spatial.geometry.predicates import orient
from contrada.spatial.geometry.rings import box_rows, fill_boxes
from contrada.spatial.geometry.shapes import geometry_of, only_ring, positions
from contrada.spatial.geometry.wkt import format_number, format_positions, parse_wkt

if TYPE_CHECKING:
    import shapely
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["MAX_VERTICES", "Box", "Point", "Region", "ring_of"]

_SHOWN_VERTICES: Final = 4


class Region:
    """A simple polygon, immutable and hashable.

    Made from coordinates (a sequence of (x, y), or an (n, 2) array), WKT, a GeoJSON geometry or Feature, anything with
    `__geo_interface__`, or a shapely polygon. The ring may be closed or not, in either orientation, with repeated and
    collinear vertices; what is not a simple polygon raises `InvalidRegion`, which names the fault and the vertex.

    >>> Region([(0, 0), (4, 0), (4, 3)]) == Region("POLYGON((4 3, 4 0, 2 0, 0 0, 4 3))")
    True
    """

    __slots__ = ("_boxes", "_hash", "_xy")

    _xy: Floats
    _boxes: Floats | None
    _hash: int | None

    def __init__(self, shape: object) -> None:
        if isinstance(shape, Region):
            self._adopt(shape._xy, shape._boxes)
            return
        geometry = None if type(shape) in (list, tuple, np.ndarray) else geometry_of(shape)
        if geometry is not None:
            if geometry.kind == "Box":
                box = Box.between(geometry.coordinates)
                self._adopt(box._xy, box._boxes)
                return
            shape = only_ring(geometry)
        points = positions(shape)
        count = len(points)
        if count > MAX_VERTICES and not (count == MAX_VERTICES + 1 and (points[0] == points[-1]).all()):
            raise InvalidRegion(f"{count} vertices; a region has at most {MAX_VERTICES}: simplify it, or split it")
        fault, i, i2, j, j2, xy, boxes = canonical_ring(points)
        if fault != SOUND:
            raise InvalidRegion(_describe(fault, (i, i2, j, j2), points))
        self._adopt(xy, boxes)

    def _adopt(self, xy: Floats, boxes: Floats | None) -> None:
        object.__setattr__(self, "_xy", xy)
        object.__setattr__(self, "_boxes", boxes)
        object.__setattr__(self, "_hash", None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable: {name} cannot be deleted")

    @classmethod
    def of(cls, shape: object) -> Region:
        """Return `shape` itself when it is a region, and otherwise the region made from it."""
        if isinstance(shape, Region):
            return shape
        if isinstance(shape, str):
            geometry = parse_wkt(shape)
            if geometry.kind == "Box":
                return Box.between(geometry.coordinates)
            return Region(positions(only_ring(geometry)))
        return Region(shape)

    @classmethod
    def trusted(cls, coords: Floats) -> Region:
        """Make a region from the `coords` of one, without validation: for rings from our own files.

        The array is copied. Coordinates that are not in canonical form make every later answer meaningless.
        """
        xy = np.empty((len(coords) + 1, 2))
        xy[:-1] = coords
        xy[-1] = coords[0]
        region = object.__new__(cls)
        region._adopt(xy, None)
        return region

    @property
    def coords(self) -> Floats:
        """The vertices in canonical form, (n, 2), not closed, read-only."""
        view = self._xy[:-1]
        view.flags.writeable = False
        return view

    @property
    def ring(self) -> tuple[Floats, Floats]:
        """The closed vertices and the run boxes (see `rings`), read-only."""
        xy, boxes = (array.view() for array in ring_of(self))
        xy.flags.writeable = boxes.flags.writeable = False
        return xy, boxes

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The minimum bounding rectangle: (x1, y1, x2, y2)."""
        x1, y1, x2, y2 = ring_of(self)[1][-1].tolist()
        return x1, y1, x2, y2

    @property
    def wkt(self) -> str:
        """Well-known text that reads back as an equal region."""
        return f"POLYGON(({format_positions(self._xy.tolist())}))"

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        return {"type": "Polygon", "coordinates": (tuple((x, y) for x, y in self._xy.tolist()),)}

    def to_shapely(self) -> shapely.Polygon:
        """Return the region as shapely has it."""
        import shapely

        return shapely.Polygon(self._xy)

    def __len__(self) -> int:
        """How many vertices the canonical ring has."""
        return len(self._xy) - 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Region):
            return NotImplemented
        return self._xy.shape == other._xy.shape and self._xy.tobytes() == other._xy.tobytes()

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash(self._xy.tobytes()))
        return cast("int", self._hash)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Region.trusted, (self._xy[:-1],)

    def __repr__(self) -> str:
        first = self._xy[: min(len(self), _SHOWN_VERTICES)].tolist()
        shown = ", ".join(f"({format_number(x)}, {format_number(y)})" for x, y in first)
        return f"Region([{shown}])" if len(self) <= _SHOWN_VERTICES else f"<Region of {len(self)} vertices: {shown}, …>"


def ring_of(region: Region) -> tuple[Floats, Floats]:
    """Return the arrays of `Region.ring` for kernels, not to be written to.

    Kernels are compiled for arrays that may be written, for there is no telling the two apart without compiling twice.
    """
    if region._boxes is None:
        boxes = np.empty((box_rows(len(region._xy) - 1), 4))
        fill_boxes(region._xy, boxes)
        object.__setattr__(region, "_boxes", boxes)
        return region._xy, boxes
    return region._xy, region._boxes


class Box(Region):
    """An axis-parallel rectangle, x1 < x2 and y1 < y2: a region like any other, equal to the polygon of its corners."""

    __slots__ = ()

    def __init__(self, x1: float, y1: float, x2: float, y2: float) -> None:
        x1, y1, x2, y2 = coordinate(x1, "x1"), coordinate(y1, "y1"), coordinate(x2, "x2"), coordinate(y2, "y2")
        if not x1 < x2 or not y1 < y2:
            which = "x1 < x2" if not x1 < x2 else "y1 < y2"
            raise InvalidRegion(f"a box needs {which}: got Box({x1:g}, {y1:g}, {x2:g}, {y2:g})")
        self._span(x1, y1, x2, y2)

    def _span(self, x1: float, y1: float, x2: float, y2: float) -> None:
        # Counter-clockwise from the smallest corner: canonical as it stands. Four edges have one run box, the MBR.
        self._adopt(
            np.array((x1, y1, x2, y1, x2, y2, x1, y2, x1, y1)).reshape(5, 2),  # half the time that nested lists take
            np.array((x1, y1, x2, y2)).reshape(1, 4),
        )

    @classmethod
    def trusted_corners(cls, x1: float, y1: float, x2: float, y2: float) -> Box:
        """Make a box from the `bounds` of one, without validation: for corners from our own files."""
        box = object.__new__(cls)
        box._span(x1, y1, x2, y2)
        return box

    @classmethod
    def between(cls, corners: object) -> Box:
        """Return the box from its lower left to its upper right corner."""
        pairs = positions(corners)
        if pairs.shape != (2, 2):
            raise InvalidRegion("a box has two corners: BOX(x1 y1, x2 y2)")
        (x1, y1), (x2, y2) = pairs.tolist()
        return cls(x1, y1, x2, y2)

    def __reduce__(self) -> tuple[Any, ...]:
        return Box, self.bounds

    def __repr__(self) -> str:
        return f"Box({', '.join(format_number(c) for c in self.bounds)})"


def _describe(fault: int, at: tuple[int, int, int, int], points: Floats) -> str:
    i = at[0]
    if fault == TOO_FEW:
        return f"{i} distinct vertices; a region has at least 3"
    if fault == ZERO_AREA:
        return "zero area: all vertices lie on one line"
    where = _vertex(i, points)
    if fault == NOT_FINITE:
        return f"{where} has a coordinate that is not finite"
    if fault == MAGNITUDE:
        return f"{where} has a coordinate outside the supported range: 0, or 1e-100 to 1e100 in magnitude"
    if fault == SPIKE:
        return f"spike: the boundary runs back on itself at {where}"
    assert fault == CONTACT
    return _describe_contact(at, points)


def _describe_contact(at: tuple[int, int, int, int], points: Floats) -> str:
    """Say how two edges touch: they run along each other, a vertex of one lies on the other, or they cross."""
    (a, b), (c, d) = edges = at[:2], at[2:]
    first, second = (f"the edge from {_vertex(p, points)} to {_vertex(q, points)}" for p, q in edges)
    p, q, r, s = (tuple(points[k].tolist()) for k in at)
    if orient(*p, *q, *r) == 0 == orient(*p, *q, *s):
        return f"self-intersection: {first} runs along {second}"
    for vertex, edge, name in ((c, (p, q), first), (d, (p, q), first), (a, (r, s), second), (b, (r, s), second)):
        position = tuple(points[vertex].tolist())
        for end, corner in zip(edge, edges[0] if name is first else edges[1], strict=True):
            if end == position:
                return f"self-intersection: {_vertex(vertex, points)} is also vertex {corner}"
        if orient(*edge[0], *edge[1], *position) == 0:
            return f"self-intersection: {_vertex(vertex, points)} lies on {name}"
    return f"self-intersection: {first} crosses {second}"


def _vertex(i: int, points: Floats) -> str:
    x, y = points[i].tolist()
    return f"vertex {i} at ({format_number(x)}, {format_number(y)})"
