"""The slow twin of the AP-tree's keyword partition: Eq. 2 and 3 of the paper as they are printed, O(f V²)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def least_cost(weights: Sequence[float], chances: Sequence[float], cuts: int) -> float:
    """The least expected cost of `cuts` cuts, or of one per word where there are fewer words."""
    n = len(weights)

    @cache
    def best(i: int, c: int) -> float:
        if c == 1:
            return sum(weights[i:]) * sum(chances[i:])
        return min(sum(weights[i:m]) * sum(chances[i:m]) + best(m, c - 1) for m in range(i + 1, n - c + 2))

    return best(0, min(cuts, n))
