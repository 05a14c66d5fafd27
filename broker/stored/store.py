"""Rows on their way to the disk and back.

    put ─▶ waiting ── begin ─▶ a commit under way, beside the loop ── done ─▶ everybody whose rows it had is told

What is put while a commit is under way waits for the next one: that is the group commit, and the busier the broker, the
more share one sync. What is put in a `lane` keeps its order also if a commit fails: then what waits in the same lane
fails with it, and nothing of it is on disk behind what is not.

Everything that touches the journal is done by one thread, one job after the other; without one (`beside`), at once. A
commit that fails is nobody's: the journal forgets the group, and whoever put rows is told why.

Those who have put something are told over turns; the next commit waits for that, because what is written then, a
checkpoint above all, may rest on what they do when they are told.

The latest groups stay in memory, `CACHE_BYTES` of them, so that a subscriber that keeps up costs no reading.
"""

from __future__ import annotations

import logging
import math
import time
from collections import OrderedDict, deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from contrada.broker.stored.rows import GROUP, POSITION_BITS, Group, cut_groups, pack_group, unpack_group
from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from contrada.broker.stored.rows import RowOf

log = logging.getLogger("contrada.broker")

CACHE_BYTES: Final = 32 << 20
_GAP: Final = 8  # entries that are read over rather than begun anew behind them
_READ_BYTES: Final = 1 << 20  # read beside the loop before the loop looks at it
_ROW_MEMORY: Final = 400  # of a row's objects in memory, about


class Entry(Protocol):
    """An entry of the journal."""

    @property
    def sequence(self) -> int:
        """Its number."""

    @property
    def payload(self) -> bytes:
        """What was appended."""


class Journal(Protocol):
    """What the broker asks of a journal: numbered entries, durable when `commit` returns."""

    @property
    def first(self) -> int:
        """The number of the first entry that is held."""

    @property
    def on_disk(self) -> int:
        """The number of the last one that is on disk."""

    @property
    def size(self) -> int:
        """How many bytes it takes on disk."""

    def append(self, kind: int, payload: bytes) -> int:
        """Number an entry, to be written by the next `commit`."""

    def commit(self) -> int:
        """Write and sync; a `ContradaError` says why that failed, and what was appended since the last is gone."""

    def read(self, start: int = 1, stop: int | None = None) -> Iterator[Any]:
        """The entries from `start` up to and without `stop`."""

    def drop_before(self, sequence: int) -> None:
        """Forget entries below a number, as far as whole files go."""

    def close(self) -> None:
        """Let go of the files."""


class Commit(NamedTuple):
    """What became of rows: their positions and their time, or why they are not on disk."""

    positions: Sequence[int]
    time: int
    failure: ContradaError | None = None


class Put(NamedTuple):
    """Rows, and who is told what became of them."""

    rows: Sequence[RowOf]
    done: Callable[[Commit], None] | None
    lane: object = None


