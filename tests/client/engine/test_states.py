"""The table of transitions: complete, reachable, and what the core really does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contrada.broker.protocol import frames
from contrada.broker.protocol.messages import Ack, Acked, Bye, Drop, Dropped, Error, Limits, Pong, Welcome
from contrada.broker.protocol.wire import Code
from contrada.client.engine.states import RETRY, TRANSITIONS, Input, Phase, next_phase
from contrada.errors import Disconnected, ProtocolError
from tests.client.engine.test_core import make

if TYPE_CHECKING:
    from contrada.broker.protocol.messages import Message
    from tests.client.engine.script import Line

PAIRS = [(phase, input) for phase in Phase for input in Input]
ERRORS = {
    *((phase, Input.START) for phase in Phase if phase is not Phase.IDLE),
    (Phase.IDLE, Input.DUE),
    (Phase.CLOSED, Input.DUE),
    (Phase.GREETING, Input.ANSWER),
    (Phase.OPEN, Input.WELCOME),
    (Phase.CLOSING, Input.WELCOME),
}
MESSAGES: dict[Input, Message] = {
    Input.WELCOME: Welcome(1, "b", 9, "p", frozenset(), 1.0, 3.0, Limits()),
    Input.LIFE: Pong(1),
    Input.ANSWER: Dropped((Drop(77, 1, 1),)),
    Input.BYE: Bye("later"),
    Input.RESTART: Error(0, Code.SHUTTING_DOWN, "later", fatal=True),
    Input.REFUSAL: Error(0, Code.BANNED, "no", fatal=True),
    Input.NONSENSE: Ack((Acked(99),)),
}


@pytest.mark.parametrize(("phase", "input"), PAIRS)
def test_every_pair_is_in_the_table_or_an_error(phase: Phase, input: Input) -> None:
    assert (input not in TRANSITIONS[phase]) == ((phase, input) in ERRORS)
    if (phase, input) in ERRORS:
        with pytest.raises(ProtocolError, match=f"{input.upper()} has no place while the connection is {phase}"):
            next_phase(phase, input)
    else:
        assert next_phase(phase, input) in (*Phase, RETRY)


def test_every_phase_is_reached_and_the_last_is_never_left() -> None:
    reached, new = set(), {Phase.IDLE}
    while new:
        reached |= new
        following = [each for phase in new for each in TRANSITIONS[phase].values()]
        new = {phase for each in following for phase in ((each,) if isinstance(each, Phase) else each)} - reached
    assert reached == set(Phase)
    assert set(TRANSITIONS[Phase.CLOSED].values()) == {Phase.CLOSED}
    assert all(TRANSITIONS[phase][Input.ABORT] is Phase.CLOSED for phase in Phase)


def in_phase(phase: Phase) -> Line:
    line = make()
    if phase is Phase.IDLE:
        return line
    line.core.start(0.0)
    line.act()
    if phase in (Phase.OPEN, Phase.CLOSING):
        line.answer()
    if phase is Phase.CLOSING:
        line.core.close(0.0)
    elif phase is Phase.WAITING:
        line.core.receive(frames.encode(Bye()), 0.0)
    elif phase is Phase.CLOSED:
        line.core.abort()
    line.act()
    assert line.core.phase is phase
    return line


def put_in(line: Line, input: Input) -> None:
    core = line.core
    if input is Input.START:
        core.start(0.0)
    elif input is Input.DUE:
        core.tick(14.0 if core.phase is not Phase.WAITING else 1.0)  # within `connect_timeout`
    elif input is Input.CLOSE:
        core.close(0.0)
    elif input is Input.ABORT:
        core.abort()
    elif input is Input.UNREACHABLE:
        core.unreachable(Disconnected("no socket"))
    elif input in MESSAGES:
        core.receive(frames.encode(MESSAGES[input]), 0.0)
    else:
        core.failed(input, "because", 0.0)


@pytest.mark.parametrize(("phase", "input"), PAIRS)
def test_the_core_goes_where_the_table_says(phase: Phase, input: Input) -> None:
    """A message that has no place is nonsense, and a deadline passes where there is none; a second start is refused."""
    line = in_phase(phase)
    if (phase, input) in ERRORS and input is Input.START:
        with pytest.raises(ProtocolError):
            put_in(line, input)
        return
    put_in(line, input)
    following = TRANSITIONS[phase].get(input)
    if following is None:
        following = phase if input is Input.DUE else TRANSITIONS[phase][Input.NONSENSE]
    assert line.core.phase is (following if isinstance(following, Phase) else Phase.WAITING)
    line.core._check()


@pytest.mark.parametrize("phase", [Phase.GREETING, Phase.OPEN])
def test_retrying_ends_where_no_attempt_is_left(phase: Phase) -> None:
    line = in_phase(phase)
    object.__setattr__(line.core.options, "reconnect", False)
    object.__setattr__(line.core.options, "connect_timeout", 0.0)
    put_in(line, Input.BYE)
    assert line.core.phase is Phase.CLOSED
    assert isinstance(line.core.error, Disconnected)
