"""What every table does, asked of each kind: in memory, and in segments that hold all, some or none of the filters."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.errors import CodecError, InvalidValue, NotFound
from contrada.forwarding.batches import bodies as reading
from contrada.forwarding.batches.columns import Column, Columns, Text
from contrada.forwarding.codec.msgpack import decode_notification, encode_notification
from contrada.forwarding.language.filter import as_filters
from contrada.forwarding.language.values import Kind
from contrada.forwarding.segments.index_directory import write_index
from contrada.forwarding.segments.segmented_table import SegmentedTable
from contrada.forwarding.table.options import TableOptions
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box
from contrada.spatial.textual.geotext import GeoText
from tests.forwarding.batches.test_columns import columns_of
from tests.forwarding.strategies import notifications, predicates
from tests.naive.table import NaiveTable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contrada.forwarding.table.contract import Table

    Pairs = list[tuple[str, Any]]

PAIRS: Pairs = [
    ("I1", 'stock = "MTK" and price < 100 or stock = "DYS"'),
    ("I2", "area intersects BOX(0 0, 5 5) and wind > 90"),
    ("I1", "area disjoint BOX(0 0, 10 10)"),
    ("I3", 'post matches {"ipad"} within BOX(0 0, 5 5)'),
    ("I2", 'area inside BOX(0 0, 60 60) or post matches {"sale"} within BOX(0 0, 5 5)'),
    ("I3", 'note contains "rain" and area intersects BOX(40 40, 60 60)'),
    ("I4", "price exists"),
]
EVENTS: list[dict[str, Any]] = [
    {"stock": "MTK", "price": 50},
    {"note": "much rain", "other": "x" * 40, "stock": "DYS", "area": Point(50, 50)},
    {"area": Box(1, 1, 2, 2), "wind": 120},
    {"area": Point(3, 3), "wind": 91.5, "note": "no", "flag": True},
    {"area": "nowhere"},
    {"post": GeoText("ipad on sale", at=(1, 1))},
    {"post": GeoText("ipad on sale", at=(99, 1))},
    {},
    {"unknown": 1},
]
KINDS = ("memory", "added", "half", "segments")
every_kind = pytest.mark.parametrize("kind", KINDS)

pytestmark = pytest.mark.usefixtures("every_matching")


def make(kind: str, pairs: Pairs) -> tuple[Table[str], NaiveTable]:
    """A table of these filters, and its twin."""
    naive = NaiveTable()
    if kind == "memory":
        table: Table[str] = ForwardingTable(geotext_index="scan")
        loaded = 0
    else:
        loaded = {"added": 0, "half": (len(pairs) + 1) // 2, "segments": len(pairs)}[kind]
        with TemporaryDirectory() as directory:
            rows = [(f"s{n}", *pair) for n, pair in enumerate(pairs[:loaded])]
            write_index(directory, rows, TableOptions("scan"), segment_filters=2)
            table = segmented = SegmentedTable.open(directory)
        for id, interface, expression in rows:
            naive.add(interface, expression, segmented.filters_of(id))
    for interface, expression in pairs[loaded:]:
        naive.add(interface, expression, table.add(interface, expression))
    return table, naive


def listed(count: int, found: tuple[Any, Any]) -> list[list[int]]:
    """Pairs as lists of ids, per notification."""
    places, ids = found
    assert (np.diff(places) >= 0).all()
    answers: list[list[int]] = [[] for _ in range(count)]
    for place, id in zip(places.tolist(), ids.tolist(), strict=True):
        answers[place].append(id)
    return [sorted(answer) for answer in answers]


def compare(table: Table[str], naive: NaiveTable, batch: list[Any]) -> None:
    filters = [sorted(naive.match_filters(each)) for each in batch]
    interfaces = [naive.match(each) for each in batch]
    assert table.match_many(batch) == interfaces
    assert table.match_many_filters(batch) == filters
    for each, ids, names in zip(batch, filters, interfaces, strict=True):
        assert table.match_filters(each) == ids
        assert table.match(each) == names
    assert listed(len(batch), table.match_pairs(batch)) == filters
    assert listed(len(batch), table.match_pairs(columns_of(batch))) == filters
    for times in (1, 16):  # few are decoded, more are read in compiled code
        answers, refused = table.match_bodies([encode_notification(each) for each in batch] * times)
        assert answers == interfaces * times
    assert refused == {}
    assert len(table) == len(naive.filters) == table.stats().filters
    for id, (interface, filter) in naive.filters.items():
        assert id in table
        assert table.interface(id) == interface
        assert table.filter(id) == filter
        assert id in table.interface_filters(interface)


interfaces = st.sampled_from(("I1", "I2", "é"))


@every_kind
@settings(max_examples=30)
@given(
    st.lists(st.tuples(interfaces, predicates()), max_size=8),
    st.lists(notifications(), min_size=1, max_size=8),
    st.data(),
)
def test_as_the_twin(kind: str, pairs: Pairs, batch: list[Any], data: Any) -> None:
    table, naive = make(kind, pairs)
    compare(table, naive, batch)
    for id in data.draw(st.lists(st.sampled_from(sorted(naive.filters)), unique=True)) if naive.filters else ():
        table.remove(id)
        naive.remove(id)
        assert id not in table
        with pytest.raises(NotFound):
            table.remove(id)
    compare(table, naive, batch)
    for interface, expression in data.draw(st.lists(st.tuples(interfaces, predicates()), max_size=3)):
        naive.add(interface, expression, table.add(interface, expression))
    compare(table, naive, batch)


@every_kind
def test_examples(kind: str) -> None:
    table, naive = make(kind, PAIRS)
    compare(table, naive, EVENTS)
    compare(table, naive, [*EVENTS * 300, {"price": 1}])  # more than are matched at once
    for id in table.match_filters(EVENTS[0]):
        assert table.explain(EVENTS[0], id)
    table.remove_interface("I2")
    naive.remove_interface("I2")
    compare(table, naive, EVENTS)
    assert table.interface_filters("I2") == []
    with pytest.raises(NotFound):
        table.remove_interface("I2")


@every_kind
def test_names_come_and_go_between_batches(kind: str) -> None:
    """Numbers of names are given again: a batch must never be read by those of before."""
    table, naive = make(kind, PAIRS)
    batch = [*EVENTS, {"new": 1, "price": 2}, {"newer": "x", "area": Point(3, 3), "wind": 99}]
    for expression in ("new > 0", 'newer = "x"', "new > 0 and newer exists", "newer exists", 'stock = "DYS"'):
        ids = table.add("I9", expression)
        naive.add("I9", expression, ids)
        compare(table, naive, batch)
        for id in ids:
            table.remove(id)
            naive.remove(id)
        compare(table, naive, batch)


@every_kind
@settings(max_examples=30)
@given(st.lists(notifications() | st.binary(max_size=5), max_size=12))
def test_bodies_are_refused_as_by_the_codec(kind: str, given: list[Any]) -> None:
    table, naive = make(kind, PAIRS)
    bodies = [each if isinstance(each, bytes) else encode_notification(each) for each in given * 16]
    answers, refused = table.match_bodies(bodies)
    for place, (body, answer) in enumerate(zip(bodies, answers, strict=True)):
        if place in refused:
            with pytest.raises(CodecError) as caught:
                decode_notification(body)
            assert str(refused[place]) == str(caught.value)
            assert answer == set()
        else:
            assert answer == naive.match(decode_notification(body))


@every_kind
def test_refusals(kind: str) -> None:
    table, naive = make(kind, PAIRS)
    wrong: Iterable[Any] = ({"price": float("nan")}, {"unknown": 1 << 80}, {"": 1}, "text", {"area": object()})
    for each in wrong:
        for ask in (table.match_many, table.match_many_filters, table.match_pairs):
            with pytest.raises(InvalidValue):
                ask([EVENTS[0], each])
        with pytest.raises(InvalidValue):
            table.match(each)
    with pytest.raises(InvalidValue):
        table.match_pairs(Columns(1, [Column("price", Kind.NUMBER, np.array([np.inf]))]))
    with pytest.raises(InvalidValue):
        table.add_many([("I1", "x > 1"), ([], "x > 1")])
    for id in (0, 10**9, -(10**12), True, "1"):
        assert id not in table
        with pytest.raises(NotFound):
            table.filter(id)
    compare(table, naive, EVENTS)


@every_kind
def test_large_batches_in_threads(kind: str) -> None:
    """The answers come in order, however many threads there are."""
    table, naive = make(kind, PAIRS)
    batch = (EVENTS * 2000)[:5000]
    interfaces, filters = table.match_many(batch), table.match_many_filters(batch)
    assert interfaces[: len(EVENTS)] == [naive.match(each) for each in EVENTS]
    for threads in (2, 3, None):
        assert table.match_many(batch, threads=threads) == interfaces
        assert listed(len(batch), table.match_pairs(batch, threads=threads)) == filters
        assert listed(len(batch), table.match_pairs(columns_of(batch), threads=threads)) == filters
    assert table.match_many([], threads=2) == []
    assert listed(0, table.match_pairs([], threads=2)) == []
    wrong: Iterable[Any] = (0, -1, True, 1.5, "2")
    for each in wrong:
        with pytest.raises(InvalidValue, match="threads"):
            table.match_many(batch[:1], threads=each)
        with pytest.raises(InvalidValue, match="threads"):
            table.match_pairs(batch[:1], threads=each)
    with pytest.raises(InvalidValue):
        table.match_many([*batch, {"price": float("nan")}], threads=2)


@every_kind
def test_points_under_several_names_by_columns(kind: str) -> None:
    table, naive = make(kind, [("I1", "area inside BOX(0 0, 4 4)"), ("I2", "pos meets BOX(0 0, 4 4)")])
    xy = np.array([(x, y) for x in range(6) for y in range(6)], np.float64)
    here = np.arange(len(xy)) % 3 != 0
    points = [Point(x, y) for x, y in xy.tolist()]
    same = [{"area": p} | ({"pos": p} if there else {}) for p, there in zip(points, here.tolist(), strict=True)]
    columns = [Column("area", Kind.POINT, xy), Column("pos", Kind.POINT, xy, here), Column("none", Kind.POINT, xy)]
    expected = [sorted(naive.match_filters(each)) for each in same]
    assert listed(len(xy), table.match_pairs(Columns(len(xy), columns))) == expected
    assert table.match_bodies([encode_notification(each) for each in same])[0] == [naive.match(each) for each in same]
    table.add("I3", "k = 1 and area inside BOX(1 1, 3 3) or area within 1 of POINT(9 9)")
    late = [*columns, Column("k", Kind.NUMBER, np.ones(len(xy), np.int64))]
    asked = [{**each, "k": 1} for each in same]
    assert listed(len(xy), table.match_pairs(Columns(len(xy), late))) == table.match_many_filters(asked)


@every_kind
def test_adding_by_pieces(kind: str) -> None:
    table, naive = make(kind, PAIRS)
    expression = " or ".join(f"n = {n}" for n in range(100))
    ids = [id for piece in table.adding("I5", expression) for id in piece]
    assert len(ids) == len(as_filters(expression))
    naive.add("I5", expression, ids)
    compare(table, naive, [{"n": 7}, {"n": -1}])


@every_kind
def test_columns_of_strings_that_few_ask_for(kind: str) -> None:
    """Strings of a batch follow one another: those that a table has no name for must not shift the others."""
    table, naive = make(kind, PAIRS)
    words = [b"MTK", b"", b"DYS", "ü".encode()]
    offsets = np.concatenate(([0], np.cumsum([len(each) for each in words]))).astype(np.int64)
    text = Text(offsets, np.frombuffer(b"".join(words), np.uint8))
    columns = [Column(name, Kind.STRING, text) for name in ("a", "note", "other", "stock", "z")]
    columns.append(Column("price", Kind.NUMBER, np.array([1, 2, 300, 4])))
    names = ("a", "note", "other", "stock", "z")
    same = [dict.fromkeys(names, word.decode()) | {"price": p} for word, p in zip(words, (1, 2, 300, 4), strict=True)]
    expected = [sorted(naive.match_filters(each)) for each in same]
    assert listed(4, table.match_pairs(Columns(4, columns))) == expected


@every_kind
def test_bodies_are_read_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many segments there are."""
    from contrada.forwarding.segments import segmented_table
    from contrada.forwarding.table import table as in_memory

    table, naive = make(kind, PAIRS)
    plain = 4 * [each for each in EVENTS if not any(isinstance(v, Box | GeoText) for v in each.values())]
    read: list[int] = []

    def count(bodies: Any, names: Any) -> Any:
        read.append(len(bodies))
        return reading.read_plain(bodies, names)

    for module in (segmented_table, in_memory):
        monkeypatch.setattr(module, "read_plain", count)
    answers, _ = table.match_bodies([encode_notification(each) for each in plain])
    assert answers == [naive.match(each) for each in plain]
    assert read == [len(plain)]
