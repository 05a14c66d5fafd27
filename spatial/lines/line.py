"""Lines: one or more paths of straight edges, which may cross themselves and one another.

A line is validated once, on entry: two different vertices at least in each part, coordinates as those of regions. It is
kept without repeated vertices, each part from the end that comes first in order, parts in order and once each; so lines
that are given the other way round are equal. Kernels have a line of one part as a path (`spatial.distance.planar`), and
one of several in the rows of a compound region, whose rings here are open (`compound.rows`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self, cast

import numpy as np

from contrada.errors import InvalidValue
from contrada.spatial.geometry.canonical import MAX_VERTICES
from contrada.spatial.geometry.compound.rows import compose, fill_region_boxes
from contrada.spatial.geometry.point import check_coordinates
from contrada.spatial.geometry.rings import box_rows
from contrada.spatial.geometry.shapes import geometry_of, positions
from contrada.spatial.geometry.wkt import format_positions

if TYPE_CHECKING:
    from collections.abc import Iterable

    import shapely

    from contrada.spatial.geometry.rings import Floats

_KINDS: Final = ("LineString", "MultiLineString")


class Line:
    """A line of one or more parts, immutable and hashable.

    Made from coordinates (a sequence of (x, y), or an (n, 2) array), or from a LineString or MultiLineString in WKT,
    GeoJSON, `__geo_interface__` or shapely. `Line.of_parts` takes several lists of coordinates.

    >>> Line([(3, 4), (0, 0)]) == Line("LINESTRING(0 0, 3 4)")
    True
    """

    __slots__ = ("_hash", "_parts", "_path")

    _parts: tuple[Floats, ...]
    _path: tuple[Floats, Floats] | None
    _hash: int | None

    def __init__(self, shape: object) -> None:
        geometry = None if type(shape) in (list, tuple, np.ndarray) else geometry_of(shape)
        if isinstance(shape, Line):
            self._adopt(shape._parts)
        elif geometry is None:
            self._adopt(_canonical([shape]))
        elif geometry.kind in _KINDS:
            several = geometry.kind == "MultiLineString"
            self._adopt(_canonical(list(geometry.coordinates) if several else [geometry.coordinates]))
        else:
            raise InvalidValue(f"a line is a LineString or MultiLineString, not a {geometry.kind}")

    def _adopt(self, parts: tuple[Floats, ...]) -> None:
        object.__setattr__(self, "_parts", parts)
        object.__setattr__(self, "_path", None)
        object.__setattr__(self, "_hash", None)

    @classmethod
    def of(cls, shape: object) -> Line:
        """Return `shape` itself when it is a line, and otherwise the line made from it."""
        return shape if isinstance(shape, Line) else Line(shape)

    @classmethod
    def of_parts(cls, parts: Iterable[object]) -> Self:
        """Make a line of several lists of coordinates."""
        line = object.__new__(cls)
        line._adopt(_canonical(list(parts)))
        return line

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Line is immutable: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Line is immutable: {name} cannot be deleted")

    @property
    def parts(self) -> tuple[Floats, ...]:
        """The vertices of each part, (n, 2), read-only."""
        return self._parts

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The minimum bounding rectangle: (x1, y1, x2, y2)."""
        x1, y1, x2, y2 = path_of_line(self)[1][-1].tolist()
        return x1, y1, x2, y2

    @property
    def wkt(self) -> str:
        """Well-known text that reads back as an equal line."""
        parts = [f"({format_positions(part.tolist())})" for part in self._parts]
        return f"LINESTRING{parts[0]}" if len(parts) == 1 else f"MULTILINESTRING({', '.join(parts)})"

    @property
    def __geo_interface__(self) -> dict[str, Any]:
        parts = tuple(tuple(map(tuple, part.tolist())) for part in self._parts)
        if len(parts) == 1:
            return {"type": "LineString", "coordinates": parts[0]}
        return {"type": "MultiLineString", "coordinates": parts}

    def to_shapely(self) -> shapely.LineString | shapely.MultiLineString:
        """Return the line as shapely has it."""
        import shapely

        parts = [shapely.LineString(part) for part in self._parts]
        return parts[0] if len(parts) == 1 else shapely.MultiLineString(parts)

    def __len__(self) -> int:
        """How many vertices there are in all parts."""
        return sum(map(len, self._parts))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Line):
            return NotImplemented
        return [part.tobytes() for part in self._parts] == [part.tobytes() for part in other._parts]

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash(tuple(part.tobytes() for part in self._parts)))
        return cast("int", self._hash)

    def __reduce__(self) -> tuple[Any, ...]:
        return Line.of_parts, ([part.tolist() for part in self._parts],)

    def __repr__(self) -> str:
        return f"Line({self.wkt!r})" if len(self) <= 4 else f"<Line of {len(self)} vertices, {len(self._parts)} parts>"


def path_of_line(line: Line) -> tuple[Floats, Floats]:
    """The rows and run boxes of a line, as kernels take them; not to be written to."""
    if line._path is None:
        if len(line._parts) == 1:
            rows = line._parts[0].copy()
        else:
            offsets = np.concatenate(([0], np.cumsum([len(part) for part in line._parts])))
            rows = compose(np.concatenate(line._parts), offsets, np.arange(len(line._parts)), np.empty((0, 2)))
        boxes = np.empty((box_rows(len(rows) - 1), 4))
        fill_region_boxes(rows, boxes)
        object.__setattr__(line, "_path", (rows, boxes))
    return cast("tuple[Floats, Floats]", line._path)


def _canonical(parts: list[object]) -> tuple[Floats, ...]:
    found: dict[bytes, Floats] = {}
    count = 0
    for number, part in enumerate(parts):
        name = f"part {number}: " if len(parts) > 1 else ""
        given = positions(part) + 0.0  # -0.0 becomes 0.0: equal lines are equal bits
        if not check_coordinates(given).all():
            raise InvalidValue(f"{name}a coordinate is not finite, or outside 1e-100 to 1e100 in magnitude")
        kept = given[np.concatenate(([True], (given[1:] != given[:-1]).any(axis=1)))] if len(given) else given
        if len(kept) < 2:
            raise InvalidValue(f"{name}a line has at least two different vertices, not {len(kept)}")
        if kept.tolist() > kept[::-1].tolist():
            kept = kept[::-1].copy()
        kept.flags.writeable = False
        found[kept.tobytes()] = kept
        count += len(kept)
    if not found:
        raise InvalidValue("a line without parts")
    if count > MAX_VERTICES:
        raise InvalidValue(f"{count} vertices; a line has at most {MAX_VERTICES}: simplify it, or split it")
    return tuple(sorted(found.values(), key=lambda part: cast("list[list[float]]", part.tolist())))
