"""The client's side of the protocol without sockets, threads or clocks: inputs in, actions and changes out.

Both clients, async and blocking, drive this one machine. A driver

1. calls an input: `start`, `receive`, `failed`, `tick`, or what the application asked for (`publish`, `subscribe`, …);
2. performs the actions it finds in `take_actions()`, in order: `Connect`, `Send`, `Hangup`;
3. wakes whoever waits for what it finds in `take_changed()`: tickets, subscriptions, the core itself;
4. calls `tick` at the time that `deadline()` gives.

`states` has the phases. On every WELCOME all subscriptions and advertisements are sent again, then unanswered
queries, then queued publications, in this order, so that a publication finds the subscriptions made before it.

`now` is any monotonic clock in seconds.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar

from contrada.broker.protocol import wire
from contrada.broker.protocol.frames import encode
from contrada.broker.protocol.messages import (
    Ack,
    Credit,
    Deliver,
    DeliverDurable,
    Dropped,
    Error,
    NotificationId,
    Reply,
)
from contrada.broker.protocol.wire import Code, Policy
from contrada.client.engine.actions import Send
from contrada.client.engine.connection import Connection
from contrada.client.engine.durable_inbox import DurableInbox
from contrada.client.engine.inbox import Inbox
from contrada.client.engine.kept_requests import KeptAdvertisement, KeptRequest, Stage
from contrada.client.engine.outbox import Outbox, Submission
from contrada.client.engine.states import Phase
from contrada.client.engine.tickets import Query, Ticket
from contrada.client.notification import DurableNotification, Notification
from contrada.errors import ContradaError, Disconnected, ProtocolError, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence
    from random import Random

    from contrada.broker.protocol.messages import Keep, Message, Since
    from contrada.client.options import Options

log = logging.getLogger("contrada.client")

_TOGETHER = 256  # acknowledgements that go at once, without waiting for more


class Core(Connection):
    """The protocol machine of one client."""

    def __init__(self, options: Options, *, random: Random | None = None) -> None:
        super().__init__(options, random)
        self.outbox = Outbox(options.outstanding)
        self.inboxes: dict[int, Inbox] = {}
        self.advertisements: dict[int, KeptAdvertisement] = {}
        self._requests: dict[int, KeptRequest | Query] = {}  # what is not a PUBLISH, sent and not answered
        self._leaving: dict[int, KeptRequest] = {}  # UNSUBSCRIBE, UNADVERTISE, sent and not answered
        self._queries: list[Query] = []  # to be sent when open
        self._acknowledging: dict[DurableInbox, None] = {}  # those with acknowledgements for `flush` to send
        self._last_request = 0
        self._last_inbox = 0
        self._last_advertisement = 0

    # ------------------------------------------------------------------ what the application asks for

    def publish(
        self,
        bodies: Sequence[bytes],
        *,
        streamed: bool = False,
        durable: bool = False,
        key: str = "",
        retain: str = "",
    ) -> Submission:
        """Publish encoded notifications. Nobody waits for streamed ones: `outbox.take_failure` has their errors."""
        self._require_usable()
        submission = self.outbox.put(bodies, streamed=streamed, durable=durable, key=key, retain=retain)
        if submission.done:
            self._changed.append(submission)
        elif not streamed or len(submission.bodies) >= 64:
            self.flush()
        return submission

    def flush(self) -> None:
        """Send what is queued, as far as the window allows. Streamed notifications gather until this is called."""
        if self.phase is not Phase.OPEN:
            return
        assert self.welcome is not None
        failed: list[Submission] = []
        for message in self.outbox.messages(self.welcome.limits, self._number, failed, self.welcome.version):
            self.actions.append(Send(encode(message)))
        self._changed += failed
        while self._acknowledging:
            self._send_acknowledgements(self._acknowledging.popitem()[0])

    def subscribe(self, wanted: tuple[bytes, ...] | str, policy: Policy, window: int, queue: int) -> Inbox:
        """Subscribe to filters, or attach to an interface of the broker's index by its name.

        The `accepted` ticket tells whether the broker took it.
        """
        self._require_usable()
        self._last_inbox = _next_id(self._last_inbox, self.inboxes)
        inbox = Inbox(self._last_inbox, wanted, policy, window, queue)
        self.inboxes[inbox.id] = inbox
        self._ask(inbox)
        return inbox

    def subscribe_durably(
        self, wanted: tuple[bytes, ...] | str, window: int, durable: str, since: Since, keep: Keep, *, auto: bool
    ) -> DurableInbox:
        """Make or take up a durable subscription."""
        self._require_usable()
        self._last_inbox = _next_id(self._last_inbox, self.inboxes)
        inbox = DurableInbox(self._last_inbox, wanted, window, durable, since, keep, auto=auto)
        self.inboxes[inbox.id] = inbox
        self._ask(inbox)
        return inbox

    def acknowledge(self, inbox: DurableInbox, position: int, *, run: bool) -> None:
        """The application is done with a notification, or with all up to it: `flush` tells the broker."""
        inbox.acknowledge(position, run=run)
        grant = inbox.grant() if self.phase is Phase.OPEN else None
        if len(inbox.acknowledged) >= _TOGETHER or grant is not None:
            self._send_acknowledgements(inbox)
        else:
            self._acknowledging[inbox] = None
        if grant is not None:
            self._send(Credit((grant,)))

    def _send_acknowledgements(self, inbox: DurableInbox) -> None:
        """Tell the broker, if it knows the subscription; else it will be told when it does."""
        if inbox.stage in (Stage.LIVE, Stage.LEAVING) and self.phase is Phase.OPEN:
            for message in inbox.messages():
                self._send(message)

    def advertise(self, filters: tuple[bytes, ...]) -> KeptAdvertisement:
        """Make an advertisement; its `accepted` ticket tells whether the broker took it."""
        self._require_usable()
        self._last_advertisement = _next_id(self._last_advertisement, self.advertisements)
        advertisement = KeptAdvertisement(self._last_advertisement, filters)
        self.advertisements[advertisement.id] = advertisement
        self._ask(advertisement)
        return advertisement

    def withdraw(self, kept: KeptRequest) -> Ticket:
        """End a subscription or an advertisement.

        Deliveries that the broker had sent before may still arrive before the ticket is done.
        """
        if kept.withdrawn is not None:
            return kept.withdrawn
        ticket = kept.withdrawn = Ticket()
        if kept.stage is Stage.ENDED:
            ticket.finish()
            self._changed.append(ticket)
        elif self.phase is Phase.OPEN:
            if isinstance(kept, DurableInbox):
                self._send_acknowledgements(kept)
            kept.stage = Stage.LEAVING
            number = self._number()
            self._leaving[number] = kept
            self._send(kept.withdrawal(number))
        else:
            self._end_request(kept, None)
        return ticket

    def ask(self, message: Callable[[int], Message]) -> Query:
        """Ask what a REPLY answers: `message` makes the request of its number."""
        self._require_usable()
        query = Query(message)
        self._send_query(query)
        return query

    def take(self, inbox: Inbox) -> Notification:
        """Take the oldest notification of a subscription's non-empty buffer, and give credit back as needed."""
        notification, grant = inbox.take()
        if isinstance(inbox, DurableInbox):
            inbox.hand(notification)
        if grant is not None and self.phase is Phase.OPEN:
            self._send(Credit((grant,)))
        return notification

    def take_some(self, inbox: Inbox, most: int) -> list[Notification]:
        """Take the oldest notifications of a subscription's buffer, at most so many."""
        count = min(most, len(inbox.buffer))
        if isinstance(inbox, DurableInbox):
            return [self.take(inbox) for _ in range(count)]
        notifications = [inbox.buffer.popleft() for _ in range(count)]
        if inbox.stage not in (Stage.LEAVING, Stage.ENDED):
            inbox.taken += count
            if (grant := inbox.grant()) is not None and self.phase is Phase.OPEN:
                self._send(Credit((grant,)))
        return notifications

    # ------------------------------------------------------------------ messages from the broker

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
        self._changed += ready.values()

    def _on_deliver_durable(self, message: DeliverDurable) -> None:
        inbox = self.inboxes.get(message.subscription)
        if not isinstance(inbox, DurableInbox):
            raise ProtocolError(
                f"a durable delivery for subscription {message.subscription}, which is not durable here"
            )
        if inbox.stage is Stage.LEAVING:
            return
        for entry in message.entries:
            inbox.receive(DurableNotification(inbox.acknowledger, *entry))
        if (grant := inbox.grant()) is not None:
            self._send(Credit((grant,)))
        if inbox.acknowledged:
            self._send_acknowledgements(inbox)
        self._changed.append(inbox)

    def _on_ack(self, message: Ack) -> None:
        assert self.welcome is not None
        for number, sequence in message.entries:
            if number in self.outbox.unanswered:
                submission = self.outbox.acknowledge(number, self.welcome.broker, sequence)
                if submission is not None:
                    self._changed.append(submission)
                continue
            if (leaving := self._leaving.pop(number, None)) is not None:
                self._end_request(leaving, None)
                continue
            waiting = self._requests.pop(number, None)
            if not isinstance(waiting, KeptRequest):
                raise ProtocolError(f"an ACK for request {number}, which was not made or takes a REPLY")
            if waiting.stage is Stage.WAITING:
                waiting.stage = Stage.LIVE
                if isinstance(waiting, Inbox):
                    if waiting.name is None:
                        waiting.first = NotificationId(self.welcome.broker, sequence)
                    else:
                        waiting.known = bool(sequence)
                if not waiting.accepted.done:
                    self._finish(waiting.accepted, waiting)
                if isinstance(waiting, Inbox) and (grant := waiting.grant()) is not None:
                    self._send(Credit((grant,)))
                if isinstance(waiting, DurableInbox):
                    self._send_acknowledgements(waiting)
        self._answered()

    def _on_reply(self, message: Reply) -> None:
        query = self._requests.pop(message.request, None)
        if not isinstance(query, Query):
            raise ProtocolError(f"a REPLY to request {message.request}, which was not made or takes an ACK")
        self._finish(query, message.document)

    def _on_error(self, message: Error) -> None:
        error = Refused(message.reason, code=message.code)
        if message.request in self.outbox.unanswered:
            self._changed += self.outbox.refuse(message.request, error)
            self._answered()
        elif (leaving := self._leaving.pop(message.request, None)) is not None:
            self._end_request(leaving, None)
        elif (waiting := self._requests.pop(message.request, None)) is None:
            for inbox in self.inboxes.values():
                if isinstance(inbox, DurableInbox) and inbox.number == message.request:
                    self._end_request(inbox, error)  # somebody took it over, or removed it
                    return
            log.warning("the broker complains: %s (%s)", message.reason, message.code)
        elif isinstance(waiting, Query):
            self._finish(waiting, None, error)
        elif waiting.stage is Stage.WAITING and message.code != Code.SHUTTING_DOWN:
            self._end_request(waiting, error)  # of a broker that is stopping, the next one will be asked

    def _on_dropped(self, message: Dropped) -> None:
        for subscription, dropped, _total in message.entries:
            inbox = self.inboxes.get(subscription)
            if inbox is not None:
                inbox.dropped += dropped
                log.warning("subscription %d lost %d notifications: its consumer is too slow", subscription, dropped)

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        Deliver: _on_deliver,
        DeliverDurable: _on_deliver_durable,
        Ack: _on_ack,
        Reply: _on_reply,
        Error: _on_error,
        Dropped: _on_dropped,
    }

    # ------------------------------------------------------------------ what the connection tells

    def _opened(self) -> None:
        for kept in (*self.inboxes.values(), *self.advertisements.values()):
            self._ask(kept)
        queries, self._queries = self._queries, []
        for query in queries:
            self._send_query(query)
        self._answered()

    def _broken(self, reason: str) -> None:
        self._changed += self.outbox.lose(reason)
        requests, self._requests = self._requests, {}
        self._leaving = {}
        for waiting in requests.values():
            if isinstance(waiting, Query):
                self._queries.append(waiting)
        for kept in (*self.inboxes.values(), *self.advertisements.values()):
            if kept.stage is Stage.LEAVING:
                self._end_request(kept, None)
            else:
                kept.interrupt()
        self._changed.append(self)

    def _ended(self, reason: ContradaError) -> None:
        self._changed += self.outbox.abandon(reason)
        for kept in (*self.inboxes.values(), *self.advertisements.values()):
            self._end_request(kept, self.error)
        waiting = [ticket for ticket in self._requests.values() if isinstance(ticket, Query)]
        for query in (*waiting, *self._queries):
            self._finish(query, None, reason)
        self._requests, self._leaving, self._queries = {}, {}, []
        self._changed.append(self)

    # ------------------------------------------------------------------ inner workings

    def _end_request(self, kept: KeptRequest, error: ContradaError | None) -> None:
        kept.end(error)
        if not kept.accepted.done:
            self._finish(kept.accepted, None, error or Disconnected("it was closed before it was made"))
        if kept.withdrawn is not None and not kept.withdrawn.done:
            self._finish(kept.withdrawn)
        if isinstance(kept, Inbox):
            self.inboxes.pop(kept.id, None)
            self._changed.append(kept)
        else:
            self.advertisements.pop(kept.id, None)

    def _ask(self, kept: KeptRequest) -> None:
        """Send what makes or restores it, if the broker is there; else it will be on the next WELCOME."""
        if self.phase is Phase.OPEN:
            assert self.welcome is not None
            if isinstance(kept, DurableInbox) and self.welcome.version < wire.DURABLE_VERSION:
                reason = f"the broker speaks version {self.welcome.version} of the protocol, which has nothing durable"
                self._end_request(kept, Refused(reason, code=Code.VERSION))
                return
            number = self._number()
            self._requests[number] = kept
            self._send(kept.request(number))

    def _send_query(self, query: Query) -> None:
        """Send it, if the broker is there; else on the next WELCOME."""
        if self.phase is Phase.OPEN:
            number = self._number()
            self._requests[number] = query
            self._send(query.message(number))
        else:
            self._queries.append(query)

    def _answered(self) -> None:
        """Use the room that answers have made."""
        self.flush()
        self._changed.append(self)

    def _finish(self, ticket: Ticket, result: Any = None, error: ContradaError | None = None) -> None:
        ticket.finish(result, error)
        self._changed.append(ticket)

    def _number(self) -> int:
        self._last_request += 1
        return self._last_request

    def _check(self) -> None:
        self.outbox._check()
        for inbox in self.inboxes.values():
            inbox._check()
        for id, kept in (*self.inboxes.items(), *self.advertisements.items()):
            assert id == kept.id
            assert kept.stage is not Stage.ENDED
            if self.phase is not Phase.OPEN:
                assert kept.stage is Stage.WAITING or self.phase is Phase.CLOSING
        if self.phase is not Phase.OPEN and self.phase is not Phase.CLOSING:
            assert not self.outbox.unanswered
            assert not self._requests
            assert not self._leaving
        if self.phase is Phase.CLOSED:
            assert self.outbox.empty
            assert not self.inboxes
            assert not self.advertisements


def _next_id(last: int, taken: Container[int]) -> int:
    """The next number that is free; they come round after four thousand million."""
    while (last := last % wire.MAX_SUBSCRIPTION + 1) in taken:
        pass
    return last
