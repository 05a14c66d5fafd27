"""`similar` in the forwarding table: against evaluating every filter by the twin of the road network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import Box, ContradaError, ForwardingTable, GeoText, InvalidValue, Point, RoadNetwork, attr, parse
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.language.operands import Similar
from contrada.spatial.allowance import MILLISECOND, Exhausted, allowed
from contrada.spatial.road.index.base import RoadSubscription
from tests.naive.table import NaiveTable
from tests.spatial.road import maps

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.naive.roads import NaiveRoads

NEAR = 'post similar {"ipad", "sale"} at POINT(1 0) alpha 0.4 tau 0.7'


class Twin:
    """A road network as `Constraint.holds` asks it, by the slow way."""

    def __init__(self, roads: NaiveRoads) -> None:
        self.roads = roads

    def similar(self, keywords: frozenset[str], at: Point, alpha: float, tau: float, text: GeoText) -> bool:
        if not isinstance(text.place, Point):
            return False
        asked = RoadSubscription(0, keywords, (at.x, at.y), alpha, tau)
        return self.roads.similar(asked, text.keywords, (text.place.x, text.place.y))


@pytest.fixture(scope="module")
def street() -> RoadNetwork:
    return RoadNetwork([(0, 0), (4, 0), (4, 3), (9, 9), (9, 10)], [(0, 1), (1, 2), (3, 4)], d_max=10.0)


@st.composite
def filters(draw: Callable[..., Any], roads: NaiveRoads) -> Filter:
    """Draw filters with `similar` alone, twice, beside `matches`, and beside what the table compares itself."""
    constraints = []
    for _ in range(draw(st.integers(1, 2))):
        s = draw(maps.subscriptions(roads, 0))
        words = s.keywords or frozenset({"ipad"})
        name = draw(st.sampled_from("pq"))
        constraints.append(Constraint(name, Operator.SIMILAR, Similar(words, Point(*s.at), s.alpha, s.tau)))
    if draw(st.booleans()):
        more = draw(
            st.sampled_from(("x = 1", "x > 0", 'p matches {"ipad"}', 'p matches {"sale"} within BOX(0 0, 3 3)'))
        )
        constraints += parse(more).filters[0].constraints
    return Filter(constraints)


@st.composite
def notifications(draw: Callable[..., Any]) -> dict[str, Any]:
    """Draw notifications, nearly all with geotext."""
    texts = st.builds(lambda words, at: GeoText(words, at=at), maps.tokens, maps.points)
    texts |= st.just(GeoText(["ipad"], within=Box(0, 0, 2, 2))) | st.just("ipad")
    made = {name: draw(texts) for name in draw(st.sampled_from(("p", "pq", "q", "")))}
    return made | ({"x": draw(st.integers(0, 1))} if draw(st.booleans()) else {})


@settings(max_examples=40)
@given(data=st.data())
def test_the_table_answers_as_every_filter_would(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    network, roads = data.draw(maps.maps())
    table, twin = ForwardingTable(road_network=network), NaiveTable(roads=Twin(roads))
    for _ in range(data.draw(st.integers(1, 9))):
        action = data.draw(st.sampled_from(("add", "add", "remove", "match", "reload")))
        if action == "add":
            interface, each = data.draw(st.sampled_from("IJ")), data.draw(filters(roads))
            twin.add(interface, each, table.add(interface, each))
        elif action == "remove" and twin.filters:
            id = data.draw(st.sampled_from(sorted(twin.filters)))
            table.remove(id)
            twin.remove(id)
        elif action == "match":
            batch = data.draw(st.lists(notifications(), min_size=1, max_size=3))
            assert table.match_many(batch) == [twin.match(each) for each in batch]
            assert table.match(batch[0]) == twin.match(batch[0])
            assert table.match_filters(batch[0]) == twin.match_filters(batch[0])
            for id in twin.filters:
                assert table.explain(batch[0], id).matches == (id in twin.match_filters(batch[0]))
        elif action == "reload":
            path = tmp_path_factory.mktemp("table") / "t"
            table.save(path)
            table = ForwardingTable.load(path, road_network=network)
    table._check()


def test_many_at_once(street: RoadNetwork) -> None:
    pairs = [(f"I{n}", parse(f'post similar {{"w{n}"}} at POINT({n % 5} 0) alpha 0.5 tau 0.9')) for n in range(50)]
    table = ForwardingTable(road_network=street)
    table.add_many(pairs)
    post = GeoText([f"w{n}" for n in range(0, 50, 2)], at=(2, 0))
    expected = {interface for interface, each in pairs if each.matches({"post": post}, roads=street)}
    assert table.match({"post": post}) == expected != set()
    table._check()


def test_explain_says_how_far_and_how_alike(street: RoadNetwork) -> None:
    table = ForwardingTable(road_network=street)
    (id,) = table.add("I", NEAR)

    def told(value: object) -> str:
        return str(table.explain({"post": value}, id))

    assert "yes" in told(GeoText("ipad sale", at=(2, 0)))
    assert f"the similarity is {0.4 * 0.9 + 0.6!r}: 1 away along the roads, and 1 of the words by weight" in told(
        GeoText("ipad sale", at=(2, 0))
    )
    assert "NO" in told(GeoText("ipad", at=(4, 3)))
    assert "cannot be reached along the roads" in told(GeoText("ipad sale", at=(9, 9)))
    assert "cannot be reached along the roads" in told(GeoText("ipad sale", within=Box(0, 0, 1, 1)))
    assert "is a string" in told("ipad")
    short = ForwardingTable(road_network=RoadNetwork([(0, 0), (4, 0)], [(0, 1)], d_max=1.0))
    (id,) = short.add("I", NEAR)
    assert "2.5 away along the roads, where nothing beyond 1 is similar" in str(
        short.explain({"post": GeoText("ipad sale", at=(3.5, 0))}, id)
    )


def test_without_a_network_it_is_an_error_that_says_so() -> None:
    with pytest.raises(ContradaError, match="road network"):
        parse(NEAR).matches({"post": GeoText("ipad", at=(1, 0))})
    with pytest.raises(ContradaError, match="road network"):
        ForwardingTable().add("I", NEAR)
    with pytest.raises(InvalidValue, match="road_network is a RoadNetwork"):
        ForwardingTable(road_network=object())


def test_a_table_that_is_loaded_with_another_network_or_none(street: RoadNetwork, tmp_path: Path) -> None:
    table = ForwardingTable(road_network=street)
    (id, _) = table.add("I", f"{NEAR} or x = 1")
    table.save(tmp_path / "t")
    near, far = {"post": GeoText("ipad sale", at=(2, 0))}, {"post": GeoText("ipad sale", at=(4, 3))}
    assert (table.match(near), table.match(far)) == ({"I"}, {"I"})
    strict = RoadNetwork([(0, 0), (4, 0), (4, 3)], [(0, 1), (1, 2)], d_max=2.0)
    other = ForwardingTable.load(tmp_path / "t", road_network=strict)
    assert (other.match(near), other.match(far)) == ({"I"}, set())
    other._check()
    none = ForwardingTable.load(tmp_path / "t")
    none._check()
    with pytest.raises(InvalidValue, match="no road network"):
        none.match(near)
    assert none.match({"x": 1}) == {"I"}
    none.remove(id)
    assert none.match(near) == set()
    none._check()


def test_what_covers_what(street: RoadNetwork) -> None:
    wide = attr("post").similar(["ipad"], at=(1, 0), alpha=0.4, tau=0.5)
    narrow = attr("post").similar(["ipad"], at=(1, 0), alpha=0.4, tau=0.7)
    assert wide.covers(narrow)
    assert not narrow.covers(wide)
    table = ForwardingTable(road_network=street)
    (first,) = table.add("I", wide)
    (second,) = table.add("I", narrow)
    post = {"post": GeoText("ipad", at=(1, 0))}
    assert table.match_filters(post) == [first, second]
    table.remove(first)
    assert table.match_filters(post) == [second]
    table._check()


def test_what_goes_far_along_the_roads_is_counted_and_the_next_is_answered() -> None:
    table: ForwardingTable[str] = ForwardingTable(road_network=maps.grid(40))
    table.add("far", 'post similar {"ipad"} at POINT(0 0) alpha 0.01 tau 0.9')
    far, near = ({"post": GeoText("ipad", at=at)} for at in ((39, 39), (0, 0)))
    for _ in range(2):
        with allowed(MILLISECOND // 20):
            assert table.match(near) == {"far"}
            with pytest.raises(Exhausted):
                table.match(far)
    assert table.match(far) == {"far"}
    table._check()
