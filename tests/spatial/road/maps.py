"""Small road networks and what is said on them, for property tests.

Maps live on a grid of quarters, so that points fall on nodes, on the middles of edges and between edges that are
equally near; several components, rings, parallel edges, edges of length zero and dead ends all turn up.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from contrada.spatial.road.index.base import RoadSubscription
from contrada.spatial.road.network import RoadNetwork
from tests.naive.roads import NaiveRoads

if TYPE_CHECKING:
    from collections.abc import Callable

WORDS = ("ipad", "sale", "tram", "late", "fair")
_quarters = st.integers(-8, 24).map(lambda n: n / 4)
points = st.tuples(_quarters, _quarters)
tokens = st.frozensets(st.sampled_from((*WORDS, "nobody-asked")), max_size=4)
_awkward = st.sampled_from((0.1, 0.3, 1 / 3, 2.0, 5.5))
_unit = st.sampled_from((0.0, 1.0, 0.5, 0.4, 0.7, 0.1, 1 / 3)) | st.floats(0, 1)


@st.composite
def maps(draw: Callable[..., Any]) -> tuple[RoadNetwork, NaiveRoads]:
    """Draw a network and its twin."""
    count = draw(st.integers(2, 10))
    xy = draw(st.lists(st.tuples(*2 * (st.integers(0, 4).map(float),)), min_size=count, max_size=count))
    pair = st.tuples(*2 * (st.integers(0, count - 1),)).filter(lambda ends: ends[0] != ends[1])
    edges = draw(st.lists(pair, min_size=1, max_size=14))
    lengths = None
    if draw(st.booleans()):
        lengths = draw(st.lists(st.just(0.0) | _awkward, min_size=len(edges), max_size=len(edges)))
    d_max = draw(st.sampled_from((1.0, 2.5, 4.0, 7.3, 30.0)))
    weights = draw(st.dictionaries(st.sampled_from(WORDS), st.sampled_from((0.0, 0.1, 1.0, 2.7, 1 / 3)), max_size=4))
    other = draw(st.sampled_from((1.0, 0.0, 0.7)))
    return (
        RoadNetwork(xy, edges, lengths, d_max=d_max, weights=weights, other_weight=other),
        NaiveRoads(xy, edges, lengths, d_max, weights, other),
    )


@st.composite
def subscriptions(draw: Callable[..., Any], roads: NaiveRoads, id: int) -> RoadSubscription:
    """Draw a subscription; τ is often just what some message reaches, or the next number after it."""
    words = draw(st.frozensets(st.sampled_from(WORDS), max_size=3))
    at, alpha = draw(points), draw(_unit)
    tau = draw(_unit)
    if draw(st.booleans()):
        distance = roads.distance(draw(points), at)
        if distance <= roads.d_max:
            likeness = roads.likeness(words, draw(tokens))
            tau = alpha * (1.0 - distance / roads.d_max) + (1.0 - alpha) * likeness
            tau = draw(st.sampled_from((tau, math.nextafter(tau, 0), math.nextafter(tau, 1))))
    return RoadSubscription(id, words, at, alpha, min(max(tau, 0.0), 1.0))


def grid(side: int) -> RoadNetwork:
    """Roads between all neighbours of a square of places."""
    places = [(float(x), float(y)) for x in range(side) for y in range(side)]
    across = [(n, n + side) for n in range(side * (side - 1))]
    along = [(n, n + 1) for n in range(side * side) if (n + 1) % side]
    return RoadNetwork(places, across + along, d_max=200.0)
