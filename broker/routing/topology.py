"""The overlay as this broker knows it: link states, and the tree that everybody derives from them.

Every broker floods the list of its links under a growing sequence number; the newest word of each broker makes the
database. A link exists when both ends say so. Brokers that hold the same database derive the same tree, because the
tree is a function of it: breadth first from the reachable broker of smallest (priority, id), each broker hanging under
the smallest id among its neighbours one step nearer the root. A pure tree is its own spanning tree, whatever the root.

Why one tree and not one per source (combined broadcast and content-based routing, Carzaniga, Rutherford and Wolf,
INFOCOM 2004)? On one tree a link needs one predicate, and covering can be applied to everything behind it; with a tree
per source, interest depends on where a notification came from, and covering saves far less. The price is that
paths are not always shortest: a path between brokers at depths d and e has at most d + e links. A fixed root, rather
than the centre of the moment, keeps the tree still when something changes far away; `priority` lets the operator put
it on a well-connected broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Container

    from contrada.broker.protocol.peer_messages import LinkState


MOST_BROKERS: Final = 65_536
"""Words of more brokers than these are not taken, so that a lying neighbour cannot fill the memory."""


class Topology:
    """The link-state database of one broker, and the tree derived from it.

    `_links` holds, for every known broker, the other ends of the links that both ends confirm. `update` costs the
    links that change; the tree is computed on demand in O(brokers + links), and only if a confirmed link, or a
    priority, has changed since.
    """

    def __init__(self, own: LinkState) -> None:
        self.broker = own.broker
        self._states = {own.broker: own}
        self._links: dict[str, set[str]] = {own.broker: set()}
        self._unreachable_since: dict[str, float] = {}
        self._parents: dict[str, str | None] | None = None

    @property
    def states(self) -> tuple[LinkState, ...]:
        """Everything known, in order of broker id."""
        return tuple(self._states[broker] for broker in sorted(self._states))

    def state_of(self, broker: str) -> LinkState | None:
        """The newest word of a broker."""
        return self._states.get(broker)

    def update(self, state: LinkState) -> bool:
        """Take in a broker's word; False when it is not newer than what is known, or of one broker too many."""
        broker = state.broker
        known = self._states.get(broker)
        if known is not None and (known.sequence, known.incarnation) >= (state.sequence, state.incarnation):
            return False
        if known is None and len(self._states) >= MOST_BROKERS:
            return False
        self._states[broker] = state
        before = self._links.setdefault(broker, set())
        now = {
            other
            for other in state.neighbours
            if other in self._states and broker in self._states[other].neighbours and other != broker
        }
        for other in before - now:
            self._links[other].discard(broker)
        for other in now - before:
            self._links[other].add(broker)
        if now != before or (known is not None and known.priority != state.priority):
            self._links[broker] = now
            self._parents = None
        return True

    def expire(self, now: float, after: float) -> None:
        """Forget brokers that have been out of reach for `after` seconds."""
        if len(self._states) == len(self._tree_parents()):
            self._unreachable_since.clear()
            return
        reachable = self._tree_parents().keys()
        self._unreachable_since = {
            broker: self._unreachable_since.get(broker, now) for broker in self._states if broker not in reachable
        }
        for broker, since in list(self._unreachable_since.items()):
            if now - since >= after:
                del self._states[broker], self._unreachable_since[broker]
                for other in self._links.pop(broker):
                    self._links[other].discard(broker)

    def neighbours(self, broker: str) -> frozenset[str]:
        """The brokers at the other end of links that both ends confirm."""
        return frozenset(self._links[broker])

    @property
    def reachable(self) -> Container[str]:
        """The brokers that the tree reaches from here."""
        return self._tree_parents().keys()

    @property
    def tree_links(self) -> frozenset[str]:
        """This broker's neighbours on the tree."""
        parents = self._tree_parents()
        own = parents[self.broker]
        links = {other for other in self._links[self.broker] if parents[other] == self.broker}
        return frozenset(links if own is None else links | {own})

    def tree(self) -> dict[str, frozenset[str]]:
        """The tree's links: for each broker within reach, its neighbours on the tree."""
        links: dict[str, set[str]] = {broker: set() for broker in self._tree_parents()}
        for broker, parent in self._tree_parents().items():
            if parent is not None:
                links[broker].add(parent)
                links[parent].add(broker)
        return {broker: frozenset(others) for broker, others in links.items()}

    def _tree_parents(self) -> dict[str, str | None]:
        """For each broker within reach, the one it hangs under; None for the root."""
        if self._parents is None:
            reachable = self._breadth_first(self.broker)
            root = min(reachable, key=lambda broker: (self._states[broker].priority, broker))
            self._parents = self._breadth_first(root)
        return self._parents

    def _breadth_first(self, start: str) -> dict[str, str | None]:
        parents: dict[str, str | None] = {start: None}
        layer = [start]
        while layer:
            following = []
            for broker in layer:  # in order, so that the smallest of those one step nearer finds a broker first
                for other in self._links[broker]:
                    if other not in parents:
                        parents[other] = broker
                        following.append(other)
            following.sort()
            layer = following
        return parents

    def _check(self) -> None:
        """Assert that the confirmed links are those that both ends name."""
        assert self._links.keys() == self._states.keys()
        for broker, links in self._links.items():
            assert links == {
                other
                for other in self._states[broker].neighbours
                if other in self._states and broker in self._states[other].neighbours and other != broker
            }
