"""Standing subscriptions: the interfaces of an index, which match whether or not anybody listens.

An index (`segmented_table.py`) is a table of its own beside that of the clients' subscriptions; its interfaces
have names. It is loaded as a whole, in place of any before, between two notifications; single subscriptions of it may
come and go afterwards.

    notification ──▶ table  ──▶ handles of subscriptions ──────────────────────────┐
                 └─▶ index  ──▶ names ──▶ Standing ──▶ its handle: for the journal  ├─▶ the switchboard's way
                                              └──▶ handles of those attached ───────┘

A client attaches to a name and gets its own copy of what the name matches, with credit, queue and policy as for any
subscription. Nothing is queued for a name to which nobody is attached: its matches are counted, and recorded. Whether
an index has the name at that moment is no condition, so that a client that reconnects before an index is loaded, or
while one without the name is, need not try again.

Neighbours learn the filters of a name while somebody is attached to it. They would have to hold, and compare with all
others for covering, millions of filters otherwise, and send notifications that nobody here reads.

Of an interface of more than 10,000 filters they learn only which attributes it asks for, and send more than it needs.

A name gets a handle, from 2³¹ on and so out of reach of the subscriptions', when it is first matched, and keeps it as
long as the broker runs. A name that never was is forgotten when nobody is attached to it any more.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from contrada.broker.core.ports import Refusal
from contrada.broker.core.subscriptions import Subscribing
from contrada.broker.protocol.messages import Ack, Acked, Attach, Error, IndexAdd, IndexLoad, IndexRemove, Reply
from contrada.broker.protocol.wire import Code
from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from contrada.broker.core.session import Session
    from contrada.broker.core.subscription import Subscription
    from contrada.errors import CorruptFile
    from contrada.forwarding.language.filter import Filter

log = logging.getLogger("contrada.broker")

_FIRST: Final = 1 << 31
_SPREAD: Final = 10_000  # filters of a name that neighbours are told one by one: half a second's work
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

    def match_many(self, notifications: list[Any]) -> Sequence[set[Any]]:
        """Find the names of the matching interfaces of each notification."""

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


class Standing:
    """A name of the index: its handle, who is attached, and the filters that neighbours were told of for them."""

    __slots__ = ("attached", "handle", "name", "spread")

    def __init__(self, name: str) -> None:
        self.name = name
        self.handle = 0  # not matched yet
        self.attached: set[int] = set()
        self.spread: list[Filter] = []


class Indexing(Subscribing):
    """A switchboard with an index beside its table."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.loaded: Loaded | None = None
        self._passed_over = 0  # by indexes before
        self.open_index: Callable[[str, str, Callable[[Loaded | ContradaError], None]], None] = _cannot_open
        self._standing: dict[str, Standing] = {}
        self._handles = _FIRST
        self._attachments: dict[int, Standing] = {}  # by the handle of the attached subscription

    @property
    def attachments(self) -> Mapping[int, Standing]:
        """The names that subscriptions are attached to, by the subscription's handle."""
        return self._attachments

    # -- matching ----------------------------------------------------------------------------------------

    def _find(self, bodies: Sequence[bytes]) -> tuple[Sequence[AbstractSet[int]], Mapping[int, ContradaError]]:
        found, refused = super()._find(bodies)
        if self.loaded is not None:
            read = self.codec.notification
            notifications = [{} if place in refused else read(body) for place, body in enumerate(bodies)]
            matches = unattended = 0
            found = both = [set(handles) for handles in found]
            for handles, names in zip(both, self.loaded.table.match_many(notifications), strict=True):
                for name in names:
                    standing = self._standing.get(name) or self._name(name)
                    handles.add(standing.handle or self._number(standing))
                    matches += 1
                    if standing.attached:
                        handles |= standing.attached
                    else:
                        unattended += 1
            self.counters["index_passed_over"] = self._passed_over + self.loaded.table.passed_over
            self.counters["standing_matches"] += matches
            self.counters["unattended"] += unattended
        return found, refused

    def _name(self, name: str) -> Standing:
        standing = self._standing[name] = Standing(name)
        return standing

    def _number(self, standing: Standing) -> int:
        standing.handle = self._handles
        self._handles += 1
        if self.journal is not None:
            self.journal.standing(standing.handle, standing.name)
        return standing.handle

    # -- attaching ---------------------------------------------------------------------------------------

    def _attach(self, session: Session, message: Attach) -> None:
        """ATTACH; the caller has checked the role."""
        if not self._may_begin(session, message):
            return
        subscription = self._begin(session, message)
        handle = subscription.handle
        standing = self._standing.get(message.name) or self._name(message.name)
        if self.journal is not None:
            self.journal.attached(handle, session.publisher, session.number, subscription.id, standing.name)
        standing.attached.add(handle)
        self._attachments[handle] = standing
        self._unrecorded.add(handle)
        if len(standing.attached) == 1:
            with self._undone_if_it_fails(subscription):
                self._spread_name(standing)
        self._answer(session, Ack((Acked(message.request),)))

    def _withdraw_filters(self, subscription: Subscription, forget: Callable[[int], None]) -> None:
        standing = self._attachments.pop(subscription.handle, None)
        if standing is None:
            super()._withdraw_filters(subscription, forget)
            return
        self._leaving.discard(subscription.handle)
        standing.attached.remove(subscription.handle)
        self._unrecorded.remove(subscription.handle)
        if not standing.attached:
            self._unspread_name(standing)
            if not standing.handle:
                del self._standing[standing.name]

    def explained(self, subscription: Subscription, notification: Any) -> list[Any]:
        """Why each filter of a subscription matches or does not; of an attached one, the first hundred."""
        standing = self._attachments.get(subscription.handle)
        if standing is None:
            return super().explained(subscription, notification)
        index = self.loaded.table if self.loaded else None
        ids = index.interface_filters(standing.name, _EXPLAINED) if index else []
        return [index.explain(notification, id) for id in ids] if index else []

    # -- what neighbours learn ---------------------------------------------------------------------------

    def _wake(self) -> None:
        sleeping = not self._awake
        super()._wake()
        if sleeping:
            for standing in set(self._attachments.values()):
                self._spread_name(standing)

    def _spread_name(self, standing: Standing) -> None:
        if self._awake and self.loaded is not None:
            self._spread_more(standing, self.loaded.table.interest(standing.name, _SPREAD))

    def _spread_more(self, standing: Standing, filters: Sequence[Filter]) -> None:
        if self._awake and standing.attached:
            for each in filters:
                standing.spread.append(each)
                self._act(self.router.subscribe(each))

    def _unspread_name(self, standing: Standing) -> None:
        unwanted, standing.spread = standing.spread, []
        self.leftovers.put(lambda each: self._act(self.router.unsubscribe(each)), unwanted)

    # -- loading and changing ----------------------------------------------------------------------------

    def _index_load(self, session: Session, message: IndexLoad) -> None:
        """INDEX_LOAD: have it opened, which takes its time elsewhere; then take it."""

        def opened(result: Loaded | ContradaError) -> None:
            if isinstance(result, Loaded):
                self.load(result)
                self._reply(session, message.request, self.index_document())
            else:
                log.warning("index refused", extra={"path": message.path, "reason": str(result)})
                self.counters["refused"] += 1
                if session.open:
                    self._answer(session, Error(message.request, Code.BAD_INDEX, str(result)))

        self.open_index(message.path, message.shard, opened)

    def load(self, loaded: Loaded) -> None:
        """Match by this index from here on, in place of any before."""
        self._match()
        if self.loaded is not None:
            self._passed_over += self.loaded.table.passed_over
        self.loaded = loaded
        facts = {"path": loaded.path, "subscriptions": loaded.subscriptions, "filters": len(loaded.table)}
        log.info("index loaded", extra={**facts, "shard": loaded.shard})
        if self.journal is not None:
            self.journal.indexed(loaded.path, loaded.shard, loaded.digest, loaded.subscriptions, len(loaded.table))
        for standing in set(self._attachments.values()):
            # The new filters first: what both have is never withdrawn from the neighbours.
            before, standing.spread = standing.spread, []
            self._spread_name(standing)
            for each in before:
                self._act(self.router.unsubscribe(each))

    def verified(self, loaded: Loaded, damaged: Sequence[CorruptFile]) -> None:
        """The index that was loaded unverified, to start quickly, has been verified since."""
        for each in damaged:
            self.counters["index_damaged"] += 1
            log.error("index damaged: what it holds is not matched any more", extra={"reason": str(each)})
        if not damaged:
            log.info("index verified", extra={"path": loaded.path})

    def _index_add(self, session: Session, message: IndexAdd) -> None:
        """INDEX_ADD: put a subscription into the index, in place of any of the same id."""
        index = self._require_index()
        self._match()
        try:
            expression = self.codec.filter(message.filter)
            replaces = bool(index.filters_of(message.id))
            if replaces:
                for id in index.add(message.name, expression):  # if it is refused, the old one must stay
                    index.remove(id)
                self._take_out(index, message.id)
            ids = index.add(message.name, expression, message.id)
        except ContradaError as error:
            raise Refusal(Code.BAD_FILTER, str(error)) from error
        if self.journal is not None:
            self.journal.added(message.id, message.name, message.filter)
        if (standing := self._standing.get(message.name)) is not None:
            self._spread_more(standing, [index.filter(id) for id in ids])
        self._reply(session, message.request, {"id": message.id, "filters": len(ids), "replaced": replaces})

    def _index_remove(self, session: Session, message: IndexRemove) -> None:
        """INDEX_REMOVE: take a subscription out of the index."""
        index = self._require_index()
        self._match()
        if not index.filters_of(message.id):
            raise Refusal(Code.UNKNOWN, f"the index has no subscription {message.id!r}")
        count = self._take_out(index, message.id)
        if self.journal is not None:
            self.journal.removed(message.id)
        self._reply(session, message.request, {"id": message.id, "filters": count})

    def _take_out(self, index: Index, id: str) -> int:
        ids = index.filters_of(id)
        gone = [(self._standing.get(str(index.interface(each))), index.filter(each)) for each in ids]
        index.remove_subscription(id)
        for standing, each in gone:
            if standing is not None and each in standing.spread:
                standing.spread.remove(each)
                self._act(self.router.unsubscribe(each))
        return len(ids)

    def _require_index(self) -> Index:
        if self.loaded is None:
            raise Refusal(Code.UNKNOWN, "this broker has no index: load one first (contrada index load)")
        return self.loaded.table

    def _reply(self, session: Session, request: int, document: dict[str, Any]) -> None:
        if session.open:  # it may have left while the index was opened
            self._answer(session, Reply(request, document))

    def index_document(self) -> dict[str, Any]:
        """What STATUS says of the index; empty without one."""
        if self.loaded is None:
            return {}
        return {
            "path": self.loaded.path,
            "shard": self.loaded.shard,
            "digest": self.loaded.digest,
            "subscriptions": self.loaded.subscriptions,
            "filters": len(self.loaded.table),
            "attached": len(self._attachments),
            "damaged": [str(each) for each in self.loaded.table.damaged],
        }

    def _check(self) -> None:
        super()._check()
        for name, standing in self._standing.items():
            assert standing.name == name
            assert standing.attached or standing.handle
            assert not standing.handle or _FIRST <= standing.handle < self._handles
            assert standing.attached == {h for h, each in self._attachments.items() if each is standing}
            assert standing.attached <= self._subscriptions.keys() | self._leaving
            assert standing.attached or not standing.spread
        assert self._attachments.keys() <= self._unrecorded


def _cannot_open(path: str, shard: str, done: Callable[[Loaded | ContradaError], None]) -> None:
    done(ContradaError("this broker opens no files"))
