"""Few interfaces of many filters: a few filters of each are tried before all are searched ([SIENA-2D], Fig. 4b).

A notification with a large region is related to thousands of regions before an interface is known to match. Where an
interface has hundreds of filters, one of them mostly matches, and it takes a few tries to find one: those that matched
lately come first, then ever more of the others, in rounds, and for the interfaces alone that have not matched. An
interface of which none is left does not match. When all are decided there is nothing to search for, so what a
notification costs does not grow with the number of filters.

All of this is about filters with constraints of plugged-in types; the others are matched as ever. It is done where
it pays: searches tell how many constraints they decide one by one, tries are counted, and the cheaper way is taken,
with a look at the other now and then. No answer depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contrada.forwarding.kernels.match.batch import FLOAT
from contrada.forwarding.kernels.match.trying import plugged_filters, try_filters
from contrada.forwarding.kernels.match.verifying import C_PAIRS, EXAMINED
from contrada.forwarding.kernels.memory import layout
from contrada.spatial import allowance

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from contrada.forwarding.batches.encode import Values
    from contrada.forwarding.kernels.match.batch import Batch
    from contrada.forwarding.kernels.memory.layout import Index, Ints
    from contrada.forwarding.state.memory import Memory

    Decide = Callable[[Ints, Values], NDArray[np.bool_]]

_LATEST: Final = 8  # filters of an interface that matched lately
_FIRST: Final = 8  # filters of an interface that are tried after these, and twice as many in each round
EACH: Final = 32  # filters that an interface has at least, on average, where they are tried
WORTH: Final = 256  # constraints decided by a search, on average, below which nothing is tried
_AGAIN: Final = 256  # notifications after which the other way is looked at once more
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
    latest: Ints  # (interfaces, _LATEST): filters that matched lately; 0 for none
    changes: int


class Trying:
    """Whether filters are tried, and which. Threads that match may use it at once."""

    def __init__(self) -> None:
        self._listed = _Listed(_NONE, _NONE, _NONE, np.zeros((0, _LATEST), np.int64), -1)
        self.changes = 0  # of the table, counted by whoever changes it
        self._asked = 0  # notifications since filters were listed
        self.searched = 0.0  # constraints that a search decides one by one, on average
        self.hits = 0.0  # constraints that it finds, likewise
        self._searches = self._finds = self._noted = 0  # how often these and `late` were told, up to a point
        self.late = 0.0  # pairs that are left to be decided after a search, on average
        self.tried = 0.0  # and pairs that tries decide
        self._until = 0  # notifications before the other way is looked at

    def pays(self, notifications: int) -> bool:
        """Whether filters are to be tried on the next notifications, by what searches and tries have cost."""
        if not self.searches_are_dear:
            return False
        self._until -= notifications
        if self._until <= 0:
            self._until = _AGAIN
            return True
        return self.tried < self._without

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

    def first(self, batch: Batch, values: Values, widest: int, memory: Memory, decide: Decide) -> Given:
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
                some, listed, self._without * len(some), batch, values, widest, memory, decide
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
            same = np.array_equal(known, listed.owners)
            latest = listed.latest if same else np.zeros((len(known), _LATEST), np.int64)
            self._listed = listed = _Listed(rows[order], starts, known, latest, changes)
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
    decide: Decide,
) -> tuple[Ints, Ints, NDArray[np.bool_], int]:
    """Places and interfaces (by their rank) that match; for which notifications some are undecided; pairs decided.

    The rounds end when they have cost as much as is said.
    """
    lengths = np.diff(listed.starts)
    matched = np.zeros((len(some), len(listed.owners)), np.bool_)
    undecided = np.ones_like(matched)
    decided, tried, size = 0, 0, 0
    while undecided.any() and decided <= most:
        m, i = np.nonzero(undecided)
        if size == 0:
            counts = np.full(len(m), _LATEST)
            rows = listed.latest[i].ravel()
        else:
            counts = np.minimum(size, lengths[i] - tried)
            offsets = np.repeat(listed.starts[i] + tried - np.cumsum(counts) + counts, counts)
            rows = listed.rows[offsets + np.arange(len(offsets))]
        m, i = np.repeat(m, counts), np.repeat(i, counts)
        there = rows > 0
        m, i, rows = m[there], i[there], rows[there]
        held, pairs = _tried(some[m], rows, listed.owners[i], batch, values, widest, memory, decide)
        decided += pairs + len(rows) // 8
        matched[m[held], i[held]] = True
        if size != 0:
            listed.latest[i[held], (rows[held] + tried) % _LATEST] = rows[held]
        tried, size = tried + size, 2 * size or _FIRST
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
    decide: Decide,
) -> tuple[NDArray[np.bool_], int]:
    """Whether each filter holds on the notification at its place, and how many pairs types have decided for that."""
    allowance.spend(EXAMINED * len(rows))
    scratch = memory.take_scratch(widest, len(batch.text))
    try:
        verdicts = np.zeros(len(rows), np.int64)
        index: Index = memory.index
        while not try_filters(index, batch, places, rows, owners, scratch, verdicts):
            scratch = memory.larger(scratch)
        held = verdicts == 1
        late = np.flatnonzero(verdicts == 2)
        pairs = int(scratch.cursor[C_PAIRS])
        if len(late):
            starts = np.concatenate(([0], scratch.pending[: len(late) - 1, 2]))
            held[late] = np.logical_and.reduceat(decide(scratch.pairs[:pairs], values), starts)
        return held, pairs
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
