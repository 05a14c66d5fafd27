"""Fences: filters `kind = K and pos inside POLYGON`, and points that are looked for in them; by several engines.

An engine is built from fences and gives for each event the numbers of the fences that it is in. Points on a boundary
are none of the workload's, so that it does not matter what an engine thinks of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import shapely

from benchmarks.forwarding_workloads import star
from benchmarks.region_workloads import load
from contrada import ForwardingTable, Point, Region, attr
from contrada.forwarding.batches.columns import Column, Columns
from contrada.forwarding.language.values import Kind

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

KINDS = 20


@dataclass
class Fences:
    """Polygons with kinds, and events: points with kinds. Coordinates are degrees or any plane's."""

    rings: list[Floats]
    kinds: list[int]
    points: Floats
    point_kinds: list[int]

    @classmethod
    def crowded(cls, count: int, events: int) -> Fences:
        """Stars of 20 vertices in a square of 50 degrees, so large that a point is in dozens of 10,000."""
        rng = np.random.default_rng(7)
        centres = rng.random((count, 2)) * 50
        rings = [np.array(star(rng, x, y, 1 + 4 * rng.random(), 20)) for x, y in centres.tolist()]
        return cls._among(rings, events)

    @classmethod
    def blocks(cls, count: int, events: int, data: Path) -> Fences:
        """Census blocks, of which a point is in one or none."""
        return cls._among(Random(7).sample(list(load(data, "census blocks").rings()), count), events)

    @classmethod
    def _among(cls, rings: list[Floats], events: int) -> Fences:
        rng = Random(8)
        low = np.min([ring.min(axis=0) for ring in rings], axis=0)
        high = np.max([ring.max(axis=0) for ring in rings], axis=0)
        points = np.array([[rng.uniform(low[0], high[0]), rng.uniform(low[1], high[1])] for _ in range(events)])
        kinds = [rng.randrange(KINDS) for _ in range(len(rings) + events)]
        return cls(rings, kinds[: len(rings)], points, kinds[len(rings) :])

    def without_kinds(self) -> Fences:
        """The same, of one kind: points in polygons and nothing else."""
        return Fences(self.rings, [0] * len(self.rings), self.points, [0] * len(self.points))

    def first(self, events: int) -> Fences:
        """The same with fewer events, for engines that are slow."""
        return Fences(self.rings, self.kinds, self.points[:events], self.point_kinds[:events])


class Engine(Protocol):
    """What finds the fences of events."""

    name: str

    def match(self, x: float, y: float, kind: int) -> set[int]:
        """Of one event."""

    def replace(self, n: int) -> None:
        """Take a fence out, and put it in again."""


class ContradaEngine:
    """A forwarding table, asked event by event or for all at once."""

    name = "Contrada, match"

    def __init__(self, fences: Fences) -> None:
        self.table: ForwardingTable[int] = ForwardingTable()
        pairs = zip(fences.rings, fences.kinds, strict=True)
        self.filters = [(attr("kind") == kind) & attr("pos").intersects(Region(ring)) for ring, kind in pairs]
        self.ids = [ids[0] for ids in self.table.add_many(enumerate(self.filters))]

    def match(self, x: float, y: float, kind: int) -> set[int]:
        """Of one event."""
        return self.table.match({"kind": kind, "pos": Point(x, y)})

    def replace(self, n: int) -> None:
        """Take a fence out, and put it in again."""
        self.table.remove(self.ids[n])
        (self.ids[n],) = self.table.add(n, self.filters[n])

    def match_all(self, fences: Fences) -> list[set[int]]:
        """Of all events at once."""
        events = zip(fences.points.tolist(), fences.point_kinds, strict=True)
        return self.table.match_many([{"kind": kind, "pos": Point(*point)} for point, kind in events])

    def match_columns(self, fences: Fences) -> list[set[int]]:
        """Of all events at once, by columns, as a join is given them."""
        kinds = Column("kind", Kind.NUMBER, np.array(fences.point_kinds, np.int64))
        columns = Columns(len(fences.points), [kinds, Column("pos", Kind.POINT, fences.points)])
        places, ids = self.table.match_pairs(columns)
        numbers, names = self.table.interface_numbers(ids)
        answers: list[set[int]] = [set() for _ in fences.points]
        for place, number in zip(places.tolist(), numbers.tolist(), strict=True):
            answers[place].add(names[number])
        return answers


