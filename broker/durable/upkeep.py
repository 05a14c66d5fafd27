"""What durable subscriptions and the journal need from time to time.

Limits of count and bytes that drop, ages, subscriptions to which nobody has come back, last values that are too old; a
checkpoint when the journal has grown, some of it before each commit; and what the journal may forget: what is older
than `data_seconds`, or beyond `data_bytes`, and neither waits for a subscription nor lies behind the last checkpoint.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from contrada.broker.protocol.wire import Full
from contrada.broker.stored.recovery import CHECKPOINT_BYTES, CHECKPOINT_ENTRIES
from contrada.broker.stored.rows import Row, entry_of, row_bytes
from contrada.broker.stored.store import Put

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contrada.broker.durable.delivering import Delivering
    from contrada.broker.node.settings import Settings
    from contrada.broker.stored.rows import RowOf
    from contrada.broker.stored.state import State
    from contrada.broker.stored.store import Commit, Store
    from contrada.broker.stored.subscription import DurableSubscription

_EVERY: Final = 1.0  # second: ages and expiry are looked at
_REMEMBERED: Final = 100_000  # marks of where the journal was when
_STEP_BYTES: Final = 1 << 20  # of a checkpoint before one commit, and more if a subscription has more


class _Mark(NamedTuple):
    """Where the journal was at a time: its last entry, and the bytes appended in this life."""

    time: float
    entry: int
    appended: int


class Upkeep:
    """The housekeeping of one broker's disk. `end` ends a subscription for good."""

    def __init__(
        self,
        store: Store,
        state: State,
        settings: Settings,
        delivering: Delivering,
        end: Callable[[DurableSubscription, str], None],
    ) -> None:
        self._store = store
        self._state = state
        self._settings = settings
        self._delivering = delivering
        self._end = end
        self._due = 0.0
        self._restating: Iterator[list[RowOf]] | None = None
        self._begun_at = 0  # the entry behind which the checkpoint under way begins
        self._whole_at = 0  # the last whole one
        self._begun_bytes = self._whole_bytes = store.bytes
        self._restated_bytes = 0
        self._marks: deque[_Mark] = deque(maxlen=_REMEMBERED)
        self._old = 0  # the last entry that is older, or further back, than anybody asked to have it kept
        store.lead = self._lead

    @property
    def restating(self) -> bool:
        """Whether a checkpoint is under way."""
        return self._restating is not None

    def tick(self, now: float) -> None:
        """Do what is due."""
        if now < self._due:
            return
        self._due = now + _EVERY
        wall = self._store.wall()
        for subscription in list(self._state.by_number.values()):
            if subscription.later is None and not subscription.dropping:
                self._apply_limits(subscription, wall)
        self._state.retained.expire(wall)
        self._begin_checkpoint()
        self._forget_old(wall)

    # -- limits ------------------------------------------------------------------------------------------

    def _apply_limits(self, subscription: DurableSubscription, wall: float) -> None:
        abandoned = self._settings.durable.abandoned
        if subscription.receiver is None and subscription.left is not None:
            if subscription.left <= 0:  # of before a crash: from here on
                subscription.left = wall
            elif wall - subscription.left > abandoned:
                self._end(subscription, f"has had nobody for {abandoned} s")
                return
        if self.trim(subscription):
            return
        oldest = subscription.queue.oldest_time
        if oldest is not None and oldest < wall - subscription.keep.age:
            late = subscription.queue.older_than(int(wall - subscription.keep.age))
            if subscription.keep.when_age is Full.DEAD_LETTER:
                self._delivering.bury_positions(subscription, late, f"older than {subscription.keep.age} s")
            elif late:
                self._drop(subscription, late)

    def trim(self, subscription: DurableSubscription) -> bool:
        """Drop or bury the oldest of a subscription, as far as it has too many; whether it has."""
        dropped: list[int] = []
        buried: list[int] = []
        gone = 0
        for position, size in subscription.queue.oldest():
            full = subscription.overflow(len(dropped) + len(buried), gone)
            if full is None:
                break
            gone += size
            (buried if full is Full.DEAD_LETTER else dropped).append(position)
        if buried:
            self._delivering.bury_positions(subscription, buried, "too many wait")
        elif dropped:
            self._drop(subscription, dropped)
        return bool(buried or dropped)

    def _drop(self, subscription: DurableSubscription, positions: Sequence[int]) -> None:
        """Lose the oldest of a subscription, once the disk knows: else they would come back behind younger ones."""
        last, total = positions[-1], subscription.dropped + len(positions)

        def done(commit: Commit) -> None:
            subscription.dropping = False
            if commit.failure is None:
                count = subscription.acknowledge(0, last)
                subscription.dropped += count
                self._delivering.dropped(count)

        subscription.dropping = True
        self._store.put([(Row.DROPPED, subscription.number, last, total)], done)

    # -- a checkpoint ------------------------------------------------------------------------------------

    def _begin_checkpoint(self) -> None:
        grown = self._store.bytes - self._begun_bytes
        entries = self._store.on_disk - self._begun_at
        if self._restating is None and (
            grown > max(CHECKPOINT_BYTES, 4 * self._restated_bytes) or entries > CHECKPOINT_ENTRIES
        ):
            self.checkpoint()

    def checkpoint(self) -> None:
        """Say everything again, some before each commit."""
        if all(subscription.later is None for subscription in self._state.by_number.values()):
            self._state.restated = False
            self._restating = self._state.checkpoint()
            self._begun_at = self._store.on_disk
            self._begun_bytes = self._store.bytes
            self._restated_bytes = 0

    def _lead(self) -> Put | None:
        """Some of the checkpoint under way. All that it speaks of is on disk, and nothing else is being written."""
        if self._restating is None:
            return None
        rows: list[RowOf] = []
        size = 0
        for some in self._restating:
            rows += some
            size += sum(map(row_bytes, some))
            if size > _STEP_BYTES:
                break
        self._restated_bytes += size
        return Put(rows, self._restated)

    def _restated(self, commit: Commit) -> None:
        """Some of the checkpoint is on disk; one of which something is missing is none."""
        if commit.failure is not None:
            self._restating = None
        elif self._state.restated:
            self._restating = None
            self._whole_at = self._begun_at

    # -- what the journal may forget ---------------------------------------------------------------------

    def _forget_old(self, wall: float) -> None:
        store, settings = self._store, self._settings
        if not self._marks or self._marks[-1].entry != store.on_disk:
            self._marks.append(_Mark(wall, store.on_disk, store.appended))
        while self._marks:
            mark = self._marks[0]
            if mark.time > wall - settings.data_seconds and store.appended - mark.appended < settings.data_bytes:
                break
            self._old = self._marks.popleft().entry
        old = self._old
        needed = min(
            (entry_of(first) for each in self._state.by_number.values() if (first := each.queue.first) is not None),
            default=old,
        )
        forming = any(each.later is not None for each in self._state.by_number.values())  # they read what is old
        if old and self._whole_at and not forming:
            store.drop_before(min(old, needed, self._whole_at))
