"""The client's side of the protocol without sockets, threads or clocks: inputs in, actions and events out.

Both clients, async and blocking, drive this one machine. A driver

1. calls an input: `start`, `receive`, `lost`, `tick`, or what the application asked for (`publish`, `subscribe`, …);
2. performs the actions it finds in `take_actions()`, in order: `Connect`, `Send`, `Hangup`;
3. wakes whoever waits for the events it finds in `take_events()`: `Finished`, `Ready`, `Room`, `Moved`;
4. calls `tick` at the time that `deadline()` gives.

Phases:

    IDLE ──start──▶ GREETING ──WELCOME──▶ OPEN ──close──▶ CLOSING ──BYE, deadline──▶ CLOSED
                     ▲    │                 │
                     │    └────── lost ─────┤   (silence, a cut connection, a transient ERROR, the broker's BYE)
                     └── back-off ── WAITING ◀┘

From any phase a permanent refusal, an exhausted `connect_timeout` or `give_up_after`, or `close` leads to CLOSED, where
`error` says why (None after an orderly close). On every WELCOME all subscriptions are sent again, then unanswered
queries, then queued publications, in this order, so that a publication finds the subscriptions made before it.

`now` is any monotonic clock in seconds.
"""

from __future__ import annotations

import logging
from random import Random
from typing import TYPE_CHECKING, Any

from contrada.broker import frames, wire
from contrada.broker.messages import (
    Ack,
    Bye,
    Credit,
    Deliver,
    Dropped,
    Error,
    Explain,
    Hello,
    Limits,
    NotificationId,
    Ping,
    Pong,
    Reply,
    Status,
    Unsubscribe,
    Welcome,
)
from contrada.broker.wire import Code, Policy
from contrada.client.events import Connect, Finished, Hangup, Moved, Phase, Query, Ready, Room, Send
from contrada.client.inbox import Inbox, Stage
from contrada.client.notification import Notification
from contrada.client.outbox import Outbox, Parcel, Ticket
from contrada.errors import ContradaError, Disconnected, ProtocolError, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contrada.broker.messages import Message
    from contrada.client.events import Action, Event
    from contrada.client.options import Options

log = logging.getLogger("contrada.client")

# The broker's own limits bind what it accepts; what it sends is only kept from exhausting our memory.
_TRUSTED = Limits(message_bytes=1 << 30, notification_bytes=1 << 30, batch=1 << 20)
_TRANSIENT = frozenset({Code.NO_SESSION, Code.SILENT, Code.SHUTTING_DOWN})


