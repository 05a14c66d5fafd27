"""`RoadNetwork`: a map of roads, the distances along them, and the similarity of messages to subscriptions ([ROADS]).

    network = RoadNetwork(xy=[(0, 0), (4, 0), (4, 3)], edges=[(0, 1), (1, 2)], d_max=10.0)
    network.distance((1, 0.2), (4, 2))     # 5.0: each point is put on its nearest edge first
    network.similarity({"ipad"}, Point(1, 0), 0.4, GeoText("iPad sale", at=(4, 2)))

Edges are straight and undirected; `road/graph/checking.py` says what is refused. A point is put on its nearest edge
(`edge_tree.py`), and the way to that edge is not counted. Distances are exact sums of lengths (`checking.py`), found by
expansion over junctions (`roads.py`, `expansion.py`). A network may have several components; between them the distance
is infinite. It does not change, may be shared between tables and threads, and is saved to one file that `load` maps.

`d_max` is the distance beyond which nothing is similar; by default the diagonal of the network's extent. `weights` are
those of keywords (`road/graph/weights.py`).
"""

from __future__ import annotations

import hashlib
import zipfile
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from contrada.errors import ContradaError, CorruptFile, InvalidValue
from contrada.spatial import allowance
from contrada.spatial.geometry.point import Point
from contrada.spatial.road.graph import places
from contrada.spatial.road.graph.cells import LEVELS, Cells, cell_bounds
from contrada.spatial.road.graph.checking import (
    checked_d_max,
    checked_edges,
    checked_lengths,
    checked_nodes,
    grain_of,
    on_grain,
)
from contrada.spatial.road.graph.edge_tree import LEAF
from contrada.spatial.road.graph.expansion import Graph, Scratch, make_graph, make_scratch
from contrada.spatial.road.graph.guard import guard_network
from contrada.spatial.road.graph.kd_order import block_boxes, block_starts, kd_order, levels_for
from contrada.spatial.road.graph.places import ALONG, Edges
from contrada.spatial.road.graph.roads import join_edges
from contrada.spatial.road.graph.weights import KeywordWeights
from contrada.spatial.road.index.similarity import Similarity, similarity
from contrada.spatial.storage.arrays_file import MAGIC, as_path, load_arrays, save_arrays
from contrada.spatial.storage.regular_file import check_regular, open_regular

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from contrada.spatial.textual.geotext import GeoText

    Place = Point | tuple[float, float]

KIND: Final = "road-network"
VERSION: Final = 1
_PLACE_COST: Final = 5000  # units of an allowance, for a point that is put on its road and compared
_SLACK: Final = 64 * float(np.finfo(np.float64).eps)


class Snapped(NamedTuple):
    """Where a point was put: so far along an edge, from its first node."""

    edge: int
    offset: float
    at: Point


