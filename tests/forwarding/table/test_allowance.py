"""Every way in which matching can be long is counted: a small notification against many filters ends in `Exhausted`.

And what it ends with after enough is allowed is what the filters say one by one.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from contrada import ForwardingTable, GeoText, Line, Point, Region, Uniform, attr, parse
from contrada.forwarding.codec.msgpack import encode_notification
from contrada.forwarding.language.filter import as_filters
from contrada.forwarding.language.operators import Operator
from contrada.spatial.allowance import MILLISECOND, Exhausted, allowed
from tests.spatial.road.maps import grid

rng = random.Random(7)


def star(vertices: int, size: float = 10.0, least: float = 0.3) -> Region:
    angles = [2 * math.pi * n / vertices for n in range(vertices)]
    radii = [size * rng.uniform(least, 1.0) for _ in angles]
    return Region([(50 + r * math.cos(a), 50 + r * math.sin(a)) for a, r in zip(angles, radii, strict=True)])


def dented(vertices: int, place: int) -> Region:
    """A ring; at one place it reaches further, so that it covers the others without crossing them."""
    radii = [10.0 + (n == place) for n in range(vertices)]
    angles = [2 * math.pi * n / vertices for n in range(vertices)]
    return Region([(50 + r * math.cos(a), 50 + r * math.sin(a)) for a, r in zip(angles, radii, strict=True)])


def diamonds(vertices: int, phase: float) -> Line:
    """A spiral of four vertices to a turn: whatever the phase, two of them do not touch, and all boxes meet."""
    turns = [(10 * (0.05 + (n + phase) / vertices), math.pi / 2 * n) for n in range(vertices)]
    return Line([(50 + r * round(math.cos(a)), 50 + r * round(math.sin(a))) for r, a in turns])


def like(length: int) -> str:
    return "%" + "_".join(rng.choice("ab") for _ in range(length)) + "%"


def similar(count: int) -> list[Any]:
    """So many `similar`, of which each leads across the whole grid."""
    return [parse(f'v similar {{"w{n}"}} at POINT(0 {n % 40}) alpha 0.01 tau 0.9') for n in range(count)]


ROADS = {"road_network": grid(40)}
LETTERS = [f"w{n}" for n in range(40)]
CASES = {
    "relations": ([attr("v").inside(star(60, 20, 0.9)) for _ in range(300)], {"v": star(60, 19, 0.8)}, {}),
    "relations, touching": ([attr("v").covered_by(dented(200, n)) for n in range(200)], {"v": dented(200, -1)}, {}),
    "relations, sampled": ([attr("v").inside(star(20)) for _ in range(50)], {"v": star(20)},
                           {"discretization": Uniform(density=50.0)}),
    "relations, verified": ([(attr("k") == 1) & attr("v").inside(star(60, 20, 0.9)) for _ in range(300)],
                            {"k": 1, "v": star(60, 19, 0.8)}, {"matching": "selective"}),
    "points": ([attr("v").inside(star(8)) for _ in range(6000)], {"v": Point(50, 50)}, {}),
    "distances": ([attr("v").within(1e-9 * (n + 1), of=diamonds(100, 0.3)) for n in range(200)],
                  {"v": diamonds(100, 0.0)}, {}),
    "distances, verified": ([(attr("k") == 1) & attr("v").within(1e-9, of=star(60)) for _ in range(300)],
                            {"k": 1, "v": star(60, 0.1)}, {"matching": "selective"}),
    "distances on the Earth": ([parse(f"v within {n + 1} m of {diamonds(60, 0.3).wkt}") for n in range(20)],
                               {"v": diamonds(60, 0.0)}, {"crs": "lonlat"}),
    "lines": ([attr("v").inside(star(100, 20, 0.9)) for _ in range(300)], {"v": diamonds(400, 0.0)}, {}),
    "geotext, shaped": ([attr("v").matches([LETTERS[n % 40]], within=star(50)) for n in range(2000)],
                        {"v": GeoText(" ".join(LETTERS), at=(50, 50))}, {}),
    "geotext, refused": ([~attr("v").matches([f"x{n}"]) for n in range(50_000)],
                         {"v": GeoText(" ".join(LETTERS), at=(50, 50))}, {}),
    "similar": (similar(1), {"v": GeoText("w0", at=(39, 39))}, ROADS),
    "similar, on many lists": (similar(4000), {"v": GeoText(" ".join(f"w{n}" for n in range(4000)), at=(0, 0))}, ROADS),
    "similar, verified": ([(attr("k") == 1) & similar(1)[0]], {"k": 1, "v": GeoText("w0", at=(39, 39))}, ROADS),
    "similar, refused": ([~similar(1)[0]], {"v": GeoText("w0", at=(39, 39))}, ROADS),
    "sets": ([attr("v").has_any([f"m{(n + k) % 500}" for k in range(100)]) for n in range(900)],
             {"v": {f"m{n}" for n in range(500)}}, {}),
    "like": ([attr("v").like(like(25)) for _ in range(2000)], {"v": "ab" * 2000}, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_way_to_be_long_is_counted(name):
    filters, notification, options = CASES[name]
    table: ForwardingTable[int] = ForwardingTable(**options)
    table.add_many(enumerate(filters))
    body = encode_notification(notification)
    with allowed(MILLISECOND // 10), pytest.raises(Exhausted):
        table.match_bodies([body])
    with allowed(10_000 * MILLISECOND):
        found = table.match_bodies([body])
    assert found == table.match_bodies([body])
    (matched,) = found[0]
    if not options:
        some = random.Random(1).sample(range(len(filters)), 20)
        assert {n for n in some if any(f.matches(notification) for f in as_filters(filters[n]))} == matched & {*some}
    table._check()


def test_there_is_a_case_for_every_kind_of_operator_that_has_an_index_of_its_own():
    """Kernels that search count by themselves: one that is new, with an operator of its own, needs a case here."""
    by_the_table = {"=", "!=", "<", "<=", ">", ">=", "exists", "in", "prefix", "suffix", "contains"}
    alike = {  # decided by the same kernels as one that has a case
        "inside": {"disjoint", "meets", "overlaps", "equals", "covers", "intersects"},
        "within": {"beyond"},
        "like": {"not like", "~=", "not ~="},
        "has": {"not has"},
    }
    asked = {
        str(constraint.op)
        for filters, _, _ in CASES.values()
        for expression in filters[:1]
        for each in as_filters(expression)
        for constraint in each.constraints
    }
    asked |= {other for operator in asked for other in alike.get(operator, ())}
    negated = {str(operator) for operator in Operator if operator.removeprefix("not ") in by_the_table}
    assert {str(operator) for operator in Operator} - by_the_table - negated == asked - by_the_table


def test_a_batch_is_counted_as_a_whole_and_answered_right_afterwards():
    table: ForwardingTable[int] = ForwardingTable()
    table.add_many((n, attr("v").inside(star(20))) for n in range(50))
    bodies = [encode_notification({"v": star(20, 5.0)}) for _ in range(64)]
    alone = [table.match_bodies([body])[0][0] for body in bodies]
    with allowed(MILLISECOND), pytest.raises(Exhausted):
        table.match_bodies(bodies * 4)
    assert table.match_bodies(bodies)[0] == alone
    table._check()