class StrTree:
    """Shapely's tree over prepared polygons, and a list of kinds."""

    name = "shapely STRtree"

    def __init__(self, fences: Fences) -> None:
        self.kinds = fences.kinds
        self.polygons = np.array([shapely.Polygon(ring) for ring in fences.rings])
        shapely.prepare(self.polygons)
        self.tree = shapely.STRtree(self.polygons)

    def match(self, x: float, y: float, kind: int) -> set[int]:
        """Of one event."""
        found = self.tree.query(shapely.Point(x, y), predicate="intersects").tolist()
        return {n for n in found if self.kinds[n] == kind}

    def replace(self, n: int) -> None:
        """Take a fence out, and put it in again: such a tree is built anew."""
        self.polygons[n] = shapely.Polygon(self.polygons[n])
        self.tree = shapely.STRtree(self.polygons)

    def match_all(self, fences: Fences) -> list[set[int]]:
        """Of all events at once."""
        answers: list[set[int]] = [set() for _ in fences.points]
        for event, n in self.tree.query(shapely.points(fences.points), predicate="intersects").T.tolist():
            if self.kinds[n] == fences.point_kinds[event]:
                answers[event].add(n)
        return answers


class S2:
    """Google's S2: covering cells of polygons as terms in a dictionary, and an exact test of what shares one.

    Its edges are geodesics, so that of degrees some answers near long edges differ.
    """

    name = "s2geometry"

    def __init__(self, fences: Fences) -> None:
        import s2geometry as s2

        self.s2 = s2
        self.kinds = fences.kinds
        self.indexer = s2.S2RegionTermIndexer()
        self.polygons = []
        self.terms: dict[str, list[int]] = {}
        for n, ring in enumerate(fences.rings):
            vertices = [self._point(x, y) for x, y in ring.tolist()]
            loop = s2.S2Loop(vertices)
            loop.Normalize()
            polygon = s2.S2Polygon(loop)
            self.polygons.append(polygon)
            self._put(n)

    def _put(self, n: int) -> None:
        for term in self.indexer.GetIndexTerms(self.polygons[n], ""):
            self.terms.setdefault(term, []).append(n)

    def replace(self, n: int) -> None:
        """Take a fence out, and put it in again."""
        for term in self.indexer.GetIndexTerms(self.polygons[n], ""):
            self.terms[term].remove(n)
        self._put(n)

    def _point(self, x: float, y: float) -> Any:
        return self.s2.S2LatLng.FromDegrees(y, x).ToPoint()

    def match(self, x: float, y: float, kind: int) -> set[int]:
        """Of one event."""
        place = self._point(x, y)
        near = {n for term in self.indexer.GetQueryTerms(place, "") for n in self.terms.get(term, ())}
        return {n for n in near if self.kinds[n] == kind and self.polygons[n].Contains(place)}


class SedonaJoin:
    """Tables of fences and events in SedonaDB, of one kind, to be joined."""

    name = "sedonadb"

    def __init__(self, fences: Fences) -> None:
        import pyarrow as pa
        import sedonadb

        self.session = sedonadb.connect()
        polygons = shapely.to_wkb([shapely.Polygon(ring) for ring in fences.rings]).tolist()
        points = shapely.to_wkb(shapely.points(fences.points)).tolist()
        for view, column, shapes in (("fences", "area", polygons), ("events", "pos", points)):
            rows = pa.table({"n": range(len(shapes)), "wkb": pa.array(shapes, pa.binary())})
            self.session.create_data_frame(rows).to_view("raw", overwrite=True)
            made = self.session.sql(f"select n, ST_GeomFromWKB(wkb) as {column} from raw")
            made.to_memtable().to_view(view, overwrite=True)

    def match_all(self, fences: Fences) -> list[set[int]]:
        """Of all events at once."""
        joined = self.session.sql(
            "select e.n as event, f.n as fence from events e join fences f on ST_Intersects(f.area, e.pos)"
        ).to_arrow_table()
        answers: list[set[int]] = [set() for _ in fences.points]
        for event, fence in zip(joined["event"].to_pylist(), joined["fence"].to_pylist(), strict=True):
            answers[event].add(fence)
        return answers
