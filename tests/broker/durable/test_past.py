"""Looking back with filters of one's own: what is found, however little work is allowed at once."""

from __future__ import annotations

import pytest

from contrada import ForwardingTable, parse
from contrada.broker.durable import past as module
from contrada.broker.durable.past import Past, look_back
from contrada.forwarding.codec.msgpack import encode_notification
from contrada.spatial.allowance import MILLISECOND
from tests.forwarding.table.test_allowance import star

FILTERS = [parse("x > 5"), parse("x < 0 and y exists")]
BODIES = [encode_notification({"x": x, **({"y": 1} if x % 2 else {})}) for x in range(-20, 300)] + [b"junk"]
WANTED = [x > 5 or (x < 0 and x % 2 == 1) for x in range(-20, 300)] + [False]


def finished(steps):
    """What steps return, their jobs done at once."""
    try:
        job = next(steps)
        while True:
            job = steps.send(job())
    except StopIteration as end:
        return end.value


@pytest.fixture
def table():
    table: ForwardingTable[int] = ForwardingTable()
    table.add(7, "x exists")  # which is somebody else's
    return table


def test_all_is_found_and_nothing_of_others(table):
    assert finished(look_back(Past(table, FILTERS), BODIES)) == WANTED
    assert len(table) == 1


def test_what_takes_too_much_at_once_is_looked_at_in_parts(table, monkeypatch):
    monkeypatch.setattr(module, "_WORK", MILLISECOND // 20)
    monkeypatch.setattr(module, "_AT_ONCE", 4)
    regions = [star(30) for _ in range(40)]
    bodies = [encode_notification({"v": region}) for region in regions]
    wanted = [parse(f"v covers {region.wkt}") for region in regions[::2]]
    past, calls = Past(table, wanted), []

    def some(bodies):
        found = Past.some(past, bodies)
        calls.append(len(found))
        return found

    past.some = some
    expected = [any(each.matches({"v": region}) for each in wanted) for region in regions]
    assert finished(look_back(past, bodies)) == expected
    assert len(calls) > 3


def test_what_nobody_may_take_on_is_as_if_it_were_not_there(table, monkeypatch):
    monkeypatch.setattr(module, "_WORK", 1)
    monkeypatch.setattr(module, "_MOST_WORK", 10_000)
    bodies = [encode_notification({"v": star(2000)}), encode_notification({"x": 9})]
    assert finished(look_back(Past(table, [parse(f"v covers {star(3000).wkt}"), *FILTERS]), bodies)) == [False, True]
