"""A table whose relations are sampled: the exact theory of covering must not leak into it."""

from __future__ import annotations

import pytest

from contrada.forwarding.language.parse import parse
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
