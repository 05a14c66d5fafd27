"""What a new durable subscription gets of the past: what the journal still has, filtered by the table.

The subscription's own row divides them: before it, nobody knew of it, and the replay looks; behind it every
notification says that the subscription gets it, and waits in `later`. Some of the journal is read and matched at each
step, beside the loop.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from contrada.broker.protocol.messages import NotificationId
from contrada.broker.stored.rows import Row, entry_of
from contrada.broker.stored.state import waiting_bytes
from contrada.broker.stored.store import Commit
from contrada.broker.turn.mishaps import Mishap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contrada.broker.durable.past import Past
    from contrada.broker.protocol.messages import Since
    from contrada.broker.stored.rows import Group, RowOf
    from contrada.broker.stored.store import Journal, Store
    from contrada.broker.stored.subscription import DurableSubscription

    _Wanted = tuple[int, int, int]  # the position, the size and the second of a notification

ALL: Final = "all"
_PUBLISHED: Final = frozenset((Row.PUBLISHED, Row.CARRIED))


def first_position(since: Since, journal: Journal, on_disk: int) -> int:
    """The entry of the journal where a replay begins to read."""
    return on_disk + 1 if since is None else journal.first


class Replay:
    """The past of one subscription, up to a position. `past` says which notifications it matches."""

    def __init__(
        self,
        store: Store,
        subscription: DurableSubscription,
        past: Past,
        since: Since,
        start: int,
        end: int,
        confirmed: Callable[[Commit], None],
        beside: Callable[[Callable[[], None], Callable[[], None]], None] | None = None,
    ) -> None:
        self._store = store
        self._subscription = subscription
        self._past = past
        self._since = since
        self._start = start
        self._end = end
        self._confirmed = confirmed
        self._beside = beside  # has another thread match; else it is done at once
        self._begun = not isinstance(since, NotificationId)

    def begin(self) -> None:
        """Begin to read."""
        self._store.scan(self._start, entry_of(self._end) + 1, self._read)

    def _read(self, groups: Sequence[Group], after: int) -> None:
        """Some of the journal is read: have it matched."""
        answer: list[list[_Wanted]] = []
        failure: list[Exception] = []

        def job() -> None:
            try:
                answer.append(self._wanted(groups))
            except Exception as error:
                failure.append(error)

        def done() -> None:
            self._past.release()
            if failure:
                self._confirmed(Commit([], 0, Mishap(failure[0])))
            else:
                self._matched(answer[0], after)

        self._past.hold()
        if self._beside is None:
            job()
            done()
        else:
            self._beside(job, done)

    def _wanted(self, groups: Sequence[Group]) -> list[_Wanted]:
        """Of some notifications those that the subscription gets; by any thread, and nobody else's meanwhile."""
        some = [
            (position, row[4], group.time)
            for group in groups
            for position, row in group.positions()
            if self._looks_at(position, group.time, row)
        ]
        bodies = [body for _, body, _ in some]
        found: list[bool] = []
        while len(found) < len(bodies):
            found += self._past.some(bodies[len(found) :])
        return [
            (position, waiting_bytes(body), time // 1_000_000)
            for (position, body, time), wanted in zip(some, found, strict=True)
            if wanted
        ]

    def _matched(self, wanted: Sequence[_Wanted], after: int) -> None:
        if wanted:
            columns = zip("QII", zip(*wanted, strict=True), strict=True)
            packed = tuple(array(code, column).tobytes() for code, column in columns)
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
