"""Road networks: what they are made of, where points are put, and how far apart they are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import Box, ContradaError, CorruptFile, GeoText, InvalidValue, Point, RoadNetwork
from contrada.spatial.road.graph.cells import lower_bounds
from contrada.spatial.road.graph.weights import idf_weights
from contrada.spatial.road.network import KIND, VERSION
from contrada.spatial.storage.arrays_file import load_arrays, save_arrays
from tests.spatial.road import maps

if TYPE_CHECKING:
    from pathlib import Path

CORNER = ([(0, 0), (4, 0), (4, 3)], [(0, 1), (1, 2)])


@settings(max_examples=150)
@given(maps.maps(), st.lists(maps.points, min_size=2, max_size=5))
def test_places_and_distances_are_those_of_the_twin(drawn: Any, points: list[tuple[float, float]]) -> None:
    network, roads = drawn
    network._check()
    for point in points:
        edge, offset, at = network.snap(point)
        assert (edge, offset) == (roads.snap(point)[0], roads.snap(point)[1] * roads.grain)
        assert isinstance(at, Point)
    start, *others = points
    found = network.distances(start, others).tolist()
    assert found == [roads.distance(start, other) for other in others]
    assert found == [network.distance(other, start) for other in others]  # exact sums have no direction
    within = network.distances(start, others, within=2.0).tolist()
    assert within == [far if far <= 2.0 else math.inf for far in found]


@settings(max_examples=100)
@given(maps.maps(), maps.points, st.lists(maps.points, min_size=1, max_size=6))
def test_bounds_of_cells_are_below_every_distance(drawn: Any, start: tuple[float, float], ends: list[Any]) -> None:
    network, _ = drawn
    roads, facts = network.on_roads(np.array([start, *ends]))
    cells = network.cells
    lower = lower_bounds(cells, int(roads[0]), *facts[0, 1:].tolist())
    for road, place, far in zip(roads[1:], facts[1:], network.distances(start, ends), strict=True):
        if far <= network.d_max:
            assert lower[cells.of_road[road]] <= far
            straight = math.dist(facts[0, 1:], place[1:])
            assert cells.stretch * (straight - cells.slack) <= far


@pytest.mark.parametrize(
    ("xy", "edges", "lengths", "said"),
    [
        ([(0, 0), (1, math.nan)], [(0, 1)], None, "node 1"),
        ([(0, 0), (1, 1e200)], [(0, 1)], None, "node 1"),
        ([(0, 0, 0)], [(0, 1)], None, "rows of x, y"),
        ([(0, 0), ("a", 1)], [(0, 1)], None, "rows of x, y"),
        ([(0, 0), (1, 1)], [(0, 2)], None, "edge 0 is .*there are 2 nodes"),
        ([(0, 0), (1, 1)], [(0, 1), (-1, 1)], None, "edge 1"),
        ([(0, 0), (1, 1)], [(0, 1), (1, 1)], None, "edge 1 leads from node 1 to itself"),
        ([(0, 0), (1, 1)], [(0.0, 1.0)], None, "numbers of nodes"),
        ([(0, 0), (1, 1)], np.empty((0, 2), int), None, "at least one edge"),
        ([(0, 0), (1, 1)], [(0, 1)], [-1], "length of edge 0 is -1"),
        ([(0, 0), (1, 1)], [(0, 1)], [math.nan], "length of edge 0 is nan"),
        ([(0, 0), (1, 1)], [(0, 1)], [math.inf], "length of edge 0 is inf"),
        ([(0, 0), (1, 1)], [(0, 1)], [1, 2], "1 edges, but lengths"),
        ([(0, 0), (1, 1)], [(0, 1)], ["far"], "lengths are numbers"),
        ([(0, 0), (1, 1)], [(0, 1)], [10**400], "lengths are numbers"),
        ([(0, 0), (10**400, 1)], [(0, 1)], None, "rows of x, y"),
    ],
)
def test_what_is_no_network_is_refused(xy: Any, edges: Any, lengths: Any, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        RoadNetwork(xy, edges, lengths)


@pytest.mark.parametrize("d_max", [0, -1.0, math.nan, math.inf, "far", True, 10**400])
def test_what_is_no_d_max_is_refused(d_max: Any) -> None:
    with pytest.raises(InvalidValue, match="d_max"):
        RoadNetwork(*CORNER, d_max=d_max)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"a": -1}, "weights are from 0"),
        ({"a": math.nan}, "from 0"),
        ({"a": 10**5000}, "from 0"),
        ({"a": "b"}, "number"),
        ({"A": 1, "a": 2}, "two"),
    ],
)
def test_what_is_no_weight_is_refused(weights: Any, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        RoadNetwork(*CORNER, weights=weights)


def test_parallel_edges_are_different_roads() -> None:
    network = RoadNetwork([(0, 0), (4, 0), (8, 0)], [(0, 1), (0, 1), (1, 2)], [9.0, 5.0, 4.0])
    assert network.snap((2, 0)).edge == 0  # of equally near edges, the first
    assert network.distance((0, 0), (8, 0)) == 9.0
    network._check()


def test_a_loop_is_as_near_as_its_junction() -> None:
    network = RoadNetwork([(0, 0), (2, 0), (3, 1), (3, -1)], [(0, 1), (1, 2), (2, 3), (3, 1)], d_max=9.0)
    assert np.isfinite(network.cells.bounds).all()
    assert network.distance((0, 0), (3, 0)) == network.distance((3, 0), (0, 0))
    network._check()


def test_a_ring_and_a_road_apart() -> None:
    network = RoadNetwork([(0, 0), (4, 0), (4, 4), (0, 4), (9, 0), (9, 1)], [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5)])
    assert network.component_count == 2
    assert network.distance((1, 0), (0, 1)) == 2.0
    assert network.distance((1, 0), (3, 4)) == 8.0
    assert network.distance((1, 0), (9, 0)) == math.inf
    network._check()


def test_similarity() -> None:
    network = RoadNetwork(*CORNER, d_max=10.0, weights={"ipad": 3}, other_weight=1)
    text = GeoText("iPad fair", at=(4, 2))
    assert network.similarity({"ipad", "sale"}, Point(1, 0), 0.4, text) == (5.0, 0.75, 0.4 * 0.5 + 0.6 * 0.75)
    assert network.similar({"ipad", "sale"}, Point(1, 0), 0.4, 0.64, text)
    assert not network.similar({"ipad", "sale"}, Point(1, 0), 0.4, 0.66, text)
    nowhere = GeoText("iPad", within=Box(0, 0, 1, 1))
    assert network.similarity({"ipad"}, Point(1, 0), 0.4, nowhere) == (math.inf, 1.0, -math.inf)
    assert not network.similar({"ipad"}, Point(1, 0), 0.0, 0.0, nowhere)
    assert network.similar_many([({"ipad"}, Point(1, 0), 0.0, 0.0)], nowhere) == [False]


def test_words_that_weigh_nothing_are_like_nothing() -> None:
    network = RoadNetwork(*CORNER, d_max=10.0, other_weight=0)
    assert network.similarity({"ipad"}, Point(1, 0), 0.0, GeoText("ipad", at=(1, 0))).words == 0.0


def test_idf_weights_order_words_by_rarity() -> None:
    weights = idf_weights(["tram strike", "Tram", ["tram", "fair"]])
    assert weights.keys() == {"tram", "strike", "fair"}
    assert weights["tram"] == math.log(2)
    assert weights["fair"] == weights["strike"] == math.log(4)


def test_saving_and_loading(tmp_path: Path) -> None:
    network = RoadNetwork(*CORNER, [5.0, 3.0], d_max=7.0, weights={"ipad": 2.5, "straße": 0.5}, other_weight=0.25)
    network.save(tmp_path / "roads")
    for again in (RoadNetwork.load(tmp_path / "roads"), RoadNetwork.open(tmp_path / "roads", d_max=7.0)):
        again._check()
        assert (again.d_max, again.digest, repr(again)) == (7.0, network.digest, repr(network))
        assert again.distance((0, 0), (4, 3)) == 8.0
        assert [again.weights.of(word) for word in ("ipad", "strasse", "other")] == [2.5, 0.5, 0.25]
    with pytest.raises(InvalidValue, match="has its d_max"):
        RoadNetwork.open(tmp_path / "roads", d_max=8.0)


@pytest.mark.parametrize(
    ("name", "number", "said"),
    [
        ("edges", 9, "ends of edges"),
        ("order", -1, "edges by position"),
        ("road", 7, "roads of edges"),
        ("cell", 300, "cells of roads"),
        ("graph.ends", 5, "ends of roads"),
        ("graph.to", -2, "ends of arcs"),
        ("graph.first", 1, "arcs of junctions"),
        ("graph.length", -1.0, "a length that is none"),
        ("lengths", np.nan, "a length that is none"),
        ("boxes", np.inf, "a box that is none"),
        ("xy", np.nan, "a node that is nowhere"),
        ("weights.weights", -1.0, "a weight that is none"),
    ],
)
def test_a_saved_network_with_numbers_that_lead_astray_is_refused(
    tmp_path: Path, name: str, number: float, said: str
) -> None:
    RoadNetwork(*CORNER, [5.0, 3.0], d_max=7.0, weights={"ipad": 2.5}).save(tmp_path / "roads")
    arrays, meta = load_arrays(tmp_path / "roads", kind=KIND, version=VERSION)
    arrays[name].reshape(-1)[0] = number
    save_arrays(tmp_path / "roads", kind=KIND, version=VERSION, arrays=arrays, meta=meta)
    with pytest.raises(CorruptFile, match=f"not a whole road network: .*{said}"):
        RoadNetwork.load(tmp_path / "roads")


def test_npz(tmp_path: Path) -> None:
    np.savez(tmp_path / "map.npz", xy=np.array(CORNER[0], np.int32), edges=np.array(CORNER[1], np.int32))
    assert RoadNetwork.open(tmp_path / "map.npz", d_max=3).distance((0, 0), (4, 3)) == 7.0
    np.savez(tmp_path / "map.npz", xy=CORNER[0], edges=CORNER[1], length=np.array([1, 2], np.float32))
    assert RoadNetwork.from_npz(tmp_path / "map.npz").distance((0, 0), (4, 3)) == 3.0


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(CorruptFile, match="cannot be read"):
        RoadNetwork.open(tmp_path / "nothing")
    (tmp_path / "text").write_text("roads")
    with pytest.raises(CorruptFile, match=r"neither a saved road network nor an \.npz file"):
        RoadNetwork.open(tmp_path / "text")
    with pytest.raises(CorruptFile, match=r"cannot be read as an \.npz file"):
        RoadNetwork.from_npz(tmp_path / "nothing")
    np.savez(tmp_path / "map.npz", xy=CORNER[0])
    with pytest.raises(CorruptFile, match="'edges'"):
        RoadNetwork.open(tmp_path / "map.npz")
    RoadNetwork(*CORNER).save(tmp_path / "roads")
    (tmp_path / "roads").write_bytes((tmp_path / "roads").read_bytes()[:-1])
    with pytest.raises(ContradaError, match="truncated"):
        RoadNetwork.open(tmp_path / "roads")
