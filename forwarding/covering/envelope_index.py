"""Envelopes of filters, found by what they contain or are contained in: a k-d tree of blocks with bounds.

An envelope is four points of d dimensions: `low` and `high` bound something, `least` and `most` are the span of samples
from it (covering_set.py). Two questions are asked of a set of them, given a box (a, b):

    around(a, b)    whose bounds contain the box:   low <= a and high >= b, in every dimension
    within(a, b)    whose samples the box contains: least >= a and most <= b

Layout, all in flat arrays, with blocks of `BLOCK` rows:

    rows     (blocks * BLOCK, 4, d)   low, high, least, most; block k holds rows from k * BLOCK on, `counts[k]` of them
    owners   (blocks * BLOCK,)        whose envelope a row is: a number below the number of envelopes ever held at once
    places   (n,)                     the row of each owner
    bounds   (blocks, 4, d)           of each block: the smallest low, largest high, largest least, smallest most
    nodes    (blocks, 3)              the tree's forks: dimension, left, right; a child is a fork, or ~block
    cuts     (blocks,)                of each fork: what is less by its `least` is on the left
    extent   (2, d)                   smallest and largest `least` so far, to compare dimensions by

A block's bounds answer for all its rows at once, and by the same comparison: a block that fails is skipped. An
envelope goes to the block that the forks lead to, by its `least`; a full block is cut at the median of the dimension
that it is longest in, so that at least a quarter is on either side, alike or not: the forks are a guide, and only
bounds answer. So n insertions make at most n / QUARTER blocks. With n envelopes a question costs n / BLOCK comparisons
of bounds and BLOCK for every block that passes: nothing else is looked at. A change costs a walk down the tree and one
block. Rows without samples have `least` at infinity and `most` at minus infinity, which every box contains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contrada.spatial.storage.jit import bare_kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contrada.forwarding.kernels.memory.layout import Floats, Ints

BLOCK: Final = 64
QUARTER: Final = BLOCK // 4  # what a cut leaves at least on either side
LOW: Final = 0
HIGH: Final = 1
LEAST: Final = 2
MOST: Final = 3

DIMENSION: Final = 0
LEFT: Final = 1
RIGHT: Final = 2


class Envelopes(NamedTuple):
    """The arrays; see the module. `state` counts blocks."""

    rows: Floats
    owners: Ints
    places: Ints
    counts: Ints
    bounds: Floats
    nodes: Ints
    cuts: Floats
    extent: Floats
    state: Ints


@bare_kernel
def _widen(bound: Floats, row: Floats) -> None:
    """Make a block's bounds answer for one row more."""
    for d in range(row.shape[1]):
        bound[LOW, d] = min(bound[LOW, d], row[LOW, d])
        bound[HIGH, d] = max(bound[HIGH, d], row[HIGH, d])
        bound[LEAST, d] = max(bound[LEAST, d], row[LEAST, d])
        bound[MOST, d] = min(bound[MOST, d], row[MOST, d])


@bare_kernel
def _bound(t: Envelopes, block: int) -> None:
    """Compute the bounds of a block anew."""
    bound = t.bounds[block]
    for d in range(bound.shape[1]):
        bound[LOW, d] = bound[MOST, d] = np.inf
        bound[HIGH, d] = bound[LEAST, d] = -np.inf
    for row in range(block * BLOCK, block * BLOCK + t.counts[block]):
        _widen(bound, t.rows[row])


@bare_kernel
def _put(t: Envelopes, block: int, owner: int, envelope: Floats) -> None:
    """Append a row to a block that has room."""
    row = block * BLOCK + t.counts[block]
    t.counts[block] += 1
    for k in range(4):
        for d in range(envelope.shape[1]):
            t.rows[row, k, d] = envelope[k, d]
    t.owners[row] = owner
    t.places[owner] = row


@bare_kernel
def _longest(t: Envelopes, block: int) -> int:
    """The dimension in which a full block is longest, as a share of how far the samples of all blocks extend."""
    best, of, chosen = 0.0, 1.0, 0
    for d in range(t.rows.shape[2]):
        smallest, largest = np.inf, -np.inf
        for row in range(block * BLOCK, block * BLOCK + BLOCK):
            smallest = min(smallest, t.rows[row, LEAST, d])
            largest = max(largest, t.rows[row, LEAST, d])
        extent = t.extent[1, d] - t.extent[0, d]
        if largest - smallest < np.inf and (largest - smallest) * of > best * extent:
            best, of, chosen = largest - smallest, extent, d
    return chosen


