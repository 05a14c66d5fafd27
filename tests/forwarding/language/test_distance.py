"""`within` and `beyond`: made, written, read, negated, explained, refused; covers and conflicts."""

from __future__ import annotations

import pytest
import shapely

from contrada import Box, ForwardingTable, Point, Region, attr, parse
from contrada.errors import CodecError, FilterSyntaxError, InvalidValue
from contrada.forwarding.codec.json import filter_from_json, filter_to_json
from contrada.forwarding.codec.msgpack import decode_filter, encode_filter
from contrada.forwarding.language.constraint import Constraint

TRIANGLE = Region([(0, 0), (4, 0), (0, 3)])


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (attr("pos").within(500, of=Point(1, 2)), "pos within 500 of POINT(1 2)"),
        (attr("pos").within(0.5, of=Box(0, 0, 1, 1)), "pos within 0.5 of BOX(0 0, 1 1)"),
        (attr("pos").beyond(0, of=TRIANGLE), "pos beyond 0 of POLYGON((0 0, 4 0, 0 3, 0 0))"),
        (attr("pos").within(5, of=(1, 2)), "pos within 5 of POINT(1 2)"),
        (attr("pos").within(5, of="POINT(1 2)"), "pos within 5 of POINT(1 2)"),
        (attr("pos").within(5, of=shapely.box(0, 0, 1, 1)), "pos within 5 of POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))"),
    ],
)
def test_text_and_expressions_are_the_same(made, text):
    assert str(made) == text
    assert parse(text) == made == parse(text.upper().replace("POS", "pos"))
    assert decode_filter(encode_filter(made)) == made
    assert filter_from_json(filter_to_json(made)) == made


def test_the_nearest_point_counts():
    near = parse("pos within 5 of POINT(0 0)")
    assert near.matches({"pos": Point(3, 4)})
    assert near.matches({"pos": Box(3, 4, 90, 90)})
    assert near.matches({"pos": Box(-90, -90, 90, 90)})
    assert not near.matches({"pos": Point(3.0000000000000004, 4)})
    assert not near.matches({"pos": "here"})
    assert not near.matches({})
    far = parse("pos beyond 5 of POINT(0 0)")
    assert not far.matches({"pos": Point(3, 4)})
    assert far.matches({"pos": Point(3, 5)})
    assert not far.matches({"pos": 7})


def test_not_is_the_other_of_the_two():
    near = attr("pos").within(5, of=TRIANGLE)
    assert ~near == attr("pos").beyond(5, of=TRIANGLE) == parse(f"not ({near})") == parse("pos not " + str(near)[4:])
    assert ~~near == near


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("pos within of POINT(1 2)", "expected a number"),
        ("pos within 5 POINT(1 2)", 'expected "of"'),
        ("pos within 5 of 7", "expected POINT, POLYGON or BOX"),
        ("pos within -5 of POINT(1 2)", "a distance is not negative"),
        ("pos within 1e200 of POINT(1 2)", "outside 1e-100 to 1e100"),
    ],
)
def test_what_is_wrong_is_said(text, why):
    with pytest.raises(FilterSyntaxError, match=why):
        parse(text)


def test_operands_are_checked():
    with pytest.raises(InvalidValue, match="takes a Distance, not Point"):
        Constraint("pos", "within", Point(1, 2))
    with pytest.raises(InvalidValue, match="measured from a point, line or region"):
        attr("pos").within(5, of=None)
    for operand in ([5], [True, Point(1, 2)], [5, "POINT(1 2)"], [5, 6], "x"):
        with pytest.raises(CodecError):
            decode_filter(encode_like(operand))


def encode_like(operand):
    import msgpack

    from contrada.forwarding.codec.msgpack import _encode_ext

    return msgpack.packb([[["pos", "within", operand]]], default=_encode_ext)


def test_explanations_say_how_far():
    table = ForwardingTable()
    near, far = (table.add("I", text)[0] for text in ("pos within 5 of POINT(0 0)", "pos beyond 7 of POINT(0 0)"))
    shown = str(table.explain({"pos": Point(6, 8)}, near))
    assert "the point is 10 away, more than 5" in shown
    assert "yes pos beyond 7" in str(table.explain({"pos": Point(6, 8)}, far))
    assert "nearest point of the region is 5 away" in str(table.explain({"pos": Box(3, 4, 9, 9)}, near))


COVERS = [
    ("pos within 5 of POINT(0 0)", "pos within 4 of POINT(0 0)"),
    ("pos within 5 of POINT(0 0)", "pos within 1 of POINT(2 2)"),
    ("pos within 5 of BOX(0 0, 9 9)", "pos within 2 of POLYGON((0 0, 9 0, 4 11))"),
    ("pos within 5 of BOX(0 0, 9 9)", "pos inside BOX(-2 -2, 3 3)"),
    ("pos intersects BOX(0 0, 9 9)", "pos within 2 of POINT(4 4)"),
    ("pos beyond 4 of POINT(0 0)", "pos beyond 5 of POINT(0 0)"),
    ("pos beyond 1 of POINT(4 4)", "pos disjoint BOX(0 0, 9 9)"),
    ("pos disjoint BOX(0 0, 1 1)", "pos beyond 5 of BOX(0 0, 2 2)"),
    ("pos within 3 of POLYGON((0 0, 9 0, 0 9))", "pos within 3 of BOX(1 1, 2 2)"),
    ("pos exists", "pos within 3 of POINT(0 0)"),
]


@pytest.mark.parametrize(("wide", "narrow"), COVERS)
def test_what_covers(wide, narrow):
    assert parse(wide).covers(parse(narrow))
    assert not parse(narrow).covers(parse(wide))
    if "exists" not in wide:
        assert parse(narrow).conflicts(~parse(wide))


@pytest.mark.parametrize(
    ("f", "g"),
    [
        ("pos within 5 of POINT(0 0)", "pos within 1 of POINT(3.5 3.5)"),
        ("pos within 5 of POINT(0 0)", "pos beyond 4 of POINT(0 0)"),
        ("pos within 5 of POINT(0 0)", "pos within 5 of POINT(90 90)"),  # a large region is near both
        ("pos inside BOX(0 0, 9 9)", "pos within 1 of POINT(4 4)"),
    ],
)
def test_what_does_not_cover_nor_conflict(f, g):
    assert not parse(f).covers(parse(g))
    assert not parse(f).conflicts(parse(g))
