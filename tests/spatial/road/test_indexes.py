"""The indexes of subscriptions on roads against their twin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.errors import InvalidValue, NotFound
from contrada.spatial.road.index.base import RoadIndex, RoadSubscription
from contrada.spatial.road.index.bia import BasicIndex
from contrada.spatial.road.index.eia import EnhancedIndex
from contrada.spatial.road.index.scan import RoadScan
from contrada.spatial.road.network import RoadNetwork
from tests.naive.roads import NaiveRoadIndex
from tests.spatial.road import maps

if TYPE_CHECKING:
    from pathlib import Path

INDEXES: tuple[type[RoadIndex], ...] = (EnhancedIndex, BasicIndex, RoadScan)


def line(**options: object) -> RoadNetwork:
    """Five nodes in a row, one apart."""
    return RoadNetwork([(i, 0) for i in range(5)], [(i, i + 1) for i in range(4)], **options)


def asked(id: int, words: str, x: float, alpha: float, tau: float) -> RoadSubscription:
    return RoadSubscription(id, frozenset(words.split()), (x, 0.0), alpha, tau)


@settings(max_examples=120)
@given(st.data())
def test_every_index_gives_the_answer_of_its_twin(data: st.DataObject) -> None:
    network, roads = data.draw(maps.maps())
    twin = NaiveRoadIndex(roads)
    first = [data.draw(maps.subscriptions(roads, id)) for id in range(data.draw(st.integers(0, 6)))]
    for each in first:
        twin.insert(each)
    indexes = [kind.build(network, first) for kind in INDEXES]
    for step in range(data.draw(st.integers(1, 8))):
        action = data.draw(st.sampled_from(("insert", "remove", "search", "search")))
        if action == "insert":
            new = data.draw(maps.subscriptions(roads, 100 + step))
            twin.insert(new)
            for index in indexes:
                index.insert(new)
        elif action == "remove" and twin.subscriptions:
            id = data.draw(st.sampled_from(sorted(twin.subscriptions)))
            twin.remove(id)
            for index in indexes:
                index.remove(id)
        else:
            tokens, at = data.draw(maps.tokens), data.draw(maps.points)
            expected = twin.search(tokens, at)
            for index in indexes:
                assert index.search(tokens, at).tolist() == expected, index.name
    for index in indexes:
        assert len(index) == len(twin.subscriptions)
        index._check()


@pytest.mark.parametrize("kind", INDEXES)
def test_saving_and_loading(kind: type[RoadIndex], tmp_path: Path) -> None:
    network = line(d_max=4.0)
    index = kind.build(network, [asked(1, "ipad", 1, 0.4, 0.7), asked(2, "sale ipad", 3, 1.0, 0.5)])
    index.remove(1)
    index.insert(asked(3, "tram", 0, 0.0, 1.0))
    index.save(tmp_path / "index")
    again = kind.load(network, tmp_path / "index")
    again._check()
    assert again.search({"tram"}, (3, 0)).tolist() == index.search({"tram"}, (3, 0)).tolist() == [2, 3]
    again.insert(asked(4, "sale", 3, 0.0, 1.0))
    again.remove(2)
    again._check()
    assert again.search({"sale"}, (3, 0)).tolist() == [4]
    with pytest.raises(InvalidValue, match="another road network"):
        kind.load(line(d_max=5.0), tmp_path / "index")


@pytest.mark.parametrize("kind", INDEXES)
def test_alpha_of_one_ignores_words_and_of_zero_the_way_up_to_d_max(kind: type[RoadIndex]) -> None:
    index = kind.build(line(d_max=2.0), [asked(1, "ipad", 0, 1.0, 0.5), asked(2, "ipad", 0, 0.0, 1.0)])
    assert index.search((), (1.0, 0)).tolist() == [1]  # 1 - 1/2 is just 0.5
    assert index.search((), (1.01, 0)).tolist() == []
    assert index.search({"ipad"}, (2.0, 0)).tolist() == [2]
    assert index.search({"ipad"}, (2.01, 0)).tolist() == []


@pytest.mark.parametrize("kind", INDEXES)
def test_tau_of_zero_still_ends_at_d_max(kind: type[RoadIndex]) -> None:
    index = kind.build(line(d_max=2.0), [asked(1, "ipad", 0, 0.5, 0.0)])
    assert index.search((), (2.0, 0)).tolist() == [1]
    assert index.search({"ipad"}, (2.5, 0)).tolist() == []


def test_the_last_word_of_a_prefix_is_not_left_out() -> None:
    """Eq. 9 read literally: the remaining weight must be smaller than needed, and here it is equal."""
    network = line(d_max=4.0)
    index = EnhancedIndex.build(network, [asked(1, "ipad sale", 2, 0.4, 0.7)])  # TSIM_limit is 0.5: either word will do
    for word in ("ipad", "sale"):
        assert index.search({word}, (2, 0)).tolist() == [1]
        assert index.search({word}, (2.1, 0)).tolist() == []


def test_the_papers_example() -> None:
    """Section III: s1 = ({t1, t3}, 0.4, 0.7), at a proximity of 0.55 to m1, has SIM 0.82."""
    weights = {"discount": 0.5, "iphone": 0.3, "ipad": 0.3, "ebook": 0.2}
    network = line(d_max=4.0, weights=weights)
    index = EnhancedIndex.build(network, [asked(1, "discount ipad", 0, 0.4, 0.7)])
    assert index.search({"discount", "iphone", "ipad"}, (1.8, 0)).tolist() == [1]
    assert index.search({"discount", "iphone", "ebook"}, (1.8, 0)).tolist() == []  # 0.22 + 0.6 * 5/8


def test_a_weight_of_several_words_is_refused() -> None:
    with pytest.raises(InvalidValue, match="each has a weight of its own"):
        line(weights={"e-book": 0.2})


def test_the_enhanced_index_looks_at_less() -> None:
    side = 30
    xy = [(x, y) for x in range(side) for y in range(side)]
    edges = [(i, i + 1) for i in range(side * side) if (i + 1) % side] + [
        (i, i + side) for i in range(side * side - side)
    ]
    network = RoadNetwork(xy, edges, d_max=20.0)
    words = [f"w{n % 7} v{n % 11} u{n}" for n in range(800)]
    given = [
        RoadSubscription(n, frozenset(words[n].split()), (n * 7 % side, n * 11 % side), 0.4, 0.7) for n in range(800)
    ]
    enhanced, basic = EnhancedIndex.build(network, given), BasicIndex.build(network, given)
    message = frozenset(["w1", "w2", "v3", "v5", "u9"])
    assert enhanced.search(message, (15, 15)).tolist() == basic.search(message, (15, 15)).tolist()
    assert 4 * enhanced.counters.candidates < basic.counters.candidates
    assert enhanced.counters.touched < basic.counters.touched


@pytest.mark.parametrize(
    ("subscription", "said"),
    [
        (RoadSubscription(1, frozenset("a"), (0, 0), 1.5, 0.5), "alpha"),
        (RoadSubscription(1, frozenset("a"), (0, 0), 0.5, float("nan")), "tau"),
        (RoadSubscription(1, frozenset("a"), (float("nan"), 0), 0.5, 0.5), "not finite"),
        (RoadSubscription(-1, frozenset("a"), (0, 0), 0.5, 0.5), "id"),
        (RoadSubscription(1, "word", (0, 0), 0.5, 0.5), "keywords"),
    ],
)
def test_what_is_no_subscription_is_refused(subscription: RoadSubscription, said: str) -> None:
    index = EnhancedIndex(line())
    with pytest.raises(InvalidValue, match=said):
        index.insert(subscription)
    with pytest.raises(InvalidValue, match=said):
        EnhancedIndex.build(line(), [subscription])
    assert not len(index)
    index._check()


def test_ids() -> None:
    index = EnhancedIndex.build(line(), [asked(1, "a", 0, 0.5, 0.5)])
    with pytest.raises(InvalidValue, match="in use"):
        index.insert(asked(1, "b", 1, 0.5, 0.5))
    with pytest.raises(NotFound, match="no subscription of id 2"):
        index.remove(2)
    assert 1 in index
    assert 2 not in index
