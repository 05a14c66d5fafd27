"""Arrays that grow without being copied, so that growing a table never stops it.

A growable array is an anonymous private mapping. Growing asks the system to extend it (`mremap`), which moves page
tables and not data: under a tenth of a millisecond at a quarter of a gigabyte, where copying would take a hundred. New
memory is zero and costs nothing until it is touched, so capacity can be generous. Arrays of a loaded file have room
behind them already (spatial/storage/roomy_map.py). Where the system does not offer these, or that room is used up,
growing copies.
"""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class GrowableArray:
    """An array of `columns` 64-bit integers per row (one-dimensional when `columns` is 0). `array` is the whole."""

    def __init__(self, columns: int, rows: int) -> None:
        self._columns = columns
        self._map: mmap.mmap | None = None
        self.moves = 0  # how often `array` has become another
        self.array: NDArray[np.int64] = np.zeros((0, columns) if columns else 0, np.int64)
        self._allocate(rows)

    @classmethod
    def over(cls, array: NDArray[np.int64]) -> GrowableArray:
        """One that begins as a given array, such as one mapped from a file."""
        growable = cls.__new__(cls)
        growable._columns = array.shape[1] if array.ndim == 2 else 0
        growable._map = None
        growable.moves = 0
        growable.array = array
        return growable

    def reserve(self, rows: int) -> bool:
        """Make room for that many rows; whether `array` has changed."""
        if rows <= self.array.shape[0]:
            return False
        self._allocate(max(rows, 2 * self.array.shape[0]))
        return True

    def _allocate(self, rows: int) -> None:
        size = -(-rows * max(self._columns, 1) * 8 // mmap.PAGESIZE) * mmap.PAGESIZE
        self.moves += 1
        kept = self.array
        if self._map is not None:
            del self.array
            del kept
            try:
                self._map.resize(size)
                self._view()
                return
            except (BufferError, SystemError, OSError, ValueError):
                # Someone still looks at the array, or the system cannot extend mappings: copy instead.
                self._view()
                kept = self.array
        self._map = _anonymous(size)
        self._view()
        self.array[: kept.shape[0]] = kept

    def _view(self) -> None:
        flat: NDArray[Any] = np.frombuffer(self._map, np.int64)  # type: ignore[arg-type]  # a map is a buffer
        columns = max(self._columns, 1)
        rows = flat[: len(flat) // columns * columns].reshape(-1, columns)
        self.array = rows if self._columns else flat


def _anonymous(size: int) -> mmap.mmap:
    if hasattr(mmap, "MAP_PRIVATE"):
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return mmap.mmap(-1, size)
