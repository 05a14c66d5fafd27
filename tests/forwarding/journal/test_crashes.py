"""Crashes at every write and sync: what a commit promised is there, in order, and nothing that was never appended.

`make soak` runs a million of them; a seed that fails is told, and fails again.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.forwarding.journal.auditor import Auditor, Lost, audit_lenient
from tests.forwarding.journal.simulated_disk import SimulatedDisk


@pytest.mark.parametrize("seed", range(20))
def test_nothing_promised_is_lost(seed: int) -> None:
    operations = sum(Auditor(seed * 1000 + each, 20).run() for each in range(10))
    assert operations > 1000  # and each of them was checked


@pytest.mark.parametrize("seed", range(10))
def test_damage_costs_what_it_hit_and_is_told(seed: int) -> None:
    operations = sum(Auditor(seed * 1000 + each, 20, damage=True).run() for each in range(10))
    assert operations > 1000


@given(st.integers(0, 2**40), st.integers(1, 12))
def test_nothing_promised_is_lost_by_any_schedule(seed: int, crashes: int) -> None:
    assert Auditor(seed, crashes).run() > 0


def test_a_lenient_journal_keeps_what_it_commits() -> None:
    for seed in range(100):
        audit_lenient(seed, 10)


def test_the_auditor_of_lenient_journals_sees_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedDisk, "sync", lambda disk, file: None)
    with pytest.raises(Lost):
        audit_lenient(0, 100)


def test_a_seed_reproduces_a_run() -> None:
    runs = [Auditor(7, 30) for _ in range(2)]
    assert runs[0].run() == runs[1].run()
    assert runs[0].promised == runs[1].promised
