"""The routing state machine of one broker: events in, actions out; no sockets, no clock, no matching.

The broker tells the router of its links (`link_up`, `link_down`), of what neighbours say (`receive`), of its own
clients' filters (`subscribe`, `unsubscribe`, `advertise`, `unadvertise`) and of time passing (`tick`). The router
answers with actions: messages to send, and the neighbours' filters to install in the forwarding table, one interface
per neighbour. A notification that the table matched for some neighbours goes to those that the tree joins to us.

What is told to whom is the matter of `interests`, by steps: while the router is `busy`, another `go_on` says more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

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
from contrada.broker.routing.actions import Action, Send, StandDown
from contrada.broker.routing.interests import Interests
from contrada.broker.routing.seen import SeenIds
from contrada.broker.routing.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from contrada.broker.core.ports import EncodedFilter
    from contrada.broker.routing.flow import FlowState
    from contrada.forwarding.language.filter import Filter

HOP_LIMIT: Final = 64
STALE_AFTER: Final = 60.0


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
        sampled: bool = False,
        stale_after: float = STALE_AFTER,
        hop_limit: int = HOP_LIMIT,
    ) -> None:
        self.broker = broker
        self.topology = Topology(LinkState(broker, sequence, frozenset(), priority, incarnation))
        self.advertisements = advertisements
        self.hop_limit = hop_limit
        self.interests = Interests(decode, advertisements=advertisements, sampled=sampled)
        self._stale_after = stale_after
        self._seen = SeenIds()
        self._shouted_down = False
        self._repeat_at: list[float] = []

    # Events

    def link_up(self, neighbour: str, *, custody: bool = False) -> list[Action]:
        """A link is ready in both directions. Also right when the old one was not known to have gone down."""
        digests = self.interests.link_up(neighbour, custody=custody)
        # Behind the link states: the neighbour then knows whether the tree uses this link when it reads the digest,
        # and answers with what it really wants.
        return [*self._announce(newcomer=neighbour), *digests, *self.go_on()]

    def link_down(self, neighbour: str, now: float) -> list[Action]:
        """The link is gone, and what was under way on it."""
        if not self._is_up(neighbour):
            return []
        self.interests.link_down(neighbour, now)
        return [*self._announce(), *self.go_on()]

    def receive(self, neighbour: str, message: PeerMessage) -> list[Action]:
        """A neighbour said something other than `Forward`."""
        if not self._is_up(neighbour):
            return []
        if isinstance(message, LinkStates):
            actions = self._learn(neighbour, message.states)
        elif isinstance(message, Digest | Replace | Change):
            actions = self.interests.receive(neighbour, message)
        else:
            raise TypeError(f"{type(message).__name__} is not for the router")
        return [*actions, *self.go_on()]

    def as_change(self, neighbour: str, message: Replace | Change) -> Change:
        """What a neighbour said of its filters as a change, which may be taken in by parts: additions come first."""
        if isinstance(message, Change):
            return message
        stale = self.flow_state(neighbour, message.flow).stale(message)
        return Change(message.flow, message.filters, stale)

    def subscribe(self, *filters: EncodedFilter, flow: Flow = Flow.SUBSCRIPTIONS) -> list[Action]:
        """A client of this broker wants what matches any of these; once per subscription."""
        self.interests.local_came(flow, filters)
        return self.go_on()

    def unsubscribe(self, *keys: bytes, flow: Flow = Flow.SUBSCRIPTIONS) -> list[Action]:
        """A client no longer wants them."""
        self.interests.local_went(flow, keys)
        return self.go_on()

    def advertise(self, *filters: EncodedFilter) -> list[Action]:
        """A client of this broker may publish what matches any of these."""
        self.interests.local_came(Flow.ADVERTISEMENTS, filters)
        return self.go_on()

    def unadvertise(self, *keys: bytes) -> list[Action]:
        """A client withdraws an advertisement."""
        self.interests.local_went(Flow.ADVERTISEMENTS, keys)
        return self.go_on()

    def tick(self, now: float) -> list[Action]:
        """Time has passed: forget what links that stay down had said, and brokers that stay out of reach."""
        self.interests.expire(now - self._stale_after)
        actions = self.interests.linger_away(self.topology.reachable, now, self._stale_after)
        self.topology.expire(now, self._stale_after)
        if self._shouted_down:  # say it again until the others have forgotten what they cannot hear us over
            self._shouted_down = False
            self._repeat_at = [now + self._stale_after * times / 4 for times in range(1, 9)]
        if self._repeat_at and now >= self._repeat_at[0]:
            del self._repeat_at[0]
            actions += self._announce()
        return actions + self.go_on()

    @property
    def busy(self) -> bool:
        """Whether `go_on` would do something."""
        return self.interests.busy

    def go_on(self) -> list[Action]:
        """Do some of what earlier events left to do."""
        return self.interests.go_on()

    # Notifications

    def unseen(self, origin: str, sequences: Sequence[int]) -> list[int] | None:
        """Of notifications of one origin, the places of those not handled here before, or None if none was."""
        return self._seen.unseen(origin, sequences)

    # What operators and tests look at

    @property
    def tree_links(self) -> frozenset[str]:
        """The neighbours that the tree joins to this broker."""
        return self.interests.tree_links

    @property
    def links(self) -> dict[str, bool]:
        """Every known neighbour, and whether its link is up."""
        return {neighbour: link.up for neighbour, link in self.interests.links.items()}

    def flow_state(self, neighbour: str, flow: Flow = Flow.SUBSCRIPTIONS) -> FlowState:
        """One flow of one link: what is wanted, sent and asked."""
        return self.interests.links[neighbour].flows[flow]

    # Link states and the tree

    def _announce(self, newcomer: str | None = None) -> list[Action]:
        """Flood a new word on our own links; tell a newcomer everything."""
        own = self.topology.state_of(self.broker)
        assert own is not None
        neighbours = frozenset(neighbour for neighbour, up in self.links.items() if up)
        self.topology.update(replace(own, sequence=own.sequence + 1, neighbours=neighbours))
        fresh = self.topology.state_of(self.broker)
        assert fresh is not None
        actions = self._flood((fresh,), except_for=(newcomer,))
        if newcomer is not None:
            actions.append(Send(newcomer, LinkStates(self.topology.states)))
        self._follow_tree()
        return actions

    def is_agreed(self, neighbour: str) -> bool:
        """Whether both ends of a link have said that there is one, so that the tree is made with it."""
        return neighbour in self.topology.neighbours(self.broker)

    def is_told(self, neighbour: str) -> bool:
        """Whether a neighbour of the tree was sent all that it should know of the durable flow."""
        state = self.flow_state(neighbour, Flow.DURABLE)
        return state.synced and not state.busy

    def _is_up(self, neighbour: str) -> bool:
        return self.links.get(neighbour, False)

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
            self._follow_tree()
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
        return [Send(neighbour, message) for neighbour, up in self.links.items() if up and neighbour not in except_for]

    def _follow_tree(self) -> None:
        """Use the links that the tree now uses, and no others."""
        links = frozenset(other for other in self.topology.tree_links if self._is_up(other))
        if links != self.tree_links:
            self.interests.follow_tree(links)

    def _check(self) -> None:
        """Assert the law of the overlay."""
        self.topology._check()
        self.interests._check()
