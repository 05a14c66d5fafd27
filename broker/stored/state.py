"""What the rows of a journal say, taken together: subscriptions, custody for neighbours, keys, last values.

`apply` takes rows in order. A checkpoint says everything again: what it restates of a subscription replaces what was
known of it, and `complete` names all that there are. So reading may begin at any CHECKPOINT row that a COMPLETE
follows.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

from contrada.broker.protocol.messages import Keep, NotificationId
from contrada.broker.protocol.peer_messages import filter_key
from contrada.broker.protocol.wire import Full
from contrada.broker.routing.seen import SeenIds
from contrada.broker.stored.keys import Keys
from contrada.broker.stored.link_cursor import LinkCursor
from contrada.broker.stored.retained import LastValue, Retained
from contrada.broker.stored.rows import HOLDING, ROW_BYTES, Row
from contrada.broker.stored.subscription import DeadLetter, DurableSubscription

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contrada.broker.stored.limits import DurableLimits
    from contrada.broker.stored.rows import RowOf

_KEYS: Final = 1000  # in one row of a checkpoint
_IDS: Final = 65_536  # the same


class State:
    """Everything durable that a broker remembers, except the notifications that are in the journal."""

    def __init__(self, limits: DurableLimits, broker: str = "") -> None:
        self.limits = limits
        self.broker = broker
        self.last_sequence = 0  # that this broker has given to a notification
        self.by_number: dict[int, DurableSubscription] = {}
        self.links: dict[str, LinkCursor] = {}  # those of `by_number` that are neighbours'
        self.carried = SeenIds(max(1, limits.keys // 2), limits.keys)  # notifications that were carried here
        self.next_number = 1
        self.keys = Keys(limits.keys)
        self.retained = Retained(limits.retained, limits.retained_bytes, limits.retained_age)
        self.restated = False  # whether a checkpoint has said everything
        self.complete = False  # whether a whole checkpoint has been applied
        self._restating = False
        self._forming: set[int] = set()
        self._apply: dict[int, Callable[..., None]] = {
            Row.SUBSCRIBED: self._subscribed,
            Row.ENDED: self._ended,
            Row.ACKNOWLEDGED: self._acknowledged,
            Row.WAITING: self._waiting,
            Row.CONFIRMED: self._confirmed,
            Row.DELIVERED: self._delivered,
            Row.DROPPED: self._dropped,
            Row.DEAD: self._dead,
            Row.LEFT: self._left,
            Row.CHECKPOINT: self._checkpoint,
            Row.STATE: self._state,
            Row.KEYS: self._keys,
            Row.RETAINED: self._retained,
            Row.FORGOTTEN: self.retained.forget,
            Row.COMPLETE: self._complete,
            Row.LINKED: self._linked,
            Row.WANTED: self._wanted,
            Row.CARRIED_IDS: self._carried_ids,
        }

    def apply(self, position: int, time: int, row: RowOf) -> None:
        """Take in a row."""
        kind = row[0]
        if kind in HOLDING:
            self._published(position, time, *row[1:9])
            if kind == Row.CARRIED:
                self.carried.unseen(row[1], (row[2],))
        elif (apply := self._apply.get(kind)) is not None:
            apply(*row[1:])

    def finish(self) -> None:
        """After the last row: what was never confirmed is not there."""
        for number in self._forming:
            self.by_number.pop(number, None)
        self._forming.clear()

    def _published(
        self,
        position: int,
        time: int,
        broker: str,
        sequence: int,
        publisher: str,
        body: bytes,
        numbers: tuple[int, ...],
        scope: str,
        key: str,
        retain: str,
    ) -> None:
        if broker == self.broker:
            self.last_sequence = max(self.last_sequence, sequence)
        for number in numbers:
            if (subscription := self.by_number.get(number)) is not None:
                subscription.arrive(position, waiting_bytes(body), time // 1_000_000)
        if key:
            self.keys.remember(scope, key, sequence)
        if retain:
            self.retained.put(retain, LastValue(NotificationId(broker, sequence), publisher, body, time))

    def _subscribed(
        self,
        number: int,
        name: str,
        owner: str,
        filters: tuple[bytes, ...],
        interface: str,
        keep: tuple[Any, ...],
        forming: bool,
    ) -> None:
        self.by_number[number] = made = DurableSubscription(number, name, owner, filters, interface, keep_of(keep))
        self.next_number = max(self.next_number, number + 1)
        if forming:
            made.later = []
            self._forming.add(number)

    def _linked(self, number: int, neighbour: str, filters: tuple[bytes, ...], dropped: int, left: float) -> None:
        self.by_number[number] = self.links[neighbour] = made = LinkCursor(number, neighbour, self.limits)
        self.next_number = max(self.next_number, number + 1)
        made.wanted = {filter_key(encoded): encoded for encoded in filters}
        made.dropped, made.left = dropped, max(left, 0.0)

    def _wanted(self, number: int, added: tuple[bytes, ...], removed: tuple[bytes, ...]) -> None:
        if isinstance(cursor := self.by_number.get(number), LinkCursor):
            cursor.wanted.update({filter_key(encoded): encoded for encoded in added})
            for key in removed:
                cursor.wanted.pop(key, None)

    def _carried_ids(self, broker: str, sequences: bytes) -> None:
        self.carried.unseen(broker, array("Q", sequences))

    def _ended(self, number: int) -> None:
        self.forget(number)
        self._forming.discard(number)

    def forget(self, number: int) -> None:
        """A subscription, or what is kept for a neighbour, is no more."""
        ended = self.by_number.pop(number, None)
        if isinstance(ended, LinkCursor) and self.links.get(ended.name) is ended:
            del self.links[ended.name]

    def _acknowledged(self, number: int, first: int, last: int) -> None:
        if (subscription := self.by_number.get(number)) is not None:
            subscription.acknowledge(first, last)

    def _waiting(self, number: int, positions: bytes, sizes: bytes, times: bytes) -> None:
        if (subscription := self.by_number.get(number)) is not None:
            subscription.queue.restore(positions, sizes, times)

    def _confirmed(self, number: int) -> None:
        if (subscription := self.by_number.get(number)) is not None:
            subscription.confirm()
        self._forming.discard(number)

    def _delivered(self, number: int, last: int, tried: tuple[tuple[int, int], ...]) -> None:
        if (subscription := self.by_number.get(number)) is not None:
            subscription.delivered = max(subscription.delivered, last)
            subscription.attempts.update(tried)

    def _dropped(self, number: int, last: int, total: int) -> None:
        if (subscription := self.by_number.get(number)) is not None:
            subscription.acknowledge(0, last)
            subscription.dropped = total

    def _dead(
        self,
        number: int,
        position: int,
        reason: str,
        broker: str,
        sequence: int,
        publisher: str,
        body: bytes,
        time: int,
    ) -> None:
        if (subscription := self.by_number.get(number)) is not None:
            letter = DeadLetter(position, reason, NotificationId(broker, sequence), publisher, body, time)
            subscription.bury(letter, self.limits.dead)

    def _left(self, number: int, time: float) -> None:
        if (subscription := self.by_number.get(number)) is not None:
            subscription.left = time

    def _checkpoint(self) -> None:
        self._restating = True

    def _state(self, *row: Any) -> None:
        """A subscription, as `_subscribed` has it; what it was delivered and lost, when it was left, what was tried."""
        number, name, owner, filters, interface, keep, delivered, dropped, left, tried = row
        self._subscribed(number, name, owner, filters, interface, keep, forming=False)
        restated = self.by_number[number]
        restated.delivered, restated.dropped = delivered, dropped
        restated.left = left if left >= 0 else 0.0
        restated.attempts = dict(tried)

    def _keys(self, keys: tuple[tuple[str, str, int], ...]) -> None:
        for scope, key, sequence in keys:
            if self.keys.find(scope, key) is None:
                self.keys.remember(scope, key, sequence)

    def _retained(self, key: str, broker: str, sequence: int, publisher: str, body: bytes, time: int) -> None:
        self.retained.restate(key, LastValue(NotificationId(broker, sequence), publisher, body, time))

    def _complete(self, numbers: tuple[int, ...], next_number: int, last_sequence: int) -> None:
        self.last_sequence = max(self.last_sequence, last_sequence)
        self.next_number = max(self.next_number, next_number)
        if self._restating:
            known = {*numbers}
            for number in [each for each in self.by_number if each not in known and each < next_number]:
                self._ended(number)
            self.complete = True
        self._restating = False

    # -- a checkpoint ------------------------------------------------------------------------------------

    def checkpoint(self) -> Iterator[list[RowOf]]:
        """Rows that say everything again, some at each step; what happens between two steps is said by other rows."""
        yield [(Row.CHECKPOINT,)]
        for number in sorted(self.by_number):
            subscription = self.by_number.get(number)
            if subscription is not None and subscription.later is None:
                yield list(subscription.restated())
        keys = list(self.keys.rows())
        for start in range(0, len(keys), _KEYS):
            yield [(Row.KEYS, tuple(keys[start : start + _KEYS]))]
        for broker, sequences in self.carried.snapshot():
            for start in range(0, len(sequences), _IDS):
                yield [(Row.CARRIED_IDS, broker, array("Q", sequences[start : start + _IDS]).tobytes())]
        for key, value in self.retained.restated():
            yield [(Row.RETAINED, key, *value.id, value.publisher, value.body, value.time)]
        self.restated = True
        yield [(Row.COMPLETE, tuple(self.by_number), self.next_number, self.last_sequence)]

    def _check(self) -> None:
        for number, subscription in self.by_number.items():
            assert subscription.number == number < self.next_number
            subscription._check()
        assert {*self.links.values()} == {each for each in self.by_number.values() if isinstance(each, LinkCursor)}
        self.keys._check()
        self.retained._check()


def keep_of(fields: tuple[Any, ...]) -> Keep:
    """Read what a subscription may keep from a row."""
    count, when_notifications, size, when_bytes, age, when_age, attempts = fields
    return Keep(count, Full(when_notifications), size, Full(when_bytes), age, Full(when_age), attempts)


def waiting_bytes(body: bytes) -> int:
    """What a notification counts as, while it waits."""
    return ROW_BYTES + len(body)
