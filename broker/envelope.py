"""A notification on its way to its receivers, and the DELIVERs that it is joined into.

A DELIVER's head is flat, `[6, envelope, subscriptions, envelope, subscriptions, …]`, with the envelope
`[broker, sequence, publisher, body or nil]`. An envelope is the same bytes for every receiver: it is packed once, when
the first client needs it, and joined from there on.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgpack  # type: ignore[import-untyped]  # it ships no types

from contrada.broker import wire
from contrada.broker.messages import NotificationId
from contrada.broker.wire import INLINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_pack: Callable[[Any], bytes] = msgpack.Packer(autoreset=True).pack
_ENVELOPE_BYTES = 32  # about what an envelope adds to a notification


class Envelope:
    """A notification on its way to its receivers: packed for the first DELIVER, joined into as many as there are."""

    __slots__ = ("_packed", "body", "broker", "hops", "publisher", "sequence", "size")

    def __init__(self, broker: str, sequence: int, publisher: str, body: bytes, hops: int = 0) -> None:
        self.broker = broker
        self.hops = hops  # links that it has crossed
        self.sequence = sequence
        self.publisher = publisher
        self.body = body
        self.size = _ENVELOPE_BYTES + len(body)
        self._packed: bytes | None = None

    @property
    def id(self) -> NotificationId:
        """The notification's name."""
        return NotificationId(self.broker, self.sequence)

    @property
    def attachment(self) -> bytes | None:
        """The body, if it travels in a frame of its own."""
        return self.body if len(self.body) > INLINE_BYTES else None

    @property
    def packed(self) -> bytes:
        """The envelope as a DELIVER has it."""
        if self._packed is None:
            inline = self.body if len(self.body) <= INLINE_BYTES else None
            self._packed = _pack((self.broker, self.sequence, self.publisher, inline))
        return self._packed


_packed_id: Callable[[int], bytes] = lru_cache(maxsize=65_536)(lambda subscription: _pack((subscription,)))


def deliver_frames(entries: Sequence[tuple[Envelope, Sequence[int]]]) -> list[bytes]:
    """Join a DELIVER from envelopes and the receiver's subscriptions."""
    parts = [_array_header(1 + 2 * len(entries)), _DELIVER_TYPE]
    attachments = []
    for envelope, subscriptions in entries:
        parts.append(envelope._packed or envelope.packed)
        parts.append(_packed_id(subscriptions[0]) if len(subscriptions) == 1 else _pack(subscriptions))
        if len(envelope.body) > INLINE_BYTES:
            attachments.append(envelope.body)
    return [b"".join(parts), *attachments]


def _array_header(length: int) -> bytes:
    """Begin a msgpack array of up to 65,535 elements."""
    if length < 16:
        return bytes((0x90 | length,))
    return b"\xdc" + length.to_bytes(2, "big")


_DELIVER_TYPE = _pack(wire.DELIVER)
