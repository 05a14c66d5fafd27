"""From the disk to the clients: what waits for durable subscriptions goes out as far as credit allows.

    flagged ─▶ positions that are next ─▶ in memory? ── yes ─▶ DELIVER_DURABLE, or CARRY to a neighbour
                                             └── no: read beside the loop, then again

Of a subscription at most `_AT_ONCE` notifications go in a turn, and at most its `window` are out and not
acknowledged. What was sent as often as it may be is a dead letter instead.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from contrada.broker.protocol.frames import encode
from contrada.broker.protocol.messages import DeliverDurable, NotificationId, Stored
from contrada.broker.protocol.peer_frames import encode_peer
from contrada.broker.protocol.peer_messages import Carry, Run
from contrada.broker.stored.link_cursor import LinkCursor
from contrada.broker.stored.rows import HOLDING, POSITION_BITS, Row, entry_of
from contrada.broker.stored.subscription import DeadLetter, dead_row

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from contrada.broker.sessions.session import Session
    from contrada.broker.sessions.sessions import Sessions
    from contrada.broker.stored.limits import DurableLimits
    from contrada.broker.stored.rows import Group, RowOf
    from contrada.broker.stored.store import Commit, Store
    from contrada.broker.stored.subscription import DurableSubscription

_AT_ONCE: Final = 256
_MESSAGE_BYTES: Final = 256 << 10


class Delivering:
    """Which subscriptions may get more, and how they get it."""

    def __init__(self, store: Store, limits: DurableLimits, sessions: Sessions) -> None:
        self._store = store
        self._limits = limits
        self._sessions = sessions
        self._counters = sessions.counters
        self._flagged: dict[DurableSubscription, None] = {}

    def flag(self, subscription: DurableSubscription) -> None:
        """There may be something to deliver."""
        if subscription.receiver is not None:
            self._flagged[subscription] = None

    @property
    def busy(self) -> bool:
        """Whether a turn would deliver something."""
        return any(
            each.receiver is not None and not each.receiver.session.congested and not each.fetching
            for each in self._flagged
        )

    def deliver(self) -> None:
        """Send what credit allows, some of each subscription."""
        for subscription in list(self._flagged):
            del self._flagged[subscription]
            self._deliver(subscription, {}, frozenset())

    def _deliver(self, subscription: DurableSubscription, fetched: Mapping[int, Group], gone: Container[int]) -> None:
        """Send what is next. `fetched` was read just now, and the entries that are `gone` could not be."""
        receiver = subscription.receiver
        if receiver is None or subscription.fetching or subscription.paused:
            return
        if receiver.session.congested:
            self.flag(subscription)
            return
        queue = subscription.queue
        most = min(receiver.credit, _AT_ONCE, subscription.window - queue.in_flight)
        positions = queue.upcoming(most) if most > 0 else []
        if not positions:
            return
        rows: list[tuple[int, Group | None]] = []
        for position in positions:
            entry = entry_of(position)
            group = fetched.get(entry) or self._store.cached(entry)
            if group is None and entry not in gone:
                break
            rows.append((position, group))  # without a group, it is damaged or gone
        if rows:
            self._send(subscription, rows)
            self.flag(subscription)
        else:
            subscription.fetching = True
            entries = dict.fromkeys(map(entry_of, positions))
            self._store.fetch(entries, partial(self._fetched, subscription, entries))

    def _fetched(self, subscription: DurableSubscription, asked: Iterable[int], groups: dict[int, Group]) -> None:
        """Meanwhile the client may have come back: then others are next, and only what was asked for can be gone."""
        subscription.fetching = False
        last = max(groups, default=max(asked))
        self._deliver(subscription, groups, {entry for entry in asked if entry <= last and entry not in groups})

    def _send(self, subscription: DurableSubscription, rows: Sequence[tuple[int, Group | None]]) -> None:
        receiver = subscription.receiver
        assert receiver is not None
        if isinstance(subscription, LinkCursor):
            self._carry(subscription, receiver.session, rows)
            return
        session = receiver.session
        entries: list[Stored] = []
        tried: list[tuple[int, int]] = []
        size = sent = 0
        for position, group in rows:
            row = _row(position, group)
            if row is None:
                self._lose(subscription, position)
                continue
            attempt = subscription.attempt(position)
            _, broker, sequence, publisher, body, *_ = row
            assert group is not None
            if attempt > subscription.keep.attempts:
                reason = f"sent {attempt - 1} times and never acknowledged"
                letter = DeadLetter(position, reason, NotificationId(broker, sequence), publisher, body, group.time)
                self.bury(subscription, [letter])
                continue
            if attempt > 1:
                subscription.attempts[position] = attempt
                tried.append((position, attempt))
            id = NotificationId(broker, sequence)
            entries.append(Stored(id, publisher, body, position, attempt, group.time))
            size += len(body)
            sent += 1
            if size > _MESSAGE_BYTES:
                session.push(encode(DeliverDurable(receiver.id, tuple(entries))))
                entries, size = [], 0
        if entries:
            session.push(encode(DeliverDurable(receiver.id, tuple(entries))))
        last = rows[-1][0]
        subscription.queue.sent(last)
        subscription.delivered = max(subscription.delivered, last)
        subscription.redelivered += len(tried)
        self._counters["redelivered"] += len(tried)
        if sent:
            self._store.put([(Row.DELIVERED, subscription.number, last, tried)], urgent=False)
            receiver.credit -= sent
            receiver.delivered += sent
            session.delivered += sent
            self._sessions.mark(session)

    def _carry(self, cursor: LinkCursor, session: Session, rows: Sequence[tuple[int, Group | None]]) -> None:
        """Send a neighbour what it wants durably."""
        runs: list[Run] = []
        positions: list[int] = []
        size = 0
        for position, group in rows:
            row = _row(position, group)
            if row is None:
                self._lose(cursor, position)
                continue
            kind, broker, sequence, publisher, body, *_ = row
            start = broker, publisher, row[9] + 1 if kind == Row.CARRIED else 1
            if runs and runs[-1][:3] == start:
                runs[-1] = Run(*start, (*runs[-1].sequences, sequence), (*runs[-1].bodies, body))
            else:
                runs.append(Run(*start, (sequence,), (body,)))
            positions.append(position)
            size += len(body)
            if size > _MESSAGE_BYTES:
                session.push(encode_peer(Carry(cursor.round, tuple(positions), tuple(runs))))
                runs, positions, size = [], [], 0
        if runs:
            session.push(encode_peer(Carry(cursor.round, tuple(positions), tuple(runs))))
        last = rows[-1][0]
        cursor.queue.sent(last)
        cursor.delivered = max(cursor.delivered, last)
        self._sessions.mark(session)

    def _lose(self, subscription: DurableSubscription, position: int) -> None:
        """What the disk has lost is counted, and goes no further."""
        subscription.acknowledge(position, position)
        subscription.dropped += 1
        self._counters["durable_damaged"] += 1
        self._store.put([(Row.ACKNOWLEDGED, subscription.number, position, position)], urgent=False)

    def dropped(self, count: int) -> None:
        """Count what subscriptions have lost."""
        self._counters["durable_dropped"] += count

    # -- dead letters ------------------------------------------------------------------------------------

    def bury(self, subscription: DurableSubscription, letters: Sequence[DeadLetter]) -> None:
        """Give up notifications of a subscription: they are dead letters, once the disk knows."""

        def done(commit: Commit) -> None:
            subscription.dropping = False
            if commit.failure is None:
                for letter in letters:
                    subscription.bury(letter, self._limits.dead)
                self._counters["dead_letters"] += len(letters)

        subscription.dropping = True
        self._store.put([dead_row(subscription.number, letter) for letter in letters], done)

    def bury_positions(self, subscription: DurableSubscription, positions: Iterable[int], reason: str) -> None:
        """Read what waits at these positions, and give it up."""
        wanted = list(positions)[:_AT_ONCE]
        entries = dict.fromkeys(map(entry_of, wanted))

        def read(groups: dict[int, Group]) -> None:
            letters = []
            for position in wanted:
                group = groups.get(entry_of(position))
                if group is not None and (row := _row(position, group)) is not None:
                    _, broker, sequence, publisher, body, *_ = row
                    id = NotificationId(broker, sequence)
                    letters.append(DeadLetter(position, reason, id, publisher, body, group.time))
            if letters:
                self.bury(subscription, letters)

        self._store.fetch(entries, read)


def _row(position: int, group: Group | None) -> RowOf | None:
    """The notification at a position, if it is there."""
    if group is None:
        return None
    place = position - (group.entry << POSITION_BITS)
    row = group.rows[place] if place < len(group.rows) else None
    return row if row is not None and row[0] in HOLDING else None
