"""Circles by the cells of a grid, against rational arithmetic and against the tree."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import Box, Constraint, ForwardingTable, Point, attr
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.types.plugged import Settings
from contrada.forwarding.types.shape import ShapeType
from contrada.spatial.distance.cells import make_cells, pays, search_cells
from contrada.spatial.relations.relate import EXACT

SCALES = (1.0, 1e-12, 1e12, 0.1)


def found(cells, places):
    out, ends = np.empty(4 * len(cells.ids) * len(places) + 8, np.int64), np.zeros(len(places), np.int64)
    assert search_cells(cells, places, 0, out, ends) == len(places)
    return [sorted(out[a:b].tolist()) for a, b in zip([0, *ends.tolist()], ends.tolist(), strict=False)]


@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20), st.integers(1, 6)), min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(-30, 30), st.integers(-30, 30)), min_size=1, max_size=20),
    st.sampled_from(SCALES),
)
def test_points_are_in_the_circles_that_rational_numbers_say(circles, places, scale):
    # Whole numbers: many points are at exactly the distance.
    rows = np.array(circles, np.float64) * scale
    given = np.array(places, np.float64) * scale
    cells = make_cells(rows, np.arange(len(rows)) + 7)
    assert cells is not None
    expected = [
        [
            k + 7
            for k, (cx, cy, r) in enumerate(rows.tolist())
            if (Fraction(cx) - Fraction(x)) ** 2 + (Fraction(cy) - Fraction(y)) ** 2 <= Fraction(r) ** 2
        ]
        for x, y in given.tolist()
    ]
    assert found(cells, given) == expected


def test_answers_that_do_not_fit_are_gone_on_with():
    cells = make_cells(np.tile((0.0, 0.0, 5.0), (40, 1)), np.arange(40))
    assert cells is not None
    places = np.zeros((10, 2))
    out, ends = np.empty(100, np.int64), np.zeros(10, np.int64)
    done = search_cells(cells, places, 0, out, ends)
    assert 0 < done < 10
    out = np.concatenate((out, np.empty(1000, np.int64)))
    assert search_cells(cells, places, done, out, ends) == 10
    assert ends.tolist() == [40 * k for k in range(1, 11)]


@pytest.mark.parametrize(
    "circles",
    [
        np.column_stack((np.full((5000, 2), 3.0), np.full(5000, 1.0))),  # a crowd
        np.array([(0.0, 0.0, 0.0), (1.0, 1.0, 1.0)]),  # a point
        np.array([(0.0, 0.0, 1.0), (1e50, 1.0, 1.0)]),  # too far away for single precision
    ],
)
def test_what_a_grid_is_no_good_for_has_none(circles):
    assert make_cells(circles, np.arange(len(circles))) is None


def test_a_table_finds_the_same_with_a_grid_and_without():
    rng = np.random.default_rng(5)
    shapes = ShapeType(Settings(EXACT, "rk-tree", None))
    circles = [
        (float(r), Point(x, y)) for r, (x, y) in zip(rng.uniform(1, 9, 500), rng.uniform(0, 100, (500, 2)), strict=True)
    ]
    handles = [shapes.handle(1, Constraint("pos", "within", Distance(r, at))) for r, at in circles]
    shapes.store_made()
    shapes.post_many(handles)
    points = [Point(x, y) for x, y in rng.uniform(-5, 105, (200, 2)).tolist()]
    expected = [
        sorted(h for h, (r, at) in zip(handles, circles, strict=True) if Distance(r, at).near(p)) for p in points
    ]
    reach = shapes._reaches[1]

    def check(points, expected):
        assert [sorted(each.tolist()) for each in shapes.search([1] * len(points), points)] == expected

    assert not pays(20, 500)
    check(points[:20], expected[:20])
    assert reach._cells is None
    check(points, expected)
    assert reach._cells is not None
    shapes.unpost(handles[0])  # a change drops it
    assert reach._cells is None
    check(points, [[h for h in each if h != handles[0]] for each in expected])
    beyond = shapes.handle(1, Constraint("pos", "beyond", Distance(1.0, Box(0, 0, 1, 1))))
    shapes.store_made()
    shapes.post(beyond)  # not a circle
    check(
        points[:40],
        [
            sorted(
                [
                    *(h for h in each if h != handles[0]),
                    *([beyond] if not Distance(1.0, Box(0, 0, 1, 1)).near(p) else []),
                ]
            )
            for each, p in zip(expected[:40], points[:40], strict=True)
        ],
    )
    assert reach._cells is None
    shapes._check()


def test_relations_to_points_are_not_taken_for_circles():
    table = ForwardingTable()
    for k in range(100):
        table.add(k, attr("area").contains(Point(k, k)))
    many = [{"area": Point(k, k)} for k in range(100)]
    assert table.match_many(many) == [set()] * 100
    assert table.match_many(many) == [set()] * 100
    assert table.match({"area": Box(-1, -1, 1.5, 1.5)}) == {0, 1}
