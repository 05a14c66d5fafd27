"""Options of tables are looked at once, when they are said, and reach every table that is made with them."""

from __future__ import annotations

from typing import Any

import pytest

from contrada import EXACT, ForwardingTable, Uniform, parse
from contrada.errors import InvalidValue
from contrada.forwarding.table.options import TableOptions


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"geotext_index": "best"}, "no geotext index is called 'best'"),
        ({"matching": "fast"}, "no way to match is called 'fast'"),
        ({"discretization": "exact"}, "discretization is EXACT or a Uniform"),
        ({"simplify": 1}, "simplify is True or False"),
        ({"crs": "mars"}, "crs"),
    ],
)
def test_options_that_are_none(options: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        TableOptions(**options)
    with pytest.raises(InvalidValue, match=why):
        ForwardingTable(**options)


def test_tables_are_made_as_options_say() -> None:
    options = TableOptions("scan", "counting", Uniform(2.0, True), False, "lonlat")
    filters = [("i", parse("x > 1")), ("i", parse("x > 2"))]
    for table in (ForwardingTable.of(options), ForwardingTable.packed(filters, options)):
        settings = table._state.settings
        assert (settings.geotext_index, settings.discretization) == ("scan", Uniform(2.0, True))
        assert (table._state.simplify, table.crs) == (False, "lonlat")
    assert table.stats().covered == 0
    assert ForwardingTable.packed(filters).stats().covered == 1
    assert ForwardingTable.of(TableOptions())._state.settings.discretization == EXACT
