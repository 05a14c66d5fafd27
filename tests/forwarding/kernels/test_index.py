"""Each piece of the forwarding table's arrays against its twin, by itself: from keys to cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.state.memory import Memory
from tests.forwarding.kernels import index_drivers as drive
from tests.naive.indexes import ORDERS, NaiveCells, NaiveThresholds

if TYPE_CHECKING:
    import random

ints = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-20, 20),
    st.builds(lambda power, by: max(-(2**63), min(2**63 - 1, 2**power + by)), st.integers(50, 63), st.integers(-3, 3)),
)
floats = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**54), 2**54).map(float), st.just(2.0**63)
)


def _memory(rows: int = 4000) -> Memory:
    memory = Memory()
    memory.reserve(rows=rows, filters=1000, text=100_000, names=40, interfaces=4)
    return memory


def _bytes(text: bytes) -> Any:
    return np.frombuffer(text + bytes(8), np.uint8)


def _pair(number: float) -> tuple[int, int]:
    out = np.empty((1, 2), np.int64)
    whole = isinstance(number, int)
    drive.number_keys(np.array([number] if whole else [], np.int64), np.array([] if whole else [number], float), out)
    return int(out[0, 0]), int(out[0, 1])


@given(st.lists(st.one_of(ints, floats), min_size=2, max_size=12))
def test_keys_order_numbers_exactly(numbers: list[float]) -> None:
    pairs = [_pair(number) for number in numbers]
    for a, x in zip(numbers, pairs, strict=True):
        for b, y in zip(numbers, pairs, strict=True):
            assert (x < y, x == y) == (a < b, a == b)


@given(st.lists(st.text(max_size=12).map(str.encode), min_size=2, max_size=8))
def test_bytes_compare_as_strings_do(texts: list[bytes]) -> None:
    out = np.zeros((len(texts), 6), np.int64)
    drive.text_facts(
        np.frombuffer(b"".join(text + bytes(8) for text in texts), np.uint8), np.array([*map(len, texts)]), out
    )
    for i, text in enumerate(texts):
        key, forward, backward, gram = out[i, :4].tolist()
        for j, other in enumerate(texts):
            if text == other:
                assert out[j, :4].tolist() == [key, forward, backward, gram]
            if text[::-1] == other:
                assert out[j, 2] == forward
            if key < out[j, 0]:
                assert text < other
        if i + 1 < len(texts):
            assert out[i, 4] == (text > texts[i + 1]) - (text < texts[i + 1])
            assert out[i, 5] == (text == texts[i + 1])


@given(st.lists(st.integers(-50, 50), max_size=120), st.integers(0, 5))
def test_runs_are_sorted_and_nothing_else(numbers: list[int], first: int) -> None:
    array = np.array([*range(9, 9 - first, -1), *numbers, 7, 3], np.int64)
    drive.sorted_run(array, first, first + len(numbers))
    assert array.tolist() == [*range(9, 9 - first, -1), *sorted(numbers), 7, 3]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40), st.integers(0, 1000)), max_size=80))
def test_words_are_given_to_one_at_a_time_and_used_again(steps: list[tuple[bool, int, int]]) -> None:
    memory = _memory()
    held: list[tuple[int, int]] = []
    most: dict[int, int] = {}
    for taking, count, which in steps:
        if taking or not held:
            place = drive.take(memory.index, count)
            assert place > 0
            assert all(place + count <= other or other + size <= place for other, size in held)
            memory.index.words[place : place + count] = -1
            held.append((place, count))
        else:
            drive.give(memory.index, *held.pop(which % len(held)))
        pieces = [1 << (size - 1).bit_length() for _, size in held]
        most = {piece: max(most.get(piece, 0), pieces.count(piece)) for piece in {*most, *pieces}}
    # Sizes of one power of two share memory: never more than the most there was at once.
    assert memory.state[layout.S_WORDS] <= 1 + sum(piece * count for piece, count in most.items())


@given(st.lists(st.one_of(st.none(), st.integers(0, 400)), max_size=250), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_postings_are_a_bag(steps: list[int | None], rng: random.Random) -> None:
    memory = _memory()
    out = np.zeros(3, np.int64)
    head, places = 0, dict[int, int]()  # payload -> place
    for payload in steps:
        if payload is not None and payload not in places:
            drive.push(memory.index, head, payload, out)
            head, places[payload] = int(out[0]), int(out[1])
        elif places:
            gone = rng.choice(sorted(places))
            place = places.pop(gone)
            drive.drop(memory.index, head, place, out)
            head = int(out[0])
            if out[1]:
                assert places[int(out[2])] == out[1]
                places[int(out[2])] = place
        room = np.empty(512, np.int64)
        assert sorted(room[: drive.listed(memory.index, head, room)].tolist()) == sorted(places)
        assert memory.state[layout.S_POSTING_COUNT] == len(places)
        assert (head == 0) == (not places)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.integers(1, 3),
            st.one_of(st.integers(-5, 5), st.binary(max_size=10), st.sampled_from([2**62, -(2**62)])),
        ),
        max_size=150,
    )
)
@settings(max_examples=40)
def test_operands_are_a_dictionary(steps: list[tuple[int, int, int | bytes]]) -> None:
    memory = _memory()
    known: dict[tuple[int, int | bytes], int] = {}

    def ask(name: int, value: int | bytes, make: bool) -> int:
        if isinstance(value, int):
            return drive.number_operand(memory.index, name << 8 | layout.NUMBER, value, value & 7, make)
        return drive.text_operand(memory.index, name << 8 | layout.STRING, _bytes(value), len(value), make)

    for step, name, value in steps:
        assert ask(name, value, False) == known.get((name, value), 0)
        if step:
            found = ask(name, value, True)
            assert known.setdefault((name, value), found) == found
        elif (name, value) in known:
            drive.free(memory.index, known.pop((name, value)))
        assert len(set(known.values())) == len(known) == memory.state[layout.S_OPERAND_COUNT]
    for (name, value), operand in known.items():
        assert ask(name, value, False) == operand


def test_the_hash_of_operands_grows_by_the_bucket() -> None:
    memory = _memory()
    for key in range(3000):
        drive.number_operand(memory.index, 1 << 8 | layout.NUMBER, key, 0, True)
        assert memory.state[layout.S_BUCKETS] >= memory.state[layout.S_OPERAND_COUNT]
    for key in range(3000):
        assert drive.number_operand(memory.index, 1 << 8 | layout.NUMBER, key, 0, False) == key + 1


@pytest.mark.parametrize("kind", [layout.NUMBER, layout.STRING])
@given(data=st.data())
@settings(max_examples=25)
def test_thresholds_are_a_sorted_list(kind: int, data: Any) -> None:
    """Both sides; enough entries for blocks to split and join."""
    values = st.text("abcé\0", max_size=10) if kind == layout.STRING else st.one_of(st.integers(-3, 3), ints, floats)
    some = data.draw(st.lists(values, min_size=1, max_size=12))
    rng = data.draw(st.randoms(use_true_random=False))
    memory, naive = _memory(), NaiveThresholds()
    empty = np.zeros(8, np.uint8)
    directories = {False: 0, True: 0}

    def operand(value: Any) -> int:
        if kind == layout.STRING:
            encoded = value.encode()
            return drive.text_operand(memory.index, 1 << 8 | layout.STRING, _bytes(encoded), len(encoded), True)
        return drive.number_operand(memory.index, 1 << 8 | layout.NUMBER, *_pair(value), True)

    def change(op: str, value: Any, payload: int, on: bool) -> None:
        above = op in (">", ">=")
        tie = int(op in ("<=", ">"))
        directories[above] = drive.change_threshold(memory.index, directories[above], operand(value), tie, payload, on)
        (naive.entries.add if on else naive.entries.remove)((op, value, payload))

    def agree() -> None:
        for value in some:
            found: list[int] = []
            if kind == layout.STRING:
                encoded = value.encode()
                key, text, length = memory.index.operands[operand(value), layout.O_KEY], _bytes(encoded), len(encoded)
                row = [key, 0, length]
            else:
                row, text = [*_pair(value), -1], empty
            for above, directory in directories.items():
                if directory:
                    out = np.empty(1000, np.int64)
                    count = drive.satisfied(memory.index, directory, above, np.array(row, np.int64), text, out)
                    found += out[:count].tolist()
            assert sorted(found) == naive.satisfied(value)

    for payload in range(data.draw(st.sampled_from((3, 70, 300)))):
        change(rng.choice(list(ORDERS)), rng.choice(some), payload, True)
    agree()
    for entry in rng.sample(sorted(naive.entries, key=lambda e: e[2]), len(naive.entries) * 9 // 10):
        change(*entry, False)
    agree()
    for entry in list(naive.entries):
        change(*entry, False)
    assert directories == {False: 0, True: 0}
    assert memory.state[layout.S_THRESHOLD_COUNT] == 0


@given(st.lists(st.tuples(st.integers(-40, 40), st.integers(0, 20)), max_size=30), st.lists(st.integers(-200, 200)))
def test_cells_hold_what_lies_in_them(cells: list[tuple[int, int]], keys: list[int]) -> None:
    memory, naive = _memory(), NaiveCells()
    events = np.zeros((64, 3), np.int64)
    operands: dict[int, tuple[int, int]] = {}
    for cell, level in cells:
        if (cell, level) not in naive.cells:
            operand = drive.cell_operand(memory.index, 2, layout.NUMBER, cell, level)
            drive.file(memory.index, operand, events, True)
            operands[operand] = cell, level
            naive.cells.add((cell, level))
    for key in keys:
        room = np.empty(256, np.int64)
        count = drive.search_cells(memory.index, 2, layout.NUMBER, key, room)
        assert {operands[found] for found in room[:count].tolist()} == naive.found(key)
