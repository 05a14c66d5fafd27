"""A point on the right side: `storm contains POINT(1 2)`, and what the other relations to it are."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import Box, ForwardingTable, Line, Point, Region, attr, parse
from contrada.errors import FilterSyntaxError, InvalidValue
from tests.forwarding.strategies import points, regions, values
from tests.naive.constraints import shape

P = Point(1, 2)


@given(st.lists(points, min_size=1, max_size=5), st.lists(regions | points | values, min_size=1, max_size=6))
def test_each_relation_is_what_shapely_says(wanted: list[Point], given: list[object]) -> None:
    table = ForwardingTable[tuple[str, int]]()
    words = ("contains", "meets", "intersects", "covers", "disjoint", "equals")
    for number, point in enumerate(wanted):
        for word in words:
            table.add((word, number), parse(f"a {word} POINT({point.x} {point.y})"))
            table.add((f"not {word}", number), parse(f"not a {word} POINT({point.x} {point.y})"))
    for value in given:
        found = table.match({"a": value})
        for number, point in enumerate(wanted):
            mine = {word for word, each in found if each == number}
            if isinstance(value, Line):
                on = bool(value.to_shapely().intersects(point.to_shapely()))
                assert ("intersects" in mine, "disjoint" in mine) == (on, not on)
                continue
            if not isinstance(value, Point | Region):
                assert not mine
                continue
            a, b = shape(value), shape(point)
            touching, same = bool(a.intersects(b)), value == point
            inside = bool(a.contains(b)) and not same
            holds = {"contains": inside, "meets": touching and not inside and not same, "intersects": touching}
            holds |= {"covers": touching, "disjoint": not touching, "equals": same}
            assert mine == {word if holds[word] else f"not {word}" for word in words}
    table._check()


def test_in_words_of_other_operators() -> None:
    assert parse("a intersects POINT(1 2)") == attr("a").covers(P) == attr("a").within(0, of=P)
    assert parse("a equals POINT(1 2)") == (attr("a") == P)
    assert attr("a").contains({"type": "Point", "coordinates": [1, 2]}) == parse("a contains POINT(1 2)")
    assert parse("a contains or meets POINT(1 2)") == attr("a").contains(P) | attr("a").meets(P)
    for wrong in ("inside", "overlaps", "covered-by"):
        with pytest.raises(FilterSyntaxError, match="nothing else"):
            parse(f"a {wrong} POINT(1 2)")
    with pytest.raises(InvalidValue, match="one by one"):
        attr("a").relates("contains", "meets", to=P)


def test_the_first_point_of_a_process_is_one() -> None:
    program = "from contrada import Point, attr; print(attr('a').contains(Point(1, 2)))"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "a contains POINT(1 2)\n"


def test_holes_and_parts() -> None:
    lake = Region([(0, 0), (10, 0), (10, 10), (0, 10)], holes=[[(2, 2), (8, 2), (8, 8), (2, 8)]])
    table = ForwardingTable[str]()
    for x in (1, 2, 5):
        table.add(f"in {x}", f"a contains POINT({x} 5)")
        table.add(f"on {x}", f"a meets POINT({x} 5)")
    assert table.match({"a": lake}) == {"in 1", "on 2"}
    assert parse("a contains POINT(1 5)").matches({"a": lake})
    assert not parse("a contains POINT(5 5)").matches({"a": lake})


def test_covers_and_conflicts() -> None:
    over = parse("a contains POINT(1 2)")
    assert parse("a intersects POINT(1 2)").covers(over)
    assert parse("a within 5 of POINT(2 2)").covers(over)
    assert parse("a intersects BOX(0 0, 9 9)").covers(over)
    assert over.covers(over)
    assert not over.covers(parse("a meets POINT(1 2)"))
    assert over.conflicts(parse("a disjoint POINT(1 2)"))
    assert over.conflicts(parse("a = POINT(1 2)"))


def test_many_houses_are_saved_and_loaded(tmp_path) -> None:
    table = ForwardingTable[str]()
    table.add_many([(f"{x},{y}", f"storm contains POINT({x} {y})") for x in range(20) for y in range(20)])
    table.save(tmp_path / "table")
    loaded = ForwardingTable.load(tmp_path / "table")
    loaded._check()
    expected = {f"{x},{y}" for x in (4, 5) for y in (8, 9, 10)}
    assert loaded.match({"storm": Box(3, 7, 6, 11)}) == table.match({"storm": Box(3, 7, 6, 11)}) == expected
