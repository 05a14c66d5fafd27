"""A broker in a page: answers a client core's messages as the protocol says, without sockets."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from contrada.broker.protocol import frames
from contrada.broker.protocol import messages as msg
from contrada.broker.protocol.wire import Role
from contrada.client.engine.actions import Connect, Hangup, Send
from contrada.client.engine.states import Phase

if TYPE_CHECKING:
    from contrada.client.engine.core import Core


class ScriptedBroker:
    """Every notification matches every subscription. `answers` holds what has been said and not yet been heard."""

    def __init__(self, limits: msg.Limits = msg.Limits(), heartbeat: float = 1.0, timeout: float = 3.0) -> None:  # noqa: B008  # an immutable tuple
        self.limits = limits
        self.heartbeat, self.timeout = heartbeat, timeout
        self.sequence = 0
        self.accepted: list[bytes] = []
        self.sessions = 0
        self.mute = False
        self.reset()

    def reset(self) -> None:
        """The connection is new, or gone: no session, no subscriptions."""
        self.welcomed = False
        self.credit: dict[int, int] = {}
        self.advertised: dict[int, tuple[bytes, ...]] = {}
        self.waiting: dict[int, deque[tuple[int, bytes]]] = {}
        self.answers: deque[msg.Message] = deque()
        self.window = 0

    def hear(self, parts: list[bytes]) -> None:
        message = frames.decode(parts)
        if self.mute:
            return
        if isinstance(message, msg.Hello):
            self.sessions += 1
            self.welcomed = True
            roles = frozenset({Role.PUBLISH, Role.SUBSCRIBE})
            self.answers.append(
                msg.Welcome(1, "b", self.sessions, "p", roles, self.heartbeat, self.timeout, self.limits)
            )
            return
        assert self.welcomed, "nothing may come before HELLO"
        if isinstance(message, msg.Subscribe):
            assert message.subscription not in self.credit
            self.credit[message.subscription] = message.credit
            self.waiting[message.subscription] = deque()
            self.answers.append(msg.Ack((msg.Acked(message.request),)))
        elif isinstance(message, msg.Unsubscribe):
            del self.credit[message.subscription]
            self.answers.append(msg.Ack((msg.Acked(message.request),)))
        elif isinstance(message, msg.Advertise):
            assert message.advertisement not in self.advertised
            self.advertised[message.advertisement] = message.filters
            self.answers.append(msg.Ack((msg.Acked(message.request),)))
        elif isinstance(message, msg.Unadvertise):
            del self.advertised[message.advertisement]
            self.answers.append(msg.Ack((msg.Acked(message.request),)))
        elif isinstance(message, msg.Credit):
            for subscription, credit in message.grants:
                if subscription in self.credit:
                    self.credit[subscription] += credit
            self.drain()
        elif isinstance(message, msg.Publish):
            assert len(message.notifications) <= self.limits.batch
            self.window += len(message.notifications)
            assert self.window <= self.limits.window, "the client went beyond the window"
            self.answers.append(msg.Ack((msg.Acked(message.request, self.sequence + 1),)))
            for body in message.notifications:
                self.sequence += 1
                self.accepted.append(body)
                for queue in self.waiting.values():
                    queue.append((self.sequence, body))
            self.drain()
        elif isinstance(message, msg.Ping):
            self.answers.append(msg.Pong(message.nonce))
        elif isinstance(message, msg.Status):
            self.answers.append(msg.Reply(message.request, {"sessions": self.sessions}))
        elif isinstance(message, msg.Bye):
            self.answers.append(msg.Bye())

    def drain(self) -> None:
        for subscription, queue in self.waiting.items():
            while queue and self.credit.get(subscription, 0) > 0:
                sequence, body = queue.popleft()
                self.credit[subscription] -= 1
                self.answers.append(
                    msg.Deliver((msg.Delivered(msg.NotificationId("b", sequence), "p", body, (subscription,)),))
                )


class Line:
    """A core and a scripted broker, and the wire between them."""

    def __init__(self, core: Core, broker: ScriptedBroker) -> None:
        self.core, self.broker = core, broker
        self.up = False
        self.now = 0.0
        self.hangups = 0

    def act(self) -> None:
        """Carry what the core wants to the broker."""
        for action in self.core.take_actions():
            if isinstance(action, Connect):
                assert not self.up, "Hangup comes before the next Connect"
                self.up = True
                self.broker.reset()
            elif isinstance(action, Hangup):
                self.up = False
                self.hangups += 1
                self.broker.reset()
            elif isinstance(action, Send) and self.up:
                self.broker.hear(action.frames)

    def answer(self, count: int = 1_000_000) -> None:
        """Carry up to `count` of the broker's answers to the core."""
        self.act()
        while count and self.up and self.broker.answers:
            message = self.broker.answers.popleft()
            if isinstance(message, msg.Ack):
                for request, _ in message.entries:
                    publish = self.core.outbox.unanswered.get(request)
                    self.broker.window -= publish.number if publish else 0
            self.core.receive(frames.encode(message), self.now)
            self.act()
            self.core._check()
            count -= 1

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.core.tick(self.now)
        self.act()

    def open(self) -> None:
        self.core.start(self.now)
        self.answer()
        assert self.core.phase is Phase.OPEN
