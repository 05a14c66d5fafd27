"""The life of a client's connection: greeting, heartbeats, loss, back-off, goodbye. Half of the core (`core.py`).

    IDLE ──start──▶ GREETING ──WELCOME──▶ OPEN ──close──▶ CLOSING ──BYE, deadline──▶ CLOSED
                     ▲    │                 │
                     │    └────── lost ─────┤   (silence, a cut connection, a transient ERROR, the broker's BYE)
                     └── back-off ── WAITING ◀┘

From any phase a permanent refusal, an exhausted `connect_timeout` or `give_up_after`, or `close` leads to CLOSED, where
`error` says why (None after an orderly close). What a connection is for is the subclass's business: it is told when one
opens, breaks and ends for good, and gets the messages that are not about the connection itself.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from random import Random
from typing import TYPE_CHECKING

from contrada.broker.protocol import frames, wire
from contrada.broker.protocol.messages import Bye, Error, Hello, Limits, Ping, Pong, Welcome
from contrada.broker.protocol.wire import Code
from contrada.client.engine.events import Connect, Fault, Hangup, Moved, Phase, Send
from contrada.errors import ContradaError, Disconnected, ProtocolError, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contrada.broker.protocol.messages import Message
    from contrada.client.engine.events import Action, Event
    from contrada.client.options import Options

log = logging.getLogger("contrada.client")

# The broker's own limits bind what it accepts; what it sends is only kept from exhausting our memory.
_TRUSTED = Limits(message_bytes=1 << 30, notification_bytes=1 << 30, batch=1 << 20)
_TRANSIENT = frozenset({Code.NO_SESSION, Code.SILENT, Code.SHUTTING_DOWN})


class Connection(ABC):
    """A connection that is made, kept, and made again."""

    def __init__(self, options: Options, random: Random | None) -> None:
        self.options = options
        self.phase = Phase.IDLE
        self.error: ContradaError | None = None
        self.welcome: Welcome | None = None  # of the current or last session
        self.connections = 0  # WELCOMEs so far
        self._random = random or Random()
        self._actions: list[Action] = []
        self._events: list[Event] = []
        self._attempt = 0
        self._hint = ""
        self._bad_handshakes = 0
        self._heard = self._pinged = 0.0
        self._due = 0.0  # of the phase: end of the greeting, of the pause, of closing
        self._since = 0.0  # when the connection was last missing

    # ------------------------------------------------------------------ what the subclass does

    @abstractmethod
    def _opened(self) -> None:
        """Send again what the broker must know."""

    @abstractmethod
    def _broken(self, reason: str) -> None:
        """Settle what was in flight."""

    @abstractmethod
    def _ended(self, reason: ContradaError) -> None:
        """Fail everything that waits; nothing more will be sent."""

    @abstractmethod
    def _take_in(self, message: Message) -> None:
        """Act on a message; `ProtocolError` if the broker may not send it."""

    # ------------------------------------------------------------------ what a driver takes out

    def take_actions(self) -> list[Action]:
        """Take what is to be done now, in order."""
        actions, self._actions = self._actions, []
        return actions

    @property
    def has_actions(self) -> bool:
        """Whether `take_actions` has anything."""
        return bool(self._actions)

    def take_events(self) -> list[Event]:
        """Take what has happened since the last call."""
        events, self._events = self._events, []
        return events

    def deadline(self) -> float | None:
        """When `tick` wants to be called, if nothing happens before."""
        if self.phase is Phase.OPEN:
            assert self.welcome is not None
            return min(max(self._heard, self._pinged) + self.welcome.heartbeat, self._heard + self.welcome.timeout)
        return self._due if self.phase in (Phase.GREETING, Phase.WAITING, Phase.CLOSING) else None

    # ------------------------------------------------------------------ what a driver puts in

    def start(self, now: float) -> None:
        """Begin to connect."""
        assert self.phase is Phase.IDLE
        self._since = now
        self._greet(now)

    def receive(self, parts: Sequence[bytes], now: float) -> None:
        """Take in a message that has arrived."""
        if self.phase in (Phase.WAITING, Phase.CLOSED, Phase.IDLE):
            return
        self._heard = now
        try:
            self._hear(frames.decode(parts, _TRUSTED), now)
        except ProtocolError as error:
            self._drop(f"the broker broke the protocol: {error}", now)

    def failed(self, fault: Fault, reason: str, now: float) -> None:
        """Take note of what the transport has seen. Give it every message that had arrived before."""
        if fault is Fault.CUT:
            self.lost(reason, now)
        elif fault is Fault.HANDSHAKE:
            self.handshake_failed(reason, now)
        elif self.phase is Phase.GREETING:
            self._end(Refused(reason, code=Code.UNAUTHORISED))

    def unreachable(self, error: ContradaError) -> None:
        """Take note that the transport cannot even try."""
        if self.phase is not Phase.CLOSED:
            self._end(error)

    def lost(self, reason: str, now: float) -> None:
        """Take note that the connection is cut."""
        if self.phase is Phase.OPEN:
            self._drop(reason, now)
        elif self.phase is Phase.CLOSING:
            self._end(None)
        elif self.phase is Phase.GREETING:
            if reason != self._hint:
                ends = self._patience_ends()
                log.info("%s; trying %s", reason, "on" if ends == float("inf") else f"for {max(ends - now, 0.0):.0f} s")
            self._hint = reason

    def handshake_failed(self, reason: str, now: float) -> None:
        """Take note that security could not be agreed on. Twice while connecting for the first time, that is final."""
        if self.phase is not Phase.GREETING:
            return
        self._bad_handshakes += 1
        if not self.connections and self._bad_handshakes > 1:
            self._end(Refused(reason, code=Code.UNAUTHORISED))
        else:
            self._drop(reason, now)

    def tick(self, now: float) -> None:
        """Look at the clock."""
        if self.phase is Phase.OPEN:
            assert self.welcome is not None
            if now >= self._heard + self.welcome.timeout:
                self._drop(f"nothing was heard from the broker for {self.welcome.timeout:g} s", now)
            elif now >= max(self._heard, self._pinged) + self.welcome.heartbeat:
                self._pinged = now
                self._send(Ping(self._random.getrandbits(32)))
        elif self.phase is Phase.GREETING and now >= self._due:
            self._drop(self._hint or "the broker did not answer", now)
        elif self.phase is Phase.WAITING and now >= self._due:
            self._greet(now)
        elif self.phase is Phase.CLOSING and now >= self._due:
            self._end(None)

    def close(self, now: float) -> None:
        """Say goodbye; CLOSED follows. A driver that wants publications answered waits for `outbox.empty` before."""
        if self.phase is Phase.OPEN:
            self._send(Bye())
            self._due = now + self.options.close_timeout
            self._move(Phase.CLOSING)
        elif self.phase not in (Phase.CLOSING, Phase.CLOSED):
            self._end(None)

    def abort(self) -> None:
        """End at once. What was already given to the transport is still sent."""
        if self.phase is Phase.OPEN:
            self._send(Bye())
        if self.phase is not Phase.CLOSED:
            self._end(None)

    # ------------------------------------------------------------------ inner workings

    def _hear(self, message: Message, now: float) -> None:
        if isinstance(message, Welcome):
            self._greeted(message)
        elif isinstance(message, Ping):
            self._send(Pong(message.nonce))
        elif isinstance(message, Pong):
            pass  # any message is a sign of life
        elif isinstance(message, Bye):
            if self.phase is Phase.CLOSING:
                self._end(None)
            else:
                self._drop(f"the broker said goodbye{': ' * bool(message.reason)}{message.reason}", now)
        elif isinstance(message, Error) and message.fatal:
            if message.code in _TRANSIENT:
                self._drop(f"the broker ended the session: {message.reason}", now)
            else:
                self._end(Refused(message.reason, code=message.code))
        elif self.phase is Phase.GREETING:
            raise ProtocolError(f"{type(message).__name__.upper()} before WELCOME")
        else:
            self._take_in(message)

    def _greeted(self, message: Welcome) -> None:
        if self.phase is not Phase.GREETING:
            raise ProtocolError("a second WELCOME")
        self.welcome = message
        self.connections += 1
        self._attempt = self._bad_handshakes = 0
        self._hint = ""
        self._move(Phase.OPEN)
        self._opened()

    def _greet(self, now: float) -> None:
        self._heard = self._pinged = now
        self._due = min(now + self.options.attempt_timeout, self._patience_ends())
        self._move(Phase.GREETING)
        self._actions.append(Connect())
        self._send(Hello(wire.OLDEST_VERSION, wire.VERSION, self.options.name))

    def _patience_ends(self) -> float:
        patience = self.options.give_up_after if self.connections else self.options.connect_timeout
        return float("inf") if patience is None else self._since + patience

    def _drop(self, reason: str, now: float) -> None:
        """Give up the connection: settle what was in flight, then wait to reconnect or end."""
        if self.phase is Phase.OPEN:
            self._since = now
            log.warning("disconnected: %s", reason)
        self._actions.append(Hangup())
        self._broken(reason)
        if self.phase is Phase.CLOSING:
            self._end(None)
        elif self.connections and not self.options.reconnect:
            self._end(Disconnected(reason))
        elif now >= self._patience_ends():
            waited = f"{now - self._since:.1f} s"
            self._end(Disconnected(f"no connection after {waited}: {reason}"))
        else:
            pause = self.options.pause(self._attempt, self._random)
            self._attempt += 1
            self._due = min(now + pause, self._patience_ends())
            self._move(Phase.WAITING)

    def _end(self, error: ContradaError | None) -> None:
        """Close for good, and tell everything that waits."""
        self.error = error
        self._actions.append(Hangup(linger=True))
        self._ended(error or Disconnected("the client is closed"))
        self._move(Phase.CLOSED)

    def _send(self, message: Message) -> None:
        self._actions.append(Send(frames.encode(message)))

    def _move(self, phase: Phase) -> None:
        self.phase = phase
        self._events.append(Moved(phase))

    def _require_usable(self) -> None:
        if self.phase in (Phase.CLOSING, Phase.CLOSED):
            raise self.error or Disconnected("the client is closed")
