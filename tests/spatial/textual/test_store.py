from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from contrada.errors import CorruptFile, InvalidValue, NotFound
from contrada.spatial.textual.baselines.scan import Scan
from contrada.spatial.textual.protocol import Subscription, TextualIndex
from contrada.spatial.textual.registry import NAMES, textual_index

if TYPE_CHECKING:
    from pathlib import Path

UNIT = (0.0, 0.0, 1.0, 1.0)


def test_ids_of_words_descend_in_frequency_and_the_rarest_keyword_is_last() -> None:
    index = Scan.build(
        [
            Subscription(1, frozenset({"rare", "common"}), UNIT),
            Subscription(2, frozenset({"common", "middling"}), UNIT),
            Subscription(3, frozenset({"common", "middling"}), UNIT),
        ]
    )
    assert [index.vocabulary.word(i) for i in (1, 2, 3)] == ["common", "middling", "rare"]
    assert index.vocabulary.df[:4].tolist() == [0, 3, 2, 1]
    assert index.store.keywords(index.store.slot(1)).tolist() == [1, 3]


def test_no_keywords_are_the_wildcard_and_cost_messages_nothing_once_gone() -> None:
    index = Scan.build([Subscription(5, frozenset(), UNIT), Subscription(6, frozenset({"a"}), UNIT)])
    assert index.vocabulary.lookup(["b"]).tolist() == [0]
    assert index.search([], UNIT).tolist() == [5]
    assert index.get(5) == Subscription(5, frozenset(), UNIT)
    index.remove(5)
    assert index.vocabulary.lookup(["b"]).tolist() == []
    index._check()


def test_slots_words_and_keyword_runs_are_used_again() -> None:
    index = Scan()
    rng = random.Random(7)
    alive: list[int] = []
    for i in range(6_000):
        if len(alive) > 40:
            index.remove(alive.pop(rng.randrange(len(alive))))
        words = frozenset(f"word{rng.randrange(10**9)}" for _ in range(rng.randrange(6)))
        index.insert(Subscription(i * 7919 % (2**31), words, UNIT))
        alive.append(i * 7919 % (2**31))
    index._check()
    assert len(index) == len(alive)
    assert index.store.rows.ids.size < 200
    assert index.store.rows.keywords.size < 1_000
    assert index.vocabulary.size < 400
    assert sorted(alive) == index.search(list(index.vocabulary._ids), UNIT).tolist()


def test_flat_arrays_build_the_same_index() -> None:
    index = Scan.build_arrays(
        [9, 4, 2], [0, 3, 3, 4], [1, 0, 1, 2], ["b", "a", "c", "unused"], [UNIT, (2, 2, 3, 3), UNIT]
    )
    index._check()
    assert index.get(9) == Subscription(9, frozenset({"a", "b"}), UNIT)
    assert index.get(4) == Subscription(4, frozenset(), (2.0, 2.0, 3.0, 3.0))
    assert "unused" not in index.vocabulary
    assert index.search({"a", "b"}, (0.0, 0.0, 2.0, 2.0)).tolist() == [4, 9]


@pytest.mark.parametrize(
    ("fault", "arrays"),
    [
        ("offsets", ([1], [0, 2], [0], ["a"], [UNIT])),
        ("boxes", ([1], [0, 1], [0], ["a"], [UNIT, UNIT])),
        ("vocabulary", ([1], [0, 1], [3], ["a"], [UNIT])),
        ("twice", ([1], [0, 1], [0], ["a", "a"], [UNIT])),
        ("given twice", ([1, 1], [0, 1, 1], [0], ["a"], [UNIT, UNIT])),
        ("2\\*\\*31", ([2**31], [0, 1], [0], ["a"], [UNIT])),
        ("inside out", ([1], [0, 1], [0], ["a"], [(1, 0, 0, 1)])),
        ("not finite", ([1], [0, 1], [0], ["a"], [(0, 0, float("nan"), 1)])),
    ],
)
def test_bad_arrays_are_refused(fault: str, arrays: tuple[object, ...]) -> None:
    with pytest.raises(InvalidValue, match=fault):
        Scan.build_arrays(*arrays)


@pytest.mark.parametrize(
    "bad",
    [
        Subscription(-1, frozenset(), UNIT),
        Subscription(2**31, frozenset(), UNIT),
        Subscription(True, frozenset(), UNIT),
        Subscription(1, "word", UNIT),
        Subscription(1, frozenset({1}), UNIT),
        Subscription(1, frozenset(), (0.0, 0.0, 1.0)),
        Subscription(1, frozenset(), (0.0, 1.0, 1.0, 0.0)),
        Subscription(1, frozenset(), (0.0, 0.0, float("inf"), 1.0)),
        Subscription(3, frozenset(), UNIT),
    ],
)
def test_bad_subscriptions_are_refused_and_leave_no_trace(bad: Subscription) -> None:
    index = Scan.build([Subscription(3, frozenset({"a"}), UNIT)])
    with pytest.raises(InvalidValue):
        index.insert(bad)
    index._check()
    assert len(index) == 1


