"""The client's side of the protocol without sockets, threads or clocks: inputs in, actions and events out.

Both clients, async and blocking, drive this one machine. A driver

1. calls an input: `start`, `receive`, `lost`, `tick`, or what the application asked for (`publish`, `subscribe`, …);
2. performs the actions it finds in `take_actions()`, in order: `Connect`, `Send`, `Hangup`;
3. wakes whoever waits for the events it finds in `take_events()`: `Finished`, `Ready`, `Room`, `Moved`;
4. calls `tick` at the time that `deadline()` gives.

`connection.py` has the phases. On every WELCOME all subscriptions and advertisements are sent again, then unanswered
queries, then queued publications, in this order, so that a publication finds the subscriptions made before it.

`now` is any monotonic clock in seconds.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from contrada.broker.protocol import wire
from contrada.broker.protocol.messages import (
    Ack,
    Credit,
    Deliver,
    Dropped,
    Error,
    Explain,
    IndexAdd,
    IndexLoad,
    IndexRemove,
    NotificationId,
    Reply,
    Status,
)
from contrada.broker.protocol.wire import Code, Policy
from contrada.client.engine.connection import Connection
from contrada.client.engine.events import Finished, Phase, Query, Ready, Room
from contrada.client.engine.inbox import Inbox
from contrada.client.engine.outbox import Outbox, Parcel, Ticket
from contrada.client.engine.standing import Promise, Stage, Standing
from contrada.client.notification import Notification
from contrada.errors import ContradaError, Disconnected, ProtocolError, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence
    from random import Random

    from contrada.broker.protocol.messages import Message
    from contrada.client.options import Options

log = logging.getLogger("contrada.client")


class Core(Connection):
    """The protocol machine of one client."""

    def __init__(self, options: Options, *, random: Random | None = None) -> None:
        super().__init__(options, random)
        self.outbox = Outbox(options.outstanding)
        self.inboxes: dict[int, Inbox] = {}
        self.promises: dict[int, Promise] = {}
        self._requests: dict[int, Standing | Query] = {}  # what is not a PUBLISH, in flight
        self._leaving: dict[int, Standing] = {}  # UNSUBSCRIBE, UNADVERTISE in flight
        self._queries: list[Query] = []  # to be sent when open
        self._last_request = 0
        self._last_inbox = 0
        self._last_promise = 0

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

    def subscribe(self, wanted: tuple[bytes, ...] | str, policy: Policy, window: int, queue: int) -> Inbox:
        """Subscribe to filters, or attach to a standing interface by its name.

        The `opening` ticket tells whether the broker took it.
        """
        self._require_usable()
        self._last_inbox = _next_id(self._last_inbox, self.inboxes)
        inbox = Inbox(self._last_inbox, wanted, policy, window, queue)
        self.inboxes[inbox.id] = inbox
        self._ask(inbox)
        return inbox

    def advertise(self, filters: tuple[bytes, ...]) -> Promise:
        """Make an advertisement; its `opening` ticket tells whether the broker took it."""
        self._require_usable()
        self._last_promise = _next_id(self._last_promise, self.promises)
        promise = Promise(self._last_promise, filters)
        self.promises[promise.id] = promise
        self._ask(promise)
        return promise

    def withdraw(self, standing: Standing) -> Ticket:
        """End a subscription or an advertisement.

        Deliveries that the broker had sent before may still arrive before the ticket is done.
        """
        if standing.closing is not None:
            return standing.closing
        ticket = standing.closing = Ticket()
        if standing.stage is Stage.ENDED:
            ticket.finish()
            self._events.append(Finished(ticket))
        elif self.phase is Phase.OPEN:
            standing.stage = Stage.LEAVING
            number = self._number()
            self._leaving[number] = standing
            self._send(standing.withdrawal(number))
        else:
            self._end_standing(standing, None)
        return ticket

    def status(self) -> Query:
        """Ask for the broker's status document."""
        return self._query(Query(Status))

    def explain(self, notification: NotificationId, session: int, subscription: int) -> Query:
        """Ask why a notification did or did not reach a subscription; session 0 is this one."""
        return self._query(Query(lambda number: Explain(number, notification, session, subscription)))

    def index_load(self, path: str, shard: str) -> Query:
        """Have the broker load an index."""
        return self._query(Query(lambda number: IndexLoad(number, path, shard)))

    def index_add(self, id: str, name: str, filter: bytes) -> Query:
        """Put a subscription into the broker's index."""
        return self._query(Query(lambda number: IndexAdd(number, id, name, filter)))

    def index_remove(self, id: str) -> Query:
        """Take a subscription out of the broker's index."""
        return self._query(Query(lambda number: IndexRemove(number, id)))

    def take(self, inbox: Inbox) -> Notification:
        """Take the oldest notification of a subscription's non-empty buffer, and give credit back as needed."""
        notification, grant = inbox.take()
        if grant is not None and self.phase is Phase.OPEN:
            self._send(Credit((grant,)))
        return notification

    # ------------------------------------------------------------------ messages from the broker

    def _take_in(self, message: Message) -> None:
        handler = self._HANDLERS.get(type(message))
        if handler is None:
            raise ProtocolError(f"the broker sent {type(message).__name__.upper()}, which only clients send")
        handler(self, message)

    def _on_deliver(self, message: Deliver) -> None:
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

    def _on_ack(self, message: Ack) -> None:
        assert self.welcome is not None
        for number, sequence in message.entries:
            if number in self.outbox.flights:
                parcel = self.outbox.landed(number, self.welcome.broker, sequence)
                if parcel is not None:
                    self._finish_parcels([parcel])
                continue
            if (leaving := self._leaving.pop(number, None)) is not None:
                self._end_standing(leaving, None)
                continue
            waiting = self._requests.pop(number, None)
            if not isinstance(waiting, Standing):
                raise ProtocolError(f"an ACK for request {number}, which was not made or takes a REPLY")
            if waiting.stage is Stage.WAITING:
                waiting.stage = Stage.LIVE
                if not waiting.opening.done:
                    self._finish(waiting.opening, waiting)
                if isinstance(waiting, Inbox) and (grant := waiting.grant()) is not None:
                    self._send(Credit((grant,)))
        self._answered()

    def _on_reply(self, message: Reply) -> None:
        query = self._requests.pop(message.request, None)
        if not isinstance(query, Query):
            raise ProtocolError(f"a REPLY to request {message.request}, which was not made or takes an ACK")
        self._finish(query, message.document)

    def _on_error(self, message: Error) -> None:
        error = Refused(message.reason, code=message.code)
        if message.request in self.outbox.flights:
            self._finish_parcels(self.outbox.refused(message.request, error))
            self._answered()
        elif (leaving := self._leaving.pop(message.request, None)) is not None:
            self._end_standing(leaving, None)
        elif (waiting := self._requests.pop(message.request, None)) is None:
            log.warning("the broker complains: %s (%s)", message.reason, message.code)
        elif isinstance(waiting, Query):
            self._finish(waiting, None, error)
        elif waiting.stage is Stage.WAITING and message.code != Code.SHUTTING_DOWN:
            self._end_standing(waiting, error)  # of a broker that is stopping, the next one will be asked

    def _on_dropped(self, message: Dropped) -> None:
        for subscription, dropped, _total in message.entries:
            inbox = self.inboxes.get(subscription)
            if inbox is not None:
                inbox.dropped += dropped
                log.warning("subscription %d lost %d notifications: its consumer is too slow", subscription, dropped)

    _HANDLERS: dict[type, Callable[[Core, Any], None]] = {  # noqa: RUF012 (never changed)
        Deliver: _on_deliver,
        Ack: _on_ack,
        Reply: _on_reply,
        Error: _on_error,
        Dropped: _on_dropped,
    }

    # ------------------------------------------------------------------ what the connection tells

    def _opened(self) -> None:
        for standing in (*self.inboxes.values(), *self.promises.values()):
            self._ask(standing)
        queries, self._queries = self._queries, []
        for query in queries:
            self._query(query)
        self._answered()

    def _broken(self, reason: str) -> None:
        self._finish_parcels(self.outbox.lost(reason))
        requests, self._requests = self._requests, {}
        self._leaving = {}
        for waiting in requests.values():
            if isinstance(waiting, Query):
                self._queries.append(waiting)
        for standing in (*self.inboxes.values(), *self.promises.values()):
            if standing.stage is Stage.LEAVING:
                self._end_standing(standing, None)
            else:
                standing.interrupt()
        self._events.append(Room())

    def _ended(self, reason: ContradaError) -> None:
        self._finish_parcels(self.outbox.abandon(reason))
        for standing in (*self.inboxes.values(), *self.promises.values()):
            self._end_standing(standing, self.error)
        waiting = [ticket for ticket in self._requests.values() if isinstance(ticket, Query)]
        for query in (*waiting, *self._queries):
            self._finish(query, None, reason)
        self._requests, self._leaving, self._queries = {}, {}, []
        self._events.append(Room())

    # ------------------------------------------------------------------ inner workings

    def _end_standing(self, standing: Standing, error: ContradaError | None) -> None:
        standing.end(error)
        if not standing.opening.done:
            self._finish(standing.opening, None, error or Disconnected("it was closed before it was made"))
        if standing.closing is not None and not standing.closing.done:
            self._finish(standing.closing)
        if isinstance(standing, Inbox):
            self.inboxes.pop(standing.id, None)
            self._events.append(Ready(standing))
        else:
            self.promises.pop(standing.id, None)

    def _ask(self, standing: Standing) -> None:
        """Send what makes or restores it, if the broker is there; else it will be on the next WELCOME."""
        if self.phase is Phase.OPEN:
            number = self._number()
            self._requests[number] = standing
            self._send(standing.request(number))

    def _query(self, query: Query) -> Query:
        self._require_usable()
        if self.phase is Phase.OPEN:
            number = self._number()
            self._requests[number] = query
            self._send(query.build(number))
        else:
            self._queries.append(query)
        return query

    def _answered(self) -> None:
        """Use the room that answers have made."""
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

    def _check(self) -> None:
        self.outbox._check()
        for inbox in self.inboxes.values():
            inbox._check()
        for id, standing in (*self.inboxes.items(), *self.promises.items()):
            assert id == standing.id
            assert standing.stage is not Stage.ENDED
            if self.phase is not Phase.OPEN:
                assert standing.stage is Stage.WAITING or self.phase is Phase.CLOSING
        if self.phase is not Phase.OPEN and self.phase is not Phase.CLOSING:
            assert not self.outbox.flights
            assert not self._requests
            assert not self._leaving
        if self.phase is Phase.CLOSED:
            assert self.outbox.empty
            assert not self.inboxes
            assert not self.promises


def _next_id(last: int, taken: Container[int]) -> int:
    """The next number that is free; they come round after four thousand million."""
    while (last := last % wire.MAX_SUBSCRIPTION + 1) in taken:
        pass
    return last
