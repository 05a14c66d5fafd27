"""Indexes in segments against their twin: built, sharded, loaded together, changed, damaged, built again."""

from __future__ import annotations

import json
import os
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.errors import ContradaError, CorruptFile, InvalidValue, NotFound
from contrada.forwarding.language.filter import as_filters
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.segments.gate import Gate, anchor_of
from contrada.forwarding.segments.index_directory import segment_kind, write_index
from contrada.forwarding.segments.manifest import MANIFEST, read_manifest
from contrada.forwarding.segments.segmented_table import SegmentedTable
from contrada.forwarding.table.options import TableOptions
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box
from contrada.spatial.textual.geotext import GeoText
from tests.forwarding.strategies import filters, notifications, predicates
from tests.naive.segments import NaiveSubscriptions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

interfaces = st.sampled_from(("I1", "I2", "é"))
IDS = (*"abcdefgh", "é", "\U0001f5fa", "a b", "Z" * 200)
rows = st.lists(st.tuples(interfaces, predicates()), max_size=8).flatmap(
    lambda some: st.permutations(IDS).map(lambda ids: [(id, *each) for id, each in zip(ids, some, strict=False)])
)

EVENTS: list[dict[str, Any]] = [
    {"stock": "MTK", "price": 50},
    {"stock": "DYS"},
    {"area": Box(1, 1, 2, 2), "wind": 120},
    {"area": Point(50, 50)},
    {"area": "nowhere"},
    {"post": GeoText("ipad on sale", at=(1, 1))},
    {"post": GeoText("ipad on sale", at=(99, 1))},
    {},
]
SUBSCRIPTIONS = [
    ("s1", "I1", 'stock = "MTK" and price < 100 or stock = "DYS"'),
    ("s2", "I2", "area overlaps POLYGON((0 0, 1.5 0, 1.5 5, 0 5)) and wind > 90"),
    ("s3", "I1", "area disjoint BOX(0 0, 10 10)"),
    ("s4", "I3", 'post matches {"ipad"} within BOX(0 0, 5 5)'),
    ("s5", "I3", 'post matches {"ipad"}'),
    ("s6", "I2", 'area inside BOX(0 0, 60 60) or post matches {"sale"} within BOX(0 0, 5 5)'),
    ("s7", "I2", "area intersects BOX(40 40, 60 60)"),
]

pytestmark = pytest.mark.usefixtures("every_matching")


def compare(table: SegmentedTable, naive: NaiveSubscriptions, batch: list[Any]) -> None:
    expected = [naive.match_subscriptions(each) for each in batch]
    assert table.match_many_subscriptions(batch) == expected
    assert table.match_many(batch) == [{interface for interface, _ in pairs} for pairs in expected]
    for each, pairs in zip(batch, expected, strict=True):
        assert table.match(each) == {interface for interface, _ in pairs}
        found = table.match_filters(each)
        assert found == sorted(found)
        assert {(table.interface(id), table.subscription(id)) for id in found} == set(pairs)
    assert len(table) == len(naive) == table.stats().filters


@settings(max_examples=40)
@given(rows, rows, st.lists(notifications(), min_size=1, max_size=6), st.integers(1, 4), st.data())
def test_as_a_table_filled_one_by_one(first: Any, second: Any, batch: Any, size: int, data: Any) -> None:
    naive = NaiveSubscriptions(first)
    with TemporaryDirectory() as directory:
        write_index(directory, first, TableOptions("scan"), segment_filters=size)
        table = SegmentedTable.open(directory)
        compare(table, naive, batch)
        for id, interface, expression in second:
            if id in naive.rows:
                with pytest.raises(InvalidValue, match="already"):
                    table.add(interface, expression, id)
            else:
                assert len(table.add(interface, expression, id)) == len(as_filters(expression))
                naive.add(id, interface, expression)
        compare(table, naive, batch)
        for id in data.draw(st.sets(st.sampled_from(IDS), max_size=6)):
            if id in naive.rows:
                table.remove_subscription(id)
                naive.remove(id)
            else:
                with pytest.raises(NotFound):
                    table.remove_subscription(id)
        table._check()
        compare(table, naive, batch)
        for interface in ("I1", "nobody"):
            if any(owner == interface for owner, _ in naive.rows.values()):
                table.remove_interface(interface)
                naive.remove_interface(interface)
            else:
                with pytest.raises(NotFound):
                    table.remove_interface(interface)
        table._check()
        compare(table, naive, batch)
        again = SegmentedTable.open(directory)
        compare(again, NaiveSubscriptions(first), batch)


