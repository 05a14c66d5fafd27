"""Notifications given by columns are matched as the same notifications one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import InvalidValue
from contrada.forwarding.batches.columns import Column, Columns, Text
from contrada.forwarding.batches.texts import Texts
from contrada.forwarding.language.values import Kind, check_value, microseconds
from contrada.forwarding.table.table import ForwardingTable
from tests.forwarding.strategies import filters, notifications

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def columns_of(given: Sequence[Mapping[str, Any]], *, objects: bool = False) -> Columns:
    """One column per name and type of value, as slowly as can be; geotext as objects, or not."""
    kept = [{name: check_value(value) for name, value in each.items()} for each in given]
    sorts = dict.fromkeys((name, kind, type(value)) for each in kept for name, (kind, value) in each.items())
    columns = []
    for name, kind, sort in sorts:
        found = [each.get(name, (None, None)) for each in kept]
        present = np.array([k is kind and type(v) is sort for k, v in found], np.bool_)
        cells = [v if there else None for (_, v), there in zip(found, present, strict=True)]
        columns.append(Column(name, kind, _values(kind, cells, objects=objects), None if present.all() else present))
    result = Columns(len(given), columns)
    result._check()
    return result


def _values(kind: Kind, cells: list[Any], *, objects: bool) -> Any:
    if kind is Kind.GEOTEXT and not objects:
        return Texts.of(cells)
    if kind is Kind.STRING:
        encoded = [(cell or "").encode() for cell in cells]
        offsets = np.concatenate(([0], np.cumsum([len(each) for each in encoded]))).astype(np.int64)
        return Text(offsets + 3, np.frombuffer(b"..." + b"".join(encoded), np.uint8))  # as in a slice of a column
    if kind is Kind.POINT:
        return np.array([(0.0, 0.0) if cell is None else tuple(cell) for cell in cells])
    if kind in (Kind.REGION, Kind.LINE, Kind.GEOTEXT, Kind.SET):
        return cells
    if kind is Kind.TIME:
        return np.array([0 if cell is None else microseconds(cell) for cell in cells], np.int64)
    if any(type(cell) is float for cell in cells):
        return np.array([np.nan if cell is None else cell for cell in cells], np.float64)
    return np.array([0 if cell is None else int(cell) for cell in cells], np.int64)


@given(st.lists(filters(), max_size=12), st.lists(notifications(), max_size=12), st.sampled_from(("scan", "rk-tree")))
def test_columns_match_as_notifications_do(wanted: list[Any], given: list[Any], index: str) -> None:
    table = ForwardingTable(geotext_index=index)
    table.add_many((f"I{n % 3}", each) for n, each in enumerate(wanted))
    for form in (columns_of(given), columns_of(given, objects=True), given):
        places, ids = table.match_pairs(form)
        assert (np.diff(places) >= 0).all()
        answers: list[list[int]] = [[] for _ in given]
        for place, id in zip(places.tolist(), ids.tolist(), strict=True):
            answers[place].append(id)
        assert [sorted(each) for each in answers] == [table.match_filters(each) for each in given]


def test_an_attribute_that_is_not_finite_is_refused_where_it_is_present() -> None:
    table = ForwardingTable()
    table.add("I", "price > 1")
    prices = np.array([2.0, np.nan])
    with pytest.raises(InvalidValue, match="'price': a number must be finite"):
        table.match_pairs(Columns(2, [Column("price", Kind.NUMBER, prices)]))
    places, _ = table.match_pairs(Columns(2, [Column("price", Kind.NUMBER, prices, np.array([True, False]))]))
    assert places.tolist() == [0]


def test_no_columns_and_no_notifications() -> None:
    table = ForwardingTable()
    table.add("I", "price > 1")
    for columns in (Columns(0, []), Columns(3, []), Columns(0, [Column("price", Kind.NUMBER, np.zeros(0))])):
        places, ids = table.match_pairs(columns)
        assert places.tolist() == ids.tolist() == []


def test_the_interfaces_of_what_matched() -> None:
    table = ForwardingTable()
    table.add("one", "price > 1")
    table.add("two", "price > 2")
    _, ids = table.match_pairs(Columns(1, [Column("price", Kind.NUMBER, np.array([3]))]))
    numbers, names = table.interface_numbers(ids)
    assert sorted(str(names[number]) for number in numbers.tolist()) == ["one", "two"]


@given(st.lists(notifications(), min_size=1, max_size=8), st.data())
def test_some_of_the_notifications(given: list[Any], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(given) - 1)))
    some = columns_of(given).take(np.array(places, np.int64))
    some._check()
    table = ForwardingTable(geotext_index="scan")
    table.add_many(("I", f"{name} exists") for name in "abc")
    table.add("J", 'a prefix "a" or b < 2 or c contains "b"')
    found, ids = table.match_pairs(some)
    pairs = set(zip(found.tolist(), ids.tolist(), strict=True))
    assert pairs == {(n, id) for n, place in enumerate(places) for id in table.match_filters(given[place])}
