"""The parameters of a partition tree, as kernels take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ADAPTIVE, KEYWORD_FIRST, SPATIAL_FIRST, TRIE = 0, 1, 2, 3  # what decides between partitions


class Settings(NamedTuple):
    """Names and symbols of [AP-TREE] where it has them."""

    fanout: int  # f
    leaf: int  # θ_q
    drift: float  # θ_KL
    tokens: float  # of an expected message
    optimal: bool  # dynamic programming instead of the heuristic
    first: int  # ADAPTIVE, or one kind of partition wherever it is possible at all, or TRIE (Fig. 11)
    rebuild: int  # the most subscriptions that one insertion may regroup
    rare: bool  # rarest keywords first instead of frequent ones
    universe: NDArray[np.float64]  # the box of all that was there when the tree was built
