"""What users hand in by mistake, at the borders of filters, the table and the codec."""

from __future__ import annotations

import copy
import random
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgpack
import numpy as np
import pytest
import shapely

from contrada.errors import CodecError, ContradaError, CorruptFile, InvalidValue, NotFound, UnwritableFile
from contrada.forwarding.codec.msgpack import decode_filter, decode_notification, encode_notification
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.constraint import Constraint
from contrada.forwarding.language.filter import Filter, Predicate
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.segments.index_directory import Row, write_index
from contrada.forwarding.segments.segmented_table import SegmentedTable
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.geometry.region import Point, Region


def test_a_time_in_the_gap_of_summer_time_is_its_instant():
    instant = datetime(2021, 3, 28, 1, 30, tzinfo=UTC)
    notification = {"x": datetime(2021, 3, 28, 2, 30, tzinfo=ZoneInfo("Europe/Rome"))}
    table = ForwardingTable()
    for constraint in (attr("x") == instant, attr("x").in_([instant])):
        f = Filter(constraint)
        assert f.matches(notification)
        (id,) = table.add(str(f), f)
        assert id in table.match_filters(notification)


@pytest.mark.parametrize("wrong", [None, [("x", 1)], 3])
def test_a_notification_that_is_no_mapping(wrong):
    with pytest.raises(InvalidValue, match="mapping"):
        Filter(attr("x") == 1).matches(wrong)


def test_many_notifications_come_in_any_iterable():
    table = ForwardingTable()
    (id,) = table.add("I", "x = 1")
    for given in ([{"x": 1}], ({"x": 1},), deque([{"x": 1}]), (n for n in [{"x": 1}])):
        assert table.match_many(given) == [{"I"}]
    assert table.match_many_filters(iter([{"x": 1}])) == [[id]]
    for wrong in ({"x": 1}, None, 3):
        with pytest.raises(InvalidValue, match="list of notifications"):
            table.match_many(wrong)


def test_ids_are_integers_of_any_make_but_not_bools():
    table = ForwardingTable()
    (id,) = table.add("I", "x = 1")
    for wrong in (True, "1", None, -1, 1.0):
        with pytest.raises(KeyError):
            table.remove(wrong)
    table.remove(np.int64(id))
    assert len(table) == 0


@pytest.mark.parametrize(
    "options", [{"geotext_index": "nope"}, {"geotext_index": None}, {"discretization": "x"}, {"discretization": None}]
)
def test_options_are_checked_at_once(options):
    with pytest.raises(InvalidValue):
        ForwardingTable(**options)


def test_buffers_of_wider_items_are_malformed():
    wide = memoryview(bytes(16)).cast("I")
    for decode in (decode_notification, decode_filter):
        with pytest.raises(CodecError):
            decode(wide)


def test_a_table_is_not_copied():
    with pytest.raises(InvalidValue, match="save it"):
        copy.copy(ForwardingTable())


_INVALID = (float("nan"), float("inf"), 2**63, -(2**63) - 1, "\ud800", datetime(2020, 1, 1), b"x", [None], object())


@pytest.mark.parametrize("value", _INVALID, ids=lambda value: type(value).__name__)
def test_an_invalid_value_is_refused_whether_or_not_a_filter_speaks_of_it(value):
    table = ForwardingTable()
    (id,) = table.add("I", "x = 1")
    for name in ("x", "nobody asks"):
        for ask in (table.match, table.match_filters, parse("x = 1").matches, parse("x = 1 or y = 2").matches):
            with pytest.raises(InvalidValue, match=repr(name)):
                ask({"x": 1, name: value})
        with pytest.raises(InvalidValue, match=repr(name)):
            table.match_many([{"x": 1}, {name: value}])
        with pytest.raises(InvalidValue, match=repr(name)):
            table.explain({name: value}, id)


@pytest.mark.parametrize("name", ["", "x" * 256, "\ud800", 3, None, b"x"])
def test_an_invalid_name_is_refused(name):
    table = ForwardingTable()
    table.add("I", "x = 1")
    for ask in (table.match, Filter(attr("x") == 1).matches):
        with pytest.raises(InvalidValue, match="name"):
            ask({"x": 1, name: 1})


class _Liar(Mapping):
    """Says that it has one attribute."""

    def __len__(self):
        return 1

    def __iter__(self):
        return (f"k{i}" for i in range(500))

    def __getitem__(self, name):
        return 1


