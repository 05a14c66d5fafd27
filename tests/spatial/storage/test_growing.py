"""Arrays that grow: whatever their size, what was there is there again, and zeros behind it."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contrada.spatial.storage import growing
from contrada.spatial.storage.growing import LARGE, longer

if TYPE_CHECKING:
    import pytest


@given(
    st.sampled_from([np.int64, np.float64, np.int32, np.uint8]),
    st.sampled_from([(), (3,), (8, 4)]),
    st.lists(st.integers(0, 1 << 12), min_size=1, max_size=4).map(sorted),
    st.integers(0, 255),
)
def test_rows_are_kept_and_the_rest_is_zero(dtype, columns, sizes, seed) -> None:
    filled = np.random.default_rng(seed).integers(1, 100, (sizes[0], *columns)).astype(dtype)
    array = filled.copy()
    for rows in (*sizes[1:], sizes[-1] + LARGE // 8, sizes[-1] + LARGE // 4):
        array = longer(array, rows)
        assert array.shape == (rows, *columns)
        assert array.dtype == dtype
        assert array.flags.writeable
        assert array.flags.c_contiguous
        assert (array[: len(filled)] == filled).all()
        assert not array[len(filled) :].any()


def test_a_large_array_is_moved_and_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    array = longer(np.arange(10.0), LARGE)
    monkeypatch.setattr(growing, "_copied", None)
    grown = longer(array, 4 * LARGE)
    assert grown[:10].tolist() == list(range(10))
    assert not array.any(), "what was there reads as zeros"
    array[0] = 7.0
    assert grown[0] == 0.0
    grown[-1] = 1.0
    del array
    gc.collect()
    assert grown[-1] == 1.0


def test_a_part_of_a_large_array_is_copied() -> None:
    array = longer(np.arange(10.0), LARGE)
    part = longer(array[1:], 2 * LARGE)
    assert part[:9].tolist() == list(range(1, 10))
    assert array[9] == 9.0


def test_where_the_system_cannot_move_pages_they_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    array = longer(np.arange(10.0), LARGE)
    monkeypatch.setattr(growing, "_moved", lambda _array, _size: None)
    grown = longer(array, 2 * LARGE)
    assert grown[:10].tolist() == list(range(10))
    assert array[9] == 9.0
