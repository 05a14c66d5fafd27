"""What users hand in by mistake, at the borders of filters, the table and the codec."""

from __future__ import annotations

import copy
from collections import deque
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from contrada.errors import CodecError, InvalidValue
from contrada.forwarding.attr import attr
from contrada.forwarding.codec import decode_filter, decode_notification
from contrada.forwarding.filter import Filter
from contrada.forwarding.table import ForwardingTable


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
