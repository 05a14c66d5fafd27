"""A client's connection: greeting, heartbeats, loss, back-off, goodbye. Half of the core (`core.py`).

`states` has the phases and the transitions between them; here is what belongs to each. In CLOSED, `error` says why
(None after an orderly close). What a connection is for is the subclass's business: it is told when one opens, breaks
and ends for good, and gets the messages that are not about the connection itself.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from contrada.broker.protocol import frames, wire
from contrada.broker.protocol.messages import Bye, Error, Hello, Limits, Ping, Pong, Welcome
from contrada.broker.protocol.wire import Code
from contrada.client.engine.actions import Connect, Hangup, Send
from contrada.client.engine.states import RETRY, TRANSITIONS, Input, Phase, next_phase
from contrada.client.engine.tickets import Waitable
from contrada.errors import ContradaError, Disconnected, ProtocolError, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contrada.broker.protocol.messages import Message
    from contrada.client.engine.actions import Action
    from contrada.client.options import Options

log = logging.getLogger("contrada.client")

# The broker's own limits bind what it accepts; what it sends is only kept from exhausting our memory.
_TRUSTED = Limits(message_bytes=1 << 30, notification_bytes=1 << 30, batch=1 << 20)
_TRANSIENT = frozenset({Code.NO_SESSION, Code.SILENT, Code.SHUTTING_DOWN})
_WITHOUT_SOCKET = frozenset({Phase.IDLE, Phase.WAITING, Phase.CLOSED})
_INPUTS = {Welcome: Input.WELCOME, Ping: Input.LIFE, Pong: Input.LIFE, Bye: Input.BYE}


class Connection(Waitable, ABC):
    """A connection that is made, kept, and made again. Whoever waits for room or for another phase waits for it."""

    def __init__(self, options: Options, random: Random | None) -> None:
        super().__init__()
        self.options = options
        self.phase = Phase.IDLE
        self.error: ContradaError | None = None
        self.welcome: Welcome | None = None  # of the current or last session
        self.connections = 0  # WELCOMEs so far
        self._random = random or Random()
        self.actions: list[Action] = []  # what is to be done now, in order: for `take_actions`
        self._changed: list[Waitable] = []
        self._attempt = 0
        self._hint = ""
        self._bad_handshakes = 0
        self._heard = self._pinged = 0.0
        self._due = 0.0  # of the phase: end of the greeting, of the pause, of closing
        self._since = 0.0  # when the connection was last missing

    # ------------------------------------------------------------------ what the subclass does

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], None]]]
    """What is done with each type of message that is not about the connection itself, and that a broker may send."""

    @abstractmethod
    def _opened(self) -> None:
        """Send again what the broker must know."""

    @abstractmethod
    def _broken(self, reason: str) -> None:
        """Fail or keep what was on its way."""

    @abstractmethod
    def _ended(self, reason: ContradaError) -> None:
        """Fail everything that waits; nothing more will be sent."""

    # ------------------------------------------------------------------ what a driver takes out

    def take_actions(self) -> list[Action]:
        """Take what is to be done now, in order."""
        taken, self.actions = self.actions, []
        return taken

    def take_changed(self) -> list[Waitable]:
        """Take what has changed since the last call: whoever waits for any of it should look again."""
        changed, self._changed = self._changed, []
        return changed

    def deadline(self) -> float | None:
        """When `tick` wants to be called, if nothing happens before."""
        if self.phase is Phase.OPEN:
            assert self.welcome is not None
            return min(max(self._heard, self._pinged) + self.welcome.heartbeat, self._heard + self.welcome.timeout)
        return self._due if self.phase in (Phase.GREETING, Phase.WAITING, Phase.CLOSING) else None

    # ------------------------------------------------------------------ what a driver puts in

    def start(self, now: float) -> None:
        """Begin to connect."""
        self._since = now
        self._follow(Input.START, now)

    def receive(self, parts: Sequence[bytes], now: float) -> None:
        """Take in a message that has arrived."""
        if self.phase in _WITHOUT_SOCKET:
            return
        self._heard = now
        try:
            message = frames.decode(parts, _TRUSTED)
            input = _INPUTS.get(type(message), Input.ANSWER)
            if isinstance(message, Error) and message.fatal:
                if message.code in _TRANSIENT:
                    self._follow(Input.RESTART, now, f"the broker ended the session: {message.reason}")
                else:
                    self._follow(Input.REFUSAL, error=Refused(message.reason, code=message.code))
                return
            if input not in TRANSITIONS[self.phase]:
                next_phase(self.phase, input, message)  # raises: it must not come now
            if input is Input.ANSWER:
                handler = self._HANDLERS.get(type(message))
                if handler is None:
                    raise ProtocolError(f"the broker sent {type(message).__name__.upper()}, which only clients send")
                handler(self, message)
            elif isinstance(message, Ping):
                self._send(Pong(message.nonce))
            elif isinstance(message, Welcome):
                self._open(message)
            elif isinstance(message, Bye):
                self._follow(input, now, f"the broker said goodbye{': ' * bool(message.reason)}{message.reason}")
        except ProtocolError as error:
            self._follow(Input.NONSENSE, now, f"the broker broke the protocol: {error}")

    def failed(self, fault: Input, reason: str, now: float) -> None:
        """Take note of what the transport has seen. Give it every message that had arrived before."""
        if self.phase is Phase.GREETING and fault is Input.HANDSHAKE:
            self._bad_handshakes += 1
            if not self.connections and self._bad_handshakes > 1:
                fault = Input.INSECURE
        elif self.phase is Phase.GREETING and fault is Input.CUT and reason != self._hint:
            ends = self._patience_ends()
            log.info("%s; trying %s", reason, "on" if ends == float("inf") else f"for {max(ends - now, 0.0):.0f} s")
            self._hint = reason
        error = Refused(reason, code=Code.UNAUTHORISED) if fault is Input.INSECURE else None
        self._follow(fault, now, reason, error)

    def unreachable(self, error: ContradaError) -> None:
        """Take note that the transport cannot even try."""
        self._follow(Input.UNREACHABLE, error=error)

    def tick(self, now: float) -> None:
        """Look at the clock."""
        if self.phase is Phase.OPEN:
            assert self.welcome is not None
            if now >= self._heard + self.welcome.timeout:
                self._follow(Input.DUE, now, f"nothing was heard from the broker for {self.welcome.timeout:g} s")
            elif now >= max(self._heard, self._pinged) + self.welcome.heartbeat:
                self._pinged = now
                self._send(Ping(self._random.getrandbits(32)))
        elif (due := self.deadline()) is not None and now >= due:
            self._follow(Input.DUE, now, self._hint or "the broker did not answer")

    def close(self, now: float) -> None:
        """Say goodbye; CLOSED follows. A driver that wants publications answered waits for `outbox.empty` before."""
        self._follow(Input.CLOSE, now)

    def abort(self) -> None:
        """End at once. What was already given to the transport is still sent."""
        if self.phase is Phase.OPEN:
            self._send(Bye())
        self._follow(Input.ABORT)

    # ------------------------------------------------------------------ transitions

    def _follow(self, input: Input, now: float = 0.0, reason: str = "", error: ContradaError | None = None) -> None:
        """Make the transition that the table has for an input, and do what belongs to the new phase.

        `reason` is for people, should the connection be retried; `error` for CLOSED, should that be no orderly end.
        """
        following = next_phase(self.phase, input)
        if following is self.phase:
            return
        if following is RETRY:
            self._retry(reason, now)
        elif following is Phase.GREETING:
            self._greet(now)
        elif following is Phase.CLOSING:
            self._send(Bye())
            self._due = now + self.options.close_timeout
            self._move(Phase.CLOSING)
        elif following is Phase.CLOSED:
            self._end(error)

    def _greet(self, now: float) -> None:
        self._heard = self._pinged = now
        self._due = min(now + self.options.attempt_timeout, self._patience_ends())
        self._move(Phase.GREETING)
        self.actions.append(Connect())
        self._send(Hello(wire.OLDEST_VERSION, wire.VERSION, self.options.name))

    def _open(self, welcome: Welcome) -> None:
        self.welcome = welcome
        self.connections += 1
        self._attempt = self._bad_handshakes = 0
        self._hint = ""
        self._move(Phase.OPEN)
        self._opened()

    def _retry(self, reason: str, now: float) -> None:
        """Give up the connection: fail what was on its way, then wait to reconnect or end."""
        if self.phase is Phase.OPEN:
            self._since = now
            log.warning("disconnected: %s", reason)
        self.actions.append(Hangup())
        self._broken(reason)
        if self.connections and not self.options.reconnect:
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
        self.actions.append(Hangup(linger=True))
        self._ended(error or Disconnected("the client is closed"))
        self._move(Phase.CLOSED)

    def _patience_ends(self) -> float:
        patience = self.options.give_up_after if self.connections else self.options.connect_timeout
        return float("inf") if patience is None else self._since + patience

    def _send(self, message: Message) -> None:
        self.actions.append(Send(frames.encode(message)))

    def _move(self, phase: Phase) -> None:
        self.phase = phase
        self._changed.append(self)

    def _require_usable(self) -> None:
        if self.phase in (Phase.CLOSING, Phase.CLOSED):
            raise self.error or Disconnected("the client is closed")