def test_a_mapping_that_lies_about_its_length():
    table = ForwardingTable()
    table.add_many([(i, attr(f"k{i}") == 1) for i in range(500)])
    assert table.match(_Liar()) == set(range(500))


def test_unknown_ids_and_interfaces_are_the_packages_own_errors():
    table = ForwardingTable()
    (id,) = table.add("I", "x = 1")
    table.remove(id)
    for ask in (table.remove, table.filter, lambda id: table.explain({}, id)):
        for wrong in (id, "1", None, int, np.array([1]), 10**5000):
            with pytest.raises(NotFound, match="no filter of id"):
                ask(wrong)
    with pytest.raises(NotFound, match="'nobody'"):
        table.remove_interface("nobody")
    for wrong in ([], {}, np.zeros(2)):
        with pytest.raises(InvalidValue, match="hashable"):
            table.remove_interface(wrong)
        with pytest.raises(InvalidValue, match="hashable"):
            table.add(wrong, "x = 1")


@pytest.mark.parametrize(
    "wrong", [None, 3, "ab", {"I": "x = 1"}, np.array(3), [None], ["ab"], [("I",)], [("I", "x = 1", 2)], [("I", None)]]
)
def test_malformed_pairs(wrong):
    with pytest.raises(InvalidValue):
        ForwardingTable().add_many(wrong)


def test_nothing_is_added_when_one_filter_is_refused():
    table = ForwardingTable()
    (id,) = table.add("kept", "x = 0")
    pairs = [(f"I{i % 3}", f"x = {i}") for i in range(1000)]
    for last in (("I", "x ="), ("I", 'post similar {"a"} at POINT(1 2) alpha 0.4 tau 0.7'), (["I"], "x = 1")):
        with pytest.raises(ContradaError):
            table.add_many([*pairs, last])
        assert table.match_filters({"x": 0}) == [id]
        assert table.stats().interfaces == len(table) == 1
        table._check()


@pytest.mark.parametrize("options", [{"simplify": None}, {"simplify": 1}, {"road_network": "roads"}])
def test_other_options_are_checked_too(options):
    with pytest.raises(InvalidValue):
        ForwardingTable(**options)


def test_files_are_named_as_the_user_named_them(tmp_path):
    table = ForwardingTable()
    missing = tmp_path / "no such folder" / "table"
    with pytest.raises(UnwritableFile, match=r"no such folder.table: cannot be written"):
        table.save(missing)
    with pytest.raises(UnwritableFile):
        table.save(tmp_path)
    assert list(tmp_path.iterdir()) == []
    for wrong in (None, 3, "", "a\0b", "\ud800"):
        for ask in (table.save, ForwardingTable.load):
            with pytest.raises(InvalidValue, match="path"):
                ask(wrong)


def test_a_table_is_saved_over_the_file_that_it_is_mapped_from(tmp_path):
    table = ForwardingTable()
    table.add_many([(f"I{i}", f"x = {i} and s contains 'k{i}'".replace("'", '"')) for i in range(300)])
    table.save(tmp_path / "table")
    mapped = ForwardingTable.load(tmp_path / "table")
    mapped.add("new", "x = 7")
    mapped.save(tmp_path / "table")
    again = ForwardingTable.load(tmp_path / "table")
    for each in (mapped, again):
        assert each.match({"x": 7, "s": "ak7"}) == {"I7", "new"}
        each._check()


def test_every_damaged_byte_is_noticed(tmp_path):
    table = ForwardingTable()
    table.add_many([("I", 'x = 1 and area inside BOX(0 0, 1 1) or post matches {"a"}'), ("J", 's prefix "é"')])
    table.save(tmp_path / "table")
    whole = (tmp_path / "table").read_bytes()
    rng = random.Random(4)
    for _ in range(200):
        at = rng.randrange(len(whole))
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.randrange(8)
        if rng.random() < 0.3:
            del damaged[at:]
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            ForwardingTable.load(tmp_path / "damaged")
        except CorruptFile:
            continue
        # Only the padding between arrays is nobody's.
        assert whole[at] == 0


def test_an_in_of_a_hundred_thousand_values_takes_linear_time():
    table = ForwardingTable()
    ids = [table.add("I", attr("x").in_(range(i, 100_000 + i)))[0] for i in range(2)]
    (plain,) = table.add("I", "x = 4 and y = 1")
    assert table.match_filters({"x": 99_999, "y": 1}) == ids
    table.remove(ids[0])
    assert table.match_filters({"x": 4, "y": 1}) == sorted([ids[1], plain])


