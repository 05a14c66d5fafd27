"""One link of the overlay: what this broker wants from the neighbour, and what the neighbour wants from it.

For each flow (subscriptions, advertisements) a link holds two sets.

    wanted     a covering set of everything that this side of the link wants; its shown filters are what the
               neighbour should hold
    held       what the neighbour has told us it wants

The neighbour's `held` follows our `wanted` by `Change` messages while the link is up. When the link comes up, each end
first says what it holds, by `Digest`; the other answers with `Replace`, and only from then on are changes sent. A link
that the tree does not use wants nothing, so its state empties by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from contrada.broker.overlay.filter_set import FilterSet
from contrada.broker.protocol.peer_messages import Change, Digest, Flow, Replace, filter_key
from contrada.forwarding.covering.covering_set import CoveringSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from contrada.forwarding.covering.covering_set import Shown
    from contrada.forwarding.language.filter import Filter


@dataclass(frozen=True, slots=True)
class HeldChange:
    """How what the neighbour wants has changed: encodings by key that came, and keys that went."""

    added: dict[bytes, bytes]
    removed: tuple[bytes, ...]


@dataclass
class FlowState:
    """One flow of one link."""

    flow: Flow
    wanted: CoveringSet[bytes] = field(default_factory=CoveringSet)
    sources: dict[bytes, int] = field(default_factory=dict)  # how many want each wanted filter
    sent: FilterSet = field(default_factory=FilterSet)  # what the neighbour holds, once `synced`
    held: FilterSet = field(default_factory=FilterSet)
    synced: bool = False
    moved: set[bytes] = field(default_factory=set)  # keys shown or hidden since the neighbour was last told

    def want(self, key: bytes, f: Filter) -> None:
        """One more source wants this filter."""
        count = self.sources.get(key, 0)
        self.sources[key] = count + 1
        if count == 0:
            self._note(self.wanted.add(key, f))

    def unwant(self, key: bytes) -> None:
        """One source fewer wants it."""
        count = self.sources[key] - 1
        if count:
            self.sources[key] = count
        else:
            del self.sources[key]
            self._note(self.wanted.remove(key))

    def _note(self, change: Shown) -> None:
        self.moved.update(change.added, change.removed)

    def change(self, encoded: Callable[[bytes], bytes]) -> Change | None:
        """What the neighbour must be told for it to hold the shown filters; None when nothing, or not synced yet."""
        if not self.synced:
            return None
        moved, self.moved = self.moved, set()
        add = [key for key in moved if self.wanted.is_shown(key) and key not in self.sent]
        remove = tuple(key for key in moved if not self.wanted.is_shown(key) and key in self.sent)
        if not add and not remove:
            return None
        filters = tuple(encoded(key) for key in add)
        for key, body in zip(add, filters, strict=True):
            self.sent.add(key, body)
        for key in remove:
            self.sent.discard(key)
        return Change(self.flow, filters, remove)

    def digest(self) -> Digest:
        """What we hold of the neighbour's."""
        return Digest(self.flow, self.held.digest)

    def answer(self, digest: Digest, encoded: Callable[[bytes], bytes]) -> Replace:
        """The neighbour holds what the digest says: correct it. From now on changes may be sent."""
        self.sent = FilterSet()
        for key in self.wanted.shown:
            self.sent.add(key, encoded(key))
        self.synced = True
        self.moved.clear()
        ours = self.sent.digest
        differing = tuple(i for i, bucket in enumerate(digest.buckets) if bucket != ours[i])
        return Replace(self.flow, differing, tuple(self.sent.within(set(differing)).values()))

    def take_replace(self, message: Replace) -> HeldChange:
        """Make the named buckets hold exactly the given filters."""
        given = {filter_key(encoded): encoded for encoded in message.filters}
        stale = tuple(key for key in self.held.within(set(message.buckets)) if key not in given)
        return self._apply(given, stale)

    def take_change(self, message: Change) -> HeldChange:
        """Apply a change."""
        return self._apply({filter_key(encoded): encoded for encoded in message.add}, message.remove)

    def _apply(self, given: dict[bytes, bytes], gone: tuple[bytes, ...]) -> HeldChange:
        added = {key: encoded for key, encoded in given.items() if self.held.add(key, encoded)}
        return HeldChange(added, tuple(key for key in gone if self.held.discard(key)))

    def forget_held(self) -> HeldChange:
        """Drop everything the neighbour wanted."""
        return self._apply({}, tuple(self.held))
