"""Rule 3 in interfaces of many filters: nearly all that a complete search would cover, and never anything else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.forwarding.covering.crowds import Crowds
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.constraint import Constraint
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.language.operands import TextMatch
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from tests.naive.table import NaiveTable

COUNT = 300


def boxes(seed: int) -> list[Box]:
    """Boxes of all sizes, many of them in others."""
    rng = np.random.default_rng(seed)
    made = []
    for width, height in np.exp(rng.uniform(0, 6, (COUNT, 2))).tolist():
        x, y = (rng.random(2) * (1000 - width, 1000 - height)).tolist()
        made.append(Box(x, y, x + width, y + height))
    return made


def stars(seed: int) -> list[Region]:
    rng = np.random.default_rng(seed)
    made = []
    for radius in np.exp(rng.uniform(0, 5.3, COUNT)).tolist():
        x, y = rng.random(2) * 1000
        turns = (np.arange(9) + 0.8 * rng.random(9)) * (2 * np.pi / 9)
        reach = radius * (0.6 + 0.4 * rng.random(9))
        made.append(Region(np.stack((x + reach * np.cos(turns), y + reach * np.sin(turns)), axis=1).tolist()))
    return made


WORKLOADS: dict[str, list[Filter]] = {
    "inside": [attr("a").inside(box) for box in boxes(1)],
    "intersects": [attr("a").intersects(box) for box in boxes(2)],
    "disjoint": [attr("a").disjoint(box) for box in boxes(3)],
    "polygons": [attr("a").intersects(star) for star in stars(4)],
    "and a kind": [attr("a").intersects(box) & (attr("k") == i % 3) for i, box in enumerate(boxes(5))],
    "and a level": [attr("a").intersects(box) & (attr("k") > i % 5) for i, box in enumerate(boxes(6))],
    "and sometimes more": [
        attr("a").inside(box) & (attr("k") == 1) if i % 2 else attr("a").inside(box) for i, box in enumerate(boxes(7))
    ],
    "geotext": [
        Filter([Constraint("a", "matches", TextMatch(frozenset(("x", "y")[: 1 + i % 2]), box))])
        for i, box in enumerate(boxes(8))
    ],
}


def complete(filters: list[Filter]) -> int:
    """How many stay active when every filter is compared with every other."""
    active: list[Filter] = []
    for each in filters:
        if not any(other.covers(each) for other in active):
            active = [other for other in active if not each.covers(other)] + [each]
    return len(active)


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("way", ["one by one", "at once", "packed"])
def test_nearly_all_that_a_complete_search_finds(name: str, way: str) -> None:
    filters = WORKLOADS[name]
    table: ForwardingTable[str] = ForwardingTable()
    if way == "one by one":
        for each in filters:
            table.add("I", each)
    elif way == "at once":
        table.add_many([("I", each) for each in filters])
    else:
        table = ForwardingTable.packed([("I", each) for each in filters])
    table._check()
    best = len(filters) - complete(filters)
    assert best > COUNT // 30
    assert len(filters) - table.stats().active >= 0.95 * best


def test_the_answers_stay_right_as_filters_come_and_go() -> None:
    rng = np.random.default_rng(9)
    table: ForwardingTable[str] = ForwardingTable()
    naive = NaiveTable()
    everything = [each for filters in WORKLOADS.values() for each in filters[:120]]
    for number in rng.permutation(len(everything)).tolist():
        ids = table.add("I" if number % 4 else "J", everything[number])
        naive.add("I" if number % 4 else "J", everything[number], ids)
        if number % 3 == 0:
            id = int(rng.choice(sorted(naive.filters)))
            table.remove(id)
            naive.remove(id)
    table._check()
    for x, y in (rng.random((40, 2)) * 1000).tolist():
        for value in (Point(x, y), Box(x, y, x + 20, y + 20)):
            notification: dict[str, Any] = {"a": value, "k": 1}
            assert table.match_filters(notification) == naive.match_filters(notification)


corners = st.tuples(*(st.integers(0, 6) for _ in range(4)))


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 1), corners), max_size=60), corners)
def test_what_is_near(changes: list[tuple[bool, int, int, tuple[int, ...]]], asked: tuple[int, ...]) -> None:
    crowds, naive = Crowds(), {}
    for put, row, interface, (x1, y1, x2, y2) in changes:
        box = (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
        if put:
            crowds.put(interface, 7, row, box)
            naive[interface, row] = box
        else:
            crowds.drop(interface, 7, row)
            naive.pop((interface, row), None)
    x1, y1, x2, y2 = asked
    a = (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))

    def holds(b: tuple[float, ...], c: tuple[float, ...]) -> bool:
        return b[0] <= c[0] and b[1] <= c[1] and b[2] >= c[2] and b[3] >= c[3]

    expected = sorted(row for (owner, row), b in naive.items() if owner == 0 and (holds(a, b) or holds(b, a)))
    assert sorted(crowds.near(0, 7, a).tolist()) == expected
    crowds.forget(0)
    assert not len(crowds.near(0, 7, a))
    assert not len(crowds.near(0, 8, a))


def test_what_reaches_infinitely_far_is_not_kept() -> None:
    crowds = Crowds()
    crowds.put(1, 7, 1, (np.inf, np.inf, np.inf, np.inf))
    assert not crowds.has(1, 7)