def test_unknown_ids_names_and_options() -> None:
    with pytest.raises(NotFound):
        Scan().remove(3)
    with pytest.raises(NotFound):
        Scan().get(-3)
    with pytest.raises(InvalidValue, match="choose one of"):
        textual_index("b-tree")
    with pytest.raises(InvalidValue, match="unknown option"):
        Scan(fanout=3)
    with pytest.raises(InvalidValue, match="message"):
        Scan().search("word", UNIT)


def test_a_file_of_another_index_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "index"
    Scan.build([Subscription(3, frozenset({"a"}), UNIT)]).save(path)
    with pytest.raises(CorruptFile, match="textual:scan"):
        type("Other", (Scan,), {"name": "other"}).load(path)
    with path.open("r+b") as file:
        file.truncate(200)
    with pytest.raises(CorruptFile):
        Scan.load(path)


def test_every_name_is_an_index_of_that_name() -> None:
    for name in NAMES:
        index: TextualIndex = textual_index(name)()
        assert textual_index(name).name == name
        assert len(index) == 0
        assert index.search(["a"], UNIT).dtype == np.int64


def test_huge_keyword_sets_are_sorted_like_small_ones() -> None:
    """Sets of both sides of where insertion stops being quick; one of 200,000 words would hang a quadratic sort."""
    words = [f"w{i}" for i in range(200_000)]
    shuffled = np.random.default_rng(1).permutation(200_000)
    keywords = np.concatenate([shuffled, shuffled[:40], shuffled[:5], shuffled[:5], shuffled[7:47]])
    ends = np.cumsum([0, 200_000, 45, 5, 40])
    index = Scan.build_arrays([4, 3, 2, 1], ends, keywords, words, np.zeros((4, 4)))
    index._check()
    assert index.get(3).keywords == {words[i] for i in shuffled[:40]}
    assert index.get(1).keywords == {words[i] for i in shuffled[7:47]}
    assert index.search(words, (0.0, 0.0, 0.0, 0.0)).tolist() == [1, 2, 3, 4]


def test_what_is_no_subscription_or_message_is_refused_and_changes_nothing() -> None:
    index = Scan.build([Subscription(1, frozenset({"a"}), UNIT)])
    for nonsense in (5, (1, 2), Subscription(2, None, UNIT), Subscription(2, 7, UNIT), Subscription(2, [["a"]], UNIT)):
        with pytest.raises(InvalidValue):
            index.insert(nonsense)
        with pytest.raises(InvalidValue):
            Scan.build([nonsense])
    for tokens in (None, 5, [["a"]], "a"):
        with pytest.raises(InvalidValue, match="tokens"):
            index.search(tokens, UNIT)
    for id in ("a", None, 1.5, -1, 2**31):
        with pytest.raises(NotFound):
            index.remove(id)
    index._check()
    index.insert(Subscription(2, (word for word in ("a", "b")), UNIT))
    assert index.get(2).keywords == {"a", "b"}, "any iterable will do"
    assert index.search((word for word in "ab"), UNIT).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("ids", "offsets", "keywords", "vocabulary", "boxes"),
    [
        ([1.5], [0, 1], [0], ["a"], [UNIT]),
        (["a"], [0, 1], [0], ["a"], [UNIT]),
        ([1], [0, 1.9], [0], ["a"], [UNIT]),
        ([1], [0, 1], [0.7], ["a"], [UNIT]),
        ([1], [0, 1], [0], [5], [UNIT]),
        ([1], [0, 1], [0], [["a"]], [UNIT]),
        ([1], [0, 1], [0], ["a"], [[1, 2], [1, 2, 3]]),
        ([1], [0, 1], [0], ["a"], [[1, 2, 3]]),
        ([[1]], [0, 1], [0], ["a"], [UNIT]),
    ],
)
def test_arrays_of_the_wrong_kind_are_refused(
    ids: object, offsets: object, keywords: object, vocabulary: list[str], boxes: object
) -> None:
    with pytest.raises(InvalidValue):
        Scan.build_arrays(ids, offsets, keywords, vocabulary, boxes)


def test_arrays_of_another_layout_are_refused() -> None:
    arrays = Scan.build([Subscription(1, frozenset({"a"}), UNIT)]).arrays()
    assert Scan.from_arrays(arrays).search({"a"}, UNIT).tolist() == [1]
    for other in ({**arrays, "layout": np.array([99])}, {n: a for n, a in arrays.items() if n != "layout"}):
        with pytest.raises(CorruptFile, match="layout"):
            Scan.from_arrays(other)
