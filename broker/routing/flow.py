"""One flow of one link of the overlay: what this broker wants from the neighbour, and what the neighbour wants from it.

For each flow (subscriptions, advertisements, durable) a link holds two sets.

    wanted     a covering set of everything that this side of the link wants; its shown filters are what the
               neighbour should hold
    asked      what the neighbour has told us it wants

The neighbour's `asked` follows our `wanted` by `Change` messages while the link is up. When the link comes up, each end
first says what it holds, by `Digest`; the other answers with `Replace`, and only from then on are changes sent. A link
that the tree does not use wants nothing, so its state empties by itself.

All of that is done by steps, each of which is short however many filters there are:

    unsure ──look──▶ wanted ──▶ to_add, to_remove ──tell──▶ sent, as a Change
                                       digest heard ──tell──▶ behind ──tell──▶ a Replace of some buckets

While something is unsure the neighbour is told nothing, so that it never holds what only half of a change asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from contrada.broker.protocol.peer_messages import Change, Digest, Flow, Replace, bucket_of, filter_key
from contrada.broker.routing.filter_set import FilterSet
from contrada.forwarding.covering.covering_set import CoveringSet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contrada.forwarding.language.filter import Filter

REPLACE_BYTES: Final = 1 << 16  # of filters that are told again in one step


@dataclass(frozen=True, slots=True)
class AskedChange:
    """How what the neighbour wants has changed: encodings by key that came, and keys that went."""

    added: dict[bytes, bytes]
    removed: tuple[bytes, ...]


@dataclass
class FlowState:
    """One flow of one link."""

    flow: Flow
    wanted: CoveringSet[bytes] = field(default_factory=CoveringSet)
    unsure: dict[bytes, Sequence[Filter] | None] = field(default_factory=dict)
    """Keys of which it has to be found out whether they are wanted, and the advertisements that decide; None: all."""
    to_add: dict[bytes, None] = field(default_factory=dict)  # shown since, and not in `sent` yet
    to_remove: dict[bytes, None] = field(default_factory=dict)  # shown no more, and in `sent` still
    sent: FilterSet = field(default_factory=FilterSet)  # what the neighbour holds, once `synced`, but for `behind`
    behind: list[int] = field(default_factory=list)  # buckets that it has yet to be told as they are
    heard: Digest | None = None  # that is not answered yet
    synced: bool = False
    asked: FilterSet = field(default_factory=FilterSet)

    @property
    def busy(self) -> bool:
        """Whether a step would do something."""
        return bool(self.unsure or self.to_add or self.to_remove or self.behind or self.heard)

    # -- what this side wants ----------------------------------------------------------------------------

    def want(self, key: bytes, f: Filter) -> None:
        """This filter is wanted."""
        if key not in self.wanted:
            change = self.wanted.add(key, f)
            self._note(change.added, change.removed)

    def unwant(self, key: bytes) -> None:
        """It is not."""
        if key in self.wanted:
            change = self.wanted.remove(key)
            self._note(change.added, change.removed)

    def _note(self, shown: Sequence[bytes], hidden: Sequence[bytes]) -> None:
        for keys, here, there in ((shown, self.to_add, self.to_remove), (hidden, self.to_remove, self.to_add)):
            for key in keys:
                if key in there:
                    del there[key]
                else:
                    here[key] = None

    # -- what the neighbour is told of it ----------------------------------------------------------------

    def disconnect(self) -> None:
        """The link is gone, or new: nobody knows what the neighbour holds."""
        self.synced = False
        self.heard = None
        self.behind.clear()

    def tell(self, most: int, encoded: Callable[[bytes], bytes]) -> list[Change | Replace]:
        """What the neighbour is told in one step, of at most so many changes. Removals wait for all additions."""
        if self.unsure:
            return []
        messages: list[Change | Replace] = []
        add = _taken(self.to_add, most)
        remove = _taken(self.to_remove, most - len(add)) if not self.to_add else []
        bodies = [encoded(key) for key in add]
        for key, body in zip(add, bodies, strict=True):
            self.sent.add(key, body)
        for key in remove:
            self.sent.discard(key)
        if self.synced:
            filters = tuple(body for key, body in zip(add, bodies, strict=True) if bucket_of(key) not in self.behind)
            keys = tuple(key for key in remove if bucket_of(key) not in self.behind)
            if filters or keys:
                messages.append(Change(self.flow, filters, keys))
        if self.heard is not None and not self.to_add and not self.to_remove:
            messages.append(self._answer(self.heard))
        elif self.behind:
            messages.append(self._replace())
        return messages

    def _answer(self, digest: Digest) -> Replace:
        """The neighbour holds what the digest says: begin to correct it. From now on changes may be sent."""
        pairs = zip(digest.buckets, self.sent.digest, strict=True)
        self.behind = [number for number, (theirs, ours) in enumerate(pairs) if theirs != ours][::-1]
        self.synced = True
        self.heard = None
        return self._replace()

    def _replace(self) -> Replace:
        """Of the buckets that the neighbour has to be told as they are, the first ones."""
        buckets: list[int] = []
        filters: list[bytes] = []
        size = 0
        while self.behind and size < REPLACE_BYTES:
            buckets.append(self.behind.pop())
            more = self.sent.within(buckets[-1]).values()
            filters += more
            size += sum(map(len, more))
        return Replace(self.flow, tuple(buckets), tuple(filters))

    # -- what the neighbour wants ------------------------------------------------------------------------

    def digest(self) -> Digest:
        """What we hold of the neighbour's."""
        return Digest(self.flow, self.asked.digest)

    def take_replace(self, message: Replace) -> AskedChange:
        """Make the named buckets hold exactly the given filters."""
        return self._apply({filter_key(encoded): encoded for encoded in message.filters}, self.stale(message))

    def stale(self, message: Replace) -> tuple[bytes, ...]:
        """What is held in the named buckets and was not given."""
        given = {filter_key(encoded) for encoded in message.filters}
        return tuple(key for bucket in message.buckets for key in self.asked.within(bucket) if key not in given)

    def take_change(self, message: Change) -> AskedChange:
        """Apply a change."""
        return self._apply({filter_key(encoded): encoded for encoded in message.add}, message.remove)

    def forget(self, most: int) -> AskedChange:
        """Drop so much of what the neighbour wanted."""
        return self._apply({}, tuple(key for key, _ in zip(self.asked, range(most), strict=False)))

    def drop(self, keys: Sequence[bytes]) -> AskedChange:
        """Drop these of what the neighbour wanted."""
        return self._apply({}, tuple(keys))

    def _apply(self, given: dict[bytes, bytes], gone: tuple[bytes, ...]) -> AskedChange:
        added = {key: encoded for key, encoded in given.items() if self.asked.add(key, encoded)}
        return AskedChange(added, tuple(key for key in gone if self.asked.discard(key)))

    def _check(self) -> None:
        self.wanted._check()
        self.asked._check()
        self.sent._check()
        sent, to_add, to_remove = set(self.sent), self.to_add.keys(), self.to_remove.keys()
        assert not to_add & sent
        assert to_remove <= sent
        assert sent - to_remove | to_add == set(self.wanted.shown)
        assert self.synced or not self.behind


def _taken(keys: dict[bytes, None], most: int) -> list[bytes]:
    """Take at most so many keys out."""
    return [keys.popitem()[0] for _ in range(min(most, len(keys)))]
