"""Groups of rows: what is put together is committed together, and comes back as it was."""

from __future__ import annotations

from functools import partial
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.broker.stored import rows, store
from contrada.broker.stored.keys import Keys
from contrada.broker.stored.rows import GROUP_ROWS, Row, cut_groups, entry_of, pack_group, unpack_group
from contrada.broker.stored.store import Store
from contrada.errors import CorruptFile
from tests.broker.durable.fake_journal import FakeJournal


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(1, 9), st.integers(64, 300))
def test_rows_are_cut_into_groups_in_order(sizes, most, most_bytes):
    made = [(Row.RETAINED, bytes(size)) for size in sizes]
    before = rows.GROUP_ROWS, rows.GROUP_BYTES
    rows.GROUP_ROWS, rows.GROUP_BYTES = most, most_bytes
    try:
        groups = list(cut_groups(made))
    finally:
        rows.GROUP_ROWS, rows.GROUP_BYTES = before
    assert [row for group in groups for row in group] == made
    assert all(1 <= len(group) <= most for group in groups)
    for group in groups:
        assert len(group) == 1 or sum(map(rows.row_bytes, group)) <= most_bytes


def test_positions_name_rows():
    made = [(int(Row.ENDED), number) for number in range(GROUP_ROWS + 5)]
    journal = FakeJournal()
    kept = Store(journal, lambda: 5.0)
    told = []
    kept.put(made, told.append)
    kept.begin()
    (commit,) = told
    assert commit.failure is None
    assert commit.time == 5_000_000
    found = {}
    for entry in journal.read():
        found.update(unpack_group(entry.sequence, entry.payload).positions())
    assert [found[position] for position in commit.positions] == made
    assert {*map(entry_of, commit.positions)} == {1, 2}


def test_the_cache_is_bounded_and_what_is_not_there_is_read(monkeypatch):
    monkeypatch.setattr(store, "CACHE_BYTES", 10_000)
    journal = FakeJournal()
    kept = Store(journal)
    for number in range(50):
        kept.put([(Row.RETAINED, bytes(1000), number)])
        kept.begin()
        kept._check()
    assert kept.cached(1) is None
    assert kept.cached(50) is not None
    told = []
    kept.fetch([1, 2, 77], told.append)
    assert {entry: group.rows[0][2] for entry, group in told[0].items()} == {1: 0, 2: 1}


@pytest.mark.parametrize("payload", [b"", b"\xc1", pack_group(1, [])[:-1], b"\x01"])
def test_a_group_that_is_none_says_so(payload):
    with pytest.raises(CorruptFile, match="entry 3"):
        unpack_group(3, payload)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5)), max_size=40), st.integers(1, 4))
def test_the_latest_keys_are_remembered(used, most):
    keys = Keys(most)
    order: list[tuple[str, str]] = []
    for sequence, (scope, key) in enumerate(used):
        pair = (scope, str(key))
        keys.remember(*pair, sequence)
        keys._check()
        order = [each for each in order if each != pair] + [pair]
        assert {(s, k) for s, k, _ in keys.rows()} == set(order[-most:])
        assert keys.find(*pair) == sequence


def test_those_who_wait_are_told_over_turns_and_nothing_is_written_before_all_know():
    now = [0.0]
    kept = Store(FakeJournal(), clock=lambda: now[0])
    kept.seconds = 0.01
    told = []

    def slow(number, commit):
        now[0] += 0.004
        told.append((number, commit.failure))

    for number in range(8):
        kept.put([(Row.ENDED, number)], partial(slow, number), marked=True)
    kept.begin()
    assert [number for number, _ in told] == [0, 1, 2]
    assert (kept.telling, kept.idle, kept.done_to) == (True, False, 0)
    kept.put([(Row.ENDED, 99)], partial(slow, 99))
    kept.begin()
    assert kept.on_disk == 1, "a checkpoint would forget what they are told"
    kept.tell()
    kept.tell()
    assert (kept.telling, kept.done_to) == (False, 8)
    kept.begin()
    assert told == [(number, None) for number in (*range(8), 99)]
    assert kept.idle


def test_a_failure_is_told_at_once():
    journal = FakeJournal()
    kept = Store(journal)
    kept.seconds = 0.0
    told = []
    for _ in range(5):
        kept.put([(Row.ENDED, 1)], told.append)
    journal.commit = Mock(side_effect=CorruptFile("no"))
    kept.begin()
    assert [type(commit.failure) for commit in told] == [CorruptFile] * 5
    assert not kept.telling


@given(st.sets(st.integers(1, 60), min_size=1), st.sets(st.integers(1, 60)))
def test_what_is_asked_for_is_read_in_runs_and_nothing_else(wanted, missing):
    journal = FakeJournal()
    kept = Store(journal)
    for number in range(1, 61):
        kept.put([(Row.RETAINED, number)])
        kept.begin()
    kept._cache.clear()
    kept._cached_bytes = 0
    for entry in missing:
        journal.entries.pop(entry)
    told = []
    kept.fetch(sorted(wanted), told.append)
    assert {entry: group.rows[0][1] for entry, group in told[0].items()} == {e: e for e in wanted - missing}


def test_much_is_read_by_and_by_and_never_nothing():
    journal = FakeJournal()
    kept = Store(journal)
    for number in range(6):
        kept.put([(Row.RETAINED, bytes(400_000), number)])
        kept.begin()
    kept._cache.clear()
    kept._cached_bytes = 0
    told = []
    kept.fetch([1, 2, 3, 4, 5, 6], told.append)
    assert sorted(told[0]) == [1, 2, 3]
    kept.fetch([1, 6], told.append)  # what lies between is read over
    assert sorted(told[1]) == [1, 6]


def test_in_a_lane_nothing_is_on_disk_behind_what_failed():
    journal = FakeJournal()
    kept = Store(journal)
    jobs = []
    kept.beside = lambda job, done: jobs.append((job, done))
    told = []
    for name, lane in (("a1", "a"), ("other", None)):
        kept.put([(Row.RETAINED, name)], lambda commit, name=name: told.append((name, commit.failure)), lane=lane)
    kept.begin()
    for name, lane in (("a2", "a"), ("b1", "b"), ("late", None)):
        kept.put([(Row.RETAINED, name)], lambda commit, name=name: told.append((name, commit.failure)), lane=lane)
    journal.failing = "no"
    job, done = jobs.pop()
    job()
    done()
    assert {name for name, failure in told if failure is not None} == {"a1", "other", "a2"}
    journal.failing = ""
    kept.begin()
    job, done = jobs.pop()
    job()
    done()
    stored = [row[1] for entry in journal.read() for row in unpack_group(entry.sequence, entry.payload).rows]
    assert stored == ["b1", "late"]
