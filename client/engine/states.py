"""The states of a client's connection, what may happen in each, and which state follows: one table.

    IDLE ──START──▶ GREETING ──WELCOME──▶ OPEN ──CLOSE──▶ CLOSING ──BYE, DUE──▶ CLOSED
                     ▲    │                 │
                     │    └──── failed ─────┤   (silence, a cut connection, nonsense, the broker's BYE or RESTART)
                     └───── DUE ── WAITING ◀┘

The law: a pair of phase and input is in `TRANSITIONS`, or it is an error that `next_phase` raises. From GREETING and
OPEN a failure leads to RETRY: to WAITING while another attempt is allowed, else to CLOSED. CLOSED is the end.
`connection.Connection` makes the transitions, and does what belongs to each.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from contrada.errors import ProtocolError


class Phase(StrEnum):
    """Where the connection stands."""

    IDLE = "idle"
    GREETING = "connecting"
    OPEN = "connected"
    WAITING = "waiting to reconnect"
    CLOSING = "closing"
    CLOSED = "closed"


class Input(StrEnum):
    """What may happen to a connection."""

    # The driver's, and the application's behind it
    START = "start"
    DUE = "due"  # the phase has lasted as long as it may
    CLOSE = "close"
    ABORT = "abort"
    UNREACHABLE = "unreachable"  # the transport cannot even try
    # The transport's
    CUT = "cut"  # the connection was cut, or nobody listens
    HANDSHAKE = "handshake"  # security could not be agreed on
    INSECURE = "insecure"  # nor will it be: the key is unknown to the broker, or the handshake failed twice
    # The broker's: its messages
    WELCOME = "welcome"
    LIFE = "life"  # PING or PONG
    ANSWER = "answer"  # everything that is not about the connection itself
    BYE = "bye"
    RESTART = "restart"  # a fatal ERROR that a new connection mends
    REFUSAL = "refusal"  # any other fatal ERROR
    NONSENSE = "nonsense"  # what breaks the protocol


RETRY: Final = (Phase.WAITING, Phase.CLOSED)  # the first while another attempt is allowed
Next = Phase | tuple[Phase, Phase]

_OF_A_SOCKET: Final = frozenset(Input) - {Input.START, Input.DUE, Input.CLOSE, Input.ABORT, Input.UNREACHABLE}


def _ignoring(phase: Phase) -> dict[Input, Next]:
    """What a socket that is closed by now had still to say changes nothing."""
    return dict.fromkeys(_OF_A_SOCKET, phase)


TRANSITIONS: Final[dict[Phase, dict[Input, Next]]] = {
    Phase.IDLE: {
        **_ignoring(Phase.IDLE),
        Input.START: Phase.GREETING,
        Input.CLOSE: Phase.CLOSED,
        Input.ABORT: Phase.CLOSED,
        Input.UNREACHABLE: Phase.CLOSED,
    },
    Phase.GREETING: {
        Input.WELCOME: Phase.OPEN,
        Input.LIFE: Phase.GREETING,
        Input.BYE: RETRY,
        Input.RESTART: RETRY,
        Input.REFUSAL: Phase.CLOSED,
        Input.NONSENSE: RETRY,
        Input.CUT: Phase.GREETING,  # ZeroMQ goes on trying
        Input.HANDSHAKE: RETRY,
        Input.INSECURE: Phase.CLOSED,
        Input.DUE: RETRY,
        Input.CLOSE: Phase.CLOSED,
        Input.ABORT: Phase.CLOSED,
        Input.UNREACHABLE: Phase.CLOSED,
    },
    Phase.OPEN: {
        Input.LIFE: Phase.OPEN,
        Input.ANSWER: Phase.OPEN,
        Input.BYE: RETRY,
        Input.RESTART: RETRY,
        Input.REFUSAL: Phase.CLOSED,
        Input.NONSENSE: RETRY,
        Input.CUT: RETRY,
        Input.HANDSHAKE: Phase.OPEN,  # of an attempt before this one
        Input.INSECURE: Phase.OPEN,  # likewise
        Input.DUE: RETRY,
        Input.CLOSE: Phase.CLOSING,
        Input.ABORT: Phase.CLOSED,
        Input.UNREACHABLE: Phase.CLOSED,
    },
    Phase.WAITING: {
        **_ignoring(Phase.WAITING),
        Input.DUE: Phase.GREETING,
        Input.CLOSE: Phase.CLOSED,
        Input.ABORT: Phase.CLOSED,
        Input.UNREACHABLE: Phase.CLOSED,
    },
    Phase.CLOSING: {
        Input.LIFE: Phase.CLOSING,
        Input.ANSWER: Phase.CLOSING,
        Input.BYE: Phase.CLOSED,
        Input.RESTART: Phase.CLOSED,
        Input.REFUSAL: Phase.CLOSED,
        Input.NONSENSE: Phase.CLOSED,
        Input.CUT: Phase.CLOSED,
        Input.HANDSHAKE: Phase.CLOSING,
        Input.INSECURE: Phase.CLOSING,
        Input.DUE: Phase.CLOSED,
        Input.CLOSE: Phase.CLOSING,
        Input.ABORT: Phase.CLOSED,
        Input.UNREACHABLE: Phase.CLOSED,
    },
    Phase.CLOSED: {
        **_ignoring(Phase.CLOSED),
        Input.CLOSE: Phase.CLOSED,
        Input.ABORT: Phase.CLOSED,
        Input.UNREACHABLE: Phase.CLOSED,
    },
}


def next_phase(phase: Phase, input: Input, message: object = None) -> Next:
    """The phase that follows; `ProtocolError`, with the name of the message, for what must not happen in this one."""
    following = TRANSITIONS[phase].get(input)
    if following is None:
        what = input if message is None else type(message).__name__
        raise ProtocolError(f"{what.upper()} has no place while the connection is {phase}")
    return following