@given(filters(), notifications())
def test_a_gate_admits_whatever_matches(f: Any, notification: Any) -> None:
    gate = Gate.around([anchor_of(f)])
    assert gate.admits(notification) or not f.matches(notification)
    assert Gate.from_plain(json.loads(json.dumps(gate.to_plain()))) == gate


def test_segments_are_by_place_and_gates_turn_away(tmp_path: Path) -> None:
    manifest = write_index(tmp_path, SUBSCRIPTIONS)
    gates = {each.kind: each.gate.attributes for each in manifest.segments}
    assert gates["region"] == {"area": (0.0, 0.0, 60.0, 60.0)}
    assert gates["geotext"] == {"post": (0.0, 0.0, 5.0, 5.0)}
    assert gates["hash"] is not None
    assert gates["hash"]["area"] is None  # disjoint holds far away
    assert manifest.subscriptions == 7
    assert manifest.filters == 9
    assert manifest == read_manifest(tmp_path)
    twin = NaiveSubscriptions((id, interface, parse(text)) for id, interface, text in SUBSCRIPTIONS)
    compare(SegmentedTable.open(tmp_path, verify=True), twin, EVENTS)


def test_shards_share_an_index_and_may_be_loaded_together(tmp_path: Path) -> None:
    manifest = write_index(tmp_path, SUBSCRIPTIONS, segment_filters=1)
    assert len(manifest.segments) == 7
    shards = [SegmentedTable.open(tmp_path, (k, 3)) for k in range(3)]
    assert [len(shard.segments) for shard in shards] == [3, 2, 2]
    whole = SegmentedTable.open(tmp_path)
    united = [set[Any]().union(*found) for found in zip(*(s.match_many(EVENTS) for s in shards), strict=True)]
    assert united == whole.match_many(EVENTS)
    for k in (1, 2):
        shards[0].load(tmp_path, (k, 3))
    assert shards[0].match_many_subscriptions(EVENTS) == whole.match_many_subscriptions(EVENTS)
    with pytest.raises(InvalidValue, match="shard 3 of 3"):
        SegmentedTable.open(tmp_path, (3, 3))


def test_filters_are_explained_and_removed_by_their_ids(tmp_path: Path) -> None:
    write_index(tmp_path, SUBSCRIPTIONS)
    table = SegmentedTable.open(tmp_path)
    (added,) = table.add(7, "price < 60")
    assert table.subscription(added) is None
    assert table.match(EVENTS[0]) == {"I1", 7}
    found = table.match_filters(EVENTS[0])
    assert added in found
    (other,) = set(found) - {added}
    assert other < 0
    assert table.subscription(other) == "s1"
    assert table.filter(other) == parse('stock = "MTK" and price < 100')
    assert str(table.explain(EVENTS[0], other)).startswith("matches the filter of 'I1'")
    assert table.filters_of("s1")[0] == other
    table.remove(other)
    for question in (table.remove, table.filter, table.interface, table.subscription):
        with pytest.raises(NotFound):
            question(other)
    for nowhere in (0, -(1 << 31), -(99 << 32 | 1)):
        with pytest.raises(NotFound):
            table.remove(nowhere)
    assert len(table.filters_of("s1")) == 1
    assert table.match(EVENTS[0]) == {7}
    table._check()


