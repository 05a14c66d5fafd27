"""A client that speaks frames, for `benchmarks.fairness`."""

from __future__ import annotations

from typing import Any

import zmq

from contrada.broker.protocol.frames import decode, encode
from contrada.broker.protocol.messages import (
    Ack,
    Error,
    Hello,
    Message,
    Ping,
    Pong,
    Publish,
    Reply,
    Store,
    Subscribe,
    SubscribeDurable,
)
from contrada.broker.protocol.peer_frames import encode_peer
from contrada.broker.protocol.wire import VERSION, Policy
from contrada.forwarding.codec.msgpack import encode_filter, encode_notification


class Raw:
    """A client that speaks frames, so that the client library is not what is measured."""

    def __init__(self, url: str, context: zmq.Context[Any]) -> None:
        self.url = url
        self.context = context
        self.socket = context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.rcvhwm = 0
        self.socket.connect(url)
        self.request = 0
        self.latest = 0  # the number of the first notification of what was acknowledged last
        self.say(Hello(1, VERSION, "bench"))
        self.broker = self.hear().broker

    def another(self) -> Raw:
        """Another client of the same broker."""
        return Raw(self.url, self.context)

    def say(self, message: Any) -> None:
        """Send a message of a client or of a neighbour."""
        self.socket.send_multipart(encode(message) if isinstance(message, Message) else encode_peer(message))

    def hear(self, seconds: float = 120.0) -> Any:
        """The next message."""
        if not self.socket.poll(seconds * 1000):
            raise TimeoutError("the broker does not answer")
        return decode(self.socket.recv_multipart())

    def await_answers(self, count: int) -> None:
        """Listen until so many requests are answered."""
        done = 0
        while done < count:
            message = self.hear()
            if isinstance(message, Ack):
                done += len(message.entries)
                self.latest = message.entries[-1].sequence
            elif isinstance(message, Reply):
                done += 1
            elif isinstance(message, Error):
                raise RuntimeError(message.reason)
            elif isinstance(message, Ping):
                self.say(Pong(message.nonce))

    def await_each(self, types: tuple[type, ...]) -> None:
        """Listen until a message of each type has come."""
        missing = set(types)
        while missing:
            message = self.hear()
            if isinstance(message, Error):
                raise RuntimeError(message.reason)
            if isinstance(message, Ping):
                self.say(Pong(message.nonce))
            missing.discard(type(message))

    def subscribe(self, *filters: Any) -> Subscribe:
        """The message that asks for filters."""
        self.request += 1
        encoded = tuple(encode_filter(each) for each in filters)
        return Subscribe(self.request, self.request, encoded, Policy.BLOCK, 10**6)

    def store(self, *notifications: Any, retain: str = "") -> Store:
        """The message that publishes durably."""
        self.request += 1
        return Store(self.request, tuple(encode_notification(each) for each in notifications), "", retain)

    def subscribe_durably(self, name: str, filter: Any, *, since: Any = None, credit: int = 10**6) -> SubscribeDurable:
        """The message that makes a durable subscription."""
        self.request += 1
        return SubscribeDurable(self.request, self.request, name, (encode_filter(filter),), "", credit, since)

    def publish(self, *notifications: Any) -> Publish:
        """The message that publishes."""
        self.request += 1
        return Publish(self.request, tuple(encode_notification(each) for each in notifications))
