"""Tables of longitudes and latitudes: what they take and refuse, the 180th meridian, distances in metres, files."""

from __future__ import annotations

import numpy as np
import pytest

from contrada import Box, ForwardingTable, GeoText, Line, Point, Region, attr, parse
from contrada.broker.protocol import wire
from contrada.errors import ContradaError, CorruptFile, InvalidValue
from contrada.forwarding.codec.json import filter_from_json, filter_to_json
from contrada.forwarding.codec.msgpack import decode_filter, encode_filter, encode_notification
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.lonlat import (
    PLANE,
    SYSTEMS,
    filter_in_degrees,
    holds_in_degrees,
    notification_in_degrees,
)
from contrada.forwarding.table.options import TableOptions
from tests.naive import earth
from tests.naive import lonlat as naive

ROME = Point(12.4964, 41.9028)


def test_the_protocol_has_the_same_words():
    assert (wire.PLANE, wire.SYSTEMS) == (PLANE, SYSTEMS)


def table(*texts):
    made = ForwardingTable(crs="lonlat")
    for number, text in enumerate(texts):
        made.add(str(number), text)
    return made


@pytest.mark.parametrize(
    "text",
    [
        "pos within 500 m of POINT(12.5 41.9)",
        "pos within 3 km of BOX(0 0, 1 1)",
        "pos beyond 0 m of POLYGON((0 0, 1 0, 0 1, 0 0))",
        "pos within 1234.5 m of POINT(0 90)",
    ],
)
def test_units_are_part_of_the_language(text):
    made = parse(text)
    assert str(made) == text
    assert decode_filter(encode_filter(made)) == made
    assert filter_from_json(filter_to_json(made)) == made
    assert made == parse(text.replace("3 km", "3000 m"))


def test_units_in_expressions():
    assert attr("pos").within(3, "km", of=ROME) == parse("pos within 3000 m of POINT(12.4964 41.9028)")
    with pytest.raises(InvalidValue, match="not a unit of distance; there are m and km"):
        attr("pos").within(3, "miles", of=ROME)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("pos within 500 of POINT(1 2)", "give it a unit"),
        ("pos within 500 m of POINT(1 95)", "are latitude and longitude swapped"),
        ("pos inside BOX(0 0, 1 120)", "are latitude and longitude swapped"),
        ("pos inside BOX(400 0, 401 1)", "beyond 360 degrees"),
        ("pos within 10001 km of POINT(1 2)", "at most 10,000 km"),
    ],
)
def test_filters_that_are_refused(text, why):
    made = ForwardingTable(crs="lonlat")
    with pytest.raises(ContradaError, match=why):
        made.add("I", text)
    assert len(made) == 0


def test_a_unit_needs_degrees():
    with pytest.raises(InvalidValue, match="crs lonlat"):
        ForwardingTable().add("I", "pos within 500 m of POINT(1 2)")
    with pytest.raises(InvalidValue, match="crs is 'plane' or 'lonlat', not 'mars'"):
        ForwardingTable(crs="mars")


def test_values_that_are_refused():
    made = table("pos within 5 km of POINT(0 0)")
    for wrong in (Point(0, 91), Box(0, 0, 1, 91)):
        with pytest.raises(InvalidValue, match="swapped"):
            made.match({"pos": wrong})
    bodies = [encode_notification({"pos": place}) for place in (Point(0, 0.01), Point(0, 91))]
    answers, refused = made.match_bodies(bodies)
    assert [set(each) for each in answers] == [{"0"}, set()]
    assert list(refused) == [1]
    assert "swapped" in str(refused[1])


