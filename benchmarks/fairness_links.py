"""What connections and neighbours may send: rows of `benchmarks.fairness`, as those of `fairness_rows`."""

from __future__ import annotations

import random
import socket
import struct
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from benchmarks.fairness_shapes import ring, ripple
from contrada import attr
from contrada.broker.protocol.frames import encode
from contrada.broker.protocol.messages import (
    Advertise,
    Hello,
)
from contrada.broker.protocol.peer_messages import Change, Digest, Flow, Forward, LinkState, LinkStates, Run
from contrada.broker.protocol.wire import VERSION, Code
from contrada.forwarding.codec.msgpack import encode_filter, encode_notification

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.fairness_client import Raw


# -- connections -------------------------------------------------------------------------------------------


_AT_A_TIME = 200
_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL".ljust(23, b"\0") + bytes(32)  # of ZMTP, a DEALER's
_READY = b"\x05READY\x0bSocket-Type" + struct.pack(">I", 6) + b"DEALER"


def come_and_go(url: str, count: int, messages: list[bytes], answer: bytes) -> None:
    """So many connections, 200 at a time, that each send messages of one short frame, and go when they are answered.

    Who goes before resets the connection, and the broker never sees what was sent.
    """
    address = urlsplit(url)
    sent = b"".join(bytes((0, len(each))) + each for each in messages)
    strangers: deque[socket.socket] = deque()
    for number in range(count + _AT_A_TIME):
        if number >= _AT_A_TIME:
            with strangers.popleft() as stranger:
                _hear(stranger, answer)
        if number < count:
            strangers.append(socket.create_connection((address.hostname, address.port or 0), timeout=60))
            strangers[-1].sendall(_GREETING + bytes((4, len(_READY))) + _READY)
            _hear(strangers[-1], b"READY")  # what comes before that ends the handshake
            strangers[-1].sendall(sent)


def _hear(stranger: socket.socket, answer: bytes) -> None:
    heard = b""
    while answer not in heard:
        more = stranger.recv(1 << 16)
        if not more:
            raise RuntimeError(f"the broker went without saying {answer!r}")
        heard += more


def malformed(client: Raw) -> Iterator[list[Any]]:
    """4,000 connections, 200 at a time, that each send 20 malformed frames and go."""
    yield [partial(come_and_go, client.url, 4000, [b"no frame of ours"] * 20, Code.BANNED.encode())]


def short_sessions(client: Raw) -> Iterator[list[Any]]:
    """4,000 connections, 200 at a time, that each say HELLO and go."""
    (hello,) = encode(Hello(1, VERSION, "short"))
    yield [partial(come_and_go, client.url, 4000, [hello], b"short")]


# -- links -------------------------------------------------------------------------------------------------


def change(client: Raw) -> Iterator[list[Any]]:
    """A neighbour wants 4,000 filters, 50 polygons of 10,000 vertices and 400 of 150."""
    rng = random.Random(14)
    small = tuple(encode_filter(attr("x") == n) for n in range(4000))
    large = tuple(encode_filter(attr("r").intersects(ring(rng, 10_000))) for _ in range(50))
    middle = tuple(encode_filter(attr("r").intersects(ring(rng, 150, size=1.0))) for _ in range(400))
    for filters in (small, large[:25], large[25:], middle):
        yield [Change(Flow.SUBSCRIPTIONS, filters, ())]


def digests(client: Raw) -> Iterator[list[Any]]:
    """A neighbour sends a thousand digests, none of which is right."""
    yield [Change(Flow.SUBSCRIPTIONS, tuple(encode_filter(attr("x") == n) for n in range(4000)), ())]
    yield [Digest(Flow.SUBSCRIPTIONS, tuple(range(k, k + 64))) for k in range(1000)]


def link_states(client: Raw) -> Iterator[list[Any]]:
    """A neighbour tells of a thousand brokers, and of each a hundred times."""
    names = [f"b{n}" for n in range(1000)]
    for sequence in range(1, 101, 10):
        step: list[Any] = []
        for each in range(sequence, sequence + 10):
            states = [LinkState(name, each, frozenset(names[n - 2 : n])) for n, name in enumerate(names)]
            step += [LinkStates(tuple(states[n : n + 100])) for n in range(0, 1000, 100)]
        yield step


def forwarded(client: Raw) -> Iterator[list[Any]]:
    """A neighbour forwards what is dear: 40 regions of 15 KB for 400 such filters of its own client."""
    rng = random.Random(15)
    own = client.another()
    for _ in range(4):
        own.say(own.subscribe(*(attr("p").covered_by(ripple(rng, 900, 10.0)) for _ in range(100))))
        own.await_answers(1)
    bodies = tuple(encode_notification({"p": ripple(rng, 900, 10.0)}) for _ in range(40))
    yield [Forward((Run("far", "p", 1, tuple(range(1, 41)), bodies),))]


def advertised(client: Raw) -> Iterator[list[Any]]:
    """2,000 advertisements, each of a polygon."""
    rng = random.Random(16)
    for start in range(0, 2000, 200):
        yield [
            Advertise(n + 1, n + 1, (encode_filter(attr("r").intersects(ring(rng, 150, size=1.0))),))
            for n in range(start, start + 200)
        ]
