"""Mappings with room behind them: what the file holds, then zeros, all writable, none of it in the file."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from contrada.spatial.storage.arrays_file import load_arrays, save_arrays
from contrada.spatial.storage.roomy_map import PAGE, map_with_room

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("size", [1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE])
def test_the_file_then_zeros(tmp_path: Path, size: int):
    content = bytes(range(1, 255)) * 200
    path = tmp_path / "file"
    path.write_bytes(content[: PAGE + size])
    with path.open("rb") as file:
        mapped = map_with_room(file.fileno(), PAGE, size, 10 * PAGE)
    if mapped is None:
        pytest.skip("this system does not map with room")
    assert mapped.size >= size + 10 * PAGE
    assert mapped[:size].tobytes() == content[PAGE : PAGE + size]
    assert not mapped[-(-size // PAGE) * PAGE :].any()
    mapped[:] = 7
    assert path.read_bytes() == content[: PAGE + size]
    part = mapped[size : size + 5]
    del mapped
    gc.collect()
    assert part.tolist() == [7] * 5, "the mapping lives as long as any view of it"


def test_what_cannot_be_mapped_is_left_to_the_caller(tmp_path: Path):
    (tmp_path / "file").write_bytes(bytes(3 * PAGE))
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    try:
        assert map_with_room(descriptor, 64, PAGE, PAGE) is None, "not the beginning of a page"
        assert map_with_room(descriptor, 0, 0, PAGE) is None
        assert map_with_room(descriptor, 0, PAGE, 1 << 62) is None, "more than there are addresses"
    finally:
        os.close(descriptor)
    assert map_with_room(descriptor, 0, PAGE, PAGE) is None, "no file"


def test_growing_arrays_come_with_room(tmp_path: Path):
    large = np.arange(300_001, dtype=np.int64).reshape(-1, 1)
    arrays = {"small": np.arange(5), "large": large, "odd": np.arange(70_001, dtype=np.uint8), "last": np.arange(3)}
    save_arrays(tmp_path / "file", kind="test", version=1, arrays=arrays)
    for growing in ((), ("small", "large", "odd")):
        loaded, _ = load_arrays(tmp_path / "file", kind="test", version=1, growing=growing)
        for name, array in arrays.items():
            assert (loaded[name][: len(array)] == array).all()
            assert loaded[name].shape[1:] == array.shape[1:]
            assert not loaded[name][len(array) :].any()
        assert len(loaded["small"]) == 5, "it is not worth pages of its own"
        assert len(loaded["last"]) == 3