def test_thousands_of_constraints_on_one_name_take_no_cubic_time():
    table = ForwardingTable()
    table.add("I", Filter([Constraint("x", "!=", i) for i in range(3000)]))
    assert table.match({"x": 3000}) == {"I"}
    assert table.match({"x": 2999}) == set()


def test_ten_thousand_alternatives():
    table = ForwardingTable()
    ids = table.add("I", " or ".join(f"x = {i}" for i in range(10_000)))
    assert table.match_filters({"x": 9_999}) == [ids[-1]]


@pytest.mark.parametrize("wrong", [None, 1, 1.5, np.array(3), [[]], [None]], ids=repr)
def test_what_filters_and_predicates_are_made_of(wrong):
    for make in (Filter, Predicate):
        with pytest.raises(InvalidValue):
            make(wrong)


class _Field:
    """Somebody else's polygon."""

    __geo_interface__ = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 3], [0, 0]]]}  # noqa: RUF012  # read, never changed


_SHAPES = [
    (shapely.Polygon([(0, 0), (4, 0), (4, 3)]), Region([(0, 0), (4, 0), (4, 3)])),
    (_Field(), Region([(0, 0), (4, 0), (4, 3)])),
    (_Field.__geo_interface__, Region([(0, 0), (4, 0), (4, 3)])),
    ({"type": "Feature", "properties": {}, "geometry": _Field.__geo_interface__}, Region([(0, 0), (4, 0), (4, 3)])),
    (shapely.Point(3, 1), Point(3, 1)),
    ({"type": "Point", "coordinates": [3, 1]}, Point(3, 1)),
]


@pytest.mark.parametrize(("shape", "own"), _SHAPES)
@pytest.mark.parametrize("spoken_of", [True, False])
def test_shapes_of_other_libraries_are_matched_as_they_are_published(shape, own, spoken_of, tmp_path):
    text = "area intersects BOX(1 0, 2 2)" if isinstance(own, Region) else "area inside BOX(2 0, 9 9)"
    wanted = parse(f"{text} and n = 1" if spoken_of else "n = 1")
    given, ours = {"n": 1, "area": shape}, {"n": 1, "area": own}
    assert encode_notification(given) == encode_notification(ours)
    assert wanted.matches(given)
    table = ForwardingTable()
    (id,) = table.add("I", wanted)
    write_index(tmp_path, [Row("s", "J", wanted)])
    segmented = SegmentedTable.open(tmp_path)
    (added,) = segmented.add("I", wanted)
    for each, interfaces in ((table, {"I"}), (segmented, {"I", "J"})):
        assert each.match(given) == interfaces
        assert each.match_many([given, ours, {"n": 2, "area": shape}]) == [interfaces, interfaces, set()]
    assert table.match_filters(given) == [id]
    assert table.match_pairs([given])[1].tolist() == [id]
    assert str(table.explain(given, id)) == str(table.explain(ours, id))
    assert str(segmented.explain(given, added)) == str(table.explain(ours, id))
    assert segmented.match_subscriptions(given) == [("J", "s")]
    assert len(segmented.match_filters(given)) == 2


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (shapely.MultiPoint([(0, 0), (1, 1)]), "a region is a polygon, not a MultiPoint"),
        ({"a": b"x"}, "bytes is not a type of value"),
        ({1: 2}, "a nested attribute is a string"),
        ([1, True], "strings and numbers, not a bool"),
    ],
)
@pytest.mark.parametrize("spoken_of", [True, False])
def test_what_is_no_shape_is_refused_by_publishing_and_matching_alike(wrong, reason, spoken_of):
    wanted = parse("area exists" if spoken_of else "n = 1")
    table = ForwardingTable()
    (id,) = table.add("I", wanted)
    for ask in (encode_notification, wanted.matches, table.match, lambda n: table.explain(n, id)):
        with pytest.raises(InvalidValue, match=f"^attribute 'area': .*{reason}"):
            ask({"n": 1, "area": wrong})


def test_a_map_on_the_wire_is_no_shape():
    body = msgpack.packb({"area": {"type": "Point", "coordinates": [3, 1]}})
    with pytest.raises(CodecError, match="is not a value"):
        decode_notification(body)
    with pytest.raises(InvalidValue, match=r"shapely\.geometry\.point\.Point is not a type of value"):
        Constraint("area", "inside", Region([(0, 0), (4, 0), (4, 3)])).holds(shapely.Point(1, 1))
