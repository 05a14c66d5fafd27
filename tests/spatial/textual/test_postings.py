"""Inverted lists, the id map and the tally against dictionaries."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.spatial.textual.postings import (
    bulk_postings,
    check_postings,
    contents,
    drop_list,
    empty_postings,
    find_list,
    hang,
    post,
    posted,
    shorter_side,
    unhang,
    unpost,
)
from contrada.spatial.textual.tally import new_tally, tally_known, tally_one

keys = st.tuples(st.integers(0, 3), st.integers(0, 5))
operations = st.lists(
    st.tuples(st.sampled_from(["add", "add", "remove", "drop"]), keys, st.integers(0, 9)), max_size=80
)


@settings(max_examples=60)
@given(operations, st.booleans())
def test_lists_are_dictionaries_of_lists(steps: list[tuple[str, tuple[int, int], int]], directory: bool) -> None:
    lists, naive = empty_postings(), defaultdict[tuple[int, int], list[int]](list)
    for what, (node, token), value in steps:
        held = naive[node, token]
        if what == "add":
            lists = hang(lists, node, token, value) if directory else post(lists, node, token, value)
            held.append(value)
        elif what == "drop" and directory:
            drop_list(lists, node, token)
            held.clear()
        else:
            assert posted(lists, node, token, value) == (value in held)
            if directory:
                unhang(lists, node, token, value)
            else:
                assert unpost(lists, node, token, value) == (value in held)
            if value in held:
                held.remove(value)
        check_postings(lists)
    assert {key: sorted(held) for key, held in contents(lists).items()} == {
        key: sorted(held) for key, held in naive.items() if held
    }
    if directory:
        tokens = np.arange(4, dtype=np.int32)
        for node in range(4):
            side = set(shorter_side(lists.table, lists.pool, node, tokens).tolist())
            assert {t for t in range(4) if naive[node, t]} <= side


@settings(max_examples=30)
@given(st.lists(st.tuples(keys, st.integers(0, 9)), max_size=60), st.booleans())
def test_lists_in_bulk(pairs: list[tuple[tuple[int, int], int]], directory: bool) -> None:
    flat = np.array([(node << 32) + token for (node, token), _ in pairs], np.int64)
    lists = bulk_postings(flat, np.array([value for _, value in pairs], np.int32), directories=directory)
    check_postings(lists)
    naive = defaultdict[tuple[int, int], list[int]](list)
    for key, value in pairs:
        naive[key].append(value)
    assert contents(lists) == naive
    for (node, token), value in pairs:
        lists = hang(lists, node, token, value + 100) if directory else post(lists, node, token, value + 100)
    check_postings(lists)
    assert sum(map(len, contents(lists).values())) == 2 * len(pairs)


def test_a_long_list_moves_and_its_old_room_is_reclaimed() -> None:
    lists = empty_postings()
    for i in range(5_000):
        lists = post(lists, 2**31 - 1, i % 3, i)
    check_postings(lists)
    for i in range(5_000):
        assert unpost(lists, 2**31 - 1, i % 3, i)
    check_postings(lists)
    assert find_list(lists.table, 2**31 - 1, 0) == -1
    for i in range(20_000):
        lists = post(lists, i, 0, i)
        assert unpost(lists, i, 0, i)
    check_postings(lists)
    assert lists.pool.size < 20_000, "dead room is used again"


@given(st.lists(st.integers(0, 500), max_size=400))
def test_a_tally_counts(met: list[int]) -> None:
    tally, naive = new_tally(len(met)), Counter[int]()
    for key in met:
        assert tally_known(tally, key + 1_000) == 0
        naive[key] += 1
        assert tally_one(tally, key) == naive[key]