def test_the_180th_meridian_is_one():
    made = table(
        "pos inside BOX(170 0, 180 10)",
        "pos meets BOX(170 0, 180 10)",
        "pos meets BOX(-180 0, -170 10)",
        "pos disjoint BOX(-180 0, -170 10)",
        "pos = POINT(-180 5)",
        "x = 1 and pos intersects BOX(-180 0, -170 10)",
        "x = 1 and pos disjoint BOX(-180 0, -170 10)",
    )
    for longitude in (180, -180):
        assert made.match({"pos": Point(longitude, 5), "x": 1}) == {"1", "2", "4", "5"}
    assert made.match({"pos": Point(185, 5)}) == made.match({"pos": Point(-175, 5)}) == set()
    assert made.match({"pos": Point(-185, 5)}) == {"0", "3"}
    explained = str(made.explain({"pos": Point(180, 5)}, made.interface_filters("2")[0]))
    assert explained.startswith("matches")


NEAR_180 = ["BOX(170 0, 180 10)", "BOX(-180 0, -170 10)", "BOX(175 2, 190 8)", "BOX(-170 0, -160 10)"]
OF_TEXTS = [
    *(f'post matches {{"ice"}} within {box}' for box in NEAR_180),
    *(f'not post matches {{"ice"}} within {box}' for box in NEAR_180),
    'post matches {"ice"} within POLYGON((-180 0, -170 0, -180 10))',
    'not post matches {"ice"} within POLYGON((-180 0, -170 0, -180 10))',
    'post matches {"ice", "snow"}',
]


@pytest.mark.parametrize("count", [5, len(OF_TEXTS)])  # with and without what is refused
def test_a_text_on_the_180th_meridian_is_on_both_sides(count):
    texts = [text for text in OF_TEXTS if not text.startswith("not ")][:count] if count == 5 else OF_TEXTS
    made = table(*texts)
    filters = {number: parse(text) for number, text in enumerate(texts)}
    posts = [GeoText(["ice"], at=(x, y)) for x in (180, -180, 175, -175, 179, 185, -185) for y in (-1, 0, 5, 9, 10)]
    posts += [GeoText(["ice"], within=Box(x, 4, x + 4, 5)) for x in (-180, -184, 170, 176, 180)]
    found = made.match_many([{"post": each} for each in posts])
    for each, among_many in zip(posts, found, strict=True):
        value = notification_in_degrees({"post": each})["post"]
        wanted = {
            str(number)
            for number, filter in filters.items()
            if naive.holds(filter_in_degrees(filter).constraints[0], value)
        }
        assert made.match({"post": each}) == among_many == wanted
        assert wanted == {
            str(number) for number, filter in filters.items() if filter.matches({"post": each}, crs="lonlat")
        }
    with pytest.raises(InvalidValue, match="crosses the 180th meridian"):
        made.match({"post": GeoText("ice", within=Box(175, 0, 185, 1))})


@pytest.mark.parametrize(
    "path",
    [
        [(170, 0), (180, 0), (180, 10), (190, 10)],
        [(170, 0), (180, 0), (180, 10), (170, 10), (190, 20)],
        [(-170, 0), (-180, 0), (-180, 10), (-190, 10)],
        [(180, 0), (180, 10), (190, 10)],
        [(180, 10), (180, 0), (170, 0)],
    ],
)
def test_a_line_may_run_along_the_180th_meridian_and_cross_it(path):
    made = table(f"pos within 1 m of {Line(path).wkt}", f"pos intersects {Line(path).wkt}")
    beside = table("pos within 1 m of POINT(180 5)")
    for x in (180, -180):
        assert made.match({"pos": Point(x, 5)}) == {"0", "1"}
    assert made.match({"pos": Point(180, -5)}) == set()
    assert beside.match({"pos": Line(path)}) == {"0"}


@pytest.mark.parametrize("latitude", [90, -90])
def test_a_line_may_run_along_a_pole_across_the_180th_meridian(latitude):
    made = table(f"pos within 1 m of LINESTRING(179 {latitude}, 184 {latitude})")
    assert made.match({"pos": Point(0, latitude)}) == {"0"}


