"""Clients' subscriptions: how one begins and ends.

Owns what clients asked for: their filters in the table, under one interface each. Makes every subscription a receiver
of `Delivery`, and tells the `Interest` which filters are wanted, with their bytes as they came, and no more. A
subscription that has ended gets nothing from that moment; its filters leave the table when there is time for it.

An attachment to an index (`standing_index.py`) is a subscription too, whose `owner` is the index instead of this.
"""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager, suppress
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, Protocol

from contrada.broker.core.ports import EncodedFilter, Refusal
from contrada.broker.core.receiver import Receiver
from contrada.broker.durable.past import Past
from contrada.broker.protocol.messages import Ack, Acked, Attach, Subscribe, Unsubscribe
from contrada.broker.protocol.wire import FIRST_VERSION, Code, Policy, Role
from contrada.errors import ContradaError
from contrada.forwarding.codec.msgpack import encode_filter
from contrada.forwarding.language.filter import as_filters

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    from contrada.broker.core.delivery import Delivery
    from contrada.broker.core.matching import Matching
    from contrada.broker.core.ports import Codec, Interest, Table
    from contrada.broker.node.settings import Settings
    from contrada.broker.sessions.session import Session
    from contrada.broker.sessions.sessions import Sessions
    from contrada.broker.turn.leftovers import Leftovers
    from contrada.broker.turn.mishaps import Mishaps
    from contrada.broker.turn.work import Steps

    Greet = Callable[[Receiver, Past], Steps]

_EXPLAINED: Final = 100  # filters of one subscription, at most: it may have thousands
AT_ONCE: Final = 1 << 14  # bytes of filters that are put into the table without a pause
_READ_AT_ONCE: Final = 64  # filters that are read without a pause
_REMEMBERED: Final = 10_000  # subscriptions that have ended, for EXPLAIN


class FilterOwner(Protocol):
    """Who has what a subscription asked for: its filters, or a name of the index."""

    def withdraw(self, subscription: Subscription) -> None:
        """Match nothing more for a subscription that has ended."""

    def explain(self, subscription: Subscription, notification: Any) -> Iterator[Any]:
        """Why each of its filters matches a notification or does not; of many, the first."""