class RoadNetwork:
    """Straight roads between nodes. See the module for what the arguments mean."""

    def __init__(
        self,
        xy: ArrayLike,
        edges: ArrayLike,
        lengths: ArrayLike | None = None,
        *,
        d_max: float | None = None,
        weights: Mapping[str, float] | None = None,
        other_weight: float = 1.0,
    ) -> None:
        nodes = checked_nodes(xy)
        ends = checked_edges(edges, len(nodes))
        across = nodes[ends[:, 1]] - nodes[ends[:, 0]]
        lengths = checked_lengths(lengths, np.hypot(across[:, 0], across[:, 1]))
        grain = grain_of(lengths)
        arrays: dict[str, NDArray[Any]] = {"xy": nodes, "edges": ends, "lengths": on_grain(lengths, grain)}
        arrays["grain"] = np.array([grain])
        self._take(arrays, checked_d_max(d_max, nodes), KeywordWeights(weights, other_weight))

    @classmethod
    def from_npz(
        cls,
        path: str | os.PathLike[str],
        *,
        d_max: float | None = None,
        weights: Mapping[str, float] | None = None,
        other_weight: float = 1.0,
    ) -> Self:
        """Read an `.npz` file of numpy with the arrays `xy`, `edges` and, if not those of straight lines, `length`."""
        path = as_path(path)
        try:
            check_regular(path)
            if not zipfile.is_zipfile(path):
                raise CorruptFile(f"{path}: neither a saved road network nor an .npz file")
            with np.load(path, allow_pickle=False) as file:
                given = {name: file[name] for name in ("xy", "edges", "length") if name in file.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise CorruptFile(f"{path}: cannot be read as an .npz file: {error}") from error
        if missing := [name for name in ("xy", "edges") if name not in given]:
            raise CorruptFile(f"{path}: no array {missing[0]!r}; a road network has xy, edges and length")
        return cls(
            given["xy"], given["edges"], given.get("length"), d_max=d_max, weights=weights, other_weight=other_weight
        )

    def _take(self, arrays: dict[str, NDArray[Any]], d_max: float, weights: KeywordWeights) -> None:
        """Be the network of these arrays, which were checked; whatever is missing is worked out."""
        self.d_max = d_max
        self.weights = weights
        self._xy, self._ends, self._lengths = arrays["xy"], arrays["edges"], arrays["lengths"]
        self._grain = float(arrays["grain"][0])
        if "order" not in arrays:
            arrays = arrays | _derive(self._xy, self._ends, self._lengths)
        self._arrays = arrays
        xy = self._xy[self._ends].reshape(-1, 4)
        order = arrays["order"]
        self.places_on = Edges(
            xy[order], order, arrays["boxes"], self._lengths, arrays["road"], arrays["start"], arrays["way"], xy
        )
        self.graph = Graph(*(arrays[f"graph.{name}"] for name in Graph._fields))
        self.components = arrays["component"]  # by road
        straight = np.hypot(xy[:, 2] - xy[:, 0], xy[:, 3] - xy[:, 1])
        ratios = self._lengths[straight > 0] / straight[straight > 0]
        self._stretch = float(ratios.min()) * (1 - 1e-12) if len(ratios) else 0.0
        self._slack = _SLACK * float(np.abs(self._xy).max())
        self._scratch: list[Scratch] = []

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return len(self._xy)

    @property
    def edge_count(self) -> int:
        """How many edges there are."""
        return len(self._ends)

    @property
    def component_count(self) -> int:
        """How many parts there are that no road joins; nodes without an edge are not counted."""
        return int(self.components.max()) + 1

    @property
    def digest(self) -> str:
        """A name for all that similarity depends on: equal for networks that give the same answers."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        digest = hashlib.blake2b(np.float64(self.d_max).tobytes(), digest_size=12)
        for array in (self._xy, self._ends, self._lengths, *self.weights.arrays().values()):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @cached_property
    def cells(self) -> Cells:
        """The cells of an index; worked out when first asked for, which takes seconds for a city, or loaded."""
        of_road, boxes = self._arrays["cell"], self._arrays["cell_boxes"]
        bounds = self._arrays.get("cell_bounds")
        if bounds is None:
            scratch = self.take_scratch()
            bounds = cell_bounds(self.graph, scratch, of_road, len(boxes), self.d_max)
            self.give_scratch(scratch)
            self._arrays["cell_bounds"] = bounds
        return Cells(of_road, boxes, bounds, self._stretch, self._slack)

    def take_scratch(self) -> Scratch:
        """Room for an expansion, to be given back."""
        try:
            return self._scratch.pop()
        except IndexError:
            return make_scratch(self.graph)

    def give_scratch(self, scratch: Scratch) -> None:
        """Keep it for the next."""
        self._scratch.append(scratch)

    def snap(self, place: Place) -> Snapped:
        """Put a point on its nearest edge; of several, on the one of the lowest number."""
        edges, facts = self._snap([place])
        offset, x, y = facts[0].tolist()
        return Snapped(int(edges[0]), offset, Point(x, y))

    def _snap(self, given: Iterable[Place]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        points = np.array([tuple(Point.of(each)) for each in given], np.float64).reshape(-1, 2)
        edges, facts = np.empty(len(points), np.int32), np.empty((len(points), 3))
        places.locate(self.places_on, self._grain, points, edges, facts)
        return edges, facts

    def on_roads(self, points: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Put points (n, 2) on roads: which, and (n, 3) how far along them, x and y."""
        edges, facts = np.empty(len(points), np.int32), np.empty((len(points), 3))
        places.locate(self.places_on, self._grain, points, edges, facts)
        facts[:, ALONG] = self.places_on.start[edges] + self.places_on.way[edges] * facts[:, ALONG]
        return self.places_on.road[edges], facts

    def distance(self, a: Place, b: Place) -> float:
        """Return the length of the shortest way along roads; infinite if there is none."""
        return float(self.distances(a, [b])[0])

    def distances(self, start: Place, ends: Iterable[Place], *, within: float = float("inf")) -> NDArray[np.float64]:
        """Return the distances from one point to others, by one expansion; infinite beyond `within`."""
        points = np.array([tuple(Point.of(each)) for each in (start, *ends)], np.float64)
        allowance.spend(_PLACE_COST * len(points))
        roads, facts = self.on_roads(points)
        scratch, left = self.take_scratch(), allowance.left()
        found = places.distances(
            self.graph, scratch, int(roads[0]), float(facts[0, ALONG]), roads[1:], facts[1:, ALONG].copy(), within, left
        )
        self.give_scratch(scratch)
        allowance.check(left)
        return found

    def similarity(self, keywords: Collection[str], at: Point, alpha: float, text: GeoText) -> Similarity:
        """How similar a message's geotext is to a subscription, and why. A message within a box is nowhere."""
        if not isinstance(text.place, Point):
            return Similarity(float("inf"), self.likeness(keywords, text), float("-inf"))
        return self._similarity(keywords, alpha, text, self.distance(text.place, at))

    def _similarity(self, keywords: Collection[str], alpha: float, text: GeoText, distance: float) -> Similarity:
        words = self.likeness(keywords, text)
        value = similarity(alpha, distance, self.d_max, words) if distance <= self.d_max else float("-inf")
        return Similarity(distance, words, value)

    def likeness(self, keywords: Collection[str], text: GeoText) -> float:
        """TSIM: what the words that a message shares with a subscription weigh, of those of the subscription."""
        whole = self.weights.total(keywords)
        return self.weights.total(text.keywords.intersection(keywords)) / whole if whole else 0.0

    def similar(self, keywords: Collection[str], at: Point, alpha: float, tau: float, text: GeoText) -> bool:
        """Whether the similarity is at least `tau`."""
        return self.similarity(keywords, at, alpha, text).value >= tau

    def similar_many(
        self, subscriptions: Iterable[tuple[Collection[str], Point, float, float]], text: GeoText
    ) -> list[bool]:
        """As `similar` of each (keywords, at, alpha, tau), by one expansion."""
        wanted = list(subscriptions)
        if not isinstance(text.place, Point):
            return [False] * len(wanted)
        far = self.distances(text.place, (at for _, at, _, _ in wanted), within=self.d_max)
        return [
            self._similarity(keywords, alpha, text, distance).value >= tau
            for (keywords, _, alpha, tau), distance in zip(wanted, far.tolist(), strict=True)
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one file that `load` maps back, the bounds of its cells with it."""
        _ = self.cells
        weights = {f"weights.{name}": array for name, array in self.weights.arrays().items()}
        arrays = {**self._arrays, **weights}
        save_arrays(path, kind=KIND, version=VERSION, arrays=arrays, meta={"d_max": self.d_max, "digest": self.digest})

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = True) -> Self:
        """Map a saved network, whose numbers are looked at; with `verify` every byte is checked first."""
        arrays, meta = load_arrays(path, kind=KIND, version=VERSION, verify=verify)
        made = cls.__new__(cls)
        try:
            weights = {name: arrays.pop(f"weights.{name}") for name in ("words", "word_ends", "weights")}
            guard_network(arrays)
            made._take(arrays, checked_d_max(float(meta["d_max"]), arrays["xy"]), KeywordWeights.from_arrays(weights))
            made._digest = str(meta["digest"])
        except (KeyError, IndexError, TypeError, ValueError, ContradaError) as error:
            raise CorruptFile(f"{path}: not a whole road network: {error}") from error
        return made

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, d_max: float | None = None) -> Self:
        """Read either kind of file: what `save` wrote, or `.npz`. `d_max` is for the second kind alone."""
        path = as_path(path)
        try:
            with open_regular(path) as file:
                saved = file.read(len(MAGIC)) == MAGIC
        except OSError as error:
            raise CorruptFile(f"{path}: cannot be read: {error.strerror or error}") from error
        if not saved:
            return cls.from_npz(path, d_max=d_max)
        network = cls.load(path)
        if d_max is not None and d_max != network.d_max:
            raise InvalidValue(f"{path}: a saved network has its d_max, {network.d_max}; {d_max} cannot be given")
        return network

    def __repr__(self) -> str:
        return f"RoadNetwork({self.node_count} nodes, {self.edge_count} edges, d_max={self.d_max:g})"

    def _check(self) -> None:
        """Assert every invariant of what was worked out."""
        edges, graph = self.places_on, self.graph
        assert sorted(edges.order.tolist()) == list(range(self.edge_count))
        assert np.isin(edges.way, (1.0, -1.0)).all()
        ends = edges.start + edges.way * self._lengths
        assert (np.minimum(edges.start, ends) >= 0).all()
        assert (np.maximum(edges.start, ends) <= graph.road_length[edges.road]).all()
        assert np.array_equal(np.bincount(edges.road, self._lengths), graph.road_length)
        assert (self._lengths % self._grain == 0).all()
        met = np.full(len(graph.first) - 1, -1)
        met[graph.ends] = self.components[:, None]
        assert (met[graph.ends] == self.components[:, None]).all(), "roads of one junction, two components"
        cells = self.cells
        assert np.array_equal(cells.bounds, cells.bounds.T)
        assert not np.diag(cells.bounds).any()
        for scratch in self._scratch:
            assert np.isinf(scratch.distance).all()
            assert not scratch.wanted.any()


def _derive(xy: NDArray[np.float64], ends: NDArray[np.int32], lengths: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """Everything that follows from nodes, edges and lengths, but the bounds of cells."""
    pairs = xy[ends]
    boxes = np.concatenate([pairs.min(axis=1), pairs.max(axis=1)], axis=1)
    levels = levels_for(len(boxes), LEAF)
    order = kd_order(boxes, levels)
    joined = join_edges(ends, lengths, len(xy))

    around = np.empty((len(joined.length), 4))
    around[:, :2], around[:, 2:] = np.inf, -np.inf
    np.minimum.at(around[:, :2], joined.road, boxes[:, :2])
    np.maximum.at(around[:, 2:], joined.road, boxes[:, 2:])
    split = levels_for(len(around), 1, LEVELS)
    roads = kd_order(around, split)
    starts = block_starts(len(around), split)
    cell = np.empty(len(around), np.int32)
    cell[roads] = np.repeat(np.arange(1 << split), np.diff(starts))

    # Junctions are numbered as the cells come, so that an expansion stays in memory that is near.
    nodes, met = np.unique(joined.ends[roads].ravel(), return_index=True)
    number = np.full(len(xy), -1, np.int32)
    number[nodes[np.argsort(met)]] = np.arange(len(nodes))
    graph = make_graph(number[joined.ends], joined.length, len(nodes))
    return {
        "order": order,
        "boxes": block_boxes(boxes[order], levels),
        "road": joined.road,
        "start": joined.start,
        "way": joined.way,
        "cell": cell,
        "cell_boxes": block_boxes(around[roads], split)[1 << split :],
        "component": _components(graph.ends, len(nodes)),
        **{f"graph.{name}": array for name, array in graph._asdict().items()},
    }


def _components(ends: NDArray[np.int32], junctions: int) -> NDArray[np.int32]:
    """The component of each road: labels of junctions spread along roads, by the least of both ends, and halved."""
    label = np.arange(junctions)
    while True:
        before = label.copy()
        least = np.minimum(label[ends[:, 0]], label[ends[:, 1]])
        for side in range(2):
            np.minimum.at(label, label[ends[:, side]], least)
            np.minimum.at(label, ends[:, side], least)
        label = label[label]
        if np.array_equal(label, before):
            return np.unique(label[ends[:, 0]], return_inverse=True)[1].astype(np.int32)