def test_shapes_are_moved_to_where_longitudes_are():
    made = table("pos inside BOX(190 0, 200 10)", 'post matches {"ipad"} within BOX(190 0, 200 10)')
    assert made.match({"pos": Point(-165, 5)}) == {"0"}
    assert made.match({"post": GeoText("ipad", at=(195, 5))}) == {"1"}
    assert (
        str(made.filter(made.interface_filters("0")[0]))
        == "pos inside POLYGON((-170 0, -160 0, -160 10, -170 10, -170 0))"
    )
    with pytest.raises(InvalidValue, match="more than once"):
        made.add("I", "pos inside BOX(-200 0, 200 1)")


def test_a_box_goes_the_short_way():
    assert parse("pos inside BOX(170 0, -170 10)", "lonlat") == parse("pos inside BOX(170 0, 190 10)")
    with pytest.raises(ContradaError, match="x1 < x2"):
        parse("pos inside BOX(170 0, -170 10)")


def positions(rng, count):
    """Spread over the Earth, some near the poles and some at the 180th meridian."""
    for number in range(count):
        lon, lat = float(rng.uniform(-180, 180)), float(rng.uniform(-90, 90))
        if number % 5 == 0:
            lat = float(rng.choice((-1, 1))) * float(rng.uniform(89.5, 90))
        if number % 7 == 0:
            lon = float(rng.choice((-1, 1))) * float(rng.uniform(179.9, 180))
        yield lon, lat


def test_answers_are_those_of_geographiclib(tmp_path):
    rng = np.random.default_rng(4)
    asked = [(Point(*each), float(10 ** rng.uniform(3, 6.5))) for each in positions(rng, 120)]
    made = ForwardingTable(crs="lonlat")
    made.add_many((f"{n}", attr("pos").within(r, "m", of=at)) for n, (at, r) in enumerate(asked))
    made.add_many((f"far {n}", attr("pos").beyond(r, "m", of=at)) for n, (at, r) in enumerate(asked))
    made.save(tmp_path / "table")
    loaded = ForwardingTable.load(tmp_path / "table")
    assert loaded.crs == "lonlat"
    for place in positions(rng, 40):
        near = {n for n, (at, r) in enumerate(asked) if earth.of_positions(place, tuple(at)) <= r}
        wanted = {str(n) if n in near else f"far {n}" for n in range(len(asked))}
        for each in (made, loaded):
            assert each.match({"pos": Point(*place)}) == wanted
    made._check()
    loaded._check()


def test_regions_as_values():
    made = table(
        "pos within 100 km of POINT(0 0)",
        "pos beyond 100 km of POINT(0 0)",
        "x = 1 and pos within 1 m of BOX(0 0, 1 1)",
    )
    assert made.match({"pos": Box(0.5, 0.5, 2, 2)}) == {"0"}
    assert made.match({"pos": Box(1, 1, 2, 2)}) == {"1"}
    assert made.match({"pos": Box(-5, -5, 5, 5), "x": 1}) == {"0", "2"}
    assert "the point is 156899.57 m away" in str(made.explain({"pos": Point(1, 1)}, made.interface_filters("0")[0]))


def test_covers_and_conflicts_on_the_earth():
    near = parse("pos within 5 km of POINT(0 0)")
    assert near.covers(parse("pos within 4 km of POINT(0 0)"))
    assert near.covers(parse("pos within 1 km of POINT(0.03 0)"))
    assert not near.covers(parse("pos within 2 km of POINT(0.03 0)"))
    assert near.conflicts(parse("pos beyond 5 km of POINT(0 0)"))
    assert parse("pos within 1 km of BOX(0 0, 1 1)").covers(parse("pos inside BOX(0.1 0.1, 0.2 0.2)"))
    assert not parse("pos within 5 of POINT(0 0)").covers(near)  # of the plane


def test_what_is_in_degrees_holds_as_the_table_says():
    meets = parse("pos disjoint BOX(-180 0, -170 10)").constraints[0]
    taken = notification_in_degrees({"pos": Point(-180, 5), "x": 1})
    assert taken["pos"] == Point(180, 5)
    assert not holds_in_degrees(meets, taken["pos"])
    assert holds_in_degrees(meets, Point(179, 5))
    assert Distance(3, ROME, "km").length == 3000


