"""Every registered index answers as the naive twin does, whatever the subscriptions, messages and history."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.errors import CorruptFile
from contrada.spatial.textual.protocol import Subscription
from contrada.spatial.textual.registry import NAMES, textual_index
from tests.naive.textual import NaiveTextual
from tests.spatial.textual.workloads import (
    UNIVERSE,
    boxes,
    keywords,
    messages,
    subscription_lists,
    zipf_messages,
    zipf_subscriptions,
)

if TYPE_CHECKING:
    from pathlib import Path

    from contrada.spatial.textual.base import StoredIndex

    Message = tuple[frozenset[str], tuple[float, float, float, float]]

every_index = pytest.mark.parametrize("name", NAMES)

MESSAGES: list[Message] = [
    *zipf_messages(25, 1),
    *zipf_messages(8, 2, tokens=120),
    *zipf_messages(15, 3, side=0.3),
    (frozenset(f"w{i}" for i in range(200)), (0.0, 0.0, 1.0, 1.0)),
    (frozenset({"w0", "w1"}), (-5.0, -5.0, -4.0, -4.0)),
    (frozenset({"w0", "w1", "w2"}), UNIVERSE),
    (frozenset(), UNIVERSE),
    (frozenset({"unheard"}), (0.5, 0.5, 0.5, 0.5)),
]


def assert_same(index: StoredIndex, naive: NaiveTextual, asked: list[Message]) -> None:
    for tokens, box in asked:
        found = index.search(tokens, box)
        assert found.tolist() == naive.search(tokens, box)
        assert index.counters.matched == found.size
    words = list(dict.fromkeys(word for tokens, _ in asked for word in sorted(tokens)))
    runs = [[words.index(word) for word in sorted(tokens)] * 2 for tokens, _ in asked]  # each word twice
    offsets, flat = np.cumsum([0, *map(len, runs)]), np.array([word for run in runs for word in run], np.int32)
    found, ends = index.search_many(offsets, flat, words, np.array([box for _, box in asked], float).reshape(-1, 4))
    assert [sorted(part.tolist()) for part in np.split(found, ends[:-1])] == [naive.search(*each) for each in asked]


@every_index
@settings(max_examples=40)
@given(subscription_lists(), st.lists(messages, min_size=1, max_size=8))
def test_hostile_subscriptions(name: str, subscriptions: list[Subscription], asked: list[Message]) -> None:
    index = textual_index(name).build(subscriptions)
    index._check()
    assert_same(index, NaiveTextual(subscriptions), asked)


@every_index
@settings(max_examples=25)
@given(
    subscription_lists(max_size=12),
    st.lists(st.one_of(st.tuples(keywords, boxes), st.integers(0, 10**6), messages.map(list)), max_size=60),
)
def test_any_history(
    name: str, subscriptions: list[Subscription], steps: list[tuple[frozenset[str], tuple[float, ...]] | int | Message]
) -> None:
    """A pair is inserted, a number picks what to remove, a list is a message to search for."""
    index, naive = textual_index(name).build(subscriptions), NaiveTextual(subscriptions)
    fresh = 10**8
    for step in steps:
        if isinstance(step, int):
            if naive.subscriptions:
                gone = sorted(naive.subscriptions)[step % len(naive.subscriptions)]
                index.remove(gone)
                naive.remove(gone)
                assert gone not in index
        elif isinstance(step, list):
            assert_same(index, naive, [step])
        else:
            subscription = Subscription(fresh := fresh + 1, *step)
            index.insert(subscription)
            naive.insert(subscription)
    index._check()
    assert len(index) == len(naive.subscriptions)
    everything = frozenset(w for s in naive.subscriptions.values() for w in s.keywords)
    assert index.search(everything, UNIVERSE).tolist() == sorted(naive.subscriptions)


@every_index
def test_built_grown_shrunk_saved_and_loaded(name: str, tmp_path: Path) -> None:
    first, later = zipf_subscriptions(1_200, 11), zipf_subscriptions(700, 12, first=5_000, side=0.5)
    index, naive = textual_index(name).build(first), NaiveTextual(first)
    assert_same(index, naive, MESSAGES)
    for i, subscription in enumerate(later):
        index.insert(subscription)
        naive.insert(subscription)
        if i % 2:
            index.remove(first[i].id)
            naive.remove(first[i].id)
    index._check()
    assert_same(index, naive, MESSAGES)

    index.save(tmp_path / "index")
    loaded = textual_index(name).load(tmp_path / "index")
    loaded._check()
    assert_same(loaded, naive, MESSAGES)
    for id in sorted(naive.subscriptions)[::-1][:-40]:
        loaded.remove(id)
        naive.remove(id)
    for subscription in zipf_subscriptions(150, 13, first=9_000):
        loaded.insert(subscription)
        naive.insert(subscription)
    loaded._check()
    assert_same(loaded, naive, MESSAGES)
    assert len(index) == 1_550, "the original lives on"
    index._check()


@every_index
def test_arrays_that_are_missing_or_foreign_are_refused(name: str) -> None:
    kind = textual_index(name)
    arrays = kind.build(zipf_subscriptions(50, 3)).arrays()
    for part in arrays:
        with pytest.raises(CorruptFile):
            kind.from_arrays({other: array for other, array in arrays.items() if other != part})
    with pytest.raises(CorruptFile, match="foreign"):
        kind.from_arrays({**arrays, "foreign": arrays["layout"]})


@every_index
def test_inserted_one_by_one(name: str) -> None:
    index, naive = textual_index(name)(), NaiveTextual()
    for subscription in zipf_subscriptions(600, 21, words=40):
        index.insert(subscription)
        naive.insert(subscription)
    index._check()
    assert_same(index, naive, MESSAGES)
    for id in list(naive.subscriptions):
        index.remove(id)
    index._check()
    assert len(index) == 0
    assert index.search(frozenset(f"w{i}" for i in range(40)), UNIVERSE).size == 0


@every_index
def test_one_keyword_in_very_many_subscriptions(name: str) -> None:
    """Identical ones, nested ones, and some that cover everything or have no keyword at all."""
    one = frozenset({"one"})
    subscriptions = [Subscription(i, one, (0.5, 0.5, 0.5, 0.5)) for i in range(700)]
    subscriptions += [Subscription(1_000 + i, one, (-i, -i, i + 0.5, i)) for i in range(300)]
    subscriptions += [Subscription(2_000 + i, one | {f"tail{i}"}, (0.25, 0.25, 0.75, 0.75)) for i in range(200)]
    subscriptions += [Subscription(3_000 + i, one if i % 2 else frozenset(), UNIVERSE) for i in range(100)]
    index, naive = textual_index(name).build(subscriptions), NaiveTextual(subscriptions)
    index._check()
    asked: list[Message] = [
        (one, (0.5, 0.5, 0.5, 0.5)),
        (one | {"tail7", "tail8"}, (0.75, 0.75, 3.0, 4.0)),
        (one, (1e6, 1e6, 1e7, 1e7)),
        (frozenset({"other"}), (0.5, 0.5, 0.5, 0.5)),
        (frozenset(), (0.0, 0.0, 0.0, 0.0)),
    ]
    assert_same(index, naive, asked)
    for i in range(0, 700, 2):
        index.remove(i)
        naive.remove(i)
    index._check()
    assert_same(index, naive, asked)


@every_index
def test_keyword_sets_of_hundreds_and_ids_at_the_limits(name: str) -> None:
    """Paths as long as Python's recursion goes, a chain of prefixes, and the first and last id there are."""
    words = [f"w{i}" for i in range(1_200)]
    subscriptions = [
        Subscription(2**31 - 1 - i, frozenset(words[: 1_200 - 100 * i]), (0.0, 0.0, i, i)) for i in range(12)
    ]
    subscriptions += [Subscription(i, frozenset(words[i::600]), (i, i, i, i)) for i in range(60)]
    index, naive = textual_index(name).build(subscriptions[::2]), NaiveTextual(subscriptions)
    for subscription in subscriptions[1::2]:
        index.insert(subscription)
    index._check()
    asked: list[Message] = [(frozenset(words[:n]), (0.0, 0.0, 5.0, 5.0)) for n in (0, 1, 700, 1_199, 1_200)]
    assert_same(index, naive, [*asked, (frozenset(words), (3.0, 3.0, 3.0, 3.0))])
    for subscription in subscriptions:
        index.remove(subscription.id)
    index._check()
    assert index.search(words, UNIVERSE).size == 0


@every_index
def test_searches_run_side_by_side(name: str) -> None:
    subscriptions = zipf_subscriptions(1_200, 11)
    index, naive = textual_index(name).build(subscriptions), NaiveTextual(subscriptions)
    expected = [naive.search(*message) for message in MESSAGES]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            found = list(pool.map(lambda message: index.search(*message).tolist(), MESSAGES))
            assert found == expected
