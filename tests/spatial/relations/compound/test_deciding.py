"""Which part or hole decided, in words."""

from __future__ import annotations

import pytest
from hypothesis import given

from contrada import Box, ForwardingTable, Line, Point, Region, relate
from contrada.spatial.relations.compound.deciding import decided_by
from tests import strategies

LAKE = Region([(0, 0), (9, 0), (9, 9), (0, 9)], holes=[[(1, 1), (2, 1), (2, 2)], [(3, 3), (6, 3), (6, 6), (3, 6)]])
ISLES = Region.of("MULTIPOLYGON(((0 0, 9 0, 9 9, 0 9), (2 2, 7 2, 7 7, 2 7)), ((4 4, 5 4, 5 5, 4 5)))")
MANY = Region.of(
    {"type": "MultiPolygon", "coordinates": [[[(3 * k, 0), (3 * k + 2, 0), (3 * k + 2, 2)]] for k in range(6)]}
)


@pytest.mark.parametrize(
    ("value", "region", "expected"),
    [
        (Box(0, 0, 1, 1), Box(0, 0, 2, 2), ""),
        (Point(4, 4), LAKE, "it lies in hole 1"),
        (Point(3, 4), LAKE, "it reaches hole 1"),
        (Point(8, 8), LAKE, ""),
        (Box(4, 4, 5, 5), LAKE, "it lies in hole 1"),
        (Box(3, 3, 6, 6), LAKE, "it lies in hole 1"),
        (Box(0, 0, 9, 9), LAKE, "it reaches hole 0, hole 1"),
        (Box(2, 4, 4, 5), LAKE, "it reaches hole 1"),
        (Point(4.5, 4.5), ISLES, "to part 1 inside, to part 0 disjoint"),
        (Point(3, 3), ISLES, "it lies in hole 0 of part 0"),
        (Point(20, 20), ISLES, "it is apart from all 2 parts"),
        (Box(3, 3, 6, 6), ISLES, "to part 1 contains, to part 0 disjoint"),
        (MANY, Box(-1, -1, 5.5, 3), "its parts 0, 1 inside, its parts 2, 3, 4 and 1 more disjoint"),
        (Line([(4, 4), (5, 5)]), LAKE, "it lies in hole 1"),
        (Line([(2.5, 4), (4, 4)]), LAKE, "it reaches hole 1"),
        (Line([(2.2, 3), (6, 3)]), ISLES, "it lies in hole 0 of part 0"),
        (Line([(1, 1), (4.5, 4.5)]), ISLES, "to parts 0, 1 overlaps; it reaches hole 0 of part 0"),
        (Line([(20, 20), (21, 20)]), ISLES, "it is apart from all 2 parts"),
        (MANY, ISLES, None),
    ],
)
def test_what_is_told(value, region, expected):
    told = decided_by(value, region)
    assert told == expected if expected is not None else "its part" in told and "to part" in told


@given(strategies.compound_regions(), strategies.compound_regions())
def test_it_is_told_of_whatever_has_parts(a, b):
    told = decided_by(a, b)
    assert bool(told) or not (len(a.parts) > 1 or len(b.parts) > 1), relate(a, b)


def test_explain_tells():
    table = ForwardingTable()
    (id,) = table.add("i", f"pos inside {LAKE.wkt}")
    assert "the relation of the point is disjoint: it lies in hole 1" in str(table.explain({"pos": Point(4, 4)}, id))
    assert str(table.explain({"pos": Point(8, 8)}, id)).endswith("the relation of the point is inside")
