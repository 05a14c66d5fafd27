"""Notifications that go to the disk: what clients publish durably, and whatever matches a durable subscription.

    STORE ─▶ begin: key known? ─▶ matching ─▶ accepted: a row each ─▶ on disk ─▶ queues, keys, last values, ACK
                       └─ answered at once                        └─▶ refused, with the disk's reason

A publication that only matches a durable subscription is stored too, and its ACK waits for that: so a slow disk slows
down publishers, and no memory grows. If the disk fails, it counts as dropped for these subscriptions.

Subscribers without a durable subscription, and neighbours, get everything when it is matched, as ever; but what was
published durably goes to a neighbour that wants it durably from the disk, in custody (`custody.py`), and only so; and
to one that does not, when it is on disk: a durable subscription far away must not get under one id what a crash unmakes
here, and its publisher publishes again.
"""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from contrada.broker.core.ports import Refusal
from contrada.broker.protocol.messages import Ack, Acked, Error, NotificationId
from contrada.broker.protocol.wire import Code
from contrada.broker.sessions.batch import Batch
from contrada.broker.stored.retained import LastValue
from contrada.broker.stored.rows import Row
from contrada.broker.stored.state import waiting_bytes
from contrada.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from contrada.broker.core.matching import Faults as Faults
    from contrada.broker.core.matching import Matched
    from contrada.broker.core.publication import Publication
    from contrada.broker.protocol.messages import Store as StoreMessage
    from contrada.broker.sessions.session import Session
    from contrada.broker.sessions.sessions import Sessions
    from contrada.broker.stored.link_cursor import LinkCursor
    from contrada.broker.stored.rows import RowOf
    from contrada.broker.stored.state import State
    from contrada.broker.stored.store import Commit, Store
    from contrada.broker.stored.subscription import DurableSubscription
    from contrada.broker.turn.clock import Clock
    from contrada.errors import ContradaError

_PUBLISHED: Final = int(Row.PUBLISHED)
_CARRIED: Final = int(Row.CARRIED)
_NOBODY: Final[frozenset[int]] = frozenset()
_RETRY_AFTER: Final = 1.0  # seconds without trying, after the disk has failed


class NotNow(Refused):
    """What cannot be stored at present, and may be later."""


class Storing:
    """What is to be stored of a publication besides its notifications.

    A neighbour's has the links that it has crossed (`hops`, else 0), keeps its order in its `lane` of the store, and
    does not go back to the cursor that it `came_from`.
    """

    __slots__ = ("came_from", "hops", "key", "lane", "retain", "scope")

    def __init__(
        self,
        scope: str = "",
        key: str = "",
        retain: str = "",
        *,
        hops: int = 0,
        lane: object = None,
        came_from: int = 0,
    ) -> None:
        self.scope = scope
        self.key = key
        self.retain = retain
        self.hops = hops
        self.lane = lane
        self.came_from = came_from

    def row(self, broker: str, sequence: int, publisher: str, body: bytes, numbers: tuple[int, ...]) -> RowOf:
        """The row of one of its notifications."""
        said = (broker, sequence, publisher, body, numbers, self.scope, self.key, self.retain)
        return (_CARRIED, *said, self.hops) if self.hops else (_PUBLISHED, *said)


_PLAIN: Final = Storing()


