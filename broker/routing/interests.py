"""What each neighbour should hold of this broker's filters, and what it is told for that, step by step.

Law of the overlay, for each flow and each link that the tree uses:

    what the neighbour holds of ours = the shown filters of (our clients' filters and what our other tree links hold)

and for a link that the tree does not use, nothing. Every event restores this law locally and sends the difference,
additions before removals, so that there is never a moment in which a wanted notification would not be forwarded. On a
tree, information flows only outwards from where it is; whatever happened before, once the brokers agree on the tree
and messages have been delivered, the law makes every table a function of the current subscriptions alone
(`tests/broker/routing` checks this at every quiet point).

The filters of durable subscriptions are a flow of their own, which differs in what is forgotten when: what a neighbour
wants durably counts also while its link is down, for as long as it takes, because somebody has to keep what is
published meanwhile; and what it withdraws goes on for `stale_after`, because a tree that re-forms withdraws on the old
way before everybody knows the new one. So for this flow the law's "other tree links" are all links that hold something.
A neighbour whose link is down and that the tree reaches another way has its filters there: here they are withdrawn.

With `advertisements`, a subscription is wanted on a link only when an advertisement held from that link may meet it:
the advertisements themselves follow the same law, as the second flow. To find out has a budget; beyond it a
subscription is taken to be wanted.

What one filter changes is looked at in the event that brought it. What a new tree, a lost neighbour or an advertisement
changes may be about all filters: they are `unsure` until they were looked at, a few in each `go_on`, which is also how
neighbours are told of many.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from contrada.broker.core.ports import EncodedFilter
from contrada.broker.protocol.peer_messages import Change, Digest, Flow, Replace, filter_key
from contrada.broker.routing.actions import Action, Install, InstallDurable, Send, Uninstall, UninstallDurable
from contrada.broker.routing.flow import AskedChange, FlowState
from contrada.forwarding.covering.budget import MOST_COMPARISONS, CoveringBudget
from contrada.forwarding.covering.covering import conflicts
from contrada.forwarding.covering.covering_set import CoveringSet

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence

    from contrada.forwarding.language.filter import Filter

LOOKS: Final = 16  # at filters, in one step: each may be compared with many
TELLS: Final = 256  # changes that neighbours are told of in one step
MOST_ADVERTISEMENTS: Final = 256  # that a subscription is compared with: if more are held, it is wanted
CONSTRAINTS: Final = 256  # of filters that are compared in one look


class LinkInterests:
    """One link: its flows, and what comparing subscriptions with its advertisements may cost."""

    def __init__(self, *, sampled: bool = False) -> None:
        self.up = False
        self.down_since: float | None = None
        self.stale = False  # down for so long that what it wanted is being forgotten
        self.custody = False  # whether both ends have disks
        self.lingering: dict[bytes, float] = {}  # what it wants durably no more, and how long that goes on
        self.flows = {flow: FlowState(flow, CoveringSet(sampled=sampled)) for flow in Flow}
        self.budget = CoveringBudget(sampled=sampled)

    @property
    def busy(self) -> bool:
        """Whether a step would do something."""
        return self.stale or any(state.busy for state in self.flows.values())


class Interests:
    """Filters of clients and links, and who is told of which.

    While `silent`, neighbours are told nothing: more is about to come.
    """

    def __init__(self, decode: Callable[[bytes], Filter], *, advertisements: bool, sampled: bool = False) -> None:
        self.links: dict[str, LinkInterests] = {}
        self.tree_links: frozenset[str] = frozenset()
        self.silent = False
        self._decode = decode
        self._advertisements = advertisements
        self._sampled = sampled  # relations of regions are: other covers hold (forwarding/covering/covering.py)
        self._local: dict[Flow, Counter[bytes]] = {flow: Counter() for flow in Flow}
        self._known: dict[bytes, EncodedFilter] = {}
        self._uses: Counter[bytes] = Counter()  # of every known filter, the clients and links that want it

    # -- links -------------------------------------------------------------------------------------------

    def link_up(self, neighbour: str, *, custody: bool = False) -> list[Action]:
        """A link is ready: say what is held of the neighbour's."""
        link = self.links.setdefault(neighbour, LinkInterests(sampled=self._sampled))
        link.up = True
        link.stale = False
        link.down_since = None
        link.custody = custody
        link.lingering.clear()  # the neighbour says again what it does not want
        for state in link.flows.values():
            state.disconnect()
        flows = (state for flow, state in link.flows.items() if custody or flow is not Flow.DURABLE)
        return [Send(neighbour, state.digest()) for state in flows]

    def link_down(self, neighbour: str, now: float) -> None:
        """The link is gone. What the neighbour wanted is kept for a while, in case that it comes back."""
        link = self.links[neighbour]
        link.up = False
        link.down_since = now
        for state in link.flows.values():
            state.disconnect()

    def expire(self, before: float) -> None:
        """Forget, by and by, what links wanted that have been down since before."""
        for link in self.links.values():
            if link.down_since is not None and link.down_since <= before:
                link.stale = True

    # -- what is kept for neighbours that are away -------------------------------------------------------

    def remember(self, neighbour: str, filters: Iterable[EncodedFilter]) -> None:
        """A neighbour wanted these durably in an earlier life of this broker, and still does."""
        link = self.links.setdefault(neighbour, LinkInterests(sampled=self._sampled))
        for each in filters:
            if link.flows[Flow.DURABLE].asked.add(each.key, each.body):
                self._use(each.key, each)
                self._source_came(Flow.DURABLE, each.key, neighbour)

    def forget_durable(self, neighbour: str) -> list[Action]:
        """Nobody waits for this neighbour any longer."""
        link = self.links.get(neighbour)
        if link is None:
            return []
        link.lingering.clear()
        state = link.flows[Flow.DURABLE]
        return self._asked_changed(neighbour, Flow.DURABLE, state.forget(len(state.asked)))

    def _linger(self, neighbour: str, change: Change) -> Change:
        """Of a change of what is wanted durably, what takes effect at once: all that is added."""
        link = self.links[neighbour]
        for encoded in change.add:
            link.lingering.pop(filter_key(encoded), None)
        for key in change.remove:
            if key in link.flows[Flow.DURABLE].asked:
                link.lingering.setdefault(key, 0.0)
        return Change(change.flow, change.add, ())

    def linger_away(self, reachable: Container[str], now: float, after: float) -> list[Action]:
        """Time has passed: what was withdrawn, or is wanted another way by now, goes, a few at a time."""
        actions: list[Action] = []
        for neighbour, link in self.links.items():
            state = link.flows[Flow.DURABLE]
            if not link.up:
                if neighbour in reachable:
                    for key in state.asked:
                        link.lingering.setdefault(key, 0.0)
                else:
                    link.lingering.clear()
            if link.lingering:
                link.lingering = {key: until or now + after for key, until in link.lingering.items()}
                due = [key for key, until in link.lingering.items() if until <= now][:TELLS]
                for key in due:
                    del link.lingering[key]
                actions += self._asked_changed(neighbour, Flow.DURABLE, state.drop(due))
        return actions

    def follow_tree(self, links: frozenset[str]) -> None:
        """Use these links, and no others."""
        moved = links ^ self.tree_links
        self.tree_links = links
        for neighbour, link in self.links.items():
            for flow, state in link.flows.items():
                if neighbour in moved:
                    state.unsure.update(dict.fromkeys(self._sources(neighbour, flow)))
                    state.unsure.update(dict.fromkeys(state.wanted))
                elif neighbour in links:
                    for other in moved:
                        state.unsure.update(dict.fromkeys(self.links[other].flows[flow].asked))

    # -- filters -----------------------------------------------------------------------------------------

    def local_came(self, flow: Flow, filters: Iterable[EncodedFilter]) -> None:
        """Clients have these filters, each once more."""
        local = self._local[flow]
        for each in filters:
            key = each.key
            local[key] += 1
            if local[key] == 1:
                self._use(key, each)
                self._source_came(flow, key, None)

    def local_went(self, flow: Flow, keys: Iterable[bytes]) -> None:
        """Clients have these filters once less."""
        local = self._local[flow]
        for key in keys:
            if not local[key]:
                raise KeyError(f"no client has {key.hex()} as one of its {flow}")
            local[key] -= 1
            if not local[key]:
                del local[key]
                self._source_went(flow, key, None)
                self._drop(key)

    def receive(self, neighbour: str, message: Digest | Replace | Change) -> list[Action]:
        """A neighbour says what it holds of ours, or what it wants."""
        state = self.links[neighbour].flows[message.flow]
        if isinstance(message, Digest):
            state.heard = message
            return []
        if message.flow is Flow.DURABLE:
            if isinstance(message, Replace):
                message = Change(message.flow, message.filters, state.stale(message))
            message = self._linger(neighbour, message)
        change = state.take_replace(message) if isinstance(message, Replace) else state.take_change(message)
        return self._asked_changed(neighbour, message.flow, change)

    def _asked_changed(self, neighbour: str, flow: Flow, change: AskedChange) -> list[Action]:
        actions: list[Action] = []
        is_source = neighbour in self.tree_links or flow is Flow.DURABLE
        for key, encoded in change.added.items():
            known = self._known.get(key)
            if known is None:
                known = EncodedFilter(self._decode(encoded), encoded)
            self._use(key, known)
            if flow is Flow.SUBSCRIPTIONS:
                actions.append(Install(neighbour, key, known.filter))
            elif flow is Flow.DURABLE:
                actions.append(InstallDurable(neighbour, known))
            if is_source:
                self._source_came(flow, key, neighbour)
        for key in change.removed:
            if flow is Flow.SUBSCRIPTIONS:
                actions.append(Uninstall(neighbour, key))
            elif flow is Flow.DURABLE:
                actions.append(UninstallDurable(neighbour, key))
            if is_source:
                self._source_went(flow, key, neighbour)
            self._drop(key)
        if flow is Flow.ADVERTISEMENTS and self._advertisements:
            self._advertised(neighbour, [self._known[key].filter for key in change.added], bool(change.removed))
        return actions

    def _advertised(self, neighbour: str, filters: Sequence[Filter], fewer: bool) -> None:
        """More is advertised beyond a neighbour, or less: subscriptions may be wanted from it, or no more."""
        state = self.links[neighbour].flows[Flow.SUBSCRIPTIONS]
        if fewer:
            state.unsure.update(dict.fromkeys((*state.wanted, *state.unsure)))
        if filters:
            for key in self._sources(neighbour, Flow.SUBSCRIPTIONS):
                if key not in state.wanted:
                    state.unsure[key] = None if key in state.unsure else filters

    def _source_came(self, flow: Flow, key: bytes, source: str | None) -> None:
        for neighbour in self.tree_links:
            state = self.links[neighbour].flows[flow]
            if neighbour != source and (key not in state.wanted or key in state.unsure):
                self._look(neighbour, state, key, None)

    def _source_went(self, flow: Flow, key: bytes, source: str | None) -> None:
        for neighbour, link in self.links.items():
            state = link.flows[flow]
            if neighbour != source and (key in state.wanted or key in state.unsure):
                self._look(neighbour, state, key, None)

    def _look(self, neighbour: str, state: FlowState, key: bytes, advertised: Sequence[Filter] | None) -> None:
        """Find out whether a filter is wanted from a neighbour, as far as one look goes.

        `advertised` are the advertisements that it has not been compared with yet; None stands for all.
        """
        state.unsure.pop(key, None)
        if not self._is_source(neighbour, state.flow, key):
            state.unwant(key)
            return
        link, f = self.links[neighbour], self._known[key].filter
        of_link = link.flows[Flow.ADVERTISEMENTS].asked
        if state.flow is not Flow.SUBSCRIPTIONS or not self._advertisements or len(of_link) > MOST_ADVERTISEMENTS:
            state.want(key, f)
            return
        if advertised is None:
            advertised = [self._known[each].filter for each in of_link]
        link.budget.earn()
        link.budget.comparisons = MOST_COMPARISONS
        constraints = 0
        for place, each in enumerate(advertised):
            if constraints > CONSTRAINTS:
                state.unsure[key] = advertised[place:]
                return
            if not conflicts(f, each, link.budget):
                state.want(key, f)
                return
            constraints += len(f) + len(each)
        state.unwant(key)

    def _is_source(self, neighbour: str, flow: Flow, key: bytes) -> bool:
        """Whether somebody on our side of a link wants a filter: nobody, if the tree does not use it."""
        return neighbour in self.tree_links and (
            key in self._local[flow]
            or any(key in self.links[other].flows[flow].asked for other in self._others(flow) if other != neighbour)
        )

    def _others(self, flow: Flow) -> Iterable[str]:
        """The links whose filters others are told of."""
        return self.links if flow is Flow.DURABLE else self.tree_links

    def _sources(self, neighbour: str, flow: Flow) -> set[bytes]:
        """The filters that somebody on our side of a link wants."""
        if neighbour not in self.tree_links:
            return set()
        others = (self.links[other].flows[flow].asked for other in self._others(flow) if other != neighbour)
        return set(self._local[flow]).union(*others)

    # -- what neighbours are told ------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether another step would do something."""
        return any(link.busy for link in self.links.values()) and not (self.silent and not self._is_unsure)

    @property
    def _is_unsure(self) -> bool:
        states = (state for link in self.links.values() for state in link.flows.values())
        return any(link.stale for link in self.links.values()) or any(state.unsure for state in states)

    def go_on(self) -> list[Action]:
        """Look at some of what is unsure, and tell neighbours some of what has changed for them."""
        actions: list[Action] = []
        looks = 1 if self._advertisements else LOOKS  # each of which may ask many advertisements
        tells = TELLS
        for neighbour, link in list(self.links.items()):
            if link.stale and looks:
                actions += self._forget(neighbour, link)
                looks = 0
                continue
            for state in link.flows.values():
                for _ in range(min(looks, len(state.unsure))):
                    key, advertised = state.unsure.popitem()
                    self._look(neighbour, state, key, advertised)
                    looks -= 1
                if tells > 0 and not self.silent:
                    waiting = len(state.to_add) + len(state.to_remove)
                    actions += (Send(neighbour, message) for message in state.tell(tells, self._encoded))
                    tells -= waiting - len(state.to_add) - len(state.to_remove)
        return actions

    def _forget(self, neighbour: str, link: LinkInterests) -> list[Action]:
        actions: list[Action] = []
        for flow, state in link.flows.items():
            if flow is not Flow.DURABLE:
                actions += self._asked_changed(neighbour, flow, state.forget(LOOKS))
        left = {flow for flow, state in link.flows.items() if len(state.asked)}
        if not left:
            del self.links[neighbour]
        elif left == {Flow.DURABLE}:  # that is not forgotten
            link.stale = False
            link.down_since = None
        return actions

    def _encoded(self, key: bytes) -> bytes:
        return self._known[key].body

    def _use(self, key: bytes, known: EncodedFilter) -> None:
        self._known.setdefault(key, known)
        self._uses[key] += 1

    def _drop(self, key: bytes) -> None:
        self._uses[key] -= 1
        if self._uses[key] == 0:
            del self._uses[key], self._known[key]

    def _check(self) -> None:
        """Assert the law of the overlay, but for what is unsure, and that nothing known is unused."""
        for neighbour, link in self.links.items():
            advertised = [self._known[key].filter for key in link.flows[Flow.ADVERTISEMENTS].asked]
            for flow, state in link.flows.items():
                state._check()
                sources = self._sources(neighbour, flow)
                may_meet = sources
                if flow is Flow.SUBSCRIPTIONS and self._advertisements:
                    filters = {key: self._known[key].filter for key in sources}
                    may_meet = {k for k, f in filters.items() if not all(f.conflicts(each) for each in advertised)}
                assert may_meet - state.unsure.keys() <= set(state.wanted) <= sources | state.unsure.keys()
        uses: Counter[bytes] = Counter()
        for flow in Flow:
            uses.update(self._local[flow].keys())
            for link in self.links.values():
                uses.update(link.flows[flow].asked)
        assert uses == self._uses
        assert self._known.keys() == self._uses.keys()
