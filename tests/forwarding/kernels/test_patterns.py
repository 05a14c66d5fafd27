"""Prefixes, suffixes and substrings: found as their twin finds them, in a bounded number of steps whatever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.forwarding.kernels.match.finding import C_STEPS, HASHES_BESIDE
from contrada.forwarding.kernels.match.verifying import C_SIZE
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.language.attr import attr
from contrada.forwarding.state.memory import Memory
from contrada.forwarding.state.trie_check import check_tries
from contrada.forwarding.table.table import ForwardingTable
from tests.forwarding.kernels import index_drivers as drive
from tests.naive.indexes import NaivePatterns

if TYPE_CHECKING:
    import random
    from pathlib import Path

_KINDS = {
    "prefix": layout.PATTERN_PREFIX,
    "suffix": layout.PATTERN_SUFFIX,
    "contains": layout.PATTERN_CONTAINS,
}
_NAME = 3


def _fibonacci(letters: str, count: int) -> str:
    """A Fibonacci word: as periodic as a word can be without a period."""
    a, b = letters[0], letters
    while len(b) < count:
        a, b = b, b + a
    return b[:count]


words = st.one_of(
    st.text("ab", min_size=1, max_size=9),
    st.text(min_size=1, max_size=5),
    st.builds(lambda piece, times: piece * times, st.text("abc", min_size=1, max_size=3), st.integers(1, 50)),
    st.builds(
        lambda piece, times, end: piece * times + end, st.sampled_from(("a", "ab")), st.integers(1, 80), st.text("ab")
    ),
    st.builds(
        lambda count, first, end: _fibonacci("ab", count)[first:] + end,
        st.integers(1, 150),
        st.integers(0, 20),
        st.text("ab", max_size=2),
    ).filter(bool),
)
patterns = words.map(str.encode)


class _Patterns:
    """Patterns of one name, filed in a memory by themselves, beside their twin."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.memory.reserve(rows=20_000, filters=1000, text=4_000_000, names=40, interfaces=4)
        self.naive = NaivePatterns()
        self.filed: dict[tuple[str, bytes], int] = {}
        self._events = np.zeros((512, 3), np.int64)
        self._marks = np.zeros(len(self.memory.index.operands), np.int64)
        self.cursor = np.zeros(C_SIZE, np.int64)

    def add(self, op: str, pattern: bytes) -> None:
        if (op, pattern) in self.filed:
            return
        operand = drive.text_operand(self.memory.index, _NAME << 8 | _KINDS[op], _bytes(pattern), len(pattern), True)
        drive.file(self.memory.index, operand, self._events, True)
        self.filed[op, pattern] = operand
        self.naive.patterns.add((op, pattern))

    def remove(self, op: str, pattern: bytes) -> None:
        operand = self.filed.pop((op, pattern))
        drive.file(self.memory.index, operand, self._events, False)
        drive.free(self.memory.index, operand)
        self.naive.patterns.remove((op, pattern))

    def search(self, text: bytes, room: int = 1 << 14) -> list[int] | None:
        """The operands found, or none when they are more than there is room for."""
        hashes = np.empty(len(text) + HASHES_BESIDE, np.int64)
        found = np.empty(room, np.int64)
        count = drive.search_text(
            self.memory.index, _NAME, _bytes(text), len(text), hashes, self._marks, self.cursor, found
        )
        return None if count < 0 else found[:count].tolist()

    def agree(self, texts: list[bytes]) -> None:
        names = {operand: pattern for pattern, operand in self.filed.items()}
        for text in texts:
            found = self.search(text)
            assert found is not None
            assert len(set(found)) == len(found)
            assert {names[operand] for operand in found} == self.naive.found(text)


def _bytes(text: bytes) -> Any:
    return np.frombuffer(text + bytes(8), np.uint8)


