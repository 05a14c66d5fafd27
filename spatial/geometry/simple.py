"""A fast proof that a ring is simple: the filter before `self_contact` and `sweep_contact`.

Nearly all rings that are given are simple, and nearly all pairs of their edges have boxes apart. So edges' boxes are
compared first, in integers: the ring's MBR is laid over a grid of 32767 × 32767, and an edge's box is one word of
four lanes of 16 bits,

    word   x1 | y1 << 16 | (32766 - x2) << 32 | (32766 - y2) << 48      the top bit of each lane is 0

With the halves of a word exchanged, each lane subtracted from 32766 and all top bits set it is the edge's *reach*, with
lanes x2, y2, 32766 - x1, 32766 - y1: reach minus word compares all four sides of two boxes at once, which overlap iff
no lane borrows its top bit. The compiler makes vector instructions of that. Going to the grid is monotonic, hence boxes
that overlap do so on the grid; pairs that overlap on the grid and are not neighbours are decided exactly.

Up to 128 edges, all pairs are compared by their distance along the ring. Beyond, a run of 16 edges is compared with
another if the runs' boxes overlap: O(n + (n / 16)²) for a ring whose edges are near few others. When they are near many
the proof is given up, so that the cost is bounded whatever the ring.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.geometry.rings import RUN, edges_touch
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.geometry.rings import Floats

    Words = NDArray[np.uint64]

_FEW: Final = 128
_PATIENCE: Final = 4  # exact comparisons for each edge
_GRID: Final = 32766
_TOPS: Final = np.uint64(0x8000800080008000)
_FULL: Final = np.uint64(0x7FFE7FFE7FFE7FFE)
_NOWHERE: Final = np.uint64(0x7FFF7FFF7FFF7FFF)  # the word of a box that overlaps none, and a reach that none overlaps
_LANE: Final = np.uint64(0x7FFF)
_0, _1, _2, _3 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_16, _32, _48 = np.uint64(16), np.uint64(32), np.uint64(48)


@kernel
def word_count(edges: int) -> int:
    """How many words of scratch `surely_simple` needs for a ring of that many edges."""
    return 3 * (edges + RUN)


@kernel
def surely_simple(
    numbers: Floats, start: int, edges: int, x1: float, y1: float, x2: float, y2: float, words: Words
) -> bool:
    """Whether the closed ring whose coordinates are numbers[start:], with that MBR, has no contact with itself.

    True is certain; false may also mean that the edges are too near each other to tell at little cost. Every vertex
    must be a corner: neither repeated nor in line with its neighbours. `words` is scratch.
    """
    if edges <= 3:
        return True
    _lay_over_grid(numbers, np.uint64(start), edges, x1, y1, _GRID / (x2 - x1), _GRID / (y2 - y1), words)
    if edges <= _FEW:
        return _few_apart(numbers, start, edges, words)
    return _runs_apart(numbers, start, edges, words)


@kernel
def _lay_over_grid(
    numbers: Floats, at: np.uint64, edges: int, x1: float, y1: float, x_scale: float, y_scale: float, words: Words
) -> None:
    ax, ay = np.uint64(np.int64((numbers[at] - x1) * x_scale)), np.uint64(np.int64((numbers[at + _1] - y1) * y_scale))
    grid = np.uint64(_GRID)
    for edge in range(edges):
        at += _2
        bx = np.uint64(np.int64((numbers[at] - x1) * x_scale))
        by = np.uint64(np.int64((numbers[at + _1] - y1) * y_scale))
        words[np.uint64(edge)] = (
            min(ax, bx) | (min(ay, by) << _16) | ((grid - max(ax, bx)) << _32) | ((grid - max(ay, by)) << _48)
        )
        ax, ay = bx, by


@kernel
def _few_apart(numbers: Floats, start: int, edges: int, words: Words) -> bool:
    """Compare all pairs of edges, those at distance 2 along the ring, then 3, up to half way round."""
    # Words again behind themselves, so that the edge at a distance is never beyond the end; then the reaches.
    for k in range(edges // 2 + RUN):
        words[np.uint64(edges + k)] = words[np.uint64(k)]
    reaches = np.uint64(edges + edges // 2 + RUN)
    padded = (edges + RUN - 1) // RUN * RUN
    for k in range(edges):
        words[reaches + np.uint64(k)] = _reach(words[np.uint64(k)])
    for k in range(edges, padded):
        words[reaches + np.uint64(k)] = _NOWHERE
    for distance in range(2, edges // 2 + 1):
        hit = _0
        step = np.uint64(distance)
        for k in range(padded):
            lanes = words[reaches + np.uint64(k)] - words[step + np.uint64(k)]
            lanes &= lanes >> _16
            hit |= lanes & (lanes >> _32)
        if hit & np.uint64(0x8000):
            for k in range(edges):
                if _overlap(words[reaches + np.uint64(k)], words[step + np.uint64(k)]):
                    other = k + distance
                    if _touch(numbers, start, k, other if other < edges else other - edges):
                        return False
    return True


@kernel
def _runs_apart(numbers: Floats, start: int, edges: int, words: Words) -> bool:
    """Compare runs of edges with one another, and the edges of those that overlap."""
    runs = (edges + RUN - 1) // RUN
    for edge in range(edges, runs * RUN):
        words[np.uint64(edge)] = _NOWHERE
    unions = runs * RUN  # words of the runs, behind those of the edges
    width = min(RUN, words.shape[0])  # RUN, but the compiler does not know: it would unroll instead of vectorising
    patience = _PATIENCE * edges
    for run in range(runs):
        a = b = c = d = _LANE
        for edge in range(run * RUN, run * RUN + RUN):
            word = words[np.uint64(edge)]
            a = min(a, word & _LANE)
            b = min(b, (word >> _16) & _LANE)
            c = min(c, (word >> _32) & _LANE)
            d = min(d, word >> _48)
        words[unions + run] = a | (b << _16) | (c << _32) | (d << _48)
    for run in range(runs):
        reach_of_run = _reach(words[unions + run])
        first, last = run * RUN, min(run * RUN + RUN, edges)
        for other in range(run, runs):
            union = words[unions + other]
            if not _overlap(reach_of_run, union):
                continue
            base = np.uint64(other * RUN)
            for edge in range(first, last):
                reach = _reach(words[np.uint64(edge)])
                if not _overlap(reach, union):
                    continue
                hits = _0
                for k in range(width):
                    lanes = reach - words[base + np.uint64(k)]
                    lanes &= lanes >> _16
                    hits += (lanes & (lanes >> _32)) >> np.uint64(15) & _1
                # An edge overlaps itself and its neighbours, as far as they are in the run.
                if other == run:
                    known = 1 + (edge > first) + (edge + 1 < last)
                else:
                    known = (edge + 1 == other * RUN) + (edge == 0 and other == runs - 1)
                if hits == np.uint64(known):
                    continue
                patience -= int(hits)
                if patience < 0:
                    return False
                for near in range(max(other * RUN, edge + 2), min(other * RUN + RUN, edges)):
                    neighbours = edge == 0 and near == edges - 1
                    if not neighbours and _overlap(reach, words[near]) and _touch(numbers, start, edge, near):
                        return False
    return True


@kernel
def _reach(word: np.uint64) -> np.uint64:
    return (_FULL - ((word >> _32) | (word << _32))) | _TOPS


@kernel
def _overlap(reach: np.uint64, word: np.uint64) -> bool:
    return bool((reach - word) & _TOPS == _TOPS)


@kernel
def _touch(numbers: Floats, start: int, edge: int, other: int) -> bool:
    i, j = np.uint64(start + 2 * edge), np.uint64(start + 2 * other)
    ax, ay, bx, by = numbers[i], numbers[i + _1], numbers[i + _2], numbers[i + _3]
    cx, cy, dx, dy = numbers[j], numbers[j + _1], numbers[j + _2], numbers[j + _3]
    return edges_touch(ax, ay, bx, by, cx, cy, dx, dy)
