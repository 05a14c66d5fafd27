"""What the async and the blocking client share: arguments checked, requests made, results told.

Every `Operation` is written once: a generator that yields what it waits for, looks again whenever it is resumed, and
returns the result. The two clients run operations each in its own way: `AsyncClient` awaits a future in its event loop,
`Client` waits for its background thread. One that is given up (a timeout, a cancelled task) is closed, and tidies up
after itself. Wherever it touches the core it has the client's lock, which is none in an event loop.
"""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Generator
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from contrada.broker.protocol.messages import (
    DurableQuery,
    Explain,
    IndexAdd,
    IndexLoad,
    IndexRemove,
    ListReceivers,
    ListSubscriptions,
    Status,
)
from contrada.broker.protocol.wire import ASKED_AT_ONCE, MAX_INTEGER, DurableAction
from contrada.client.arguments import (
    check_durable,
    check_id,
    check_name,
    check_numbers,
    check_storing,
    check_subscription,
    encode_chunks,
    encode_filters,
    encode_notification,
    encode_predicate,
)
from contrada.client.engine.actions import Connect, Hangup, Send
from contrada.client.engine.core import Core
from contrada.client.engine.durable_inbox import DurableInbox
from contrada.client.engine.kept_requests import KeptRequest
from contrada.client.engine.states import Phase
from contrada.client.engine.tickets import Waitable
from contrada.client.options import Options, SubscriptionOptions
from contrada.errors import Disconnected, InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from contrada.broker.protocol.messages import Message, NotificationId
    from contrada.client.engine.inbox import Inbox
    from contrada.client.engine.kept_requests import KeptAdvertisement
    from contrada.client.engine.outbox import Submission
    from contrada.client.engine.tickets import Ticket
    from contrada.client.notification import Encoded, Notification
    from contrada.client.options import OptionNames, SubscriptionOptionNames
    from contrada.client.transport import Transport
    from contrada.forwarding.language.filter import Expression

_T = TypeVar("_T")
_K = TypeVar("_K", bound=KeptRequest)
Operation = Generator[Waitable, None, _T]

log = logging.getLogger("contrada.client")

_TURN = 64  # messages read before others get a turn