class Subscription(Receiver):
    """What a client asked for, and receives."""

    __slots__ = ("encoded", "filter_bytes", "filters", "keys", "owner")

    def __init__(self, owner: FilterOwner, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.owner = owner
        self.encoded: Sequence[bytes] = ()  # its filters as the client sent them
        self.filter_bytes = 0  # of these
        self.filters: list[int] = []  # the table's ids of them
        self.keys: list[bytes] = []  # of what the interest was told of for it


class Subscriptions:
    """The subscriptions of one broker's clients."""

    def __init__(
        self,
        settings: Settings,
        table: Table,
        codec: Codec,
        sessions: Sessions,
        delivery: Delivery,
        matching: Matching,
        interest: Interest,
        leftovers: Leftovers,
        mishaps: Mishaps,
    ) -> None:
        self.codec = codec
        self.ended: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED)  # session and id of subscriptions, latest last
        self.greet: Greet | None = None  # gives a new subscription what it is to get first
        self._settings = settings
        self._table = table
        self._sessions = sessions
        self._delivery = delivery
        self._matching = matching
        self._interest = interest
        self._leftovers = leftovers
        self._mishaps = mishaps
        sessions.ended.append(self.session_ended)
        interest.woken.append(self._tell_all)

    @property
    def by_interface(self) -> Mapping[int, Subscription]:
        """All subscriptions, by the numbers of their interfaces."""
        receivers = dict(self._delivery.receivers)  # at once: the metrics' thread asks too
        return {interface: each for interface, each in receivers.items() if isinstance(each, Subscription)}

    # -- how one begins ----------------------------------------------------------------------------------

    def subscribe(self, session: Session, message: Subscribe) -> Steps:
        """SUBSCRIBE: it gets nothing before all its filters are in the table."""
        size = self._sessions.afford(session, message.filters)
        self.check(session, message)
        return self._subscribe(session, message, size)

    def _subscribe(self, session: Session, message: Subscribe, size: int) -> Steps:
        interface = self._delivery.new_interface()
        ids: list[int] = []
        self._matching.muted.add(interface)  # until it is complete
        try:
            filters = yield from read_filters(self.codec, message.filters)
            for expression in filters:
                for some in self._table.adding(interface, expression):
                    ids += some
                    if size > AT_ONCE:
                        yield
        except BaseException as error:
            self._withdraw(interface, ids, ())
            if isinstance(error, ContradaError):
                raise Refusal(Code.BAD_FILTER, str(error)) from error
            raise
        self._matching.muted.discard(interface)
        subscription = self.begin(self, session, message, interface)
        subscription.filters = ids
        subscription.encoded = message.filters
        subscription.filter_bytes = size
        session.filter_bytes += size
        if (recording := self._delivery.recording) is not None:
            recording.subscribed(interface, session.publisher, session.number, subscription.id, message.filters)
        with self.undone_if_it_fails(subscription):
            yield from self._tell(subscription, filters)
            if self.greet is not None:
                yield from self.greet(subscription, Past(self._table, filters))
        first = subscription.since if session.version >= FIRST_VERSION else 0
        self._sessions.answer(session, Ack((Acked(message.request, first),)))

    def check(self, session: Session, message: Subscribe | Attach) -> None:
        """Refuse what a session may not ask for."""
        limits = self._settings.limits
        if message.subscription in session.receivers:
            raise Refusal(Code.DUPLICATE, f"subscription {message.subscription} exists already in this session")
        if len(session.receivers) >= limits.subscriptions:
            raise Refusal(Code.LIMIT, f"a session may have at most {limits.subscriptions} subscriptions")
        if message.queue > limits.queue:
            raise Refusal(Code.LIMIT, f"a queue may be at most {limits.queue} long")
        if message.policy is Policy.BLOCK:
            self._sessions.require(session, Role.PUBLISH)  # who may only listen does not hold back those who speak

    def begin(self, owner: FilterOwner, session: Session, message: Subscribe | Attach, interface: int) -> Subscription:
        """Register a subscription under an interface."""
        limits = self._settings.limits
        subscription = Subscription(
            owner,
            session,
            message.subscription,
            interface,
            message.policy,
            credit=message.credit,
            limit=message.queue or min(self._settings.queue, limits.queue),
            limit_bytes=limits.queue_bytes,
            since=self._delivery.sequence,
        )
        session.receivers[message.subscription] = self._delivery.receivers[interface] = subscription
        return subscription

    @contextmanager
    def undone_if_it_fails(self, subscription: Subscription) -> Iterator[None]:
        """End a subscription again if what makes it whole raises."""
        try:
            yield
        except Exception:
            self.end(subscription)
            raise

    # -- what others learn of it -------------------------------------------------------------------------

    def _tell(self, subscription: Subscription, expressions: Iterable[Any]) -> Steps:
        """What a subscription asks for is wanted."""
        if self._interest.awake:
            for expression, body in zip(expressions, subscription.encoded, strict=True):
                for wanted in encoded_filters(expression, body):
                    if self._delivery.receivers.get(subscription.interface) is not subscription:
                        return  # it has ended
                    self._interest.interest_changed((wanted,), ())
                    subscription.keys.append(wanted.key)
                    yield

    def _tell_all(self) -> Iterable[None]:
        return self._tell_each(self.by_interface.values())

    def _tell_each(self, subscriptions: Iterable[Subscription]) -> Steps:
        for subscription in subscriptions:
            try:
                yield from self._tell(subscription, map(self.codec.filter, subscription.encoded))
            except Exception as error:
                self._mishaps.note("telling neighbours", error, subscription.session.number)

    # -- how one ends ------------------------------------------------------------------------------------

    def unsubscribe(self, session: Session, message: Unsubscribe) -> None:
        """UNSUBSCRIBE."""
        subscription = session.receivers.get(message.subscription)
        if not isinstance(subscription, Subscription):
            raise Refusal(Code.UNKNOWN, f"this session has no subscription {message.subscription}")
        session.report_drops(subscription)
        self.end(subscription)
        self._sessions.answer(session, Ack((Acked(message.request),)))

    def end(self, subscription: Subscription) -> None:
        """End a subscription: it is gone when this returns. Its filters follow when there is time for them."""
        session = subscription.session
        del session.receivers[subscription.id]
        self.ended.append((session.number, subscription.id))
        session.filter_bytes -= subscription.filter_bytes
        self._delivery.receivers.pop(subscription.interface, None)
        subscription.owner.withdraw(subscription)
        session.waiting.pop(subscription, None)
        session.dropping.pop(subscription, None)
        self._delivery.end(subscription)

    def session_ended(self, session: Session) -> None:
        """End all subscriptions of a session that is gone."""
        gone = [each for each in session.receivers.values() if isinstance(each, Subscription)]
        session.receivers.clear()
        delivery = self._delivery
        self._matching.muted.update([subscription.interface for subscription in gone])
        self._leftovers.put(lambda subscription: subscription.owner.withdraw(subscription), gone)
        for subscription in gone:
            delivery.receivers.pop(subscription.interface, None)
        for subscription in gone:
            if subscription.withheld or delivery.recording is not None:
                self._mishaps.attempt("ending a subscription", delivery.end, subscription)
        self.ended.extend([(session.number, subscription.id) for subscription in gone[-_REMEMBERED:]])

    def withdraw(self, subscription: Subscription) -> None:
        """Take the filters of a subscription that has ended out of the table."""
        self._withdraw(subscription.interface, subscription.filters, subscription.keys)

    def _withdraw(self, interface: int, filters: Sequence[int], keys: Sequence[bytes]) -> None:
        """Let an interface match nothing from here on, and take its filters out when there is time for it."""

        def done() -> None:
            self._matching.muted.discard(interface)
            with suppress(KeyError):  # none is left; unless adding failed half-way
                self._table.remove_interface(interface)

        self._matching.muted.add(interface)
        self._leftovers.put(self._remove, zip_longest(filters, keys), done)

    def _remove(self, filter: tuple[int | None, bytes | None]) -> None:
        id, key = filter
        if id is not None:
            self._table.remove(id)
        if key is not None:
            self._interest.interest_changed((), (key,))

    # -- for people --------------------------------------------------------------------------------------

    def explain(self, subscription: Subscription, notification: Any) -> Iterator[Any]:
        """Constraint by constraint, why each filter of a subscription matches or does not; of many, the first."""
        for id in subscription.filters[:_EXPLAINED]:
            yield self._table.explain(notification, id)

    def _check(self) -> None:
        for session in self._sessions.by_connection.values():
            mine = [each for each in session.receivers.values() if isinstance(each, Subscription)]
            assert session.filter_bytes >= sum(each.filter_bytes for each in mine)
            assert all(self._delivery.receivers.get(each.interface) is each for each in mine)


def read_filters(codec: Codec, encoded: Sequence[bytes]) -> Generator[Any, Any, list[Any]]:
    """Read filters, some at a step; what is costly by another thread."""
    filters: list[Any] = []
    if not codec.costly(encoded):
        for start in range(0, len(encoded), _READ_AT_ONCE):
            if start:
                yield
            filters += [codec.filter(each) for each in encoded[start : start + _READ_AT_ONCE]]
        return filters
    for each in encoded:
        read = yield partial(codec.filter, each)
        filters.append(read)
    return filters


def encoded_filters(expression: Any, body: bytes) -> list[EncodedFilter]:
    """The filters of an expression that was read from these bytes, each with bytes of its own."""
    filters = as_filters(expression)
    return (
        [EncodedFilter(filters[0], body)]
        if len(filters) == 1
        else [EncodedFilter(f, encode_filter(f)) for f in filters]
    )