class Core:
    """The protocol machine of one client."""

    def __init__(self, options: Options, *, random: Random | None = None) -> None:
        self.options = options
        self.phase = Phase.IDLE
        self.error: ContradaError | None = None
        self.welcome: Welcome | None = None  # of the current or last session
        self.connections = 0  # WELCOMEs so far
        self.outbox = Outbox(options.outstanding)
        self.inboxes: dict[int, Inbox] = {}
        self._random = random or Random()
        self._actions: list[Action] = []
        self._events: list[Event] = []
        self._requests: dict[int, Inbox | Query] = {}  # SUBSCRIBE, STATUS, EXPLAIN in flight
        self._leaving: dict[int, Inbox] = {}  # UNSUBSCRIBE in flight
        self._queries: list[Query] = []  # to be sent when open
        self._last_request = 0
        self._last_inbox = 0
        self._attempt = 0
        self._hint = ""
        self._bad_handshakes = 0
        self._heard = self._pinged = 0.0
        self._due = 0.0  # of the phase: end of the greeting, of the pause, of closing
        self._since = 0.0  # when the connection was last missing
        self._room = False

    # ------------------------------------------------------------------ what a driver takes out

    def take_actions(self) -> list[Action]:
        """Take what is to be done now, in order."""
        actions, self._actions = self._actions, []
        return actions

    @property
    def has_actions(self) -> bool:
        """Whether `take_actions` has anything."""
        return bool(self._actions)

    def take_events(self) -> list[Event]:
        """Take what has happened since the last call."""
        events, self._events = self._events, []
        return events

    def deadline(self) -> float | None:
        """When `tick` wants to be called, if nothing happens before."""
        if self.phase is Phase.OPEN:
            assert self.welcome is not None
            return min(max(self._heard, self._pinged) + self.welcome.heartbeat, self._heard + self.welcome.timeout)
        return self._due if self.phase in (Phase.GREETING, Phase.WAITING, Phase.CLOSING) else None

    # ------------------------------------------------------------------ the connection

    def start(self, now: float) -> None:
        """Begin to connect."""
        assert self.phase is Phase.IDLE
        self._since = now
        self._greet(now)

    def receive(self, parts: Sequence[bytes], now: float) -> None:
        """Take in a message that has arrived."""
        if self.phase in (Phase.WAITING, Phase.CLOSED, Phase.IDLE):
            return
        self._heard = now
        try:
            message = frames.decode(parts, _TRUSTED)
            handler = self._HANDLERS.get(type(message))
            if handler is None:
                raise ProtocolError(f"the broker sent {type(message).__name__.upper()}, which only clients send")
            handler(self, message, now)
        except ProtocolError as error:
            self._drop(f"the broker broke the protocol: {error}", now)

    def lost(self, reason: str, now: float) -> None:
        """Take note that the connection is cut."""
        if self.phase is Phase.OPEN:
            self._drop(reason, now)
        elif self.phase is Phase.CLOSING:
            self._end(None)
        elif self.phase is Phase.GREETING:
            self._hint = reason

    def handshake_failed(self, reason: str, now: float) -> None:
        """Take note that security could not be agreed on. Twice while connecting for the first time, that is final."""
        if self.phase is not Phase.GREETING:
            return
        self._bad_handshakes += 1
        if not self.connections and self._bad_handshakes > 1:
            self._end(Refused(reason, code=Code.UNAUTHORISED))
        else:
            self._drop(reason, now)

    def tick(self, now: float) -> None:
        """Look at the clock."""
        if self.phase is Phase.OPEN:
            assert self.welcome is not None
            if now >= self._heard + self.welcome.timeout:
                self._drop(f"nothing was heard from the broker for {self.welcome.timeout:g} s", now)
            elif now >= max(self._heard, self._pinged) + self.welcome.heartbeat:
                self._pinged = now
                self._send(Ping(self._random.getrandbits(32)))
        elif self.phase is Phase.GREETING and now >= self._due:
            self._drop(self._hint or "the broker did not answer", now)
        elif self.phase is Phase.WAITING and now >= self._due:
            self._greet(now)
        elif self.phase is Phase.CLOSING and now >= self._due:
            self._end(None)

    def close(self, now: float) -> None:
        """Say goodbye; CLOSED follows. A driver that wants publications answered waits for `outbox.empty` before."""
        if self.phase is Phase.OPEN:
            self._send(Bye())
            self._due = now + self.options.close_timeout
            self._move(Phase.CLOSING)
        elif self.phase not in (Phase.CLOSING, Phase.CLOSED):
            self._end(None)

    def abort(self) -> None:
        """End at once. What was already given to the transport is still sent."""
        if self.phase is Phase.OPEN:
            self._send(Bye())
        if self.phase is not Phase.CLOSED:
            self._end(None)

    # ------------------------------------------------------------------ what the application asks for

    def publish(self, bodies: Sequence[bytes], *, streamed: bool = False) -> Parcel:
        """Publish encoded notifications. A streamed parcel is not waited for; `outbox.take_failure` has its errors."""
        self._require_usable()
        parcel = self.outbox.put(bodies, streamed=streamed)
        if parcel.done:
            self._events.append(Finished(parcel))
        elif not streamed or len(parcel.bodies) >= 64:
            self.flush()
        return parcel

    def flush(self) -> None:
        """Send what is queued, as far as the window allows. Streamed notifications gather until this is called."""
        if self.phase is not Phase.OPEN:
            return
        assert self.welcome is not None
        failed: list[Parcel] = []
        for message in self.outbox.departures(self.welcome.limits, self._number, failed):
            self._send(message)
        self._finish_parcels(failed)

    def subscribe(self, filters: tuple[bytes, ...], policy: Policy, window: int, queue: int) -> Inbox:
        """Make a subscription; its `opening` ticket tells whether the broker took it."""
        self._require_usable()
        while self._last_inbox in self.inboxes or not self._last_inbox:
            self._last_inbox = self._last_inbox % wire.MAX_SUBSCRIPTION + 1
        inbox = Inbox(self._last_inbox, filters, policy, window, queue)
        self.inboxes[inbox.id] = inbox
        self._last_inbox = self._last_inbox % wire.MAX_SUBSCRIPTION + 1
        if self.phase is Phase.OPEN:
            self._send_subscribe(inbox)
        return inbox

    def unsubscribe(self, inbox: Inbox) -> Ticket:
        """End a subscription. Deliveries that the broker had sent before may still arrive before the ticket is done."""
        if inbox.closing is not None:
            return inbox.closing
        ticket = inbox.closing = Ticket()
        if inbox.stage is Stage.ENDED:
            ticket.finish()
            self._events.append(Finished(ticket))
        elif self.phase is Phase.OPEN:
            inbox.stage = Stage.LEAVING
            number = self._number()
            self._leaving[number] = inbox
            self._send(Unsubscribe(number, inbox.id))
        else:
            self._end_inbox(inbox, None)
        return ticket

    def status(self) -> Query:
        """Ask for the broker's status document."""
        return self._query(Query(Status))

    def explain(self, notification: NotificationId, session: int, subscription: int) -> Query:
        """Ask why a notification did or did not reach a subscription; session 0 is this one."""
        return self._query(Query(lambda number: Explain(number, notification, session, subscription)))

    def take(self, inbox: Inbox) -> Notification:
        """Take the oldest notification of a subscription's non-empty buffer, and give credit back as needed."""
        notification, grant = inbox.take()
        if grant is not None and self.phase is Phase.OPEN:
            self._send(Credit((grant,)))
        return notification

    # ------------------------------------------------------------------ messages from the broker

    def _on_deliver(self, message: Deliver, now: float) -> None:
        inboxes = self.inboxes
        ready: dict[int, Inbox] = {}
        for id, publisher, body, subscriptions in message.entries:
            notification = Notification(id, publisher, body)
            for subscription in subscriptions:
                inbox = inboxes.get(subscription)
                if inbox is None:
                    raise ProtocolError(f"a delivery for subscription {subscription}, which this client does not have")
                if inbox.stage is Stage.LEAVING:
                    continue  # the application has left; nobody will take it
                inbox.deliver(notification)
                ready[subscription] = inbox
        self._events.extend(map(Ready, ready.values()))

    def _on_ack(self, message: Ack, now: float) -> None:
        assert self.welcome is not None
        for number, sequence in message.entries:
            if number in self.outbox.flights:
                parcel = self.outbox.landed(number, self.welcome.broker, sequence)
                if parcel is not None:
                    self._finish_parcels([parcel])
                self._room = True
                continue
            if (inbox := self._leaving.pop(number, None)) is not None:
                self._end_inbox(inbox, None)
                continue
            waiting = self._requests.pop(number, None)
            if not isinstance(waiting, Inbox):
                raise ProtocolError(f"an ACK for request {number}, which was not made or takes a REPLY")
            if waiting.stage is Stage.WAITING:
                waiting.stage = Stage.LIVE
                if not waiting.opening.done:
                    self._finish(waiting.opening, waiting)
                if (grant := waiting.grant()) is not None:
                    self._send(Credit((grant,)))
        self._after_answers()

    def _on_reply(self, message: Reply, now: float) -> None:
        query = self._requests.pop(message.request, None)
        if not isinstance(query, Query):
            raise ProtocolError(f"a REPLY to request {message.request}, which was not made or takes an ACK")
        self._finish(query, message.document)

    def _on_error(self, message: Error, now: float) -> None:
        error = Refused(message.reason, code=message.code)
        if message.fatal:
            if message.code in _TRANSIENT:
                self._drop(f"the broker ended the session: {message.reason}", now)
            else:
                self._end(error)
        elif message.request in self.outbox.flights:
            self._finish_parcels(self.outbox.refused(message.request, error))
            self._room = True
            self._after_answers()
        elif (inbox := self._leaving.pop(message.request, None)) is not None:
            self._end_inbox(inbox, None)
        elif (waiting := self._requests.pop(message.request, None)) is None:
            log.warning("the broker complains: %s (%s)", message.reason, message.code)
        elif isinstance(waiting, Query):
            self._finish(waiting, None, error)
        elif waiting.stage is Stage.WAITING and message.code != Code.SHUTTING_DOWN:
            self._end_inbox(waiting, error)  # of a broker that is stopping, the next one will be asked

    def _on_dropped(self, message: Dropped, now: float) -> None:
        for subscription, dropped, _total in message.entries:
            inbox = self.inboxes.get(subscription)
            if inbox is not None:
                inbox.dropped += dropped
                log.warning("subscription %d lost %d notifications: its consumer is too slow", subscription, dropped)

    def _on_welcome(self, message: Welcome, now: float) -> None:
        if self.phase is not Phase.GREETING:
            raise ProtocolError("a second WELCOME")
        self.welcome = message
        self.connections += 1
        self._attempt = self._bad_handshakes = 0
        self._hint = ""
        self._move(Phase.OPEN)
        for inbox in self.inboxes.values():
            self._send_subscribe(inbox)
        queries, self._queries = self._queries, []
        for query in queries:
            self._query(query)
        self.flush()
        self._room = True
        self._after_answers()

    def _on_ping(self, message: Ping, now: float) -> None:
        self._send(Pong(message.nonce))

    def _on_pong(self, message: Pong, now: float) -> None:
        pass  # any message is a sign of life

    def _on_bye(self, message: Bye, now: float) -> None:
        if self.phase is Phase.CLOSING:
            self._end(None)
        else:
            self._drop(f"the broker said goodbye{': ' * bool(message.reason)}{message.reason}", now)

    _HANDLERS: dict[type, Callable[[Core, Any, float], None]] = {  # noqa: RUF012 (never changed)
        Deliver: _on_deliver,
        Ack: _on_ack,
        Reply: _on_reply,
        Error: _on_error,
        Dropped: _on_dropped,
        Welcome: _on_welcome,
        Ping: _on_ping,
        Pong: _on_pong,
        Bye: _on_bye,
    }

    # ------------------------------------------------------------------ inner workings

    def _greet(self, now: float) -> None:
        self._heard = self._pinged = now
        self._due = min(now + self.options.attempt_timeout, self._patience_ends())
        self._move(Phase.GREETING)
        self._actions.append(Connect())
        self._send(Hello(wire.OLDEST_VERSION, wire.VERSION, self.options.name))

    def _patience_ends(self) -> float:
        patience = self.options.give_up_after if self.connections else self.options.connect_timeout
        return float("inf") if patience is None else self._since + patience

    def _drop(self, reason: str, now: float) -> None:
        """Give up the connection: settle what was in flight, then wait to reconnect or end."""
        if self.phase is Phase.OPEN:
            self._since = now
            log.warning("disconnected: %s", reason)
        self._actions.append(Hangup())
        self._settle(reason)
        if self.phase is Phase.CLOSING:
            self._end(None)
        elif self.connections and not self.options.reconnect:
            self._end(Disconnected(reason))
        elif now >= self._patience_ends():
            waited = f"{now - self._since:.1f} s"
            self._end(Disconnected(f"no connection after {waited}: {reason}"))
        else:
            pause = self.options.pause(self._attempt, self._random)
            self._attempt += 1
            self._due = min(now + pause, self._patience_ends())
            self._move(Phase.WAITING)

    def _settle(self, reason: str) -> None:
        self._finish_parcels(self.outbox.lost(reason))
        requests, self._requests = self._requests, {}
        self._leaving = {}
        for waiting in requests.values():
            if isinstance(waiting, Query):
                self._queries.append(waiting)
        for inbox in list(self.inboxes.values()):
            if inbox.stage is Stage.LEAVING:
                self._end_inbox(inbox, None)
            else:
                inbox.interrupt()
        self._events.append(Room())

    def _end(self, error: ContradaError | None) -> None:
        """Close for good, and tell everything that waits."""
        self.error = error
        self._actions.append(Hangup(linger=True))
        reason = error or Disconnected("the client is closed")
        self._finish_parcels(self.outbox.abandon(reason))
        for inbox in list(self.inboxes.values()):
            self._end_inbox(inbox, error)
        waiting = [ticket for ticket in self._requests.values() if isinstance(ticket, Query)]
        for query in (*waiting, *self._queries):
            self._finish(query, None, reason)
        self._requests, self._leaving, self._queries = {}, {}, []
        self._move(Phase.CLOSED)
        self._events.append(Room())

    def _end_inbox(self, inbox: Inbox, error: ContradaError | None) -> None:
        self.inboxes.pop(inbox.id, None)
        inbox.end(error)
        if not inbox.opening.done:
            self._finish(inbox.opening, None, error or Disconnected("the subscription was closed before it was made"))
        if inbox.closing is not None and not inbox.closing.done:
            self._finish(inbox.closing)
        self._events.append(Ready(inbox))

    def _send_subscribe(self, inbox: Inbox) -> None:
        number = self._number()
        self._requests[number] = inbox
        self._send(inbox.request(number))

    def _query(self, query: Query) -> Query:
        self._require_usable()
        if self.phase is Phase.OPEN:
            number = self._number()
            self._requests[number] = query
            self._send(query.build(number))
        else:
            self._queries.append(query)
        return query

    def _after_answers(self) -> None:
        if self._room:
            self._room = False
            self.flush()
            self._events.append(Room())

    def _finish(self, ticket: Ticket, result: Any = None, error: ContradaError | None = None) -> None:
        ticket.finish(result, error)
        self._events.append(Finished(ticket))

    def _finish_parcels(self, parcels: list[Parcel]) -> None:
        self._events.extend(map(Finished, parcels))

    def _number(self) -> int:
        self._last_request += 1
        return self._last_request

    def _send(self, message: Message) -> None:
        self._actions.append(Send(frames.encode(message)))

    def _move(self, phase: Phase) -> None:
        self.phase = phase
        self._events.append(Moved(phase))

    def _require_usable(self) -> None:
        if self.phase in (Phase.CLOSING, Phase.CLOSED):
            raise self.error or Disconnected("the client is closed")

    def _check(self) -> None:
        self.outbox._check()
        for id, inbox in self.inboxes.items():
            inbox._check()
            assert id == inbox.id
            assert inbox.stage is not Stage.ENDED
            if self.phase is not Phase.OPEN:
                assert inbox.stage is Stage.WAITING or self.phase is Phase.CLOSING
        if self.phase is not Phase.OPEN and self.phase is not Phase.CLOSING:
            assert not self.outbox.flights
            assert not self._requests
            assert not self._leaving
        if self.phase is Phase.CLOSED:
            assert self.outbox.empty
            assert not self.inboxes
