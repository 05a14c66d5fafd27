"""The constants that integers are spread by, one place for all hashes: what is saved depends on them.

A product with an odd constant spreads the low bits of an integer over the high ones, and a shift by half a word brings
these down again.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from contrada.spatial.storage.jit import kernel

GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio: Fibonacci hashing
SECOND: Final = np.uint64(0xD6E8FEB86659FD93)
THIRD: Final = np.uint64(0xBF58476D1CE4E5B9)  # of splitmix64
HALF: Final = np.uint64(32)


@kernel
def home(key: int | np.int64, size: int) -> int:
    """Where the probe for a key starts in a table of a power of two: the bits of its product from the 32nd on."""
    return int((np.uint64(key) * GOLDEN) >> HALF) & (size - 1)


@kernel
def spread(number: int) -> np.int64:
    """Spread integers that are often consecutive over 32 bits."""
    h = np.uint64(number) * GOLDEN
    h = (h ^ (h >> HALF)) * SECOND
    return np.int64(h >> HALF)
