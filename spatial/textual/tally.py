"""Occurrence counts of one search: a small hash map from slots or nodes to how often they were met.

Rows are (key, count), key -1 when empty; a power of two, at least twice the keys it will be given. Each search makes
its own, of the size of the candidates it may meet and not of the subscriptions stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def new_tally(most: int) -> NDArray[np.int32]:
    """Return a tally for at most so many keys."""
    size = 16
    while size < 2 * most:
        size *= 2
    return np.full((size, 2), -1, np.int32)


@kernel
def _row(tally: NDArray[np.int32], key: int) -> int:
    mask = tally.shape[0] - 1
    row = ((key * 2654435761) >> 13) & mask
    while tally[row, 0] >= 0 and tally[row, 0] != key:
        row = (row + 1) & mask
    return int(row)


@kernel
def tally_one(tally: NDArray[np.int32], key: int) -> int:
    """Count a key once more; returns its count."""
    row = _row(tally, key)
    if tally[row, 0] < 0:
        tally[row, 0] = key
        tally[row, 1] = 0
    tally[row, 1] += 1
    return int(tally[row, 1])


@kernel
def tally_known(tally: NDArray[np.int32], key: int) -> int:
    """Count a key once more if it was met before; returns its count, 0 for one that was not."""
    row = _row(tally, key)
    if tally[row, 0] < 0:
        return 0
    tally[row, 1] += 1
    return int(tally[row, 1])
