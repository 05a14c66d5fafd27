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

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contrada.broker.overlay.messages import LinkState


class Topology:
    """The link-state database of one broker, and the tree derived from it.

    `update` and `forget` are O(1) but for the tree, which is computed on demand in O(brokers + links).
    """

    def __init__(self, own: LinkState) -> None:
        self.broker = own.broker
        self._states = {own.broker: own}
        self._unreachable_since: dict[str, float] = {}
        self._tree: dict[str, frozenset[str]] | None = None

    @property
    def states(self) -> tuple[LinkState, ...]:
        """Everything known, in order of broker id."""
        return tuple(self._states[broker] for broker in sorted(self._states))

    def state_of(self, broker: str) -> LinkState | None:
        """The newest word of a broker."""
        return self._states.get(broker)

    def update(self, state: LinkState) -> bool:
        """Take in a broker's word; False when it is not newer than what is known."""
        known = self._states.get(state.broker)
        if known is not None and known.sequence >= state.sequence:
            return False
        self._states[state.broker] = state
        self._tree = None
        return True

    def expire(self, now: float, after: float) -> None:
        """Forget brokers that have been out of reach for `after` seconds."""
        reachable = self.tree().keys()
        self._unreachable_since = {
            broker: self._unreachable_since.get(broker, now) for broker in self._states if broker not in reachable
        }
        for broker, since in list(self._unreachable_since.items()):
            if now - since >= after:
                del self._states[broker], self._unreachable_since[broker]

    def neighbours(self, broker: str) -> Iterable[str]:
        """The brokers at the other end of links that both ends confirm."""
        return (
            other
            for other in self._states[broker].neighbours
            if other in self._states and broker in self._states[other].neighbours
        )

    def tree(self) -> dict[str, frozenset[str]]:
        """The tree's links: for each broker within reach, its neighbours on the tree."""
        if self._tree is None:
            self._tree = self._spanning_tree()
        return self._tree

    def _spanning_tree(self) -> dict[str, frozenset[str]]:
        reachable = set(self._layers(self.broker))
        root = min(reachable, key=lambda broker: (self._states[broker].priority, broker))
        depth = self._layers(root)
        links: dict[str, set[str]] = {broker: set() for broker in reachable}
        for broker in reachable - {root}:
            parent = min(other for other in self.neighbours(broker) if depth[other] == depth[broker] - 1)
            links[broker].add(parent)
            links[parent].add(broker)
        return {broker: frozenset(others) for broker, others in links.items()}

    def _layers(self, start: str) -> dict[str, int]:
        depth = {start: 0}
        layer = [start]
        while layer:
            following = []
            for broker in layer:
                for other in self.neighbours(broker):
                    if other not in depth:
                        depth[other] = depth[broker] + 1
                        following.append(other)
            layer = following
        return depth
