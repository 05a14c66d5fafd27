"""Arrays that grow in place, and the lock around them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from contrada.forwarding.state.growable import GrowableArray
from contrada.forwarding.state.lock import ReadersWriter


@pytest.mark.parametrize("columns", [0, 1, 2, 3, 8])
def test_growing_keeps_what_is_there(columns: int) -> None:
    growable = GrowableArray(columns, 10)
    growable.array[:10] = 7
    for rows in (100, 5_000, 300_000):
        growable.reserve(rows)
        assert len(growable.array) >= rows
        assert (growable.array[:10] == 7).all()
        assert not growable.array[10:].any()
        assert growable.array.ndim == (2 if columns else 1)
    assert not growable.reserve(1_000)


def test_growing_while_someone_looks_copies() -> None:
    growable = GrowableArray(2, 10)
    growable.array[3] = 5
    looking = growable.array
    growable.reserve(100_000)
    growable.array[3] = 6
    assert looking[3].tolist() == [5, 5]
    assert growable.array[3].tolist() == [6, 6]


def test_an_array_from_elsewhere_is_copied_when_it_grows() -> None:
    array = np.arange(12, dtype=np.int64).reshape(6, 2)
    growable = GrowableArray.over(array)
    assert growable.array is array
    growable.reserve(1_000)
    assert growable.array[:6].tolist() == array.tolist()


def test_a_writer_is_alone() -> None:
    lock = ReadersWriter()
    inside: list[str] = []
    seen: list[list[str]] = []

    def read() -> None:
        for _ in range(200):
            with lock.reading():
                inside.append("reader")
                seen.append(list(inside))
                inside.remove("reader")

    def write() -> None:
        for _ in range(100):
            with lock.writing():
                inside.append("writer")
                seen.append(list(inside))
                inside.remove("writer")

    threads = [threading.Thread(target=each) for each in (read, read, write, write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 600
    assert all(company == ["writer"] for company in seen if "writer" in company)
