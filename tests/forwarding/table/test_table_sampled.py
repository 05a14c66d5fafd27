"""A table whose relations are sampled: the exact theory of covering must not leak into it."""

from __future__ import annotations

import pytest

from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.table.options import TableOptions
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.geometry.region import Region
from contrada.spatial.relations.relate import Uniform, relate
from contrada.spatial.relations.relation import Relation

# A needle of the message reaches out of the constraint's region between two samples: exactly it overlaps, sampled at
# the end points alone it does not.
CONSTRAINT = "POLYGON((0 0, 10 0, 10 10, 5 1, 0 10))"
MESSAGE = Region([(1, 1), (9, 1), (9, 2), (1, 2)])
COARSE = Uniform(density=0.0)

pytestmark = pytest.mark.usefixtures("every_matching")


def test_answers_are_those_of_the_sampled_relation():
    region = Region.of(CONSTRAINT)
    sampled = relate(MESSAGE, region, COARSE)
    assert sampled is not relate(MESSAGE, region) is Relation.OVERLAPS
    table = ForwardingTable(COARSE)
    expected = set()
    for relation in Relation:
        for text in (
            f"area {relation} {CONSTRAINT}",
            f"area {relation} {CONSTRAINT} and area intersects {CONSTRAINT}",
            f"area {relation} {CONSTRAINT} and area {sampled} {CONSTRAINT}",
        ):
            (id,) = table.add("all", text)
            if parse(text).matches({"area": MESSAGE}, discretization=COARSE):
                expected.add(id)
    assert table.match_filters({"area": MESSAGE}) == sorted(expected)
    assert expected


def test_scalars_are_simplified_as_always():
    table = ForwardingTable(COARSE)
    table.add("I", "x > 1")
    table.add("I", f"x > 2 and area inside {CONSTRAINT}")
    table.add("J", "area inside BOX(0 0, 20 20)")
    table.add("J", "area inside BOX(1 1, 2 2)")
    assert table.stats().covered == 1
    table._check()


def test_packed_tables_sample_too():
    texts = [f"area {relation} {CONSTRAINT}" for relation in Relation]
    pairs = [(text, parse(text)) for text in texts]
    expected = {text for text, each in pairs if each.matches({"area": MESSAGE}, discretization=COARSE)}
    assert ForwardingTable.packed(pairs, TableOptions(discretization=COARSE)).match({"area": MESSAGE}) == expected
    assert ForwardingTable.packed(pairs).match({"area": MESSAGE}) != expected