@pytest.mark.parametrize(
    "mistake",
    [
        lambda table: table.remove("s1"),
        lambda table: table.filter(None),
        lambda table: table.explain({}, -5 << 32),
        lambda table: table.interface(1.5),
        lambda table: table.subscription(-(1 << 31)),
        lambda table: table.remove_subscription("nobody"),
        lambda table: table.remove_subscription("\ud800"),
        lambda table: table.filters_of(7),
        lambda table: table.remove_interface("nobody"),
        lambda table: table.remove_interface([]),
        lambda table: table.add("I1", "x = 1", subscription="s1"),
        lambda table: table.add([], "x = 1"),
        lambda table: table.add_many([3]),
        lambda table: table.match(3),
        lambda table: table.match_many(3),
        lambda table: table.match_many_filters("x"),
        lambda table: table.match_subscriptions({"x": object()}),
        lambda table: table.load("nowhere"),
    ],
)
def test_every_mistake_is_a_contrada_error(tmp_path: Path, mistake: Callable[[Any], object]) -> None:
    write_index(tmp_path, SUBSCRIPTIONS)
    table = SegmentedTable.open(tmp_path)
    with pytest.raises(ContradaError):
        mistake(table)
    table._check()


def test_an_empty_index(tmp_path: Path) -> None:
    assert write_index(tmp_path / "new", []).segments == ()
    table = SegmentedTable.open(tmp_path / "new")
    assert len(table) == 0
    assert table.match_many_subscriptions(EVENTS) == [[] for _ in EVENTS]
    assert table.match_many([]) == []


def test_writing_again_is_idempotent_and_sweeps_up(tmp_path: Path) -> None:
    first = write_index(tmp_path, SUBSCRIPTIONS)
    before = {file.name for file in tmp_path.iterdir()}
    assert write_index(tmp_path, reversed(SUBSCRIPTIONS)) == first
    assert {file.name for file in tmp_path.iterdir()} == before
    write_index(tmp_path, SUBSCRIPTIONS[:1])
    assert before < {file.name for file in tmp_path.iterdir()}, "the last index's files are kept for a reader"
    write_index(tmp_path, SUBSCRIPTIONS[:2])
    assert len(list(tmp_path.glob("*.table"))) < len(first.segments) + 1
    assert len(SegmentedTable.open(tmp_path)) == 3


def test_an_open_index_outlives_its_files(tmp_path: Path) -> None:
    write_index(tmp_path, SUBSCRIPTIONS)
    table = SegmentedTable.open(tmp_path)
    answers = table.match_many_subscriptions(EVENTS)
    for size in (1, 2):
        write_index(tmp_path, SUBSCRIPTIONS[:size])
    assert table.match_many_subscriptions(EVENTS) == answers


