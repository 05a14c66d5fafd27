"""Regions: polygons, with holes and in several parts where need be; and boxes, the axis-parallel rectangles.

A region is a regular closed set: one or more parts, each a ring with holes. It is validated once, on entry, and kept in
canonical form: of one ring (`canonical`), counter-clockwise, from its lexicographically smallest vertex, without
repeated or exactly collinear vertices; of several (`compound`), each ring so and the rings in order. So `==` holds
exactly when two regions are the same set of points, whatever rings they were given as, and kernels take it as it is
(`ring_of`).

[SIENA-2D], Definition 1, knows single rings and allows no contact of a boundary with itself: a vertex that touches an
edge or another vertex of its ring is refused like a crossing. Different rings may touch at points (`assembly`).
Coordinates are doubles, zero or of a magnitude from 1e-100 to 1e100, the range in which orientation is decided exactly;
a third dimension is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Self, cast

import numpy as np

from contrada.errors import InvalidRegion, shown
from contrada.spatial.geometry.canonical import MAX_VERTICES, SOUND, canonical_ring, describe_fault
from contrada.spatial.geometry.compound.assembly import Ring, assemble
from contrada.spatial.geometry.compound.rows import (
    MARK,
    edge_count,
    fill_region_boxes,
    ring_count,
    ring_role,
    ring_xy_at,
)
from contrada.spatial.geometry.point import Point, coordinate
from contrada.spatial.geometry.rings import box_rows
from contrada.spatial.geometry.shapes import draw_svg, geometry_of, positions, rings_by_part
from contrada.spatial.geometry.wkt import format_number, format_positions, parse_wkt

if TYPE_CHECKING:
    import shapely
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["MAX_VERTICES", "Box", "Point", "Region", "ring_of"]

_SHOWN_VERTICES: Final = 4
_NO_HOLES: Final[tuple[object, ...]] = ()


class Region:
    """A polygon, perhaps with holes, or several of them; immutable and hashable.

    Made from coordinates (a sequence of (x, y), or an (n, 2) array), with `holes` given likewise; or from WKT, a
    GeoJSON geometry or Feature, anything with `__geo_interface__`, or a shapely polygon. Rings may be closed or not, in
    either orientation, with repeated and collinear vertices; what is not a region raises `InvalidRegion`, which names
    the fault and where it is.

    >>> Region([(0, 0), (4, 0), (4, 3)]) == Region("POLYGON((4 3, 4 0, 2 0, 0 0, 4 3))")
    True
    >>> Region([(0, 0), (9, 0), (9, 9)], holes=[[(5, 1), (6, 1), (6, 2)]]).wkt
    'POLYGON((0 0, 9 0, 9 9, 0 0), (5 1, 6 2, 6 1, 5 1))'
    """

    __slots__ = ("_boxes", "_hash", "_xy")

    _xy: Floats
    _boxes: Floats | None
    _hash: int | None

    def __init__(self, shape: object, holes: Iterable[object] = _NO_HOLES) -> None:
        loose = type(shape) in (list, tuple, np.ndarray)
        if loose and holes is _NO_HOLES:  # the commonest, which is to be quick
            self._take_in_ring(shape)
            return
        if not isinstance(holes, Iterable):
            raise InvalidRegion(f"holes are a list of rings, not a {type(holes).__name__}")
        holes = list(holes)
        if holes and not (loose or isinstance(shape, Iterable)):
            raise InvalidRegion(f"holes go with the coordinates of a shell, not with a {type(shape).__name__}")
        if isinstance(shape, Region):
            self._adopt(shape._xy, shape._boxes)
            return
        geometry = None if loose or holes else geometry_of(shape)
        if geometry is not None and geometry.kind == "Box":
            box = Box.between(geometry.coordinates)
            self._adopt(box._xy, box._boxes)
            return
        self._take_in([[shape, *holes]] if geometry is None else rings_by_part(geometry))

    @classmethod
    def through(cls, numbers: list[float]) -> Region:
        """Make a region of a ring given as x, y, x, y, …: what the constructor does of pairs, sooner."""
        region = object.__new__(Region)
        region._take_in_points(np.array(numbers).reshape(-1, 2))
        return region

    def _take_in_ring(self, ring: object) -> None:
        self._take_in_points(positions(ring))

    def _take_in_points(self, points: Floats) -> None:
        if len(points) > MAX_VERTICES:
            _check_count(_vertex_count(points))
        fault, i, i2, j, j2, xy, boxes = canonical_ring(points)
        if fault != SOUND:
            raise InvalidRegion(describe_fault(fault, (i, i2, j, j2), points))
        self._adopt(xy, boxes)

    def _take_in(self, parts: list[list[object]]) -> None:
        if len(parts) == 1 and len(parts[0]) == 1:
            self._take_in_ring(parts[0][0])
            return
        given = [(part, hole - 1, ring) for part, rings in enumerate(parts) for hole, ring in enumerate(rings)]
        rings: list[Ring] = []
        count = 0
        for part, hole, ring in given:
            name = (f"part {part}: " if len(parts) > 1 else "") + (f"hole {hole}: " if hole >= 0 else "")
            try:
                points = positions(ring)
                count += _vertex_count(points)
                _check_count(count)
                fault, i, i2, j, j2, xy, _ = canonical_ring(points)
                if fault != SOUND:
                    raise InvalidRegion(describe_fault(fault, (i, i2, j, j2), points))
            except InvalidRegion as error:
                raise InvalidRegion(f"{name}{error}") from None
            rings.append(Ring(part, hole, xy))
        self._adopt(assemble(rings), None)

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
            region = object.__new__(Region)
            region._take_in(rings_by_part(geometry))
            return region
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

    @classmethod
    def trusted_rows(cls, rows: Floats) -> Region:
        """Make a region from the rows that `ring_of` gives of one, without validation. The array is copied."""
        region = object.__new__(Region)
        region._adopt(np.array(rows), None)
        return region

    @classmethod
    def circle(cls, x: float, y: float, r: float, segments: int = 64) -> Region:
        """Return the regular polygon of that many sides whose corners lie r away from (x, y), rounded to doubles.

        The circle itself goes beyond its sides, by at most r · (1 - cos(π / segments)): 0.12 % of r for 64. For what
        is within a distance of a point, exactly, ask `within` (docs/distance.md).
        """
        x, y, r = coordinate(x, "x"), coordinate(y, "y"), coordinate(r, "r")
        if r <= 0.0:
            raise InvalidRegion(f"a circle needs a radius above 0, not {r:g}")
        if type(segments) is not int or not 3 <= segments <= MAX_VERTICES:
            raise InvalidRegion(f"segments is {shown(segments)}; expected an integer from 3 to {MAX_VERTICES}")
        angles = np.arange(segments) * (2.0 * np.pi / segments)
        return Region(np.column_stack((x + r * np.cos(angles), y + r * np.sin(angles))))

    @property
    def coords(self) -> Floats:
        """The vertices in canonical form, (n, 2), not closed, read-only; those of several rings one after another."""
        if self._xy.item(0) == MARK:
            view = np.concatenate([ring[:-1] for part in self.rings for ring in part])
        else:
            view = self._xy[:-1]
        view.flags.writeable = False
        return view

    @property
    def rings(self) -> tuple[tuple[Floats, ...], ...]:
        """Of each part its shell and its holes: closed vertices in canonical form, read-only."""
        if not self.is_compound:
            ring = self._xy.view()
            ring.flags.writeable = False
            return ((ring,),)
        parts: list[list[Floats]] = []
        for k in range(ring_count(self._xy)):
            ring = ring_xy_at(self._xy, k).view()
            ring.flags.writeable = False
            if ring_role(self._xy, k) >= 0:
                parts.append([])
            parts[-1].append(ring)
        return tuple(map(tuple, parts))

    @property
    def is_compound(self) -> bool:
        """Whether there are holes or several parts."""
        return self._xy.item(0) == MARK

    @property
    def in_one_part(self) -> bool:
        """Whether the interior is connected."""
        return not self.is_compound or self._xy.item(2) == 1.0  # the second row begins with how many there are

    @property
    def parts(self) -> tuple[Region, ...]:
        """The parts, each with its holes, as regions of their own."""
        rings = self.rings
        return (self,) if len(rings) == 1 else tuple(_region_of_rings(part) for part in rings)

    @property
    def holes(self) -> tuple[Region, ...]:
        """What is cut out, of all parts, as regions of their own."""
        return tuple(_region_of_rings((hole[::-1],)) for _, *holes in self.rings for hole in holes)

    @property
    def ring(self) -> tuple[Floats, Floats]:
        """The closed vertices and the run boxes (see `rings`), or the rows of a compound region; read-only."""
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
        if not self.is_compound:
            return f"POLYGON(({format_positions(self._xy.tolist())}))"
        parts = ["(" + ", ".join(f"({format_positions(ring.tolist())})" for ring in part) + ")" for part in self.rings]
        return f"POLYGON{parts[0]}" if len(parts) == 1 else f"MULTIPOLYGON({', '.join(parts)})"

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        parts = tuple(tuple(tuple(map(tuple, ring.tolist())) for ring in part) for part in self.rings)
        if len(parts) == 1:
            return {"type": "Polygon", "coordinates": parts[0]}
        return {"type": "MultiPolygon", "coordinates": parts}

    @property
    def svg(self) -> str:
        """A small picture, as an SVG document."""
        return draw_svg([ring for part in self.rings for ring in part], self.bounds)

    def _repr_svg_(self) -> str:
        """What notebooks show."""
        return self.svg

    def to_shapely(self) -> shapely.Polygon | shapely.MultiPolygon:
        """Return the region as shapely has it."""
        import shapely

        parts = [shapely.Polygon(shell, holes) for shell, *holes in self.rings]
        return parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)

    def __len__(self) -> int:
        """How many vertices the rings have in canonical form."""
        return len(self._xy) - 1 if self._xy.item(0) != MARK else edge_count(self._xy)

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
        return (Region.trusted_rows, (self._xy,)) if self.is_compound else (Region.trusted, (self._xy[:-1],))

    def __repr__(self) -> str:
        shell, *more = (ring for part in self.rings for ring in part)
        first = shell[: min(len(shell) - 1, _SHOWN_VERTICES)].tolist()
        shown = ", ".join(f"({format_number(x)}, {format_number(y)})" for x, y in first)
        if not more and len(self) <= _SHOWN_VERTICES:
            return f"Region([{shown}])"
        holes, parts = len(self.holes), len(self.rings)
        what = f"{len(self)} vertices" + (f", {parts} parts" if parts > 1 else "")
        return f"<Region of {what}{f', {holes} holes' if holes else ''}: {shown}, …>"


def _vertex_count(points: Floats) -> int:
    """How many vertices a ring is given with, closed or not."""
    return len(points) - (len(points) > 1 and bool((points[0] == points[-1]).all()))


def _check_count(count: int) -> None:
    if count > MAX_VERTICES:
        raise InvalidRegion(f"{count} vertices; a region has at most {MAX_VERTICES}: simplify it, or split it")


def _region_of_rings(rings: tuple[Floats, ...]) -> Region:
    """Make a region of canonical rings, closed: a counter-clockwise shell, and holes of it."""
    return Region.trusted(rings[0][:-1]) if len(rings) == 1 else Region(rings[0], rings[1:])


def ring_of(region: Region) -> tuple[Floats, Floats]:
    """Return the arrays of `Region.ring` for kernels, not to be written to: rows and what goes with them.

    Kernels are compiled for arrays that may be written, for there is no telling the two apart without compiling twice.
    """
    if region._boxes is None:
        boxes = np.empty((box_rows(len(region._xy) - 1), 4))
        fill_region_boxes(region._xy, boxes)
        object.__setattr__(region, "_boxes", boxes)
        return region._xy, boxes
    return region._xy, region._boxes


class Box(Region):
    """An axis-parallel rectangle, x1 < x2 and y1 < y2: a region like any other, equal to the polygon of its corners.

    It is kept as its corners; the arrays of a region are made when somebody first asks for them.
    """

    __slots__ = ("_corners",)

    _corners: tuple[float, float, float, float]

    def __init__(self, x1: float, y1: float, x2: float, y2: float) -> None:
        x1, y1, x2, y2 = coordinate(x1, "x1"), coordinate(y1, "y1"), coordinate(x2, "x2"), coordinate(y2, "y2")
        if not x1 < x2 or not y1 < y2:
            which = "x1 < x2" if not x1 < x2 else "y1 < y2"
            raise InvalidRegion(f"a box needs {which}: got Box({x1:g}, {y1:g}, {x2:g}, {y2:g})")
        self._span(x1, y1, x2, y2)

    def _span(self, x1: float, y1: float, x2: float, y2: float) -> None:
        object.__setattr__(self, "_corners", (x1, y1, x2, y2))
        object.__setattr__(self, "_hash", None)

    def __getattr__(self, name: str) -> Any:
        """The arrays, which are not there yet: Python asks here for what it does not find otherwise."""
        if name not in ("_xy", "_boxes"):
            raise AttributeError(f"a {type(self).__name__} has no {name}")
        x1, y1, x2, y2 = self._corners
        # Counter-clockwise from the smallest corner: canonical as it stands. Four edges have one run box, the MBR.
        object.__setattr__(self, "_boxes", np.array(self._corners).reshape(1, 4))
        ring = np.array((x1, y1, x2, y1, x2, y2, x1, y2, x1, y1)).reshape(5, 2)  # half the time of nested lists
        object.__setattr__(self, "_xy", ring)
        return object.__getattribute__(self, name)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The corners: (x1, y1, x2, y2)."""
        return self._corners

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
