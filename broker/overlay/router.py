"""The routing state machine of one broker: events in, actions out; no sockets, no clock, no matching.

The broker tells the router of its links (`link_up`, `link_down`), of what neighbours say (`receive`), of its own
clients' filters (`subscribe`, `unsubscribe`, `advertise`, `unadvertise`) and of time passing (`tick`). The router
answers with actions: messages to send, and the neighbours' filters to install in the forwarding table, one interface
per neighbour. A notification that the table matched for some neighbours goes to those that `next_hops` keeps.

Law of the overlay, for each flow and each link that the tree uses:

    what the neighbour holds of ours = the shown filters of (our clients' filters and what our other tree links hold)

and for a link that the tree does not use, nothing. Every event restores this law locally and sends the difference,
additions before removals in one message, so that there is never a moment in which a wanted notification would not be
forwarded. On a tree, information flows only outwards from where it is; whatever happened before, once the brokers
agree on the tree and messages have been delivered, the law makes every table a function of the current
subscriptions alone (`tests/broker/overlay` checks this at every quiet point).

With `advertisements`, a subscription is wanted on a link only when an advertisement held from that link may meet it:
the advertisements themselves follow the same law, as the second flow.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from contrada.broker.core.ports import EncodedFilter
from contrada.broker.overlay.actions import Action, Install, Send, StandDown, Uninstall
from contrada.broker.overlay.flow import FlowState, HeldChange
from contrada.broker.overlay.seen import SeenIds
from contrada.broker.overlay.topology import Topology
from contrada.broker.protocol.peer_messages import (
    LAST_SEQUENCE,
    Change,
    Digest,
    Flow,
    LinkState,
    LinkStates,
    PeerMessage,
    Replace,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from contrada.forwarding.language.filter import Filter

HOP_LIMIT: Final = 64
STALE_AFTER: Final = 60.0


class _Link:
    def __init__(self) -> None:
        self.up = False
        self.down_since: float | None = None
        self.flows = {flow: FlowState(flow) for flow in Flow}


class Router:
    """Routing state of one broker.

    `sequence` must be above any used by an earlier life of this broker, or the router will learn its own old link
    state from a neighbour and step over it. `incarnation` names this life; a later one's is greater. `decode` reads a
    filter that a neighbour has sent.
    """

    def __init__(
        self,
        broker: str,
        *,
        decode: Callable[[bytes], Filter],
        sequence: int = 1,
        incarnation: int = 0,
        priority: int = 100,
        advertisements: bool = False,
        stale_after: float = STALE_AFTER,
        hop_limit: int = HOP_LIMIT,
    ) -> None:
        self.broker = broker
        self.topology = Topology(LinkState(broker, sequence, frozenset(), priority, incarnation))
        self.advertisements = advertisements
        self.hop_limit = hop_limit
        self._decode = decode
        self._stale_after = stale_after
        self._links: dict[str, _Link] = {}
        self._tree_links: frozenset[str] = frozenset()
        self._local: dict[Flow, Counter[bytes]] = {flow: Counter() for flow in Flow}
        self._known: dict[bytes, EncodedFilter] = {}
        self._uses: Counter[bytes] = Counter()  # of every known filter, the clients and links that want it
        self._seen = SeenIds()
        self._shouted_down = False
        self._repeat_at: list[float] = []

    # Events

    def link_up(self, neighbour: str) -> list[Action]:
        """A link is ready in both directions. Also right when the old one was not known to have gone down."""
        link = self._links.setdefault(neighbour, _Link())
        link.up = True
        link.down_since = None
        for state in link.flows.values():
            state.synced = False
        actions = self._announce(newcomer=neighbour)
        # Behind the link states: the neighbour then knows whether the tree uses this link when it reads the digest,
        # and answers with what it really wants.
        return actions + [Send(neighbour, state.digest()) for state in link.flows.values()]

    def link_down(self, neighbour: str, now: float) -> list[Action]:
        """The link is gone, and what was under way on it."""
        link = self._links.get(neighbour)
        if link is None or not link.up:
            return []
        link.up = False
        link.down_since = now
        for state in link.flows.values():
            state.synced = False
        return self._announce()

    def receive(self, neighbour: str, message: PeerMessage) -> list[Action]:
        """A neighbour said something other than `Forward`."""
        link = self._links.get(neighbour)
        if link is None or not link.up:
            return []
        if isinstance(message, LinkStates):
            return self._learn(neighbour, message.states)
        if isinstance(message, Digest):
            return [Send(neighbour, link.flows[message.flow].answer(message, self._encoded))]
        if isinstance(message, Replace):
            return self._held_changed(neighbour, message.flow, link.flows[message.flow].take_replace(message))
        if isinstance(message, Change):
            return self._held_changed(neighbour, message.flow, link.flows[message.flow].take_change(message))
        raise TypeError(f"{type(message).__name__} is not for the router")

    def subscribe(self, *filters: EncodedFilter) -> list[Action]:
        """A client of this broker wants what matches any of these; once per subscription."""
        return self._local_came(Flow.SUBSCRIPTIONS, filters)

    def unsubscribe(self, *keys: bytes) -> list[Action]:
        """A client no longer wants them."""
        return self._local_went(Flow.SUBSCRIPTIONS, keys)

    def advertise(self, *filters: EncodedFilter) -> list[Action]:
        """A client of this broker may publish what matches any of these."""
        return self._local_came(Flow.ADVERTISEMENTS, filters)

    def unadvertise(self, *keys: bytes) -> list[Action]:
        """A client withdraws an advertisement."""
        return self._local_went(Flow.ADVERTISEMENTS, keys)

    def tick(self, now: float) -> list[Action]:
        """Time has passed: forget what links that stay down had said, and brokers that stay out of reach."""
        actions: list[Action] = []
        for neighbour, link in list(self._links.items()):
            if link.down_since is not None and now - link.down_since >= self._stale_after:
                for flow, state in link.flows.items():
                    actions += self._held_changed(neighbour, flow, state.forget_held())
                del self._links[neighbour]
        self.topology.expire(now, self._stale_after)
        if self._shouted_down:  # say it again until the others have forgotten what they cannot hear us over
            self._shouted_down = False
            self._repeat_at = [now + self._stale_after * times / 4 for times in range(1, 9)]
        if self._repeat_at and now >= self._repeat_at[0]:
            del self._repeat_at[0]
            actions += self._announce()
        return actions

    # Notifications

    def unseen(self, origin: str, sequences: Sequence[int]) -> list[int] | None:
        """Of notifications of one origin, the places of those not handled here before, or None if all are."""
        return self._seen.unseen(origin, sequences)

    def next_hops(self, matched: Iterable[str], arrived_from: str | None) -> list[str]:
        """Of the neighbours whose filters a notification matched, those to send it to."""
        return sorted(other for other in matched if other in self._tree_links and other != arrived_from)

    # What operators and tests look at

    @property
    def tree_links(self) -> frozenset[str]:
        """The neighbours that the tree joins to this broker."""
        return self._tree_links

    @property
    def links(self) -> dict[str, bool]:
        """Every known neighbour, and whether its link is up."""
        return {neighbour: link.up for neighbour, link in self._links.items()}

    def flow_state(self, neighbour: str, flow: Flow = Flow.SUBSCRIPTIONS) -> FlowState:
        """One flow of one link: what is wanted, shown, sent and held."""
        return self._links[neighbour].flows[flow]

    # Link states and the tree

    def _announce(self, newcomer: str | None = None) -> list[Action]:
        """Flood a new word on our own links; tell a newcomer everything."""
        own = self.topology.state_of(self.broker)
        assert own is not None
        neighbours = frozenset(neighbour for neighbour, link in self._links.items() if link.up)
        self.topology.update(replace(own, sequence=own.sequence + 1, neighbours=neighbours))
        fresh = self.topology.state_of(self.broker)
        assert fresh is not None
        actions = self._flood((fresh,), except_for=(newcomer,))
        if newcomer is not None:
            actions.append(Send(newcomer, LinkStates(self.topology.states)))
        return actions + self._follow_tree()

    def _learn(self, neighbour: str, states: Iterable[LinkState]) -> list[Action]:
        fresh = []
        outdated = False
        actions: list[Action] = []
        for state in states:
            if state.broker == self.broker:
                own = self.topology.state_of(self.broker)
                assert own is not None
                if state.incarnation > own.incarnation == state.rival:
                    return [StandDown(state.incarnation)]
                outdated |= self._step_over(own, state)
            elif self.topology.update(state):
                fresh.append(state)
        if fresh:
            actions += self._flood(tuple(fresh), except_for=(neighbour,))
            actions += self._follow_tree()
        if outdated:
            actions += self._announce()
        return actions

    def _step_over(self, own: LinkState, other: LinkState) -> bool:
        """Somebody spoke in our name: our earlier life, or a namesake. Whether we must speak again, and louder.

        Only a namesake that is alive can name us as its rival; then whoever started later stays (`StandDown`).
        """
        rival = other.incarnation if other.incarnation != own.incarnation else own.rival
        if rival == own.rival and (other.sequence < own.sequence or other == own):
            return False
        if other.sequence >= LAST_SEQUENCE - 2:
            self._shouted_down = True  # nobody can speak louder; nobody honest does
            return False
        self.topology.update(replace(own, sequence=max(own.sequence, other.sequence) + 1, rival=rival))
        return True

    def _flood(self, states: tuple[LinkState, ...], except_for: Container[str | None]) -> list[Action]:
        message = LinkStates(states)
        return [
            Send(neighbour, message)
            for neighbour, link in self._links.items()
            if link.up and neighbour not in except_for
        ]

    def _follow_tree(self) -> list[Action]:
        """Use the links that the tree now uses, and no others."""
        links = frozenset(other for other in self.topology.tree_links if self._links[other].up)
        if links == self._tree_links:
            return []
        self._tree_links = links
        for neighbour in self._links:
            for flow in (Flow.ADVERTISEMENTS, Flow.SUBSCRIPTIONS):
                self._restore(neighbour, flow)
        return self._tell()

    # Filters

    def _local_came(self, flow: Flow, filters: Iterable[EncodedFilter]) -> list[Action]:
        local = self._local[flow]
        for each in filters:
            key = each.key
            local[key] += 1
            if local[key] == 1:
                self._use(key, each)
                self._source_came(flow, key, None)
        return self._tell()

    def _local_went(self, flow: Flow, keys: Iterable[bytes]) -> list[Action]:
        local = self._local[flow]
        for key in keys:
            if not local[key]:
                raise KeyError(f"no client has {key.hex()} as one of its {flow}")
            local[key] -= 1
            if not local[key]:
                del local[key]
                self._source_went(flow, key, None)
                self._drop(key)
        return self._tell()

    def _held_changed(self, neighbour: str, flow: Flow, change: HeldChange) -> list[Action]:
        actions: list[Action] = []
        is_source = neighbour in self._tree_links
        for key, encoded in change.added.items():
            known = self._known.get(key) or EncodedFilter(self._decode(encoded), encoded)
            self._use(key, known)
            if flow is Flow.SUBSCRIPTIONS:
                actions.append(Install(neighbour, key, known.filter))
            if is_source:
                self._source_came(flow, key, neighbour)
        for key in change.removed:
            if flow is Flow.SUBSCRIPTIONS:
                actions.append(Uninstall(neighbour, key))
            if is_source:
                self._source_went(flow, key, neighbour)
            self._drop(key)
        if flow is Flow.ADVERTISEMENTS and self.advertisements:
            if change.removed:
                self._restore(neighbour, Flow.SUBSCRIPTIONS)
            elif change.added:
                self._welcome(neighbour, [self._known[key].filter for key in change.added])
        return actions + self._tell()

    def _source_came(self, flow: Flow, key: bytes, source: str | None) -> None:
        f = self._known[key].filter
        for neighbour in self._tree_links:
            if neighbour != source and self._may_meet(neighbour, flow, f):
                self._links[neighbour].flows[flow].want(key, f)

    def _source_went(self, flow: Flow, key: bytes, source: str | None) -> None:
        f = self._known[key].filter
        for neighbour in self._tree_links:
            if neighbour != source and self._may_meet(neighbour, flow, f):
                self._links[neighbour].flows[flow].unwant(key)

    def _may_meet(self, neighbour: str, flow: Flow, f: Filter) -> bool:
        """Whether something that `f` wants may be published beyond this neighbour."""
        if flow is Flow.ADVERTISEMENTS or not self.advertisements:
            return True
        held = self._links[neighbour].flows[Flow.ADVERTISEMENTS].held
        return any(not f.conflicts(self._known[key].filter) for key in held)

    def _welcome(self, neighbour: str, advertised: Sequence[Filter]) -> None:
        """Something new is advertised beyond a neighbour: want from it what only that may meet."""
        state = self._links[neighbour].flows[Flow.SUBSCRIPTIONS]
        for key, count in self._sources(neighbour, Flow.SUBSCRIPTIONS).items():
            f = self._known[key].filter
            if key not in state.sources and any(not f.conflicts(each) for each in advertised):
                for _ in range(count):
                    state.want(key, f)

    def _sources(self, neighbour: str, flow: Flow) -> Counter[bytes]:
        """How many on our side of a link want each filter: nobody, if the tree does not use it."""
        sources: Counter[bytes] = Counter()
        if neighbour in self._tree_links:
            sources.update(self._local[flow].keys())
            for other in self._tree_links - {neighbour}:
                sources.update(self._links[other].flows[flow].held)
        return sources

    def _restore(self, neighbour: str, flow: Flow) -> None:
        """Make the wanted filters of one link what the law says, by comparing the whole."""
        state = self._links[neighbour].flows[flow]
        target = self._sources(neighbour, flow)
        if self.advertisements and flow is Flow.SUBSCRIPTIONS:
            target = Counter(
                {key: n for key, n in target.items() if self._may_meet(neighbour, flow, self._known[key].filter)}
            )
        for key in state.sources.keys() | target.keys():
            for _ in range(state.sources.get(key, 0), target[key]):
                state.want(key, self._known[key].filter)
            for _ in range(target[key], state.sources.get(key, 0)):
                state.unwant(key)

    def _tell(self) -> list[Action]:
        """Send every neighbour what has changed for it."""
        actions: list[Action] = []
        for neighbour, link in self._links.items():
            if link.up:
                changes = (state.change(self._encoded) for state in link.flows.values() if state.moved)
                actions += (Send(neighbour, change) for change in changes if change is not None)
        return actions

    def _use(self, key: bytes, known: EncodedFilter) -> None:
        self._known.setdefault(key, known)
        self._uses[key] += 1

    def _drop(self, key: bytes) -> None:
        self._uses[key] -= 1
        if self._uses[key] == 0:
            del self._uses[key], self._known[key]

    def _encoded(self, key: bytes) -> bytes:
        return self._known[key].body

    def _check(self) -> None:
        """Assert the law of the overlay, and that nothing known is unused."""
        self.topology._check()
        for neighbour, link in self._links.items():
            for flow, state in link.flows.items():
                state.wanted._check()
                state.held._check()
                assert state.sources == {
                    key: n
                    for key, n in self._sources(neighbour, flow).items()
                    if self._may_meet(neighbour, flow, self._known[key].filter)
                }
                if state.synced:
                    assert set(state.sent) == set(state.wanted.shown)
        uses: Counter[bytes] = Counter()
        for flow in Flow:
            uses.update(self._local[flow].keys())
            for link in self._links.values():
                uses.update(link.flows[flow].held)
        assert uses == self._uses
        assert self._known.keys() == self._uses.keys()