@given(
    st.lists(st.tuples(st.sampled_from(list(_KINDS)), patterns), max_size=40),
    st.lists(st.one_of(patterns, st.text("ab", max_size=150).map(str.encode), st.just(b"")), max_size=6),
    st.randoms(use_true_random=False),
)
@settings(max_examples=150)
def test_patterns_are_found_where_they_stand(
    steps: list[tuple[str, bytes]], texts: list[bytes], rng: random.Random
) -> None:
    both = _Patterns()
    texts += [pattern + b"a" + other for (_, pattern), (_, other) in zip(steps, reversed(steps), strict=True)][:4]
    # Patterns that begin and end one another.
    steps += [(op, pattern[: rng.randint(1, len(pattern))]) for op, pattern in steps if rng.random() < 0.5]
    steps += [(op, pattern[-rng.randint(1, len(pattern)) :]) for op, pattern in steps if rng.random() < 0.3]
    for op, pattern in steps:
        both.add(op, pattern)
        if rng.random() < 0.3:
            both.remove(*rng.choice(sorted(both.filed)))
        check_tries(both.memory)
    both.agree(texts)
    for gone in rng.sample(sorted(both.filed), len(both.filed) // 2):
        both.remove(*gone)
        check_tries(both.memory)
    both.agree(texts)
    for gone in list(both.filed):
        both.remove(*gone)
    check_tries(both.memory)
    assert both.memory.state[layout.S_OPERAND_COUNT] == 0


def test_a_search_without_room_says_so() -> None:
    both = _Patterns()
    for i in range(1, 100):
        both.add("contains", b"a" * i)
    assert both.search(b"a" * 400, 60) is None
    found = both.search(b"a" * 400)
    assert found is not None
    assert len(found) == 99


def _hostile(count: int) -> list[bytes]:
    """Patterns of 256 bytes that resemble one another and a run of one letter as much as so many can."""
    found = []
    for i in range(count):
        pattern = bytearray(b"a" * 256)
        pattern[255 - i % 128] = ord("b") + i // 128 % 16
        if i >= 2048:
            pattern[100 + i % 27] = ord("z")
        found.append(bytes(pattern))
    return list(dict.fromkeys(found))


@pytest.mark.parametrize(
    ("some", "text"),
    [
        (_hostile(64), b"a" * 50_000),
        (_hostile(2048), b"a" * 50_000),
        ([b"a" * n for n in range(1, 257)], b"a" * 50_000),
        ([b"a" * n + b"b" for n in range(256)], b"a" * 50_000),
        ([b"b" + b"a" * n for n in range(256)], b"ba" * 25_000),
        ([(b"ab" * 128)[:n] + b"c" for n in range(256)], b"ab" * 25_000),
        (
            [_fibonacci("ab", n).encode() + end for n in range(1, 256) for end in (b"", b"a", b"b", b"c")],
            _fibonacci("ab", 50_000).encode(),
        ),
    ],
)
def test_no_patterns_and_no_text_cost_more_than_a_few_probes_for_each_byte(some: list[bytes], text: bytes) -> None:
    both = _Patterns()
    for pattern in some:
        both.add("contains", pattern)
    check_tries(both.memory)
    both.agree([text])
    assert both.cursor[C_STEPS] < 80 * len(text)


def _steps(table: ForwardingTable) -> int:
    """What searches for substrings have taken since the table was made."""
    return int(table._memory.counted[C_STEPS])


def test_one_search_serves_all_filters_that_are_verified() -> None:
    text = "a" * 20_000
    for count in (10, 500):
        table = ForwardingTable(simplify=False)
        table.add_many(
            [
                (i, (attr("kind") == 1) & attr("s").contains(pattern.decode()))
                for i, pattern in enumerate(_hostile(count))
            ]
        )
        table.add("found", (attr("kind") == 1) & attr("s").contains("a" * 256))
        table.add("above", (attr("s") > "a") & attr("s").contains("aa") & attr("s").contains("ba"))
        assert table.match({"kind": 1, "s": text}) == {"found"}
        assert 0 < _steps(table) < 80 * len(text)
        assert table.match({"kind": 1, "s": text + "b" + "a" * 200}) >= {"found", "above"}
        table._check()


@given(
    st.lists(st.tuples(words, st.booleans()), min_size=1, max_size=60),
    st.lists(words, max_size=4),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60)
def test_a_table_verifies_and_finds_substrings_alike(
    some: list[tuple[str, bool]], others: list[str], rng: random.Random
) -> None:
    table = ForwardingTable(simplify=rng.random() < 0.5)
    ids = {}
    for i, (word, beside) in enumerate(some):
        condition = attr("s").contains(word)
        (ids[i],) = table.add(str(i), condition & (attr("k") == 1) if beside else condition)
    gone = set(rng.sample(range(len(some)), len(some) // 4))
    for i in gone:
        table.remove(ids[i])
    table._check()
    for text in [*others, some[0][0] * 3, "".join(word for word, _ in some), "a" * 300]:
        for k in (1, 2):
            held = {str(i) for i, (word, beside) in enumerate(some) if word in text and (k == 1 or not beside)}
            held -= {str(i) for i in gone}
            assert table.match({"s": text, "k": k}) == held
            assert table.match({"k": k, "s": text}) == held


def test_patterns_are_found_in_a_table_that_was_saved(tmp_path: Path) -> None:
    table = ForwardingTable()
    some = ["a" * n + end for n in range(1, 200, 7) for end in ("", "b", "é")]
    table.add_many([(word, attr("s").contains(word)) for word in some])
    table.add_many([("prefix " + word, attr("s").prefix(word)) for word in some])
    table.add_many([("suffix " + word, attr("s").suffix(word)) for word in some])
    table.save(tmp_path / "table")
    loaded = ForwardingTable.load(tmp_path / "table")
    loaded.add("late", attr("s").contains("a" * 30 + "bb"))
    loaded._check()
    for text in ("a" * 150 + "b", "é" + "a" * 99, "aab" * 90, "a" * 30 + "bb"):
        held = {word for word in some if word in text}
        held |= {"prefix " + word for word in some if text.startswith(word)}
        held |= {"suffix " + word for word in some if text.endswith(word)}
        assert loaded.match({"s": text}) == held | ({"late"} if "a" * 30 + "bb" in text else set())


@given(patterns, st.one_of(patterns, st.lists(patterns, max_size=4).map(b"".join)), st.integers(1, 40))
def test_one_string_in_another(pattern: bytes, text: bytes, times: int) -> None:
    both = _Patterns()
    both.add("contains", pattern)
    for each in (
        text,
        text * times,
        pattern[:-1] * times,
        pattern[1:] * times + pattern,
        pattern[:-1] * times + pattern,
    ):
        held = drive.contains(both.memory.index, _bytes(each), len(each), both.filed["contains", pattern])
        assert held == (pattern in each)
