"""Lines: what they are made of, and how they lie to regions, against shapely on grids."""

from __future__ import annotations

import copy
import pickle

import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contrada import Box, Region, Relation
from contrada.errors import InvalidValue
from contrada.spatial.distance.near import near
from contrada.spatial.lines.line import Line, path_of_line
from contrada.spatial.lines.relating import _relate_by_pieces, relate_line
from contrada.spatial.relations.relation import RELATIONS
from tests import strategies
from tests.naive import distance as naive_distance
from tests.naive import lines as naive

grid = st.tuples(st.integers(-1, 7), st.integers(-1, 7)).map(lambda xy: (float(xy[0]), float(xy[1])))


@st.composite
def lines(draw, most=3):
    parts = draw(st.lists(st.lists(grid, min_size=2, max_size=5), min_size=1, max_size=most))
    parts = [part for part in parts if len(set(part)) > 1] or [[(0.0, 0.0), (6.0, 3.0)]]
    return Line.of_parts(parts)


@given(lines())
def test_lines_are_what_they_were_made_of(line):
    for other in (Line(line.wkt), Line(line.__geo_interface__), Line(line.to_shapely()), Line.of(line)):
        assert other == line
        assert hash(other) == hash(line)
    assert pickle.loads(pickle.dumps(line)) == line == copy.copy(line)
    assert Line.of_parts([part[::-1] for part in line.parts][::-1]) == line
    assert line.bounds == line.to_shapely().bounds
    assert path_of_line(line)[1][-1].tolist() == list(line.bounds)


def test_repeated_vertices_and_parts_go():
    line = Line.of_parts([[(0, 0), (0, 0), (3, 4)], [(3, 4), (0, 0)], [(9, 9), (8, 8)]])
    assert line.wkt == "MULTILINESTRING((0 0, 3 4), (8 8, 9 9))"
    assert len(line) == 4
    assert repr(Line([(0, 0), (3, 4)])) == "Line('LINESTRING(0 0, 3 4)')"


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        ([(1, 1)], "at least two different vertices"),
        ([(1, 1), (1, 1)], "at least two different vertices"),
        ([(1, 1), (1, float("nan"))], "not finite"),
        ("POLYGON((0 0, 1 0, 1 1))", "not a Polygon"),
        ("LINESTRING EMPTY", "at least two"),
        (shapely.MultiLineString([]), "without parts"),
        ([(0, 0), (1, 1e200)], "outside 1e-100"),
    ],
)
def test_what_is_no_line_is_refused(shape, why):
    with pytest.raises(InvalidValue, match=why):
        Line(shape)


def test_lines_do_not_change():
    line = Line([(0, 0), (3, 4)])
    with pytest.raises(AttributeError):
        line.name = 1
    with pytest.raises(ValueError, match="read-only"):
        line.parts[0][0, 0] = 7


@pytest.mark.parametrize(
    ("line", "relation"),
    [
        ([(-1, 5), (-1, 9)], "disjoint"),
        ([(0, 2), (0, 8)], "meets"),
        ([(-5, 0), (20, 0)], "meets"),
        ([(-1, -1), (0, 0), (-1, 1)], "meets"),
        ([(1, 1), (9, 9)], "inside"),
        ([(0, 0), (9, 9)], "covered-by"),
        ([(0, 0), (10, 10)], "covered-by"),
        ([(0, 5), (5, 5), (0, 6)], "covered-by"),
        ([(-1, 5), (5, 5)], "overlaps"),
        ([(-1, -1), (11, 11)], "overlaps"),
        ([(0, 2), (0, 8), (5, 5), (-1, 5)], "overlaps"),
        ([(-2, 8), (2, 12), (20, 10), (10, 10)], "meets"),
    ],
)
def test_named_configurations(line, relation):
    assert RELATIONS[relate_line(Line(line), Box(0, 0, 10, 10))].value == relation


@given(lines(), st.one_of(strategies.grid_rings().map(Region), strategies.compound_regions()))
def test_relations_are_those_of_shapely(line, region):
    expected = naive.relate(line, region)
    assert RELATIONS[relate_line(line, region)] is expected
    assert RELATIONS[_relate_by_pieces(line, region)] is expected


def test_points_where_rings_touch():
    isles = Region.of("MULTIPOLYGON(((0 0, 2 0, 2 2, 0 2)), ((2 2, 4 2, 4 4, 2 4)))")
    through, across = Line([(1, 1), (3, 3)]), Line([(1, 3), (3, 1)])
    assert RELATIONS[relate_line(through, isles)] is Relation.COVERED_BY
    assert RELATIONS[relate_line(across, isles)] is Relation.MEETS
    assert RELATIONS[relate_line(Line([(1, 1), (2, 2), (2, 1.5)]), isles)] is Relation.COVERED_BY


@given(
    lines(), st.one_of(lines(), strategies.grid_rings().map(Region)), st.sampled_from([0.0, 0.5, 1.0, 2.0**0.5, 2.0])
)
def test_distances(line, other, length):
    mine = [(part.tolist(), False) for part in line.parts]
    theirs = (
        [(part.tolist(), False) for part in other.parts] if isinstance(other, Line) else [(other.coords.tolist(), True)]
    )
    squared = min(naive_distance.squared_distance(a, b) for a in mine for b in theirs)
    expected = squared <= naive_distance.Fraction(length) ** 2
    assert near(line, other, length) == near(other, line, length) == expected