class Publishing:
    """The way of publications to the disk.

    `interfaces` are the durable subscriptions by their number in the table, `cursors` what is kept for neighbours.
    `arrived` is told of each that has more. `unseen` says which notifications have not been here before.
    """

    def __init__(
        self,
        store: Store,
        state: State,
        interfaces: dict[int, DurableSubscription],
        arrived: Callable[[DurableSubscription], None],
        sessions: Sessions,
        clock: Clock,
    ) -> None:
        self._store = store
        self._state = state
        self.cursors: Mapping[int, LinkCursor] = {}
        self.unseen: Callable[[str, Sequence[int]], list[int] | None] = lambda _broker, _sequences: None
        self.neighbours: Callable[[], AbstractSet[int]] = frozenset  # the interfaces of links,
        self.offer: Callable[[Batch, Collection[int], Publication], None]  # and how they are given something
        self._interfaces = interfaces
        self._arrived = arrived
        self._sessions = sessions
        self._counters = sessions.counters
        self._clock = clock
        self._retry_at = clock.now

    def begin(self, session: Session, message: StoreMessage) -> Storing | None:
        """STORE: what is to be kept with it; None if it is answered already, or will be, with another one."""
        if self._store.failure is not None and self._clock.now < self._retry_at:
            self._counters["storage_refused"] += 1
            raise Refusal(Code.STORAGE, f"not stored: {self._store.failure}")
        if not message.key:
            return Storing(retain=message.retain)
        keys, scope, key = self._state.keys, scope_of(session), message.key
        if (sequence := keys.find(scope, key)) is not None:
            self._counters["publish_repeats"] += 1
            self._sessions.answer(session, Ack((Acked(message.request, sequence),)))
            return None
        if not keys.begin(scope, key):
            self._counters["publish_repeats"] += 1
            keys.follow(scope, key, partial(self._follow, session, message.request))
            return None
        return Storing(scope, key, message.retain)

    def _follow(self, session: Session, request: int, sequence: int, failure: ContradaError | None) -> None:
        """Answer a repetition of what was on its way to the disk."""
        if session.open:
            if failure is None:
                self._sessions.answer(session, Ack((Acked(request, sequence),)))
            else:
                self._sessions.answer(session, Error(request, code_of(failure), str(failure)))

    def refused(self, storing: Storing, error: ContradaError) -> None:
        """A publication is refused before it was stored, or because it could not be."""
        if storing.key:
            self._state.keys.finish(storing.scope, storing.key, 0, error)

    def over_limits(self, publication: Publication, matches: Matched) -> Faults:
        """Why notifications cannot be stored for everybody who is to get them, by their places."""
        wrong: dict[int, ContradaError] = {}
        if publication.source.declined:
            return {0: NotNow("something before it was declined", code=Code.STORAGE)}
        if not self._interfaces and not self.cursors:
            return wrong
        before: dict[DurableSubscription, tuple[int, int]] = {}  # in this publication: notifications, and bytes
        for start, end in _alike(matches):
            sizes = [waiting_bytes(body) for body in publication.bodies[start:end]]
            mine = self._subscriptions(matches[start], publication.storing)
            if not _have_room(mine, sizes, before):  # say for which there is none
                for place, size in enumerate(sizes, start):
                    for subscription in mine:
                        count, total = before.get(subscription, (0, 0))
                        if publication.run is not None and subscription.is_empty and not count:
                            limit = ""  # what is too large by itself would never be taken: it is dropped, and counted
                        elif limit := subscription.over_limit(total + size, count):
                            reason = f"{subscription.title} has its {limit} waiting, and refuses more"
                            self._counters["storage_refused"] += 1
                            return {place: NotNow(reason, code=Code.LIMIT)}  # it is accepted as a whole, or not at all
                        before[subscription] = count + 1, total + size
            elif end < len(matches):
                for subscription in mine:
                    count, total = before.get(subscription, (0, 0))
                    before[subscription] = count + len(sizes), total + sum(sizes)
        return wrong

    def _subscriptions(self, matched: AbstractSet[int], storing: Storing | None) -> Sequence[DurableSubscription]:
        interfaces, cursors = self._interfaces, self.cursors
        if not matched:
            return ()
        found = [interfaces[each] for each in sorted(matched & interfaces.keys())] if interfaces else []
        if storing is None or not cursors:
            return found
        onward = sorted(matched & cursors.keys() - {storing.came_from})
        return [*found, *(cursors[each] for each in onward)]

    def accepted(
        self, publication: Publication, broker: str, publisher: str, sequences: Sequence[int], matches: Matched
    ) -> Matched:
        """Store notifications that were published durably or match durable subscriptions; who else gets them."""
        interfaces, storing = self._interfaces, publication.storing
        if storing is None and (not interfaces or not any(map(interfaces.keys().__and__, matches))):
            return self._others(matches) if self.cursors else matches
        rows: list[RowOf] = []
        wanted: list[_Wanted] = []
        row = (storing or _PLAIN).row
        for start, end in _alike(matches):
            mine = self._subscriptions(matches[start], storing)
            if not mine and storing is None:
                continue
            for first, some, sizes in self._expected(mine, start, publication.bodies[start:end]):
                if some or storing is not None:
                    numbers = tuple([subscription.number for subscription in some])
                    rows += [
                        row(broker, sequences[place], publisher, publication.bodies[place], numbers)
                        for place in range(first, first + len(sizes))
                    ]
                    wanted.append(_Wanted(some, sizes))
        if rows:
            publication.waiting += 1
            retains = storing is not None and bool(storing.retain)
            lane = storing.lane if storing is not None else None
            self._store.put(rows, partial(self._stored, publication, rows, wanted), marked=retains, lane=lane)
        others = self._others(matches)
        if storing is not None and (links := self.neighbours()):
            onward = [matched & links - {publication.source.interface} for matched in others]
            publication.onward = self._later(publication, broker, publisher, sequences, onward, matches)
            others = [matched - links for matched in others]
        if storing is not None and self.cursors:
            others = [left - self._in_custody(matched) for matched, left in zip(matches, others, strict=True)]
        if storing is not None and storing.hops and (fresh := self.unseen(broker, sequences)) is not None:
            here = {*fresh}  # the rest was forwarded here before, without custody
            others = [matched if place in here else _NOBODY for place, matched in enumerate(others)]
        return others

    def _later(
        self,
        publication: Publication,
        broker: str,
        publisher: str,
        sequences: Sequence[int],
        onward: Matched,
        matches: Matched,
    ) -> list[tuple[Batch, AbstractSet[int]]]:
        """What neighbours get without custody, once it is on disk."""
        hops = publication.storing.hops if publication.storing is not None else 0
        made = []
        for sequence, body, links, matched in zip(sequences, publication.bodies, onward, matches, strict=True):
            if wanted := links - self._in_custody(matched):
                made.append((Batch(broker, (sequence,), publisher, (body,), hops), wanted))
        return made

    def _in_custody(self, matched: AbstractSet[int]) -> set[int]:
        """The interfaces of neighbours that get from the disk what they would be forwarded."""
        return {self.cursors[each].plain_interface for each in matched & self.cursors.keys()}

    def _others(self, matches: Matched) -> Matched:
        """Who gets notifications that are not for the disk alone."""
        if not self._interfaces and not self.cursors:
            return matches
        return [matched.difference(self._interfaces, self.cursors) for matched in matches]  # type: ignore[attr-defined]  # sets, frozen or not

    def _expected(
        self, subscriptions: Sequence[DurableSubscription], start: int, bodies: Sequence[bytes]
    ) -> Iterator[tuple[int, Sequence[DurableSubscription], array[int]]]:
        """Let notifications be on their way to subscriptions: from which place on, to which, and their sizes."""
        sizes = [waiting_bytes(body) for body in bodies]
        if _have_room(subscriptions, sizes, {}):
            for subscription in subscriptions:
                subscription.arriving += len(sizes)
                subscription.arriving_bytes += sum(sizes)
            yield start, subscriptions, array("I", sizes)
            return
        for place, size in enumerate(sizes, start):
            yield place, [each for each in subscriptions if self._expect(each, size)], array("I", (size,))

    def _expect(self, subscription: DurableSubscription, size: int) -> bool:
        """Let a notification be on its way to a subscription, unless that has too many; then it is dropped."""
        if subscription.over_limit(size):
            self._drop(subscription, 1)
            return False
        subscription.arriving += 1
        subscription.arriving_bytes += size
        return True

    def _drop(self, subscription: DurableSubscription, count: int) -> None:
        subscription.dropped += count
        self._counters["durable_dropped"] += count

    def _stored(
        self,
        publication: Publication,
        rows: Sequence[RowOf],
        wanted: Sequence[_Wanted],
        commit: Commit,
    ) -> None:
        """A publication is on disk, or is not."""
        failure = commit.failure
        start = 0
        for subscriptions, sizes in wanted:
            positions = array("Q", commit.positions[start : start + len(sizes)])
            start += len(sizes)
            total = sum(sizes)
            for subscription in subscriptions:
                subscription.arriving -= len(sizes)
                subscription.arriving_bytes -= total
                if failure is not None:
                    self._drop(subscription, len(sizes) if publication.storing is None else 0)
                elif self._is_here(subscription):
                    subscription.arrive_together(positions, sizes, commit.time // 1_000_000)
                    self._arrived(subscription)
        onward, publication.onward = publication.onward, []
        for batch, links in onward if failure is None else ():
            self.offer(batch, links, publication)
        publication.waiting -= 1
        if failure is not None:
            self._retry_at = self._clock.now + _RETRY_AFTER
            self._counters["storage_failures"] += 1
            if publication.storing is not None:
                self._refuse(publication, failure)
                return
        else:
            self._counters["stored"] += len(rows)
            if publication.storing is not None:
                self._remember(publication, rows, commit)
        if not publication.waiting and not publication.settled:
            publication.source.acknowledge(publication)

    def _is_here(self, subscription: DurableSubscription) -> bool:
        interface = subscription.interface
        return subscription in (self._interfaces.get(interface), self.cursors.get(interface))

    def _refuse(self, publication: Publication, failure: ContradaError) -> None:
        self._counters["storage_refused"] += 1
        if not publication.settled:
            wrong = {0: NotNow(f"not stored: {failure}", code=Code.STORAGE)}
            publication.source.refuse(publication, wrong, [frozenset()] * len(publication.bodies))

    def _remember(self, publication: Publication, rows: Sequence[RowOf], commit: Commit) -> None:
        storing = publication.storing
        assert storing is not None
        _, broker, sequence, publisher, body, *_ = rows[0]
        if storing.hops:
            self._state.carried.unseen(broker, [row[2] for row in rows])
            self._counters["custody_taken"] += len(rows)
            return
        self._state.last_sequence = max(self._state.last_sequence, rows[-1][2])
        if storing.key:
            self._state.keys.finish(storing.scope, storing.key, sequence, None)
        if storing.retain:
            value = LastValue(NotificationId(broker, sequence), publisher, body, commit.time)
            self._state.retained.put(storing.retain, value)


def scope_of(session: Session) -> str:
    """Whose idempotency keys a session uses: those of its key, or of the name that the client gave itself."""
    return session.publisher if session.user is not None or session.name else ""


def owner_of(session: Session) -> str:
    """Whose durable subscriptions a session may use: those of its key; without keys there is but one owner."""
    return session.publisher if session.user is not None else ""


def code_of(failure: ContradaError) -> Code:
    """The code of an ERROR that says why something was not stored."""
    return Code(failure.code) if isinstance(failure, Refused) and failure.code in tuple(Code) else Code.STORAGE


class _Wanted(NamedTuple):
    """Successive rows of a publication: the durable subscriptions that get all of them, and the size of each."""

    subscriptions: Sequence[DurableSubscription]
    sizes: array[int]


def _alike(matches: Matched) -> Iterator[tuple[int, int]]:
    """Where notifications begin and end that matched the same, one behind another."""
    start = 0
    for place in range(1, len(matches) + 1):
        if place == len(matches) or (matches[place] is not matches[start] and matches[place] != matches[start]):
            yield start, place
            start = place


def _have_room(
    subscriptions: Sequence[DurableSubscription],
    sizes: Sequence[int],
    before: Mapping[DurableSubscription, tuple[int, int]],
) -> bool:
    """Whether all of some notifications, behind those before, are within the limits of every subscription."""
    total = sum(sizes)
    for subscription in subscriptions:
        count, size = before.get(subscription, (0, 0))
        if subscription.over_limit(size + total, count + len(sizes) - 1):
            return False
    return True
