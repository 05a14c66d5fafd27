"""Where searches are dear: filters that are tried before, and what MBRs tell in their place ([SIENA-2D], Fig. 4b).

A notification with a large region is related to thousands of regions before an interface is known to match. Where an
interface has hundreds of filters, one of them mostly matches, and it takes a few *tries* to find one: those that
matched lately come first, then ever more of the others, in rounds, and for the interfaces alone that have not matched.
An interface of which none is left does not match. When all are decided there is nothing to search for, so what a
notification costs does not grow with the number of filters.

And of a filter of several regions most are out of the question by their MBRs. Indexes can be *sifted* instead of being
searched: what a value perhaps satisfies is met, or counted, as if it did, and of filters that get through all
constraints are verified, regions last, up to the first that fails and the first filter of an interface (relating.py).

What notifications take in each of these ways is measured by the processor's clock, all that follows included, as an
interface that tries leave undecided is looked up after all. The cheapest way is taken, and another looked at when a
small part of what has been spent since pays for it: so what is chosen costs little more than the best, and is chosen
anew where the traffic changes. No answer depends on it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contrada.forwarding.kernels.match.batch import FLOAT
from contrada.forwarding.kernels.match.trying import plugged_filters, try_filters
from contrada.forwarding.kernels.match.verifying import C_PAIRS, EXAMINED, SEARCHED, SIFTED
from contrada.forwarding.kernels.memory import layout
from contrada.spatial import allowance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from contrada.forwarding.batches.encode import Values
    from contrada.forwarding.kernels.match.batch import Batch
    from contrada.forwarding.kernels.memory.layout import Index, Ints
    from contrada.forwarding.state.memory import Memory

    Bools = NDArray[np.bool_]
    Decide = Callable[[Ints, Values], Bools]
    DecidePending = Callable[[Ints, Ints, Values], tuple[Bools, Bools]]  # of filters and pairs: which hold, which fail

_LATEST: Final = 8  # filters of an interface that matched lately
_FIRST: Final = 16  # filters of an interface that are tried with these, and
_MORE: Final = 32  # times as many in each round: a round costs more than to look at those behind one that matches
EACH: Final = 32  # filters that an interface has at least, on average, where they are tried
WORTH: Final = 256  # constraints decided by a search, on average, below which nothing is tried
_LEARNED: Final = 4  # notifications that are matched in either way before they are compared
EVERY_WAY: Final = 3 * (_LEARNED + 1)  # notifications after which each way has been taken
_LOOK: Final = 2  # and in the other way when that is looked at again
_PART: Final = 1 / 30  # of what has been spent since the last look: what the next may cost more than the best way
TRIED: Final = 16  # a way beside SEARCHED and SIFTED (kernels/match/verifying.py)
_REMEMBERED: Final = 32  # notifications that what a way takes is averaged over
_MOST: Final = 8.0  # times what a search decides: pairs after which tries end undecided
_TOGETHER: Final = 64  # notifications that are tried at once


class Given(NamedTuple):
    """What is known before matching: interfaces of each notification up to `ends`; the notifications that are done."""

    interfaces: Ints
    ends: Ints
    done: NDArray[np.bool_]  # nothing of plugged-in types is left to be found

    def of_values(self, batch: Batch) -> list[bool]:
        """By the number of a plugged-in value, whether its notification is done."""
        plugged, kinds = _plugged_rows(batch)
        numbers = np.where(kinds == layout.POINT, batch.rows[plugged, 1] >> 32, batch.rows[plugged, 1])
        found = np.zeros(int(numbers.max()) + 1, np.bool_)
        found[numbers] = self.done[np.searchsorted(batch.ends, plugged, side="right")]
        answer: list[bool] = found.tolist()
        return answer


def _plugged_rows(batch: Batch) -> tuple[Ints, Ints]:
    """The rows of values that plugged-in types are asked about, and their kinds."""
    kinds = batch.rows[:, 0] & 15
    rows = np.flatnonzero((kinds >= layout.POINT) & (kinds < FLOAT))
    return rows, kinds[rows]


_NONE: Final = np.zeros(0, np.int64)
NOTHING: Final = Given(_NONE, _NONE, np.zeros(0, np.bool_))


class _Listed(NamedTuple):
    """Filters with constraints of plugged-in types, interface by interface, as they were after so many changes."""

    rows: Ints  # those of interface `owners[i]` from `starts[i]` to the next
    starts: Ints
    owners: Ints  # numbers of interfaces
    likely: Ints  # (interfaces, _LATEST + _FIRST): those that matched lately, and the first; 0 for none
    changes: int


class Costs:
    """What notifications have taken in each of some ways, in calls that are alike; and how the next is matched."""

    def __init__(self, ways: Sequence[int]) -> None:
        self._ways = ways
        self._seconds = dict.fromkeys(ways, 0.0)  # for a notification
        self._tried: set[int] = set()  # ways that have been taken at all
        self._known = dict.fromkeys(ways, 0)  # notifications that this is known of
        self._waits = dict.fromkeys(ways, 0.0)  # seconds to be spent in the best way before another is looked at
        self._looked_at: int | None = None  # the way that is being looked at,
        self._looks = 0  # for so many more notifications,
        self._lost = 0.0  # which have cost so many seconds more than in the best way

    def choose(self) -> int:
        """How the next call is to be matched."""
        for way in self._ways:
            if self._known[way] < _LEARNED:
                return way
        return self.best if self._looked_at is None else self._looked_at

    @property
    def best(self) -> int:
        """The way that takes the least."""
        return min(self._ways, key=self._seconds.__getitem__)

    def is_cheaper(self, one: int, other: int) -> bool:
        """Whether the first way takes less than the second, as far as is known."""
        return self._known.get(one, 0) >= _LEARNED and self._seconds[one] < self._seconds[other]

    def note(self, way: int, seconds: float, notifications: int) -> None:
        """Be told what a call has taken. The first in a way is no measure: what it runs may have to be loaded."""
        if way not in self._tried:
            self._tried.add(way)
            return
        learned = min(self._known.values()) >= _LEARNED
        known = min(self._known[way] + notifications, max(_REMEMBERED, notifications))
        self._known[way] = known
        self._seconds[way] += (seconds / notifications - self._seconds[way]) * notifications / known
        if min(self._known.values()) < _LEARNED:
            return
        best = self.best
        if not learned:
            self._waits = {
                each: (self._seconds[each] - self._seconds[best]) * self._known[each] / _PART for each in self._ways
            }
        elif way == self._looked_at:
            self._looks -= notifications
            self._lost += max(seconds - self._seconds[best] * notifications, seconds * _PART)
            if self._looks <= 0:
                self._waits[way], self._looked_at = self._lost / _PART, None
        elif self._looked_at is None:
            for other in self._ways:
                self._waits[other] -= seconds
                if self._waits[other] <= 0.0 and other != best:
                    self._looked_at, self._looks, self._lost = other, _LOOK, 0.0


class Turn(NamedTuple):
    """A call whose cost is measured: in which way it is matched, since when, with which calls it is compared."""

    way: int
    sifts: bool  # whether what is looked up is sifted rather than searched for
    start: float
    costs: Costs


class Trying:
    """Whether filters are tried, and which. Threads that match may use it at once."""

    def __init__(self) -> None:
        self._listed = _Listed(_NONE, _NONE, _NONE, np.zeros((0, _LATEST + _FIRST), np.int64), -1)
        self.changes = 0  # of the table, counted by whoever changes it
        self._asked = 0  # notifications since filters were listed
        self.searched = 0.0  # constraints that a search decides one by one, on average
        self.hits = 0.0  # constraints that it finds, likewise
        self._searches = self._finds = self._noted = 0  # how often these and `late` were told, up to a point
        self.late = 0.0  # pairs that are left to be decided after a search, on average
        self.tried = 0.0  # and pairs that tries decide
        # By whether interfaces are few, filters asked for, all values points; and the bits of how many there are.
        self._costs: dict[tuple[bool, bool, bool, int], Costs] = {}

    def turn(self, values: Values, index: Index, *, by_filter: bool) -> Turn | None:
        """How the next call is to be matched, by what others have taken; None if searches are no matter."""
        if not self.searches_are_dear:
            return None
        state = index.state
        few = bool(not by_filter and state[layout.S_FILTER_COUNT] >= EACH * state[layout.S_INTERFACES])
        kind = few, by_filter, values.are_points, len(values.values).bit_length()
        costs = self._costs.get(kind)
        if costs is None:
            ways = (SEARCHED, *[TRIED] * few, *[SIFTED] * (not values.are_points))
            costs = self._costs[kind] = Costs(ways)
        way = costs.choose()
        sifts = way == SIFTED or (way == TRIED and costs.is_cheaper(SIFTED, SEARCHED))
        return Turn(way, sifts, time.thread_time(), costs)

    @staticmethod
    def note_turn(turn: Turn, values: Values) -> None:
        """Be told that a call has ended."""
        turn.costs.note(turn.way, time.thread_time() - turn.start, len(values.values))

    @property
    def searches_are_dear(self) -> bool:
        """Whether it may pay to try filters before searching."""
        return self._without >= WORTH

    @property
    def _without(self) -> float:
        """What a notification costs that is searched for."""
        return self.searched + self.late

    def note_search(self, decided: int, values: int) -> None:
        """Be told how many constraints a search for so many values has decided one by one."""
        self._searches = min(self._searches + 1, 8)
        self.searched += (decided / values - self.searched) / self._searches

    def note_hits(self, found: int, values: int) -> None:
        """Be told how many constraints a search for so many values has found."""
        self._finds = min(self._finds + 1, 8)
        self.hits += (found / values - self.hits) / self._finds

    def note_late(self, pairs: int, values: int) -> None:
        """Be told how many pairs were left to be decided after a search for so many values."""
        self._noted = min(self._noted + 1, 8)
        self.late += (pairs / values - self.late) / self._noted

    def first(self, batch: Batch, values: Values, widest: int, memory: Memory, decide: DecidePending) -> Given:
        """Try filters on the notifications of a batch that have values of plugged-in types."""
        listed = self._list(memory, len(batch.ends))
        if not 0 < EACH * len(listed.owners) <= len(listed.rows):
            return NOTHING
        plugged, _kinds = _plugged_rows(batch)
        where = np.unique(np.searchsorted(batch.ends, plugged, side="right"))
        done = np.zeros(len(batch.ends), np.bool_)
        current = listed.changes == self.changes and not memory.state[layout.S_GHOSTS]
        found: list[tuple[Ints, Ints]] = []
        pairs = 0
        for start in range(0, len(where), _TOGETHER):
            some = where[start : start + _TOGETHER]
            places, owners, left, decided = _rounds(
                some, listed, _MOST * self._without * len(some), batch, values, widest, memory, decide
            )
            pairs += decided
            found.append((places, listed.owners[owners]))
            done[some[~left]] = current
        self.tried += (pairs / max(len(where), 1) - self.tried) / 8
        if not found:
            return NOTHING
        matched_places, matched = (np.concatenate(each) for each in zip(*found, strict=True))
        ends = np.searchsorted(matched_places, np.arange(len(batch.ends)), side="right")
        return Given(matched, ends.astype(np.int64), done)

    def _list(self, memory: Memory, notifications: int) -> _Listed:
        """The filters, listed anew if there have been changes and that is not done too often."""
        listed = self._listed
        self._asked += notifications
        if listed.changes != self.changes and (listed.changes < 0 or 64 * self._asked > len(listed.rows)):
            changes = self.changes
            rows = np.empty(int(memory.state[layout.S_FILTERS]), np.int64)
            owners = np.empty_like(rows)
            count = plugged_filters(memory.index, rows, owners)
            order = np.argsort(owners[:count], kind="stable")
            known, counts = np.unique(owners[:count], return_counts=True)
            starts = np.concatenate(([0], np.cumsum(counts)))
            rows = np.append(rows[order], np.zeros(_FIRST, np.int64))
            likely = np.zeros((len(known), _LATEST + _FIRST), np.int64)
            if np.array_equal(known, listed.owners):
                likely[:, :_LATEST] = listed.likely[:, :_LATEST]
            offsets = np.arange(_FIRST)
            likely[:, _LATEST:] = np.where(offsets < counts[:, None], rows[starts[:-1, None] + offsets], 0)
            self._listed = listed = _Listed(rows[: len(order)], starts, known, likely, changes)
            self._asked = 0
        return listed


def _rounds(
    some: Ints,
    listed: _Listed,
    most: float,
    batch: Batch,
    values: Values,
    widest: int,
    memory: Memory,
    decide: DecidePending,
) -> tuple[Ints, Ints, NDArray[np.bool_], int]:
    """Places and interfaces (by their rank) that match; for which notifications some are undecided; pairs decided.

    The rounds end when they have cost as much as is said.
    """
    lengths = np.diff(listed.starts)
    matched = np.zeros((len(some), len(listed.owners)), np.bool_)
    undecided = np.ones_like(matched)
    decided, tried, size = 0, 0, _FIRST
    while undecided.any() and decided <= most:
        m, i = np.nonzero(undecided)
        if tried == 0:
            counts = np.full(len(m), _LATEST + _FIRST)
            rows = listed.likely[i].ravel()
        else:
            counts = np.minimum(size, lengths[i] - tried)
            offsets = np.repeat(listed.starts[i] + tried - np.cumsum(counts) + counts, counts)
            rows = listed.rows[offsets + np.arange(len(offsets))]
        m, i = np.repeat(m, counts), np.repeat(i, counts)
        if tried == 0:
            there = rows > 0
            m, i, rows = m[there], i[there], rows[there]
        held, pairs = _tried(some[m], rows, listed.owners[i], batch, values, widest, memory, decide)
        decided += pairs + len(rows) // 8
        i, rows = i[held], rows[held]
        matched[m[held], i] = True
        new = (listed.likely[i, :_LATEST] != rows[:, None]).all(axis=1)
        listed.likely[i[new], (rows[new] + tried) % _LATEST] = rows[new]
        tried, size = tried + size, _MORE * size
        undecided = ~matched & (lengths > tried)
    places, owners = np.nonzero(matched)
    left: NDArray[np.bool_] = np.any(undecided, axis=1)
    return some[places], owners.astype(np.int64), left, decided


def _tried(
    places: Ints,
    rows: Ints,
    owners: Ints,
    batch: Batch,
    values: Values,
    widest: int,
    memory: Memory,
    decide: DecidePending,
) -> tuple[NDArray[np.bool_], int]:
    """Whether each filter holds on the notification at its place, and how many pairs types have decided for that.

    Of an interface that matches one filter is said to hold, or some, and the others may not have been looked at.
    """
    allowance.spend(EXAMINED * len(rows))
    scratch = memory.take_scratch(widest, len(batch.text))
    try:
        verdicts = np.zeros(len(rows), np.int64)
        index: Index = memory.index
        while not try_filters(index, batch, places, rows, owners, scratch, verdicts):
            scratch = memory.larger(scratch)
        held = verdicts == 1
        late = np.flatnonzero(verdicts == 2)
        decided = 0
        if len(late):
            pending = scratch.pending[: len(late)]
            holds, fails = decide(pending, scratch.pairs[: scratch.cursor[C_PAIRS]], values)
            held[late] = holds
            decided = int(np.diff(pending[:, 2], prepend=0)[holds | fails].sum())
        return held, decided
    finally:
        memory.give_scratch(scratch)


def decide_by_rounds(pending: Ints, pairs: Ints, owners: Ints, values: Values, decide: Decide) -> NDArray[np.bool_]:
    """Which of the filters that are pending hold, up to the first of an interface for each notification, or some more.

    `pending` is (notification, filter, end of its pairs), `owners` their interfaces. The first of each interface are
    decided, then twice as many of those that have not matched, and so on.
    """
    held = np.zeros(len(pending), np.bool_)
    starts = np.concatenate(([0], pending[:-1, 2]))
    _, groups = np.unique(pending[:, 0] << 32 | owners, return_inverse=True)
    order = np.argsort(groups, kind="stable")
    firsts = np.searchsorted(groups[order], groups[order])
    ranks = np.empty(len(pending), np.int64)
    ranks[order] = np.arange(len(pending)) - firsts
    matched = np.zeros(int(groups.max()) + 1, np.bool_)
    low, high = 0, 2
    while len(some := np.flatnonzero((ranks >= low) & (ranks < high) & ~matched[groups])):
        counts = pending[some, 2] - starts[some]
        ends = np.cumsum(counts)
        chosen = np.repeat(starts[some] - ends + counts, counts) + np.arange(int(ends[-1]))
        held[some] = np.logical_and.reduceat(decide(pairs[chosen], values), ends - counts)
        matched[groups[some[held[some]]]] = True
        low, high = high, 3 * high
    return held