class BaseClient(ABC):
    """A core, its transport, and what a client is asked to do as operations."""

    _lock: AbstractContextManager[Any]  # held wherever the core is used

    def __init__(self, url: str, options: OptionNames) -> None:
        from contrada.client.transport import Transport

        random = Random()
        self.url = url
        self._core = Core(Options.of(options), random=random)
        self._transport: Transport = Transport(url, self._core.options, random)
        self._failure: BaseException | None = None  # what ended the thread that drives the core, if there is one

    @property
    def connected(self) -> bool:
        """Whether the broker is there at the moment."""
        return self._core.phase is Phase.OPEN

    @property
    def session(self) -> int:
        """The number of the current or last session at the broker."""
        return self._core.welcome.session if self._core.welcome else 0

    @property
    def broker(self) -> str:
        """The id of the broker."""
        return self._core.welcome.broker if self._core.welcome else ""

    @property
    def reconnects(self) -> int:
        """How often the connection was made again after it was lost."""
        return max(0, self._core.connections - 1)

    # ------------------------------------------------------------------ what differs

    @abstractmethod
    def _now(self) -> float:
        """The clock that the core is driven by."""

    @abstractmethod
    def _perform(self) -> None:
        """Have the core's actions performed, and whoever waits for its changes woken."""

    @abstractmethod
    def _flush_soon(self) -> None:
        """Have streamed notifications sent, together with those that follow at once."""

    @abstractmethod
    def _watch(self) -> None:
        """Begin to watch the transport's new socket."""

    @abstractmethod
    def _unwatch(self) -> None:
        """Stop to watch the transport's socket, which is about to be closed."""

    # ------------------------------------------------------------------ connecting and closing

    def _open(self) -> Operation[None]:
        with self._lock:
            while self._core.phase in (Phase.GREETING, Phase.WAITING):
                yield self._core
            if self._core.phase is not Phase.OPEN:
                closed = Disconnected(f"the client of {self.url} was closed while it was connecting")
                raise self._failure or self._core.error or closed

    def _drain(self) -> Operation[None]:
        """Wait until everything streamed has been answered."""
        with self._lock:
            self._core.flush()
            self._perform()
            while not self._core.outbox.empty and self._core.phase is not Phase.CLOSED:
                yield self._core

    def _leave(self) -> Operation[None]:
        with self._lock:
            self._core.close(self._now())
            self._perform()
            while self._core.phase is not Phase.CLOSED:
                yield self._core

    # ------------------------------------------------------------------ publishing

    def _publish(
        self,
        notification: Mapping[str, object],
        ack: bool,
        durable: bool = False,
        id: str = "",
        retain: str = "",
        payload: object = None,
    ) -> Operation[NotificationId | None]:
        body, storing = encode_notification(notification, payload), check_storing(durable, id, retain)
        with self._lock:
            if self._core.outbox.failure is not None:
                self._raise_failure()
            if not self._core.outbox.has_room:
                yield from self._room()
            submission = self._core.publish([body], streamed=not ack, **storing)
            if not ack:
                self._flush_soon()
                return None
            self._perform()
            try:
                yield from self._wait_for(submission)
            except GeneratorExit:
                self._core.outbox.disown(submission)
                raise
            return submission.ids[0]

    def _publish_many(
        self, notifications: Iterable[Mapping[str, object]], ack: bool, durable: bool = False
    ) -> Operation[list[NotificationId]]:
        submissions = yield from self._hand_over(notifications, ack, durable)
        return (yield from self._outcome(submissions)) if ack else []

    def _hand_over(
        self, notifications: Iterable[Mapping[str, object] | Encoded], ack: bool, durable: bool
    ) -> Operation[list[Submission]]:
        """Put notifications into the outbox, behind those before them; `_outcome` says what became of them."""
        submissions: list[Submission] = []
        try:
            for bodies, fault in encode_chunks(notifications):  # the application's iterator runs without the lock
                with self._lock:
                    self._raise_failure()
                    yield from self._room()
                    submissions.append(self._core.publish(bodies, streamed=not ack, durable=durable))
                    self._core.flush()
                    self._perform()
                if fault is not None:
                    raise fault
        except BaseException:
            self._disown(submissions)
            raise
        return submissions

    def _outcome(self, submissions: Sequence[Submission]) -> Operation[list[NotificationId]]:
        """Wait until the broker has accepted what was handed over; the ids."""
        try:
            with self._lock:
                for submission in submissions:
                    yield from self._wait_for(submission)
        except BaseException:
            self._disown(submissions)
            raise
        return [id for submission in submissions for id in submission.ids if id is not None]

    def _disown(self, submissions: Sequence[Submission]) -> None:
        with self._lock:
            for submission in submissions:
                if not submission.done:
                    self._core.outbox.disown(submission)

    def _flush(self) -> Operation[None]:
        yield from self._drain()
        self._raise_failure()

    def _room(self) -> Operation[None]:
        """Wait until the outbox has room. The lock is held."""
        while not self._core.outbox.has_room and self._core.phase is not Phase.CLOSED:
            self._core.flush()
            self._perform()
            yield self._core
            self._raise_failure()

    def _raise_failure(self) -> None:
        """Raise what went wrong with something streamed."""
        failure = self._core.outbox.take_failure()
        if failure is not None:
            raise failure

    # ------------------------------------------------------------------ subscribing and advertising

    def _wanted(self, wanted: tuple[bytes, ...] | str, given: SubscriptionOptionNames) -> Callable[[], Inbox]:
        """Check what a subscription of either kind asks for; what makes the request."""
        options = SubscriptionOptions.of(given)
        policy, window, queue = check_subscription(options.policy, options.window, options.queue)
        if options.durable is None:
            if options.since is not None:
                raise InvalidValue("since is for durable subscriptions: give it a name, durable=...")
            return partial(self._core.subscribe, wanted, policy, window, queue)
        name, point, auto = check_durable(options.durable, options.since, options.ack, options.keep)

        def make() -> Inbox:
            inbox = self._core.subscribe_durably(wanted, window, name, point, options.keep, auto=auto)
            inbox.acknowledger = partial(self._acknowledge, inbox)
            return inbox

        return make

    def _acknowledge(self, inbox: DurableInbox, position: int, run: bool) -> None:
        with self._lock:
            self._core.acknowledge(inbox, position, run=run)
            self._flush_soon()

    def _done(self, inbox: Inbox) -> None:
        """The application has done with what it was handed last, if that acknowledges it."""
        position, inbox.handed = inbox.handed, 0
        if position and isinstance(inbox, DurableInbox):
            self._acknowledge(inbox, position, run=True)

    def _advertisement(self, filter: Expression | str) -> Callable[[], KeptAdvertisement]:
        return partial(self._core.advertise, encode_filters(filter))

    def _keep(self, make: Callable[[], _K]) -> Operation[_K]:
        """Make a kept request, and wait until the broker has taken it."""
        with self._lock:
            kept = make()
            self._perform()
            try:
                yield from self._wait_for(kept.accepted)
            except BaseException:
                self._core.withdraw(kept)
                self._perform()
                raise
            return kept

    def _withdraw(self, kept: KeptRequest) -> Operation[None]:
        with self._lock:
            ticket = self._core.withdraw(kept)
            self._perform()
            yield from self._wait_for(ticket)

    def _next(self, inbox: Inbox) -> Operation[Notification | None]:
        """Wait for the next notification; None once the subscription is over and nothing is left."""
        with self._lock:
            while not inbox.buffer:
                if inbox.over:
                    return None
                yield inbox
            return self._take(inbox)

    def _take(self, inbox: Inbox) -> Notification:
        """Take the next notification of a buffer that is not empty. The lock is held."""
        notification = self._core.take(inbox)
        if self._core.actions:
            self._perform()
        return notification

    def _take_some(self, inbox: Inbox, most: int) -> list[Notification]:
        """Take what a buffer has, at most so many. The lock is held."""
        notifications = self._core.take_some(inbox, most)
        if self._core.actions:
            self._perform()
        return notifications

    # ------------------------------------------------------------------ asking

    def _status(self) -> Operation[dict[str, Any]]:
        return self._ask(Status)

    def _explain(
        self, notification: NotificationId | str, subscription: int, session: int
    ) -> Operation[dict[str, Any]]:
        id = check_id(notification)
        checked, of = check_numbers(subscription, session)
        return self._ask(lambda number: Explain(number, id, of, checked))

    def _list_subscriptions(self, after: int) -> Operation[dict[str, Any]]:
        if type(after) is not int or not 0 <= after <= MAX_INTEGER:
            raise InvalidValue(f"after must be the number of an interface, not {after!r:.40}")
        return self._ask(lambda number: ListSubscriptions(number, after))

    def _list_receivers(self, notifications: Iterable[NotificationId | str]) -> Operation[dict[str, Any]]:
        ids = tuple(map(check_id, notifications))
        if len(ids) > ASKED_AT_ONCE:
            raise InvalidValue(f"the receivers of {len(ids)} notifications; ask for at most {ASKED_AT_ONCE} at once")
        return self._ask(lambda number: ListReceivers(number, ids))

    def _index_load(self, path: str | os.PathLike[str], shard: str) -> Operation[dict[str, Any]]:
        text = os.fspath(path)
        return self._ask(lambda number: IndexLoad(number, text, shard))

    def _index_add(self, id: str, interface: str, filter: Expression | str) -> Operation[dict[str, Any]]:
        fields = check_name("id", id), check_name("interface", interface), encode_predicate(filter)
        return self._ask(lambda number: IndexAdd(number, *fields))

    def _index_remove(self, id: str) -> Operation[dict[str, Any]]:
        name = check_name("id", id)
        return self._ask(lambda number: IndexRemove(number, name))

    def _durable_query(self, action: DurableAction, name: str, behind: int = 0) -> Operation[dict[str, Any]]:
        if name or action is not DurableAction.LIST:
            check_name("name", name)
        return self._ask(lambda number: DurableQuery(number, action, name, behind))

    def _ask(self, message: Callable[[int], Message]) -> Operation[dict[str, Any]]:
        with self._lock:
            query = self._core.ask(message)
            self._perform()
            yield from self._wait_for(query)
            return dict(query.result)

    def _wait_for(self, ticket: Ticket) -> Operation[None]:
        """Wait for the outcome of a request. The lock is held."""
        while not ticket.done:
            yield ticket
        if ticket.error is not None:
            raise ticket.error

    # ------------------------------------------------------------------ driving the core; the lock is held

    def _perform_actions(self) -> bool:
        """Do what the core wants; whether anything was sent."""
        sent = False
        while actions := self._core.take_actions():
            for action in actions:
                if type(action) is Send:
                    self._transport.send(action.frames)
                    sent = True
                elif type(action) is Connect:
                    try:
                        self._transport.connect()
                    except Disconnected as error:
                        self._core.unreachable(error)
                        break  # the rest was for that connection
                    self._watch()
                elif type(action) is Hangup:
                    self._unwatch()
                    self._transport.hangup(linger=action.linger)
        return sent

    def _read_messages(self) -> bool:
        """Take in what has arrived, as far as one turn goes; whether there may be more."""
        now = self._now()
        for _ in range(_TURN):
            frames = self._transport.receive()
            if frames is None:
                return False
            self._core.receive(frames, now)
        return True

    def _read_reports(self) -> None:
        """Take in what the transport's monitor has seen."""
        now = self._now()
        while (report := self._transport.report()) is not None:
            while (frames := self._transport.receive()) is not None:  # what came before the end still counts
                self._core.receive(frames, now)
            self._core.failed(*report, now)