@bare_kernel
def _middle(t: Envelopes, block: int, d: int) -> tuple[float, int]:
    """Of the values of a full block in a dimension, the one that parts them best, and how many are less."""
    cut, less = np.inf, 0
    for row in range(block * BLOCK, block * BLOCK + BLOCK):
        value = t.rows[row, LEAST, d]
        smaller = 0
        for other in range(block * BLOCK, block * BLOCK + BLOCK):
            if t.rows[other, LEAST, d] < value:
                smaller += 1
        if abs(2 * smaller - BLOCK) < abs(2 * less - BLOCK):
            cut, less = value, smaller
    return cut, less


@bare_kernel
def _cut(t: Envelopes, block: int) -> tuple[int, float, int]:
    """Move about half of a full block to a new one; along which dimension, at what, and the new block."""
    start = block * BLOCK
    d = _longest(t, block)
    cut, less = _middle(t, block, d)
    fresh = t.state[0]
    t.state[0] += 1
    t.counts[fresh] = 0
    t.counts[block] = 0
    # A side of few gets some of the other's: blocks that a cut has left nearly empty would be too many for their room.
    to_stay, to_go = QUARTER - less, QUARTER - (BLOCK - less)
    for row in range(start, start + BLOCK):
        # Where all are alike there is no cut: any half will do.
        stays = t.rows[row, LEAST, d] < cut if less > 0 else row < start + BLOCK // 2
        if less > 0 and stays and to_go > 0:
            stays = False
            to_go -= 1
        elif less > 0 and not stays and to_stay > 0:
            stays = True
            to_stay -= 1
        _put(t, block if stays else fresh, t.owners[row], t.rows[row])
    _bound(t, block)
    _bound(t, fresh)
    return d, cut, fresh


@bare_kernel
def insert(t: Envelopes, owner: int, envelope: Floats) -> None:
    """Put an envelope in; there must be room for one block more."""
    for d in range(envelope.shape[1]):
        if -np.inf < envelope[LEAST, d] < np.inf:
            t.extent[0, d] = min(t.extent[0, d], envelope[LEAST, d])
            t.extent[1, d] = max(t.extent[1, d], envelope[LEAST, d])
    at, fork, side = 0 if t.state[0] > 1 else ~0, -1, LEFT
    while True:
        while at >= 0:
            fork = at
            side = LEFT if envelope[LEAST, t.nodes[at, DIMENSION]] < t.cuts[at] else RIGHT
            at = t.nodes[at, side]
        block = ~at
        if t.counts[block] < BLOCK:
            break
        d, cut, fresh = _cut(t, block)
        at = t.state[0] - 2  # one fork fewer than blocks
        t.nodes[at, DIMENSION] = d
        t.cuts[at] = cut
        t.nodes[at, LEFT] = ~block
        t.nodes[at, RIGHT] = ~fresh
        if fork >= 0:
            t.nodes[fork, side] = at
    _put(t, block, owner, envelope)
    _widen(t.bounds[block], envelope)


@bare_kernel
def _insert_all(t: Envelopes, owners: Ints, old: Envelopes) -> None:
    for i in range(owners.shape[0]):
        insert(t, owners[i], old.rows[old.places[owners[i]]])


@bare_kernel
def remove(t: Envelopes, owner: int) -> None:
    """Take an envelope out."""
    gap = t.places[owner]
    block = gap // BLOCK
    last = block * BLOCK + t.counts[block] - 1
    if gap != last:
        t.counts[block] = gap - block * BLOCK
        _put(t, block, t.owners[last], t.rows[last])
    t.counts[block] = last - block * BLOCK
    _bound(t, block)


@bare_kernel
def _passes(box: Floats, a: Floats, b: Floats, samples: bool) -> bool:
    for d in range(a.shape[0]):
        if samples:
            if box[LEAST, d] < a[d] or box[MOST, d] > b[d]:
                return False
        elif box[LOW, d] > a[d] or box[HIGH, d] < b[d]:
            return False
    return True


