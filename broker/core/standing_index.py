"""The standing index: interfaces of an index loaded from disk, which match whether or not anybody listens.

An index (`segmented_table.py`) is a table of its own beside that of the clients' subscriptions; its interfaces
have names. It is loaded as a whole, in place of any before, between two notifications; single subscriptions of it may
come and go afterwards.

    notification ──▶ table  ──▶ interfaces of subscriptions ────────────────────────────────┐
                 └─▶ index  ──▶ names ──▶ StandingInterface ──▶ its number: for the recording  ├─▶ delivery
                                                  └──▶ interfaces of those attached ─────────┘

Owns the index and who is attached to which of its interfaces. Is one of the `matchers`; tells the `Interest`
which filters are wanted, and the recording of names and changes.

A client attaches to a name and gets its own copy of what the name matches, with credit, queue and policy as for any
subscription. Nothing is queued for a name to which nobody is attached: its matches are counted, and recorded. Whether
an index has the name at that moment is no condition, so that a client that reconnects before an index is loaded, or
while one without the name is, need not try again.

Neighbours learn the filters of a name while somebody is attached to it. They would have to hold, and compare with all
others for covering, millions of filters otherwise, and send notifications that nobody here reads.

Of an interface of more than 10,000 filters they learn only which attributes it asks for, and send more than it needs.

A name gets an interface number, from 2³¹ on and so out of reach of the subscriptions', when it is first matched, and
keeps it as long as the broker runs. A name that never was is forgotten when nobody is attached to it any more.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from contrada.broker.core.ports import EncodedFilter, Refusal
from contrada.broker.core.subscriptions import read_filters
from contrada.broker.durable.past import PastOfName
from contrada.broker.protocol.messages import Ack, Acked, Attach, Error, IndexAdd, IndexLoad, IndexRemove, Reply
from contrada.broker.protocol.wire import Code
from contrada.errors import ContradaError
from contrada.forwarding.codec.msgpack import encode_filter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from contrada.broker.core.delivery import Delivery
    from contrada.broker.core.matching import Matched, Matching
    from contrada.broker.core.ports import Codec, Interest
    from contrada.broker.core.subscriptions import Subscription, Subscriptions
    from contrada.broker.sessions.session import Session
    from contrada.broker.sessions.sessions import Sessions
    from contrada.broker.turn.leftovers import Leftovers
    from contrada.broker.turn.work import Steps
    from contrada.errors import CorruptFile
    from contrada.forwarding.language.filter import Filter

log = logging.getLogger("contrada.broker")

_FIRST: Final = 1 << 31
_TOLD: Final = 10_000  # filters of a name that neighbours are told one by one: half a second's work
_EXPLAINED: Final = 100  # filters of a name, at most: it may have thousands


class Index(Protocol):
    """What the broker asks of an index. `passed_over` counts notifications that a damaged part was not asked about."""

    strict: bool
    passed_over: int

    def verify(self) -> list[CorruptFile]:
        """Check every byte on disk, from any thread; what is wrong with parts that are not asked any more."""

    @property
    def damaged(self) -> list[CorruptFile]:
        """What `verify` has found so far."""

    def __len__(self) -> int:
        """How many filters it has."""

    def __contains__(self, id: object) -> bool:
        """Whether there is a filter of that id."""

    def match_bodies(self, bodies: Sequence[bytes]) -> tuple[Sequence[AbstractSet[Any]], Mapping[int, ContradaError]]:
        """Find the names of the matching interfaces of each encoded notification, and why some are refused."""

    def interface_filters(self, interface: str, most: int | None = None) -> list[int]:
        """Return the ids of the filters of a name, or of `most` of them."""

    def interest(self, interface: str, most: int) -> list[Filter]:
        """Return filters that cover those of a name: its own, if they are at most `most`."""

    def filter(self, id: int) -> Filter:
        """Return the filter of an id."""

    def explain(self, notification: Any, id: int) -> Any:
        """Constraint by constraint, why a filter matches or does not."""

    def interface(self, id: int) -> Any:
        """Return the name that a filter belongs to."""

    def filters_of(self, subscription: str) -> list[int]:
        """Return the ids of the filters of a subscription of the index."""

    def add(self, interface: str, filter: Any, subscription: str | None = None) -> list[int]:
        """Add a subscription; the ids of its filters."""

    def remove(self, id: int) -> None:
        """Remove one filter."""

    def remove_subscription(self, subscription: str) -> None:
        """Remove a subscription; KeyError when there is none."""


class Loaded(NamedTuple):
    """An index as its opener hands it over."""

    table: Index
    path: str
    shard: str  # "k/n", or empty for all of it
    digest: str
    subscriptions: int


class StandingInterface:
    """A name of the index: its interface number, who is attached, and what the interest was told of for them.

    Of those who are `attached` some are `durable`: while there are, the name's filters are wanted durably, too.
    """

    __slots__ = ("attached", "durable", "durable_keys", "interface", "keys", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.interface = 0  # not matched yet
        self.attached: set[int] = set()
        self.durable: set[int] = set()
        self.keys: list[bytes] = []
        self.durable_keys: list[bytes] = []


class StandingIndex:
    """The index beside the table of one broker, if one is loaded."""

    def __init__(
        self,
        codec: Codec,
        sessions: Sessions,
        delivery: Delivery,
        matching: Matching,
        subscriptions: Subscriptions,
        interest: Interest,
        leftovers: Leftovers,
    ) -> None:
        self.codec = codec
        self.loaded: Loaded | None = None
        self.open_index: Callable[[str, str, Callable[[Loaded | ContradaError], None]], None] = _cannot_open
        self.attachments: dict[int, StandingInterface] = {}  # by the interface of the attached subscription
        self.readers = 0  # threads that ask it, and let nobody change it
        self._passed_over = 0  # by indexes before
        self._names: dict[str, StandingInterface] = {}
        self._next_interface = _FIRST
        self._counters = sessions.counters
        self._sessions = sessions
        self._delivery = delivery
        self._matching = matching
        self.subscriptions = subscriptions
        self._interest = interest
        self._leftovers = leftovers
        matching.matchers.append(self)
        matching.asks_table_only = True
        interest.woken.append(self._tell_all)

    # -- matching ----------------------------------------------------------------------------------------

    def find(self, bodies: Sequence[bytes]) -> Sequence[AbstractSet[str]] | None:
        """The names of the index that match each notification; None if no index is loaded.

        What the table has refused, the index refuses too: both ask the codec.
        """
        loaded = self.loaded
        return None if loaded is None else loaded.table.match_bodies(bodies)[0]

    def merge(self, found: Matched, more: Sequence[AbstractSet[str]] | None) -> Matched:
        """Add to what was found for each notification the interfaces of these names, and those attached to them."""
        if more is None or self.loaded is None:
            return found
        matches = unattended = 0
        both = [set(interfaces) for interfaces in found]
        for interfaces, names in zip(both, more, strict=True):
            for name in names:
                standing = self._names.get(name) or self._name(name)
                interfaces.add(standing.interface or self._number(standing))
                matches += 1
                if standing.attached:
                    interfaces |= standing.attached
                else:
                    unattended += 1
        self._counters["index_passed_over"] = self._passed_over + self.loaded.table.passed_over
        self._counters["standing_matches"] += matches
        self._counters["unattended"] += unattended
        return both

    def _name(self, name: str) -> StandingInterface:
        standing = self._names[name] = StandingInterface(name)
        return standing

    def _number(self, standing: StandingInterface) -> int:
        standing.interface = self._next_interface
        self._next_interface += 1
        if (recording := self._delivery.recording) is not None:
            recording.standing(standing.interface, standing.name)
        return standing.interface

    # -- attaching ---------------------------------------------------------------------------------------

    def attach(self, session: Session, message: Attach) -> Steps:
        """ATTACH."""
        self.subscriptions.check(session, message)
        interface = self._delivery.new_interface()
        subscription = self.subscriptions.begin(self, session, message, interface)
        standing = self._names.get(message.name) or self._name(message.name)
        if (recording := self._delivery.recording) is not None:
            recording.attached(interface, session.publisher, session.number, subscription.id, standing.name)
        standing.attached.add(interface)
        self.attachments[interface] = standing
        self._delivery.unrecorded.add(interface)
        if len(standing.attached) == 1:
            with self.subscriptions.undone_if_it_fails(subscription):
                yield from self._tell_name(standing)
        if self.subscriptions.greet is not None:
            yield from self.subscriptions.greet(subscription, PastOfName(self, standing.name))
        known = self.loaded is not None and bool(self.loaded.table.interface_filters(message.name, 1))
        self._sessions.answer(session, Ack((Acked(message.request, int(known)),)))

    def attach_durably(self, name: str, interface: int) -> None:
        """A durable subscription, which has an interface, gets what a name matches, whoever is there."""
        standing = self._names.get(name) or self._name(name)
        standing.attached.add(interface)
        standing.durable.add(interface)
        self.attachments[interface] = standing
        self._delivery.unrecorded.add(interface)

    def tell_durable(self, interface: int) -> Steps:
        """Tell neighbours, by steps, what a durable subscription wants that has been attached."""
        if (standing := self.attachments.get(interface)) is not None:
            yield from self._tell_again((standing,))

    def detach_durably(self, interface: int) -> None:
        """A durable subscription has ended."""
        if interface in self.attachments:
            self._detach(interface)

    def names_match(self, name: str, bodies: Sequence[bytes]) -> list[bool]:
        """Which of some notifications a name matches; any of its `readers` may ask."""
        loaded = self.loaded
        if loaded is None:
            return [False] * len(bodies)
        return [name in names for names in loaded.table.match_bodies(bodies)[0]]

    def withdraw(self, subscription: Subscription) -> None:
        """Detach a subscription that has ended."""
        self._matching.muted.discard(subscription.interface)
        self._detach(subscription.interface)

    def _detach(self, interface: int) -> None:
        standing = self.attachments.pop(interface)
        standing.attached.remove(interface)
        standing.durable.discard(interface)
        self._delivery.unrecorded.remove(interface)
        if not standing.durable:
            keys, standing.durable_keys = standing.durable_keys, []
            self._leftovers.put(lambda key: self._interest.durable_interest_changed((), (key,)), keys)
        if not standing.attached:
            keys, standing.keys = standing.keys, []
            self._leftovers.put(lambda key: self._interest.interest_changed((), (key,)), keys)
            if not standing.interface:
                del self._names[standing.name]

    def explain(self, subscription: Subscription, notification: Any) -> Iterator[Any]:
        """Why filters of the name that a subscription is attached to match or do not; the first hundred."""
        if self.loaded is None:
            return
        index = self.loaded.table
        ids = index.interface_filters(self.attachments[subscription.interface].name, _EXPLAINED)
        for id in ids:
            yield index.explain(notification, id)

    # -- what others learn of it -------------------------------------------------------------------------

    def _tell_all(self) -> Iterable[None]:
        return self._tell_again(list(dict.fromkeys(self.attachments.values())))

    def _tell_again(self, names: Iterable[StandingInterface]) -> Steps:
        """What these names ask for now is wanted, and no more what was said of them before."""
        for standing in names:
            # The new filters first: what both have is never withdrawn from the neighbours.
            before, standing.keys = standing.keys, []
            durable_before, standing.durable_keys = standing.durable_keys, []
            yield from self._tell_name(standing)
            for key in before:
                self._interest.interest_changed((), (key,))
                yield
            for key in durable_before:
                self._interest.durable_interest_changed((), (key,))
                yield

    def _tell_name(self, standing: StandingInterface) -> Steps:
        if self._interest.awake and self.loaded is not None:
            index = self.loaded.table
            ids = index.interface_filters(standing.name, _TOLD + 1)
            own = (index.filter(id) for id in ids if id in index)  # it may be removed meanwhile
            yield from self._tell(standing, own if len(ids) <= _TOLD else index.interest(standing.name, _TOLD))

    def _tell(self, standing: StandingInterface, filters: Iterable[Filter]) -> Steps:
        if self._interest.awake:
            for each in filters:
                if not standing.attached:
                    return
                wanted = EncodedFilter(each, encode_filter(each))
                self._interest.interest_changed((wanted,), ())
                standing.keys.append(wanted.key)
                if standing.durable:
                    self._interest.durable_interest_changed((wanted,), ())
                    standing.durable_keys.append(wanted.key)
                yield

    # -- loading and changing ----------------------------------------------------------------------------

    def load_for(self, session: Session, message: IndexLoad) -> None:
        """INDEX_LOAD: have it opened, which takes its time elsewhere; then take it."""

        def opened(result: Loaded | ContradaError) -> None:
            if isinstance(result, Loaded):
                self.load(result)
                self._reply(session, message.request, self.document())
            else:
                log.warning("index refused", extra={"path": message.path, "reason": str(result)})
                self._counters["refused"] += 1
                if session.open:
                    self._sessions.answer(session, Error(message.request, Code.BAD_INDEX, str(result)))

        self.open_index(message.path, message.shard, opened)

    def load(self, loaded: Loaded) -> None:
        """Match by this index from here on, in place of any before."""
        self._matching.match_before(None)
        if self.loaded is not None:
            self._passed_over += self.loaded.table.passed_over
        self.loaded = loaded
        self._matching.asks_table_only = False
        filters = len(loaded.table)
        facts = {"path": loaded.path, "subscriptions": loaded.subscriptions, "filters": filters}
        log.info("index loaded", extra={**facts, "shard": loaded.shard})
        if (recording := self._delivery.recording) is not None:
            recording.indexed(loaded.path, loaded.shard, loaded.digest, loaded.subscriptions, filters)
        self._leftovers.go_through(self._tell_all())

    def verified(self, loaded: Loaded, damaged: Sequence[CorruptFile]) -> None:
        """The index that was loaded unverified, to start quickly, has been verified since."""
        for each in damaged:
            self._counters["index_damaged"] += 1
            log.error("index damaged: what it holds is not matched any more", extra={"reason": str(each)})
        if not damaged:
            log.info("index verified", extra={"path": loaded.path})

    def add(self, session: Session, message: IndexAdd) -> Steps:
        """INDEX_ADD: put a subscription into the index, in place of any of the same id."""
        self._require_index()
        try:
            (expression,) = yield from read_filters(self.codec, (message.filter,))
            index = self._require_index()
            replaces = bool(index.filters_of(message.id))
            if replaces:
                for id in index.add(message.name, expression):  # if it is refused, the old one must stay
                    index.remove(id)
                self._take_out(index, message.id)
            ids = index.add(message.name, expression, message.id)
        except ContradaError as error:
            raise Refusal(Code.BAD_FILTER, str(error)) from error
        if (recording := self._delivery.recording) is not None:
            recording.added(message.id, message.name, message.filter)
        if (standing := self._names.get(message.name)) is not None:
            yield from self._tell(standing, map(index.filter, ids))
        self._reply(session, message.request, {"id": message.id, "filters": len(ids), "replaced": replaces})

    def remove(self, session: Session, message: IndexRemove) -> None:
        """INDEX_REMOVE: take a subscription out of the index."""
        index = self._require_index()
        if not index.filters_of(message.id):
            raise Refusal(Code.UNKNOWN, f"the index has no subscription {message.id!r}")
        count = self._take_out(index, message.id)
        if (recording := self._delivery.recording) is not None:
            recording.removed(message.id)
        self._reply(session, message.request, {"id": message.id, "filters": count})

    def _take_out(self, index: Index, id: str) -> int:
        ids = index.filters_of(id)
        gone = [(self._names.get(str(index.interface(each))), index.filter(each)) for each in ids]
        index.remove_subscription(id)
        for standing, each in gone:
            if standing is not None and standing.keys:
                key = EncodedFilter(each, encode_filter(each)).key
                if key in standing.keys:
                    standing.keys.remove(key)
                    self._interest.interest_changed((), (key,))
                if key in standing.durable_keys:
                    standing.durable_keys.remove(key)
                    self._interest.durable_interest_changed((), (key,))
        return len(ids)

    def _require_index(self) -> Index:
        if self.loaded is None:
            raise Refusal(Code.UNKNOWN, "this broker has no index: load one first (contrada index load)")
        return self.loaded.table

    def _reply(self, session: Session, request: int, document: dict[str, Any]) -> None:
        if session.open:  # it may have left while the index was opened
            self._sessions.answer(session, Reply(request, document))

    def document(self) -> dict[str, Any]:
        """What STATUS says of the index; empty without one."""
        if self.loaded is None:
            return {}
        return {
            "path": self.loaded.path,
            "shard": self.loaded.shard,
            "digest": self.loaded.digest,
            "subscriptions": self.loaded.subscriptions,
            "filters": len(self.loaded.table),
            "attached": len(self.attachments),
            "damaged": [str(each) for each in self.loaded.table.damaged],
        }

    def _check(self) -> None:
        for name, standing in self._names.items():
            assert standing.name == name
            assert standing.attached or standing.interface
            assert not standing.interface or _FIRST <= standing.interface < self._next_interface
            assert standing.attached == {each for each, its in self.attachments.items() if its is standing}
            assert standing.durable <= standing.attached
            assert standing.attached <= self._delivery.receivers.keys() | self._matching.muted | standing.durable
            assert standing.attached or not standing.keys
            assert standing.durable or not standing.durable_keys
        assert self.attachments.keys() <= self._delivery.unrecorded


def _cannot_open(path: str, shard: str, done: Callable[[Loaded | ContradaError], None]) -> None:
    done(ContradaError("this broker opens no files"))
