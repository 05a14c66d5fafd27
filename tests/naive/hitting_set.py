"""The slow twin of the PT-Quadtree's pivotal tokens: was the hitting set chosen greedily by document frequency?"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def is_greedy(keywords: Sequence[frozenset[int]], pivots: Sequence[int]) -> bool:
    """Whether some order of the pivots takes, at each step, a token that most of the subscriptions left have.

    `pivots[i]` stands for subscription i; a token that is taken stands for all that are left and have it.
    """
    left = set(range(len(keywords)))
    while left:
        df = Counter(token for i in left for token in keywords[i])
        most = max(df.values())
        for token in {pivots[i] for i in left}:
            group = {i for i in left if pivots[i] == token}
            if len(group) == most == df[token]:
                left -= group
                break
        else:
            return False
    return True