@pytest.mark.parametrize(
    ("id", "interface", "text", "why"),
    [
        ("", "I1", "x = 1", "id is a string that is not empty"),
        ("a", "", "x = 1", "interface is a string that is not empty"),
        ("\ud800", "I1", "x = 1", "surrogate"),
        ("x" * 600, "I1", "x = 1", "at most 512 bytes"),
        ("s1", "I1", "x = 1", "two subscriptions have the id 's1'"),
    ],
)
def test_what_no_index_may_hold(tmp_path: Path, id: str, interface: str, text: str, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        write_index(tmp_path, [*SUBSCRIPTIONS[:1], (id, interface, text)])
    assert not (tmp_path / MANIFEST).exists()


def test_damage_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(CorruptFile, match="not an index"):
        SegmentedTable.open(tmp_path)
    manifest = write_index(tmp_path, SUBSCRIPTIONS)
    file = tmp_path / MANIFEST
    text = file.read_text()
    for broken, why in (
        ("{", "not JSON"),
        ("[]", "not the manifest"),
        (text.replace('"version": 1', '"version": 99'), "version 99"),
        (text.replace('"gate"', '"fate"'), "not a whole manifest"),
    ):
        file.write_text(broken)
        with pytest.raises(CorruptFile, match=why):
            SegmentedTable.open(tmp_path)
    file.write_text(text)
    table = tmp_path / manifest.segments[0].file
    whole = table.read_bytes()
    table.write_bytes(whole[:-100])
    with pytest.raises(CorruptFile, match="truncated"):
        SegmentedTable.open(tmp_path)
    table.write_bytes(whole[:-100] + bytes(100 * [255]))
    with pytest.raises(CorruptFile, match="checksum"):
        SegmentedTable.open(tmp_path, verify=True)
    table.write_bytes(whole)
    (tmp_path / manifest.segments[0].ids_file).unlink()
    with pytest.raises(CorruptFile, match="cannot be read"):
        SegmentedTable.open(tmp_path)


def test_a_table_of_its_own_is_no_segment(tmp_path: Path) -> None:
    manifest = write_index(tmp_path, SUBSCRIPTIONS)
    other = ForwardingTable()
    other.add("I1", "x = 1")
    other.save(tmp_path / manifest.segments[0].file)
    with pytest.raises(CorruptFile, match="not the segment that the manifest describes"):
        SegmentedTable.open(tmp_path)


@settings(max_examples=50)
@given(
    st.lists(st.tuples(interfaces, filters(), st.booleans()), max_size=12),
    st.lists(notifications(), min_size=1, max_size=6),
)
def test_a_packed_table_is_as_one_filled_and_goes_on_changing(rows: Any, batch: Any) -> None:
    pairs = [(interface, each) for interface, each, _ in rows]
    filled = ForwardingTable(geotext_index="scan")
    ids = [id for made in filled.add_many(pairs) for id in made]
    for weigh in (None, [weighed for _, _, weighed in rows]):
        packed = ForwardingTable.packed(pairs, TableOptions("scan"), weigh=weigh)
        packed._check()
        assert ids == list(range(1, len(pairs) + 1))
        assert packed.match_many_filters(batch) == filled.match_many_filters(batch)
        assert packed.match_many(batch) == filled.match_many(batch)
        for id in ids:
            packed.remove(id)
        packed._check()
        assert len(packed) == 0


def test_a_segment_that_fails_verification_later_is_taken_out(tmp_path: Path) -> None:
    write_index(tmp_path, SUBSCRIPTIONS)
    (segment,) = (each for each in read_manifest(tmp_path).segments if each.kind == "geotext")
    victim = tmp_path / segment.file
    victim.write_bytes(victim.read_bytes().replace(b"I3", b"J3", 1))  # right row numbers, a wrong answer
    table = SegmentedTable.open(tmp_path)
    assert table.damaged == []
    assert "J3" in table.match(EVENTS[5])
    (damage,) = table.verify()
    assert table.damaged == [damage]
    assert table.verify() == [damage]
    with pytest.raises(CorruptFile, match="checksum"):
        table.match_many(EVENTS)
    with pytest.raises(CorruptFile, match="checksum"):
        table.match(EVENTS[5])
    assert table.match(EVENTS[0]) == {"I1"}, "its gate does not need that segment"
    table.strict = False
    expected = NaiveSubscriptions()
    for row in SUBSCRIPTIONS:
        if segment_kind(as_filters(row[2])) != "geotext":
            expected.add(*row)
    assert table.match_many(EVENTS) == [expected.match(each) for each in EVENTS]
    assert table.passed_over == 1
    assert len(table) == sum(len(as_filters(text)) for _, _, text in SUBSCRIPTIONS)


def test_a_whole_index_is_verified_once_and_a_replaced_one_is_let_be(tmp_path: Path) -> None:
    write_index(tmp_path, SUBSCRIPTIONS)
    table = SegmentedTable.open(tmp_path)
    for file in tmp_path.glob("segment-*.ids"):
        file.rename(file.with_suffix(".away"))
    assert table.verify() == []
    assert not any(segment.verified for segment in table.segments)
    for file in tmp_path.glob("segment-*.away"):
        file.rename(file.with_suffix(".ids"))
    assert table.verify() == []
    assert all(segment.verified for segment in table.segments)
    assert all(segment.verified for segment in SegmentedTable.open(tmp_path, verify=True).segments)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
@pytest.mark.parametrize("suffix", ["table", "ids", "json"])
def test_what_is_no_file_is_refused_and_not_waited_for(
    tmp_path: Path, make: Callable[[Path], None], suffix: str
) -> None:
    write_index(tmp_path, SUBSCRIPTIONS)
    for victim in tmp_path.glob(f"*.{suffix}"):
        victim.unlink()
        make(victim)
    with pytest.raises(CorruptFile, match="where a file was expected"):
        SegmentedTable.open(tmp_path)
