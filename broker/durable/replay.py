"""What a new durable subscription gets of the past: what the journal still has, filtered by the table.

The subscription's own row divides them: before it, nobody knew of it, and the replay looks; behind it every
notification says that the subscription gets it, and waits in `later`. Some of the journal is read beside the loop and
matched at each step.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from contrada.broker.protocol.messages import NotificationId
from contrada.broker.stored.rows import Row, entry_of
from contrada.broker.stored.state import waiting_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contrada.broker.protocol.messages import Since
    from contrada.broker.stored.rows import Group, RowOf
    from contrada.broker.stored.store import Commit, Journal, Store
    from contrada.broker.stored.subscription import DurableSubscription

ALL: Final = "all"
_AT_ONCE: Final = 256  # notifications matched at one step
_PUBLISHED: Final = frozenset((Row.PUBLISHED, Row.CARRIED))


def first_position(since: Since, journal: Journal, on_disk: int) -> int:
    """The entry of the journal where a replay begins to read."""
    return on_disk + 1 if since is None else journal.first


class Replay:
    """The past of one subscription, up to a position. `finds` says which notifications it matches."""

    def __init__(
        self,
        store: Store,
        subscription: DurableSubscription,
        finds: Callable[[Sequence[bytes]], list[bool]],
        since: Since,
        start: int,
        end: int,
        confirmed: Callable[[Commit], None],
    ) -> None:
        self._store = store
        self._subscription = subscription
        self._finds = finds
        self._since = since
        self._start = start
        self._end = end
        self._confirmed = confirmed
        self._begun = not isinstance(since, NotificationId)

    def begin(self) -> None:
        """Begin to read."""
        self._store.scan(self._start, entry_of(self._end) + 1, self._read)

    def _read(self, groups: Sequence[Group], after: int) -> None:
        found = array("Q"), array("I"), array("I")
        for group in groups:
            some = [(position, row) for position, row in group.positions() if self._looks_at(position, group.time, row)]
            for start in range(0, len(some), _AT_ONCE):
                portion = some[start : start + _AT_ONCE]
                for (position, row), is_wanted in zip(
                    portion, self._finds([row[4] for _, row in portion]), strict=True
                ):
                    if is_wanted:
                        for column, value in zip(
                            found, (position, waiting_bytes(row[4]), group.time // 1_000_000), strict=True
                        ):
                            column.append(value)
        if found[0]:
            packed = (found[0].tobytes(), found[1].tobytes(), found[2].tobytes())
            self._subscription.queue.restore(*packed)
            self._store.put([(Row.WAITING, self._subscription.number, *packed)])
        if after <= entry_of(self._end):
            self._store.scan(after, entry_of(self._end) + 1, self._read)
        else:
            self._finish()

    def _looks_at(self, position: int, time: int, row: RowOf) -> bool:
        """Whether a row is a notification of the time that is asked for."""
        if row[0] not in _PUBLISHED or position >= self._end:
            return False
        if not self._begun:
            self._begun = (row[1], row[2]) == self._since  # from the next one on
            return False
        return not isinstance(self._since, int) or time >= self._since

    def _finish(self) -> None:
        if not self._begun:  # the notification that it was to begin behind is gone: then all is newer than it
            self._begun = True
            self._since = ALL
            self.begin()
            return
        self._store.put([(Row.CONFIRMED, self._subscription.number)], self._confirmed)
