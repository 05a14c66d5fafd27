"""The notifications that were accepted lately, and whom they matched: what EXPLAIN answers from.

A bounded queue of batches, newest at the right. Recording costs one append per PUBLISH; looking one up walks the
batches, which only an operator's question does. The bytes of a batch count its bodies and whom it matched, so that a
thousand receivers of each notification are remembered for fewer of them, not in more memory.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from contrada.broker.protocol.messages import NotificationId

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    # broker, sequence numbers, publisher, bodies, for each the interfaces it matched, bytes: a plain tuple,
    # because one is made for every PUBLISH
    Remembered: TypeAlias = tuple[str, Sequence[int], str, Sequence[bytes], Sequence[Collection[int]], int]

ENTRY_BYTES = 72  # of one interface in a set: its slots in a table at most 3/5 full, and the integer


class Found(NamedTuple):
    """One remembered notification."""

    publisher: str
    body: bytes
    matched: Collection[int]


class Recent:
    """At most `count` notifications and `size` bytes, whichever is less."""

    def __init__(self, count: int = 10_000, size: int = 16 << 20) -> None:
        self._most = count
        self._most_bytes = size
        self._batches: deque[Remembered] = deque()
        self._count = 0
        self._bytes = 0

    def __len__(self) -> int:
        return self._count

    def remember(self, batch: Remembered) -> None:
        """Add the newest batch and forget the oldest.

        One that would push out much of what is there goes in by halves: a batch is forgotten as a whole.
        """
        broker, sequences, publisher, bodies, matched, size = batch
        half = len(bodies) // 2
        if half and (8 * len(bodies) > self._most or 8 * size > self._most_bytes):
            for part in (slice(half), slice(half, None)):
                found = matched[part]
                weight = sum(map(len, bodies[part])) + ENTRY_BYTES * sum(map(len, found))
                self.remember((broker, sequences[part], publisher, bodies[part], found, weight))
            return
        self._batches.append(batch)
        self._count += len(batch[3])
        self._bytes += batch[5]
        while self._batches and (self._count > self._most or self._bytes > self._most_bytes):
            old = self._batches.popleft()
            self._count -= len(old[3])
            self._bytes -= old[5]

    def find(self, id: NotificationId) -> Found | None:
        """Find the notification of that id, unless it is forgotten or never was."""
        for broker, sequences, publisher, bodies, matched, _ in reversed(self._batches):
            if broker == id.broker and id.sequence in sequences:
                at = sequences.index(id.sequence)
                return Found(publisher, bodies[at], matched[at])
        return None

    def find_all(self, ids: Collection[NotificationId]) -> dict[NotificationId, Found]:
        """Those of these notifications that are remembered, in one walk."""
        wanted = set(ids)
        found = {}
        for broker, sequences, publisher, bodies, matched, _ in reversed(self._batches):
            for at, sequence in enumerate(sequences):
                if (broker, sequence) in wanted:
                    found[NotificationId(broker, sequence)] = Found(publisher, bodies[at], matched[at])
            if len(found) == len(wanted):
                break
        return found

    def _check(self) -> None:
        assert self._count == sum(len(batch[3]) for batch in self._batches)
        assert self._bytes == sum(batch[5] for batch in self._batches)
        assert self._count <= self._most
        assert self._bytes <= self._most_bytes
        for _, sequences, _, bodies, matched, _ in self._batches:
            assert len(sequences) == len(bodies) == len(matched)
