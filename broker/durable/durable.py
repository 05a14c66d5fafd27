"""Durable subscriptions at a broker: how one is made, delivered, acknowledged and ended; and the disk behind it.

    subscribe ─▶ filters into the table ─▶ SUBSCRIBED on disk ─▶ (replay) ─▶ (all linked brokers know) ─▶ ACK;
                 from then on it gets everything
    turn      ─▶ what waits for the disk is committed ─▶ what credit allows goes from the queues to the sessions
    tick      ─▶ ages and limits, subscriptions that nobody has come back to, what the journal may forget, a checkpoint

A broker without a journal (`store` is None) refuses all of it with the reason. A durable subscription belongs to
whoever made it: with keys, to the key's name. One session at a time is delivered to, the one that asked last.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from contrada.broker.core.ports import Refusal
from contrada.broker.core.subscriptions import encoded_filters, read_filters
from contrada.broker.durable.carrying import Carrying
from contrada.broker.durable.custody import Custody
from contrada.broker.durable.delivering import Delivering
from contrada.broker.durable.greeting import Greeting, forget_last_value, last_values
from contrada.broker.durable.past import Past, PastOfName
from contrada.broker.durable.publishing import Publishing, code_of, owner_of
from contrada.broker.durable.query import answer_query, end_link
from contrada.broker.durable.replay import Replay, first_position
from contrada.broker.durable.upkeep import Upkeep
from contrada.broker.overlay.neighbour import Neighbour
from contrada.broker.protocol.messages import Ack, Acked, Error, Reply
from contrada.broker.protocol.wire import FIRST_VERSION, Code, DurableAction, Role
from contrada.broker.stored.link_cursor import LinkCursor
from contrada.broker.stored.recovery import recover
from contrada.broker.stored.rows import Row
from contrada.broker.stored.state import waiting_bytes
from contrada.broker.stored.store import Store
from contrada.broker.stored.subscription import DurableReceiver, DurableSubscription
from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contrada.broker.core.delivery import Delivery
    from contrada.broker.core.matching import Matching
    from contrada.broker.core.ports import Codec, Table
    from contrada.broker.core.standing_index import StandingIndex
    from contrada.broker.durable.publishing import Storing
    from contrada.broker.node.settings import Settings
    from contrada.broker.overlay.overlay import Overlay
    from contrada.broker.protocol.messages import Acknowledge, DurableQuery, SubscribeDurable, Unsubscribe
    from contrada.broker.protocol.messages import Store as StoreMessage
    from contrada.broker.protocol.peer_messages import Carried, Carry, Decline, Known
    from contrada.broker.sessions.session import Session
    from contrada.broker.sessions.sessions import Sessions
    from contrada.broker.stored.retained import LastValue
    from contrada.broker.stored.state import State
    from contrada.broker.stored.store import Commit, Journal
    from contrada.broker.turn.clock import Clock
    from contrada.broker.turn.leftovers import Leftovers
    from contrada.broker.turn.work import Steps

log = logging.getLogger("contrada.broker")

_ROLES: Final = {DurableAction.FORGET: Role.PUBLISH, DurableAction.UNLINK: Role.ADMIN}
_NO_DISK: Final = "this broker keeps nothing on disk: its operator starts it with --data DIR (setting data)"


class Durable:
    """Everything durable of one broker."""

    def __init__(
        self,
        settings: Settings,
        table: Table,
        codec: Codec,
        sessions: Sessions,
        delivery: Delivery,
        matching: Matching,
        index: StandingIndex,
        overlay: Overlay,
        leftovers: Leftovers,
        clock: Clock,
    ) -> None:
        self.store: Store | None = None
        self.beside: Callable[[Callable[[], None], Callable[[], None]], None] | None = None  # for looking back
        self.state: State
        self.interfaces: dict[int, DurableSubscription] = {}
        self.delivering: Delivering
        self.publishing: Publishing
        self.upkeep: Upkeep
        self.custody: Custody  # of what neighbours want,
        self.carrying: Carrying  # and of what they bring
        self._by_name: dict[str, DurableSubscription] = {}
        self._attached: dict[Session, dict[int, DurableSubscription]] = {}
        self._settings = settings
        self._table = table
        self._codec = codec
        self._sessions = sessions
        self._delivery = delivery
        self._matching = matching
        self._index = index
        self._interest = overlay
        self._leftovers = leftovers
        self._clock = clock
        sessions.ended.append(self.session_ended)
        overlay.woken.append(self._tell_all)

    # -- the journal -------------------------------------------------------------------------------------

    def open(self, journal: Journal, wall: Callable[[], float]) -> None:
        """Take up what the journal says, and keep everything there from here on."""
        limits = self._settings.durable
        self.state = state = recover(journal, limits, self._delivery.id)
        self.store = store = Store(journal, wall)
        self.delivering = Delivering(store, limits, self._sessions)
        self.publishing = Publishing(store, state, self.interfaces, self.delivering.flag, self._sessions, self._clock)
        self.upkeep = Upkeep(store, state, self._settings, self.delivering, self.end)
        self._open_custody(store, state)
        for subscription in list(state.by_number.values()):
            if isinstance(subscription, LinkCursor):
                continue
            try:
                self._install(subscription)
            except ContradaError as error:
                log.error("durable subscription lost", extra={"subscription": subscription.name, "reason": str(error)})
                del state.by_number[subscription.number]
        self._delivery.durable = self.publishing
        self._index.subscriptions.greet = Greeting(store, state, self._delivery).greet
        self._delivery.sequence = max(self._delivery.sequence, state.last_sequence + 1)  # whatever the clock says
        facts = {"subscriptions": len(self._by_name), "entries": journal.on_disk, "bytes": journal.size}
        log.info("durable", extra=facts)

    def _open_custody(self, store: Store, state: State) -> None:
        """Keep what neighbours want, and take over what they bring."""
        overlay, router = self._interest, self._interest.router
        self.custody = custody = Custody(
            store,
            state,
            self._table,
            self._codec,
            self._sessions,
            self._delivery,
            self._matching,
            self.delivering,
            overlay,
            self._leftovers,
            self._clock,
        )
        self.carrying = Carrying(
            self._delivery.id, state, self._sessions, self._matching, router.hop_limit, custody.interface_of
        )
        self.publishing.cursors = custody.cursors
        self.publishing.unseen = router.unseen
        self.publishing.offer = self._delivery.offer
        self.publishing.neighbours = lambda: {link.interface for link in overlay.neighbours.values()}
        overlay.custody = custody

    def _install(self, subscription: DurableSubscription) -> None:
        """Match for a subscription that the journal has."""
        subscription.interface = interface = self._delivery.new_interface()
        if subscription.interface_name:
            self._index.attach_durably(subscription.interface_name, interface)
            self._leftovers.go_through(self._index.tell_durable(interface))
        for encoded in subscription.filters:
            subscription.filter_ids += self._table.add(interface, self._codec.filter(encoded))
        subscription.known = True
        self._register(subscription)

    def _register(self, subscription: DurableSubscription) -> None:
        self.interfaces[subscription.interface] = subscription
        self._delivery.unrecorded.add(subscription.interface)
        self._by_name[subscription.name] = subscription

    @property
    def idle(self) -> bool:
        """Whether nothing waits for the disk."""
        return self.store is None or self.store.idle

    @property
    def busy(self) -> bool:
        """Whether another turn would make progress even if nothing arrives."""
        store = self.store
        return store is not None and (self.delivering.busy or store.telling or (store.urgent and not store.committing))

    def turn(self) -> None:
        """Have what waits written, and deliver what credit allows."""
        if self.store is not None:
            self.store.tell()
            if self.store.urgent or self.upkeep.restating:
                self.store.begin()
            self.delivering.deliver()
            self.custody.turn()

    def write(self) -> None:
        """Have everything that waits written, also what nobody waits for."""
        if self.store is not None:
            self.store.begin()

    def tick(self) -> None:
        """What is to be done from time to time."""
        if self.store is not None:
            self.upkeep.tick(self._clock.now)
            self.custody.tick()
            self.store.begin()

    # -- how one begins ----------------------------------------------------------------------------------

    def publish(self, session: Session, message: StoreMessage) -> Storing | None:
        """STORE: what is to be kept with the publication; None if there is none to be made."""
        if self.store is None:
            self._no_disk()
        return self.publishing.begin(session, message)

    def subscribe(self, session: Session, message: SubscribeDurable) -> Steps:
        """SUBSCRIBE_DURABLE: make a subscription, or take up one that is there."""
        if self.store is None:
            self._no_disk()
        limits = self._settings.limits
        if message.subscription in session.receivers:
            raise Refusal(Code.DUPLICATE, f"subscription {message.subscription} exists already in this session")
        if len(session.receivers) >= limits.subscriptions:
            raise Refusal(Code.LIMIT, f"a session may have at most {limits.subscriptions} subscriptions")
        owner = owner_of(session)
        found = self._by_name.get(message.name)
        if found is None:
            if len(self._by_name) >= self._settings.durable.subscriptions:
                raise Refusal(Code.LIMIT, f"the broker has its {len(self._by_name)} durable subscriptions")
            self._sessions.afford(session, message.filters)
            yield from self._make(session, message, owner)
            return
        if found.owner != owner:
            raise Refusal(Code.UNAUTHORISED, f"the durable subscription {found.name!r} belongs to somebody else")
        if (found.filters, found.interface_name) != (message.filters, message.interface):
            reason = (
                f"the durable subscription {found.name!r} asks for something else: remove it first (contrada subs rm)"
            )
            raise Refusal(Code.DUPLICATE, reason)
        if not found.known:  # it is being made
            found.newcomers.append((session, message))
        else:
            self._attach(found, session, message)

    def _make(self, session: Session, message: SubscribeDurable, owner: str) -> Steps:
        assert self.store is not None
        interface = self._delivery.new_interface()
        keep = self._settings.durable.keep(message.keep)
        made = DurableSubscription(0, message.name, owner, message.filters, message.interface, keep)
        made.interface = interface
        self._by_name[made.name] = made  # nobody else makes it meanwhile
        self._matching.muted.add(interface)  # until it is complete
        try:
            filters = yield from read_filters(self._codec, message.filters)
            for expression in filters:
                for some in self._table.adding(interface, expression):
                    made.filter_ids += some
                    yield
            if made.interface_name:
                self._index.attach_durably(made.interface_name, interface)
            yield from self._tell(made, filters)
            past = self._past(made, filters)
            given = [] if message.since is not None else (yield from last_values(self.store, self.state, past))
        except BaseException as error:
            self._withdraw(made)
            if isinstance(error, ContradaError):
                raise Refusal(Code.BAD_FILTER, str(error)) from error
            raise
        self._matching.muted.discard(interface)
        self._register(made)
        made.number, self.state.next_number = self.state.next_number, self.state.next_number + 1
        made.left = self.store.wall()
        if message.since is not None:
            made.later = []
        else:
            made.first = self._delivery.sequence
        numbers = (made.number,)
        rows = [(Row.GIVEN, *each.id, each.publisher, each.body, numbers, "", "", "") for each in given]
        self.store.put([made.subscribed, *rows], partial(self._made, made, session, message, given, past))

    def _made(
        self,
        made: DurableSubscription,
        session: Session,
        message: SubscribeDurable,
        given: Sequence[LastValue],
        past: Past,
        commit: Commit,
    ) -> None:
        """The subscription is on disk: from its row on every notification says that it gets it."""
        if commit.failure is not None:
            self._unmake(made, session, message, commit.failure)
            return
        assert self.store is not None
        self.state.by_number[made.number] = made
        for position, value in zip(commit.positions[1:], given, strict=True):
            made.arrive(position, waiting_bytes(value.body), commit.time // 1_000_000)
        if made.later is None:
            self._attach_all(made, session, message)
            return
        confirmed = partial(self._confirmed, made, session, message)
        start = first_position(message.since, self.store.journal, self.store.on_disk)
        end = commit.positions[0]
        Replay(self.store, made, past, message.since, start, end, confirmed, self.beside).begin()

    def _confirmed(
        self, made: DurableSubscription, session: Session, message: SubscribeDurable, commit: Commit
    ) -> None:
        if commit.failure is not None:
            self._unmake(made, session, message, commit.failure)
            return
        made.confirm()
        self._attach_all(made, session, message)

    def _attach_all(self, made: DurableSubscription, session: Session, message: SubscribeDurable) -> None:
        """Once all linked brokers know of it."""
        attach = partial(self.custody.when_known, partial(self._attach_each, made, session, message))
        if made.interface_name:
            self._leftovers.go_through(self._index.tell_durable(made.interface), attach)
        else:
            attach()

    def _attach_each(self, made: DurableSubscription, session: Session, message: SubscribeDurable) -> None:
        """Deliver to who made it, then to those who asked for it meanwhile: the one that asked last has it."""
        made.known = True
        newcomers, made.newcomers = made.newcomers, []
        self._attach(made, session, message, made.first if session.version >= FIRST_VERSION else 1)
        for asking, asked in newcomers:
            self._attach(made, asking, asked)

    def _unmake(
        self, made: DurableSubscription, session: Session, message: SubscribeDurable, failure: ContradaError
    ) -> None:
        self._forget(made)
        for asking, asked in ((session, message), *made.newcomers):
            self._sessions.counters["storage_refused"] += 1
            if asking.open:
                reason = f"not stored: {failure}"
                self._sessions.answer(asking, Error(asked.request, code_of(failure), reason))

    def _past(self, made: DurableSubscription, filters: Sequence[Any]) -> Past:
        """What a new subscription looks back with."""
        return PastOfName(self._index, made.interface_name) if made.interface_name else Past(self._table, filters)

    def _attach(
        self, subscription: DurableSubscription, session: Session, message: SubscribeDurable, first: int = 1
    ) -> None:
        """Deliver to this session from here on; of a new one, notifications before `first` are last values."""
        if not session.open or self._by_name.get(subscription.name) is not subscription:
            return
        if subscription.receiver is not None:
            before = subscription.receiver
            self._detach(subscription)
            reason = f"the durable subscription {subscription.name!r} was taken over by session {session.number}"
            self._sessions.answer(before.session, Error(before.request, Code.DUPLICATE, reason))
        receiver = DurableReceiver(session, message.subscription, subscription, message.credit, message.request)
        subscription.receiver = session.receivers[message.subscription] = receiver
        subscription.left = None
        subscription.queue.rewind()
        self._attached.setdefault(session, {})[message.subscription] = subscription
        self._sessions.answer(session, Ack((Acked(message.request, first),)))
        self.delivering.flag(subscription)

    # -- what others learn of it -------------------------------------------------------------------------

    def _tell(self, subscription: DurableSubscription, expressions: Iterable[Any]) -> Steps:
        if self._interest.awake:
            for expression, body in zip(expressions, subscription.filters, strict=True):
                for wanted in encoded_filters(expression, body):
                    self._interest.interest_changed((wanted,), ())
                    self._interest.durable_interest_changed((wanted,), ())
                    subscription.interest_keys.append(wanted.key)
                    yield

    def _tell_all(self) -> Iterable[None]:
        for subscription in list(self.interfaces.values()):
            yield from self._tell(subscription, map(self._codec.filter, subscription.filters))

    # -- what its client says ----------------------------------------------------------------------------

    def acknowledge(self, _session: Session, message: Acknowledge) -> None:
        """ACKNOWLEDGE: these need not be delivered again. One may cross an UNSUBSCRIBE on its way."""
        mine = self._attached.get(_session, {})
        for id, first, last in message.entries:
            subscription = mine.get(id)
            if subscription is not None and subscription.acknowledge(first, last):
                assert self.store is not None
                self.store.put([(Row.ACKNOWLEDGED, subscription.number, first, last)], urgent=False)

    def granted(self, session: Session) -> None:
        """CREDIT came for some subscription of a session."""
        for subscription in self._attached.get(session, {}).values():
            self.delivering.flag(subscription)

    def leave(self, session: Session, message: Unsubscribe) -> bool:
        """UNSUBSCRIBE: leave a durable subscription at the broker; False if it is none."""
        subscription = self._attached.get(session, {}).get(message.subscription)
        if subscription is None:
            return False
        self._detach(subscription)
        self._sessions.answer(session, Ack((Acked(message.request),)))
        return True

    def session_ended(self, session: Session) -> None:
        """Nobody is there any more to deliver to."""
        for subscription in list(self._attached.get(session, {}).values()):
            self._detach(subscription)

    def _detach(self, subscription: DurableSubscription) -> None:
        receiver, subscription.receiver = subscription.receiver, None
        assert receiver is not None
        assert self.store is not None
        session = receiver.session
        session.receivers.pop(receiver.id, None)
        mine = self._attached[session]
        del mine[receiver.id]
        if not mine:
            del self._attached[session]
        subscription.left = self.store.wall()
        self.store.put([(Row.LEFT, subscription.number, subscription.left)], urgent=False)

    def query(self, session: Session, message: DurableQuery) -> None:
        """DURABLE_QUERY: list subscriptions, remove one, or read its dead letters; forget a last value, or a link."""
        action = message.action
        self._sessions.require(session, _ROLES.get(action, Role.SUBSCRIBE))
        if self.store is None:
            self._no_disk()
        if action is DurableAction.FORGET:
            forget_last_value(self.store, self.state, self._sessions, session, message)
            return
        now = self.store.wall()
        if action is DurableAction.UNLINK:
            document = end_link(self.state.links, message, now, self.custody.end)
        else:
            document = answer_query(self._by_name, session, message, self._codec, now, self.end)
        self._sessions.answer(session, Reply(message.request, document))

    # -- how one ends ------------------------------------------------------------------------------------

    def end(self, subscription: DurableSubscription, reason: str) -> None:
        """End a subscription for good, with everything that waits for it."""
        assert self.store is not None
        if isinstance(subscription, LinkCursor):
            self.custody.end(subscription, reason)
            return
        if (receiver := subscription.receiver) is not None:
            self._detach(subscription)
            said = f"the durable subscription {subscription.name!r} {reason}"
            self._sessions.answer(receiver.session, Error(receiver.request, Code.UNKNOWN, said))
        log.info("durable subscription ended", extra={"subscription": subscription.name, "reason": reason})
        self.store.put([(Row.ENDED, subscription.number)])
        self._forget(subscription)

    def _forget(self, subscription: DurableSubscription) -> None:
        self.state.forget(subscription.number)
        self._withdraw(subscription)

    def _withdraw(self, subscription: DurableSubscription) -> None:
        """Let a subscription match nothing from here on, and take its filters out when there is time for it."""
        interface = subscription.interface
        self._by_name.pop(subscription.name, None)
        self.interfaces.pop(interface, None)
        if subscription.interface_name:
            self._index.detach_durably(interface)

        def done() -> None:
            self._matching.muted.discard(interface)
            self._delivery.unrecorded.discard(interface)

        self._matching.muted.add(interface)
        self._leftovers.put(self._table.remove, subscription.filter_ids, done)
        self._leftovers.put(self._tell_less, subscription.interest_keys)

    def _tell_less(self, key: bytes) -> None:
        self._interest.interest_changed((), (key,))
        self._interest.durable_interest_changed((), (key,))

    # -- links -------------------------------------------------------------------------------------------

    def carry(self, session: Session, message: Carry) -> None:
        """CARRY: a neighbour hands over custody."""
        if self._has_custody(session):
            self.carrying.carry(session, message)

    def carried(self, session: Session, message: Carried) -> None:
        """CARRIED: a neighbour has taken it over."""
        if self._has_custody(session):
            self.custody.carried(session, message)

    def decline(self, session: Session, message: Decline) -> None:
        """DECLINE: a neighbour cannot, now."""
        if self._has_custody(session):
            self.custody.declined(session, message)

    def known(self, session: Session, message: Known) -> None:
        """KNOWN: who is behind a neighbour knows what is wanted durably here."""
        if self._has_custody(session):
            self.custody.known(session, message)

    def _has_custody(self, session: Session) -> bool:
        """Whether both ends of a link have disks; what speaks of custody otherwise ends it."""
        link = session.source
        if isinstance(link, Neighbour) and link.custody and self.store is not None:
            return link.up
        self._sessions.end(session, Code.BAD_FRAME, "custody was not agreed on for this link")
        return False

    def _no_disk(self) -> NoReturn:
        raise Refusal(Code.STORAGE, _NO_DISK)

    def _check(self) -> None:
        if self.store is not None:
            self.store._check()
            self.state._check()
            self.custody._check()
            kept = {*self.interfaces.values(), *self.custody.cursors.values()}
            assert kept >= {*self.state.by_number.values()}
            for session, mine in self._attached.items():
                assert session.open
                for id, subscription in mine.items():
                    assert subscription.receiver is session.receivers[id]