def test_regions_that_cross_are_cut_into_parts():
    made = table("pos inside BOX(170 0, -170 10)", "pos within 1 km of BOX(170 0, 190 10)")
    assert made.match({"pos": Point(175, 5)}) == made.match({"pos": Point(-175, 5)}) == {"0", "1"}
    assert made.match({"pos": Point(165, 5)}) == set()
    assert made.match({"pos": Point(-169.995, 5)}) == {"1"}
    first = made.filter(made.interface_filters("0")[0])
    assert [part.bounds for part in first.constraints[0].value.parts] == [(-180, 0, -170, 10), (170, 0, 180, 10)]
    crossing = Region([(179, 1), (181, 1), (181, 2)])
    assert made.match({"pos": crossing}) == {"1"}  # it touches the cut, so it is covered by the parts, not inside them
    assert table("pos covered-by BOX(170 0, 190 10)").match({"pos": crossing}) == {"0"}


def test_regions_with_holes_are_near_on_the_earth():
    ring = "POLYGON((0 0, 9 0, 9 9, 0 9, 0 0), (3 3, 3 6, 6 6, 6 3, 3 3))"
    made = table(f"pos within 100 km of {ring}", f"pos within 200 km of {ring}")
    assert made.match({"pos": Point(4.5, 4.5)}) == {"1"}
    assert made.match({"pos": Point(1, 1)}) == made.match({"pos": Point(-0.5, 4)}) == {"0", "1"}
    assert made.match({"pos": Box(4.4, 4.4, 4.6, 4.6)}) == {"1"}
    assert made.match({"pos": Region.of(ring)}) == {"0", "1"}


def holding(text, *values):
    """Whether a filter's table matches each value, which all its ways of matching say alike."""
    one = ForwardingTable(crs="lonlat")
    (id,) = one.add(0, text)
    packed = ForwardingTable.packed(
        [(0, each) for each in parse(text, crs="lonlat").filters], TableOptions(crs="lonlat")
    )
    notifications = [{"a": value} for value in values]
    answers = [[bool(way.match(each)) for each in notifications] for way in (one, packed)]
    answers.append([bool(each) for each in one.match_many(notifications)])
    answers.append([place in set(one.match_pairs(notifications)[0].tolist()) for place in range(len(values))])
    answers.append([one.explain(each, id).matches for each in notifications])
    assert all(each == answers[0] for each in answers), answers
    return answers[0]


def test_a_point_on_the_180th_meridian_is_asked_for_on_both_sides():
    west, east, away = Box(170, 0, 180, 10), Box(-180, 0, -170, 10), Box(-180, 2, -170, 10)
    for at in ("POINT(180 1)", "POINT(-180 1)"):
        assert holding(f"a intersects {at}", west, east, away, Point(180, 1), Point(-180, 1)) == [1, 1, 0, 1, 1]
        assert holding(f"a disjoint {at}", west, east, away, Point(180, 1), Point(-180, 1)) == [0, 0, 1, 0, 0]
        assert holding(f"a meets {at}", west, east, away, Point(180, 1)) == [1, 1, 0, 0]
        assert holding(f"a contains {at}", west, east, away, Box(170, 0, 190, 10)) == [0, 0, 0, 0]
        lines = [[(180, -3), (180, 7.7)], [(-180, -3), (-180, 7.7)], [(170, 0), (190, 2)], [(-180, 1), (-170, 7)]]
        assert holding(f"a intersects {at}", *map(Line, lines)) == [1, 1, 1, 1]


def test_what_lies_on_an_edge_is_at_no_distance():
    places = [Point(3 * k, k) for k in range(1, 11)]
    assert holding("a within 0 m of LINESTRING(-3 -1, 33 11)", *places, Point(3, 1.0000001)) == [1] * 10 + [0]


