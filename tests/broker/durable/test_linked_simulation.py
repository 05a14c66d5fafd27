"""Custody over links in a simulated world: three brokers are killed at every operation of their disks.

`python -m tests.broker.durable.test_linked_simulation FIRST LAST` runs more seeds than a test should.
"""

from __future__ import annotations

import logging
import sys

import pytest

from contrada.broker.durable.carrying import Carrying
from contrada.broker.durable.custody import Custody
from contrada.broker.durable.publishing import Publishing
from contrada.broker.routing.interests import Interests
from contrada.broker.stored.state import State
from tests.broker.durable.linked_simulation import simulate_links


@pytest.mark.parametrize("first", range(0, 36, 9))
def test_nothing_acknowledged_is_lost_on_the_way(first, caplog):
    caplog.set_level(logging.CRITICAL)
    worlds = [simulate_links(seed) for seed in range(first, first + 9)]
    assert sum(world.crashes for world in worlds) > 60
    assert sum(world.cuts for world in worlds) > 10
    assert sum(len(world.auditor.ids) for world in worlds) > 500
    assert sum(len(found) for world in worlds for found in world.auditor.delivered.values()) > 900


def _caught(shape: str = "line", most: int = 30) -> bool:
    for seed in range(most):
        try:
            simulate_links(seed, shape=shape)
        except AssertionError:
            return True
    return False


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


@pytest.mark.parametrize(
    "mistake",
    [
        _say_carried_before_the_disk_has_it,
        _forget_what_neighbours_want,
        _never_send_again,
        _take_no_notice_of_a_lost_way,
        _decline_and_go_on,
    ],
)
def test_the_auditor_notices(mistake, monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL)
    mistake(monkeypatch)
    assert _caught()


def test_a_seed_reproduces_a_run(caplog):
    caplog.set_level(logging.CRITICAL)
    one, two = simulate_links(5), simulate_links(5)
    assert one.auditor.ids == two.auditor.ids
    assert one.auditor.delivered == two.auditor.delivered
    assert one.crashes == two.crashes


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    crashes = acknowledged = 0
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        world = simulate_links(seed)
        crashes += world.crashes
        acknowledged += len(world.auditor.ids)
    print(f"{crashes:,} crashes of linked brokers, {acknowledged:,} durable publishes acknowledged, 0 lost")
