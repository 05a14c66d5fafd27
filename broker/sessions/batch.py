"""Notifications on their way to their receivers, and the DELIVERs that they are joined into.

A batch is one or more notifications of one publisher, one after another, that go to the same receivers: what they
have in common is handled once. A DELIVER's head is flat, `[6, envelope, subscriptions, envelope, subscriptions, …]`,
with the envelope `[broker, sequence, publisher, body or nil]`. An envelope is the same bytes for every receiver: it is
packed once, when the first client needs it, and joined from there on.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgpack  # type: ignore[import-untyped]  # it ships no types

from contrada.broker.protocol import wire
from contrada.broker.protocol.messages import NotificationId
from contrada.broker.protocol.wire import INLINE_BYTES, LIST_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_pack: Callable[[Any], bytes] = msgpack.Packer(autoreset=True).pack
BATCH_BYTES = 64 << 10
_ENVELOPE_BYTES = 32  # about what an envelope adds to a notification


class Batch:
    """Notifications on their way: packed for the first DELIVER, joined into as many as there are. Never empty."""

    __slots__ = ("_packed", "bodies", "broker", "hops", "publisher", "sequences", "size")

    def __init__(
        self, broker: str, sequences: Sequence[int], publisher: str, bodies: Sequence[bytes], hops: int = 0
    ) -> None:
        self.broker = broker
        self.hops = hops  # links that they have crossed
        self.sequences = sequences
        self.publisher = publisher
        self.bodies = bodies
        self.size = _ENVELOPE_BYTES * len(bodies) + sum(map(len, bodies))
        self._packed: list[bytes] | None = None

    def __len__(self) -> int:
        return len(self.bodies)

    @property
    def id(self) -> NotificationId:
        """The name of the first notification, or only one."""
        return NotificationId(self.broker, self.sequences[0])

    def between(self, start: int, end: int) -> Batch:
        """The notifications from one place to another."""
        return self if end - start == len(self.bodies) else self._slice(slice(start, end))

    def cut(self) -> Iterator[Batch]:
        """The same notifications in batches that a message may hold: so many, and about `BATCH_BYTES`, at most."""
        start = size = 0
        if self.size > BATCH_BYTES or len(self.bodies) > LIST_LENGTH:
            for at, body in enumerate(self.bodies):
                if size > BATCH_BYTES or at - start == LIST_LENGTH:
                    yield self._slice(slice(start, at))
                    start, size = at, 0
                size += _ENVELOPE_BYTES + len(body)
        yield self._slice(slice(start, None)) if start else self

    def one_by_one(self) -> Iterator[Batch]:
        """The same notifications in batches of one."""
        if len(self.bodies) == 1:
            yield self
            return
        for at in range(len(self.bodies)):
            yield self._slice(slice(at, at + 1))

    def _slice(self, places: slice) -> Batch:
        return Batch(self.broker, self.sequences[places], self.publisher, self.bodies[places], self.hops)

    @property
    def envelopes(self) -> list[bytes]:
        """The envelopes as a DELIVER has them."""
        if self._packed is None:
            broker, publisher = self.broker, self.publisher
            self._packed = [
                _pack((broker, sequence, publisher, body if len(body) <= INLINE_BYTES else None))
                for sequence, body in zip(self.sequences, self.bodies, strict=True)
            ]
        return self._packed


_packed_id: Callable[[int], bytes] = lru_cache(maxsize=65_536)(lambda subscription: _pack((subscription,)))


def deliver_frames(entries: Sequence[tuple[Batch, Sequence[int]]]) -> list[bytes]:
    """Join a DELIVER from batches and the receiver's subscriptions."""
    parts = [b"", _DELIVER_TYPE]
    attachments: list[bytes] = []
    count = 0
    for batch, subscriptions in entries:
        ids = _packed_id(subscriptions[0]) if len(subscriptions) == 1 else _pack(subscriptions)
        envelopes = batch._packed or batch.envelopes
        parts.append(envelopes[0] if len(envelopes) == 1 else ids.join(envelopes))
        parts.append(ids)
        count += len(envelopes)
        if batch.size > INLINE_BYTES:
            attachments += (body for body in batch.bodies if len(body) > INLINE_BYTES)
    parts[0] = _array_header(1 + 2 * count)
    return [b"".join(parts), *attachments]


def _array_header(length: int) -> bytes:
    """Begin a msgpack array of up to 65,535 elements."""
    if length < 16:
        return bytes((0x90 | length,))
    return b"\xdc" + length.to_bytes(2, "big")


_DELIVER_TYPE = _pack(wire.DELIVER)