class Store:
    """The journal as the parts of a broker use it.

    `on_disk` is the last entry that is; `failure` what the last commit failed with, None if it did not.
    """

    def __init__(
        self,
        journal: Journal,
        wall: Callable[[], float] = time.time,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.journal = journal
        self.wall = wall  # seconds since 1970
        self._clock = clock
        self.beside: Callable[[Callable[[], None], Callable[[], None]], None] | None = None
        self.lead: Callable[[], Put | None] = lambda: None  # rows to go before what waits, when all before is on disk
        self.appended = 0  # bytes, by this life
        self.observe: Callable[[float], None] = lambda _seconds: None  # how long each commit took
        self.on_disk = journal.on_disk
        self.bytes = journal.size
        self.failure: ContradaError | None = None
        self.committing = False
        self.urgent = False  # whether somebody waits for what is put
        self.mark = 0  # how often something was put that somebody may have to wait for,
        self.done_to = 0  # and how often it is on disk, or failed
        self.seconds = math.inf  # of a turn, for telling what is on disk
        self._untold: deque[Callable[[], None]] = deque()  # what is to be called, now that something is
        self._waiting: list[Put] = []
        self._cache: OrderedDict[int, tuple[Group, int]] = OrderedDict()
        self._cached_bytes = 0

    @property
    def idle(self) -> bool:
        """Whether nothing waits for the disk."""
        return not self._waiting and not self.committing and not self._untold

    def put(
        self,
        rows: Sequence[RowOf],
        done: Callable[[Commit], None] | None = None,
        *,
        urgent: bool = True,
        marked: bool = False,
        lane: object = None,
    ) -> None:
        """Have rows written, in this order; `done` is told when they are on disk, or why not."""
        self.mark += marked
        self._waiting.append(Put(rows, done, lane))
        self.urgent = self.urgent or urgent

    def begin(self) -> None:
        """Begin a commit of what waits, unless one is under way."""
        if self.committing or self._untold:  # what is written next may rest on what they do
            return
        lead = self.lead()
        puts, self._waiting = [*([lead] if lead is not None else ()), *self._waiting], []
        mark = self.mark
        if not puts:
            return
        self.urgent = False
        self.committing = True
        rows = [row for put in puts for row in put.rows]
        moment = int(self.wall() * 1e6)
        groups: list[tuple[Group, int]] = []
        failures: list[ContradaError] = []
        seconds: list[float] = []

        def job() -> None:
            try:
                for some in cut_groups(rows):
                    payload = pack_group(moment, some)
                    groups.append((Group(self.journal.append(GROUP, payload), moment, some), len(payload)))
                began = time.perf_counter()
                self.journal.commit()
                seconds.append(time.perf_counter() - began)
            except ContradaError as error:
                failures.append(error)
            except Exception as error:
                failures.append(ContradaError(f"the journal failed ({type(error).__name__}: {error})"))

        def done() -> None:
            self._committed(puts, groups, moment, failures[0] if failures else None, seconds)
            self._untold.append(partial(setattr, self, "done_to", mark))
            if failures:
                self._tell(math.inf)  # before anybody puts more
            else:
                self.tell()

        self._do(job, done)

    @property
    def telling(self) -> bool:
        """Whether somebody has not been told yet of what is on disk."""
        return bool(self._untold)

    def tell(self) -> None:
        """Tell those who have put something that it is on disk, for as long as a turn should last."""
        self._tell(self.seconds)

    def _tell(self, seconds: float) -> None:
        until = self._clock() + seconds
        while self._untold:
            self._untold.popleft()()
            if self._clock() >= until:
                return

    def _do(self, job: Callable[[], None], done: Callable[[], None]) -> None:
        if self.beside is None:
            job()
            done()
        else:
            self.beside(job, done)

    def _committed(
        self,
        puts: Sequence[Put],
        groups: Sequence[tuple[Group, int]],
        moment: int,
        failure: ContradaError | None,
        seconds: Sequence[float],
    ) -> None:
        self.committing = False
        self.failure = failure
        self.bytes = self.journal.size
        positions: list[int] = []
        if failure is None:
            self.observe(seconds[0])
            for group, size in groups:
                self.on_disk = group.entry
                self.appended += size
                self._remember(group, size)
                first = group.entry << POSITION_BITS
                positions += range(first, first + len(group.rows))
        start = 0
        if failure is not None and (lanes := {put.lane for put in puts if put.lane is not None}):
            puts = [*puts, *(put for put in self._waiting if put.lane in lanes)]
            self._waiting = [put for put in self._waiting if put.lane not in lanes]
        for rows, done, _ in puts:
            end = start + len(rows)
            if done is not None:
                self._untold.append(partial(done, Commit(positions[start:end], moment, failure)))
            start = end

    # -- reading -----------------------------------------------------------------------------------------

    def _remember(self, group: Group, size: int) -> None:
        cost = size + _ROW_MEMORY * len(group.rows)
        self._cache[group.entry] = (group, cost)
        self._cached_bytes += cost
        while self._cached_bytes > CACHE_BYTES and len(self._cache) > 1:
            self._cached_bytes -= self._cache.popitem(last=False)[1][1]

    def cached(self, entry: int) -> Group | None:
        """A group, if it is in memory."""
        found = self._cache.get(entry)
        return found[0] if found is not None else None

    def fetch(self, entries: Iterable[int], done: Callable[[dict[int, Group]], None]) -> None:
        """Read these entries, or as many of the first of them as is good at once; `done` is given what is left of them.

        An entry that is damaged or gone is missing from what `done` is given, among the entries up to the last one.
        """
        wanted = list(entries)
        found: dict[int, Group] = {}
        sizes: dict[int, int] = {}

        def job() -> None:
            size = 0
            for run in _runs(wanted):
                among = {*run}
                for read in self.journal.read(run[0], run[-1] + 1):
                    entry = read.sequence
                    size += len(read.payload)
                    if entry not in among:
                        continue
                    try:
                        found[entry] = unpack_group(entry, read.payload)
                    except ContradaError:
                        continue  # said when it was opened
                    sizes[entry] = len(read.payload)
                    if size > _READ_BYTES:
                        return

        def read() -> None:
            for entry, group in found.items():
                if entry not in self._cache:
                    self._remember(group, sizes[entry])
            done(found)

        self._do(job, read)

    def scan(self, start: int, stop: int, done: Callable[[list[Group], int], None]) -> None:
        """Read groups from an entry on, up to and without `stop`; `done` gets some, and where to go on."""
        found: list[Group] = []
        after = [start]

        def job() -> None:
            size = 0
            for read in self.journal.read(start, stop):
                after[0] = read.sequence + 1
                try:
                    found.append(unpack_group(read.sequence, read.payload))
                except ContradaError:
                    continue
                size += len(read.payload)
                if size > _READ_BYTES:
                    return
            after[0] = stop

        self._do(job, lambda: done(found, after[0]))

    def drop_before(self, entry: int) -> None:
        """Forget what nobody needs any more."""

        def job() -> None:
            try:
                self.journal.drop_before(entry)
            except ContradaError as error:
                log.error("journal: old files stay", extra={"reason": str(error)})

        if entry > self.journal.first:
            self._do(job, lambda: None)

    def _check(self) -> None:
        assert self._cached_bytes == sum(cost for _, cost in self._cache.values())


def _runs(entries: Sequence[int]) -> Iterator[list[int]]:
    """Ascending entries in runs that are read at once: from one to the next it is not far."""
    run: list[int] = []
    for entry in entries:
        if run and entry - run[-1] > _GAP:
            yield run
            run = []
        run.append(entry)
    if run:
        yield run
