"""Durability in a simulated world: crashes at every operation of the disk, and nothing acknowledged is lost.

`python -m tests.broker.durable.test_simulation FIRST LAST` runs more seeds than a test should.
"""

from __future__ import annotations

import logging
import sys

import pytest

from contrada.broker.durable.publishing import Publishing
from contrada.broker.stored.disk_queue import DiskQueue
from contrada.broker.stored.keys import Keys
from tests.broker.durable.simulation import simulate


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_nothing_acknowledged_is_lost(first, caplog):
    caplog.set_level(logging.CRITICAL)
    worlds = [simulate(seed) for seed in range(first, first + 20)]
    assert sum(world.crashes for world in worlds) > 40
    assert sum(len(world.auditor.ids) for world in worlds) > 400
    assert any(world.auditor.refused for world in worlds)


def _caught(most: int = 60) -> bool:
    for seed in range(most):
        try:
            simulate(seed)
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


@pytest.mark.parametrize(
    "mistake", [_acknowledge_at_once, _forget_what_waits, _send_once, _acknowledge_too_much, _know_no_keys]
)
def test_the_auditor_notices(mistake, monkeypatch, caplog):
    caplog.set_level(logging.CRITICAL)
    mistake(monkeypatch)
    assert _caught()


def test_a_seed_reproduces_a_run(caplog):
    caplog.set_level(logging.CRITICAL)
    one, two = simulate(7), simulate(7)
    assert one.auditor.ids == two.auditor.ids
    assert one.auditor.delivered == two.auditor.delivered
    assert one.crashes == two.crashes


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    crashes = acknowledged = 0
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        world = simulate(seed)
        crashes += world.crashes
        acknowledged += len(world.auditor.ids)
    print(f"{crashes:,} crashes, {acknowledged:,} durable publishes acknowledged, 0 lost")
