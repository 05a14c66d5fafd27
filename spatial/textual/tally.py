"""Occurrence counts of one search: a small hash map from slots or nodes to how often they were met.

Rows are (key, count), key -1 when empty; a power of two, at most half full. Each search makes its own, so the memory is
that of the candidates met and not of the subscriptions stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contrada.spatial._jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Tally(NamedTuple):
    """Counts by key, and how many keys there are."""

    table: NDArray[np.int32]
    keys: NDArray[np.int64]


@kernel
def new_tally() -> Tally:
    """Return an empty tally."""
    return Tally(np.full((64, 2), -1, np.int32), np.zeros(1, np.int64))


@kernel
def _row(table: NDArray[np.int32], key: int) -> int:
    mask = table.shape[0] - 1
    row = ((key * 2654435761) >> 13) & mask
    while table[row, 0] >= 0 and table[row, 0] != key:
        row = (row + 1) & mask
    return int(row)


@kernel
def tally_known(tally: Tally, key: int) -> int:
    """Count a key once more if it was met before; returns its count, 0 for one that was not."""
    row = _row(tally.table, key)
    if tally.table[row, 0] < 0:
        return 0
    tally.table[row, 1] += 1
    return int(tally.table[row, 1])


@kernel
def tally_one(tally: Tally, key: int) -> tuple[Tally, int]:
    """Count a key once more; returns the tally, which may have grown, and the new count."""
    row = _row(tally.table, key)
    if tally.table[row, 0] == key:
        tally.table[row, 1] += 1
        return tally, int(tally.table[row, 1])
    tally.keys[0] += 1
    if 2 * tally.keys[0] > tally.table.shape[0]:
        table = np.full((4 * tally.table.shape[0], 2), -1, np.int32)
        for i in range(tally.table.shape[0]):
            if tally.table[i, 0] >= 0:
                table[_row(table, tally.table[i, 0])] = tally.table[i]
        tally = Tally(table, tally.keys)
        row = _row(table, key)
    tally.table[row, 0] = key
    tally.table[row, 1] = 1
    return tally, 1