def test_a_pole_is_one_position():
    shapes = Point(-180, 90), Box(20, 80, 30, 90), Line([(0, 80), (0, 90)]), Point(10, -90), Point(10, 89.99999)
    assert holding("a within 0 m of POINT(10 90)", *shapes) == [1, 1, 1, 0, 0]


def test_boxes_around_the_earth():
    assert holding("a inside BOX(50 10, 40 20)", *(Point(x, 15) for x in (45, 55, -179, 39, 41))) == [0, 1, 1, 1, 0]
    assert holding("a inside BOX(0 0, 360 10)", Point(0, 5), Point(45, 5), Point(-45, 5), Point(1, 11)) == [1, 1, 1, 0]


def test_a_cut_opens_holes_that_touch_their_shell():
    shell = [(178, 1), (180.5, 1), (180.5, 2), (182, 2), (182, 4), (178, 4)]
    lake = Region(shell, holes=[[(179.5, 2), (180.5, 2), (180.5, 3), (179.5, 3)]])
    one = ForwardingTable(crs="lonlat")
    one.add("a", attr("a").inside(lake))
    places = (179, 1.5), (-179.75, 2.5), (179.75, 2.5), (-179, 2.5), (-179.75, 1.5), (-179, 1.5)
    assert [bool(one.match({"a": Point(*place)})) for place in places] == [1, 0, 0, 1, 1, 0]


def test_explain_tells_the_side_that_decides():
    one = ForwardingTable(crs="lonlat")
    (id,) = one.add("a", "a meets BOX(-180 0, -170 10)")
    (verdict,) = one.explain({"a": Point(180, 5)}, id).verdicts
    assert verdict.held
    assert "is meets" in verdict.why


def test_an_unknown_crs_of_a_text_is_refused():
    with pytest.raises(InvalidValue, match="mars"):
        parse("a inside BOX(0 0, 1 1)", crs="mars")


def test_a_forged_crs_is_refused(tmp_path):
    from contrada.forwarding.state.file import KIND, VERSION
    from contrada.spatial.storage.arrays_file import load_arrays, save_arrays

    table("pos exists").save(tmp_path / "table")
    arrays, meta = load_arrays(tmp_path / "table", kind=KIND, version=VERSION)
    save_arrays(tmp_path / "forged", kind=KIND, version=VERSION, arrays=arrays, meta={**meta, "crs": "mars"})
    with pytest.raises(CorruptFile):
        ForwardingTable.load(tmp_path / "forged")


def test_counters_of_a_small_loaded_table_are_no_stamps_of_interfaces(tmp_path):
    texts = [
        "not a crosses LINESTRING(-182 -1, -180 -4, -178 2)",  # two filters: interfaces have other numbers then
        "a within 0 of LINESTRING(-185 3, -180 -3) and b > 2",
        "a beyond 0 m of LINESTRING(178 -1, 178 -3, 185 2)",
        "a beyond 0 of POINT(178 3)",
        "a within 0 of LINESTRING(-182 4, -180 0, -180 -1)",
        "a meets POINT(-170 0)",
        "a disjoint or inside or covered-by POLYGON((-180 4, -175 1, -170 -4, -170 4)) and b > 2",
        "a within 0 of LINESTRING(178 -2, 180 0)",
        "a disjoint or equals POLYGON((182 3, 185 1, 190 -1))",
        "a beyond 1 km of POLYGON((-190 3, -185 -3, -175 -2, -182 0, -175 -1))",
    ]
    pairs = [(str(k), each) for k, text in enumerate(texts) for each in parse(text, crs="lonlat").filters]
    made = ForwardingTable.packed(pairs, TableOptions(crs="lonlat"))
    made.save(tmp_path / "table")
    loaded = ForwardingTable.load(tmp_path / "table")
    notification = {"a": Line("LINESTRING(-182 -3, -180 2, -180 3)"), "b": 3}
    assert loaded.match(notification) == made.match(notification) == set("0134678")
