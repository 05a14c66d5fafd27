"""Lines as values and operands: made, written, read, related, explained, indexed, saved; and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from contrada import Box, ForwardingTable, Line, Point, Region, attr, parse, relate
from contrada.errors import CodecError, FilterSyntaxError, InvalidValue
from contrada.forwarding.codec.json import notification_from_json, notification_to_json
from contrada.forwarding.codec.limits import Limits
from contrada.forwarding.codec.msgpack import decode_notification, encode_notification

ROUTE = Line([(0, 0), (10, 0), (10, 5)])
CABLES = Line.of_parts([[(0, 0), (1, 1)], [(5, 5), (9, 5)]])
WARD = Box(2, -1, 8, 1)


def test_lines_are_values():
    for line in (ROUTE, CABLES):
        for shape in (line, line.to_shapely(), line.__geo_interface__):
            assert decode_notification(encode_notification({"route": shape})) == {"route": line}
        assert notification_from_json(notification_to_json({"route": line})) == {"route": line}
    with pytest.raises(InvalidValue, match="do not compare a line: use intersects"):
        attr("route") == ROUTE  # noqa: B015  # it raises


@pytest.mark.parametrize(
    ("text", "line", "holds"),
    [
        ("route crosses BOX(2 -1, 8 1)", ROUTE, True),
        ("route overlaps BOX(2 -1, 8 1)", ROUTE, True),
        ("route inside BOX(-1 -1, 11 6)", ROUTE, True),
        ("route crosses BOX(-1 -1, 11 6)", ROUTE, False),
        ("route intersects BOX(10 5, 12 7)", ROUTE, True),
        ("route meets BOX(10 5, 12 7)", ROUTE, True),
        ("route disjoint BOX(0 1, 9 5)", ROUTE, True),
        ("route covered-by BOX(0 -1, 11 6)", ROUTE, True),
        ("route contains BOX(0 -1, 11 6)", ROUTE, False),
        ("not route crosses BOX(2 -1, 8 1)", ROUTE, False),
        ("route within 1 of POINT(5 1)", ROUTE, True),
        ("route within 0.9 of POINT(5 1)", ROUTE, False),
        ("route beyond 2 of BOX(3 3, 7 4)", ROUTE, True),
        ("route within 0 of LINESTRING(5 -5, 5 5)", ROUTE, True),
        ("route intersects LINESTRING(5 -5, 5 5)", ROUTE, True),
        ("route disjoint MULTILINESTRING((5 1, 5 5), (6 1, 6 5))", ROUTE, True),
        ("route intersects POINT(10 2)", ROUTE, True),
    ],
)
def test_relations_and_distances(text, line, holds):
    wanted = parse(text)
    assert parse(str(wanted)) == wanted
    assert wanted.matches({"route": line}) is holds
    table = ForwardingTable()
    (id,) = table.add("I", wanted)
    assert table.match({"route": line}) == ({"I"} if holds else set())
    assert str(table.explain({"route": line}, id)).startswith("matches" if holds else "does not")


def test_explanations_say_which_part_decided():
    table = ForwardingTable()
    (id,) = table.add("I", "r crosses BOX(4 4, 6 6)")
    assert "its part 1 overlaps, its part 0 disjoint" in str(table.explain({"r": CABLES}, id))


def test_operands_that_are_lines():
    assert attr("a").within(5, of=ROUTE) == parse("a within 5 of LINESTRING(0 0, 10 0, 10 5)")
    assert attr("a").intersects(shapely.LineString([(0, 0), (1, 1)])) == attr("a").within(0, of="LINESTRING(0 0, 1 1)")
    assert ~attr("a").intersects(ROUTE) == attr("a").disjoint(ROUTE)
    assert parse("a within 5 of LINESTRING(0 0, 10 0)").matches({"a": Point(5, 5)})
    assert parse("a intersects LINESTRING(0 0, 10 0)").matches({"a": Box(4, -1, 5, 1)})
    for word in ("meets", "covers", "equals", "contains", "covered-by", "inside or meets"):
        with pytest.raises(FilterSyntaxError, match="of a line one asks intersects, disjoint, crosses, inside, within"):
            parse(f"a {word} LINESTRING(0 0, 1 1)")
    with pytest.raises(FilterSyntaxError, match="at least two different vertices"):
        parse("a within 5 of LINESTRING(0 0)")


@pytest.mark.parametrize(
    ("text", "value", "held"),
    [
        ("a crosses LINESTRING(0 0, 10 0)", Box(4, -1, 6, 1), True),
        ("a crosses LINESTRING(0 0, 10 0)", Box(-1, -1, 11, 1), False),  # all of it is inside
        ("a crosses LINESTRING(0 0, 10 0)", Box(4, 0, 6, 1), False),  # along an edge
        (
            "a crosses LINESTRING(0 0, 10 0)",
            Region([(4, -1), (9, -1), (9, 1)], holes=[[(8, -1), (8.5, 0), (8, 0)]]),
            True,
        ),
        ("a crosses LINESTRING(0 0, 10 0)", Point(5, 0), False),
        ("a crosses LINESTRING(0 0, 10 0)", Line([(5, -1), (5, 1)]), False),
        ("a inside LINESTRING(0 0, 10 0)", Point(5, 0), True),
        ("a inside LINESTRING(0 0, 10 0)", Point(10, 0), True),
        ("a inside LINESTRING(0 0, 10 0)", Point(5, 1e-9), False),
        ("a inside LINESTRING(0 0, 5 0, 10 0)", Line([(3, 0), (7, 0)]), True),
        ("a inside MULTILINESTRING((0 0, 5 0), (5 0, 10 0), (2 0, 3 0))", Line([(0, 0), (10, 0)]), True),
        ("a inside MULTILINESTRING((0 0, 4 0), (5 0, 10 0))", Line([(0, 0), (10, 0)]), False),
        ("a inside LINESTRING(0 0, 10 0)", Line([(3, 0), (7, 0), (7, 1)]), False),
        ("a inside LINESTRING(0 0, 3 4)", Line([(0, 0), (0.75, 1)]), True),
        ("a inside LINESTRING(0 0, 3 4)", Line([(0, 0), (0.6, 0.8)]), False),  # in binary these are not on it
        ("a inside LINESTRING(0 0, 10 0)", Box(1, -1, 2, 1), False),
        ("not a crosses LINESTRING(0 0, 10 0)", Box(-1, -1, 11, 1), True),
        ("not a crosses LINESTRING(0 0, 10 0)", Box(4, -1, 6, 1), False),
        ("not a crosses LINESTRING(0 0, 10 0)", Point(5, 0), True),
        ("not a inside LINESTRING(0 0, 10 0)", Line([(5, -1), (5, 1)]), True),
        ("not a inside LINESTRING(0 0, 10 0)", Point(5, 0), False),
        ("not a inside LINESTRING(0 0, 10 0)", 7, False),
    ],
)
def test_what_lines_cross_and_what_lies_on_them(text, value, held):
    predicate = parse(text)
    assert predicate.matches({"a": value}) is held
    assert parse(str(predicate)) == predicate
    table = ForwardingTable()
    table.add("I", predicate)
    table.add("J", parse(f"b = 1 and ({text})"))
    assert table.match({"a": value}) == ({"I"} if held else set())
    assert table.match({"a": value, "b": 1}) == ({"I", "J"} if held else set())


def test_relations_to_lines():
    route = Line([(0, 0), (10, 0)])
    assert relate(Box(4, -1, 6, 1), route).value == "overlaps"
    assert relate(Box(-1, -1, 11, 1), route).value == "contains"
    assert relate(Point(5, 0), route).value == relate(Line([(2, 0), (3, 0)]), route).value == "inside"
    assert relate(Line([(2, 0), (3, 1)]), route).value == "meets"
    assert relate(Line([(2, 1), (3, 1)]), route).value == "disjoint"


def test_lines_on_the_right_cover_and_conflict():
    assert parse("r intersects LINESTRING(0 0, 9 0)").covers(parse("r crosses LINESTRING(0 0, 9 0)"))
    assert parse("r within 3 of BOX(0 0, 9 9)").covers(parse("r inside LINESTRING(1 1, 9 9)"))
    assert parse("r crosses LINESTRING(0 0, 9 0)").conflicts(parse("r disjoint LINESTRING(0 0, 9 0)"))
    assert not parse("r crosses LINESTRING(0 0, 9 0)").covers(parse("r intersects LINESTRING(0 0, 9 0)"))


def test_covers():
    assert parse("r intersects BOX(0 0, 9 9)").covers(parse("r crosses BOX(1 1, 3 3)"))
    assert parse("r within 3 of LINESTRING(0 0, 9 0)").covers(parse("r within 2 of LINESTRING(9 0, 0 0)"))
    assert parse("r within 3 of BOX(0 0, 9 9)").covers(parse("r within 2 of LINESTRING(1 1, 9 9)"))
    assert not parse("r within 3 of LINESTRING(0 0, 9 0)").covers(parse("r within 2 of POINT(3 0)"))
    assert parse("r inside BOX(0 0, 1 1)").conflicts(parse("r inside BOX(5 5, 6 6)"))


def test_limits_hold_for_lines():
    body = encode_notification({"route": ROUTE})
    with pytest.raises(CodecError, match="a line of 3 vertices, more than the limit of 2"):
        decode_notification(body, Limits(vertices=2))
    with pytest.raises(CodecError, match="a line of 3 vertices, more than the limit of 2"):
        notification_from_json(notification_to_json({"route": ROUTE}), Limits(vertices=2))
    for place in range(len(body) - 50, len(body)):
        changed = bytearray(body)
        changed[place] ^= 0xFF
        try:
            decode_notification(bytes(changed))
        except CodecError:
            continue


def test_many_filters_and_lines(tmp_path):
    rng = np.random.default_rng(5)
    table, pairs = ForwardingTable(), []
    words = ("crosses", "inside", "disjoint", "meets", "intersects", "not crosses", "within 2 of", "beyond 3 of")
    for number in range(200):
        x, y, width = (int(each) for each in rng.integers(0, (30, 30, 8)))
        shape = (
            f"BOX({x} {y}, {x + width + 1} {y + 2})" if number % 3 else f"POLYGON(({x} {y}, {x + 5} {y}, {x} {y + 4}))"
        )
        if number % 8 > 5 and number % 3 == 0:
            shape = f"LINESTRING({x} {y}, {x + 3} {y + 4})"
        text = f"r {words[number % 8]} {shape}" + (" and x > 3" if number % 5 == 0 else "")
        pairs.append((str(number), parse(text)))
    table.add_many(pairs)
    table.save(tmp_path / "table")
    loaded = ForwardingTable.load(tmp_path / "table")
    places = rng.integers(0, 30, (40, 3, 2)).astype(float)
    lines = [Line(each) for each in places if len({*map(tuple, each.tolist())}) > 1]
    values = [{"r": line, "x": 4} for line in lines] + [{"r": Point(5, 5)}, {"r": Region([(3, 3), (9, 3), (3, 9)])}]
    wanted = [{interface for interface, each in pairs if each.matches(value)} for value in values]
    for each in (table, loaded):
        assert each.match_many(values) == wanted
        assert [each.match(value) for value in values] == wanted
        assert each.match_bodies([encode_notification(value) for value in values])[0] == wanted
        each._check()


def test_lines_on_the_earth():
    table = ForwardingTable(crs="lonlat")
    table.add("near", "pos within 10 km of LINESTRING(0 0, 10 0)")
    table.add("across", "pos within 10 km of LINESTRING(179 5, 181 5)")
    table.add("touched", "pos intersects LINESTRING(0 0, 10 0)")
    assert table.match({"pos": Point(5, 0.05)}) == {"near"}
    assert table.match({"pos": Point(5, 0)}) == {"near", "touched"}
    assert table.match({"pos": Point(-179.5, 5.05)}) == table.match({"pos": Point(179.5, 5.05)}) == {"across"}
    assert table.match({"pos": Line([(5, 1), (5, 0.05)])}) == {"near"}
    assert table.match({"pos": Line([(5, 1), (5, -1)])}) == {"near", "touched"}
    assert table.match({"pos": Line([(178, 5), (182, 5)])}) == {"across"}


def test_crosses_is_a_word_among_relations():
    area = Box(0, 0, 4, 4)
    assert attr("route").relates("inside", "crosses", to=area) == parse("route inside or crosses BOX(0 0, 4 4)")