@bare_kernel
def search(t: Envelopes, a: Floats, b: Floats, samples: bool, out: Ints) -> int:
    """The owners whose samples the box contains, or else whose bounds contain the box; how many."""
    found = 0
    for block in range(t.state[0]):
        if t.counts[block] and _passes(t.bounds[block], a, b, samples):
            for row in range(block * BLOCK, block * BLOCK + t.counts[block]):
                if _passes(t.rows[row], a, b, samples):
                    out[found] = t.owners[row]
                    found += 1
    return found


class EnvelopeIndex:
    """Envelopes under small numbers, which the index gives and takes back."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._free: list[int] = []
        self._count = 0
        self._envelopes = self._room(2, 2 * BLOCK)

    def _room(self, blocks: int, owners: int) -> Envelopes:
        d = self._dimensions
        room = Envelopes(
            rows=np.empty((blocks * BLOCK, 4, d)),
            owners=np.empty(blocks * BLOCK, np.int64),
            places=np.full(owners, -1, np.int64),
            counts=np.zeros(blocks, np.int64),
            bounds=np.empty((blocks, 4, d)),
            nodes=np.zeros((blocks, 3), np.int64),
            cuts=np.empty(blocks),
            extent=np.array([[np.inf] * d, [-np.inf] * d]),
            state=np.ones(1, np.int64),
        )
        room.bounds[:, (LOW, MOST)] = np.inf
        room.bounds[:, (HIGH, LEAST)] = -np.inf
        return room

    def __len__(self) -> int:
        return self._count

    def add(self, envelope: Sequence[Sequence[float]]) -> int:
        """Put in (low, high, least, most); its number."""
        owner = self._free.pop() if self._free else self._count
        blocks = int(self._envelopes.state[0])
        if blocks == len(self._envelopes.counts) or owner == len(self._envelopes.places):
            self._rebuild()
        insert(self._envelopes, owner, np.array(envelope, np.float64).reshape(4, self._dimensions))
        self._count += 1
        return owner

    def remove(self, owner: int) -> None:
        """Take one out by its number, which may be given again."""
        remove(self._envelopes, owner)
        self._envelopes.places[owner] = -1
        self._free.append(owner)
        self._count -= 1

    def _rebuild(self) -> None:
        """Insert all anew, with room for twice as many: blocks that removals have emptied go, and so do their forks."""
        old = self._envelopes
        (owners,) = np.nonzero(old.places >= 0)
        full = len(owners) == len(old.places)
        self._envelopes = self._room(len(owners) // QUARTER + 4, len(old.places) << full)
        _insert_all(self._envelopes, owners, old)

    def around(self, a: Sequence[float], b: Sequence[float]) -> list[int]:
        """The numbers of those whose bounds contain the box from a to b."""
        return self._search(a, b, samples=False)

    def within(self, a: Sequence[float], b: Sequence[float]) -> list[int]:
        """The numbers of those whose samples the box contains, and of those without any."""
        return self._search(a, b, samples=True)

    def _search(self, a: Sequence[float], b: Sequence[float], *, samples: bool) -> list[int]:
        out = np.empty(self._count, np.int64)
        corners = np.array((a, b), np.float64).reshape(2, self._dimensions)
        found: list[int] = out[: search(self._envelopes, corners[0], corners[1], samples, out)].tolist()
        return found

    def _check(self) -> None:
        t = self._envelopes
        blocks = int(t.state[0])
        assert blocks <= len(t.counts)
        assert t.counts[:blocks].sum() == self._count == np.count_nonzero(t.places >= 0)
        assert not set(self._free) & set(np.nonzero(t.places >= 0)[0].tolist())
        reached = []
        walk = [0] if blocks > 1 else [~0]
        while walk:
            at = walk.pop()
            if at < 0:
                reached.append(~at)
            else:
                walk += t.nodes[at, 1:].tolist()
        assert sorted(reached) == list(range(blocks))
        for block in range(blocks):
            start, count = block * BLOCK, int(t.counts[block])
            rows, bound = t.rows[start : start + count], t.bounds[block]
            assert (t.places[t.owners[start : start + count]] == np.arange(start, start + count)).all()
            assert (bound[LOW] <= rows[:, LOW]).all()
            assert (bound[HIGH] >= rows[:, HIGH]).all()
            assert (bound[LEAST] >= rows[:, LEAST]).all()
            assert (bound[MOST] <= rows[:, MOST]).all()
