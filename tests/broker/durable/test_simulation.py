"""Durability in a simulated world: crashes at every operation of the disk, and nothing acknowledged is lost.

`make soak ARGS="--broker-crashes N"` runs more worlds than a test should.
"""

from __future__ import annotations

import logging

import pytest

from contrada.broker.durable.carrying import Carrying
from contrada.broker.durable.custody import Custody
from contrada.broker.durable.publishing import Publishing
from contrada.broker.routing.interests import Interests
from contrada.broker.stored.disk_queue import DiskQueue
from contrada.broker.stored.keys import Keys
from contrada.broker.stored.state import State
from tests.broker.durable.simulation import simulate


@pytest.fixture(autouse=True)
def _few_words(caplog):
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_nothing_acknowledged_is_lost(first):
    worlds = [simulate(seed, "alone") for seed in range(first, first + 20)]
    assert sum(world.crashes for world in worlds) > 40
    assert sum(len(world.auditor.ids) for world in worlds) > 400
    assert any(world.auditor.refused for world in worlds)


@pytest.mark.parametrize(("shape", "first"), [("line", 0), ("line", 12), ("triangle", 0), ("square", 0)])
def test_nothing_acknowledged_is_lost_on_the_way(shape, first):
    worlds = [simulate(seed, shape) for seed in range(first, first + 12)]
    assert sum(world.crashes for world in worlds) > 60
    assert sum(world.cuts for world in worlds) > 10
    assert sum(len(world.auditor.ids) for world in worlds) > 500
    assert sum(len(found) for world in worlds for found in world.auditor.delivered.values()) > 900


def _caught(shape: str, most: int) -> bool:
    for seed in range(most):
        try:
            simulate(seed, shape)
        except AssertionError:
            return True
    return False


def _acknowledge_at_once(monkeypatch):
    accepted = Publishing.accepted

    def early(self, publication, *arguments):
        found = accepted(self, publication, *arguments)
        publication.waiting = 0
        return found

    monkeypatch.setattr(Publishing, "accepted", early)


def _forget_what_waits(monkeypatch):
    monkeypatch.setattr(DiskQueue, "snapshot", lambda self, most: iter(()))


def _send_once(monkeypatch):
    monkeypatch.setattr(DiskQueue, "rewind", lambda self: None)


def _acknowledge_too_much(monkeypatch):
    acknowledge = DiskQueue.acknowledge
    monkeypatch.setattr(DiskQueue, "acknowledge", lambda self, first, last: acknowledge(self, 0, last + 2048))


def _know_no_keys(monkeypatch):
    monkeypatch.setattr(Keys, "find", lambda self, scope, key: None)


def _say_carried_before_the_disk_has_it(monkeypatch):
    accepted = Publishing.accepted

    def early(self, publication, *arguments):
        found = accepted(self, publication, *arguments)
        if publication.storing is not None and publication.storing.hops:
            publication.waiting = 0
        return found

    monkeypatch.setattr(Publishing, "accepted", early)


def _forget_what_neighbours_want(monkeypatch):
    monkeypatch.setattr(State, "_wanted", lambda self, *_row: None)


def _never_send_again(monkeypatch):
    link_up = Custody.link_up

    def once(self, link):
        cursor = self._state.links.get(link.id)
        before = cursor.queue._next if cursor is not None else 0
        link_up(self, link)
        if cursor is not None:
            cursor.queue._next = max(before, cursor.queue._next)

    monkeypatch.setattr(Custody, "link_up", once)


def _take_no_notice_of_a_lost_way(monkeypatch):
    monkeypatch.setattr(Interests, "_others", lambda self, _flow: self.tree_links)
    monkeypatch.setattr(Interests, "_linger", lambda self, _neighbour, change: change)


def _decline_and_go_on(monkeypatch):
    def only_this(self, ids, receipt, reason):
        for id in ids:
            self._under_way.pop(id, None)
        self._done(receipt)

    monkeypatch.setattr(Carrying, "failed", only_this)


ALONE = (_acknowledge_at_once, _forget_what_waits, _send_once, _acknowledge_too_much, _know_no_keys)
LINKED = (
    _say_carried_before_the_disk_has_it,
    _forget_what_neighbours_want,
    _never_send_again,
    _take_no_notice_of_a_lost_way,
    _decline_and_go_on,
)


@pytest.mark.parametrize(
    ("mistake", "shape"), [*((mistake, "alone") for mistake in ALONE), *((mistake, "line") for mistake in LINKED)]
)
def test_the_auditor_notices(mistake, shape, monkeypatch):
    mistake(monkeypatch)
    assert _caught(shape, 60)


@pytest.mark.parametrize(("seed", "shape"), [(7, "alone"), (5, "triangle")])
def test_a_seed_reproduces_a_run(seed, shape):
    one, two = simulate(seed, shape), simulate(seed, shape, check_every=8)
    assert one.auditor.ids == two.auditor.ids
    assert one.auditor.delivered == two.auditor.delivered
    assert one.crashes == two.crashes
