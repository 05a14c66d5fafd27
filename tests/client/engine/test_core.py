from __future__ import annotations

from dataclasses import fields
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from contrada.broker.protocol import frames
from contrada.broker.protocol.messages import (
    Ack,
    Acked,
    Bye,
    Deliver,
    Delivered,
    Drop,
    Dropped,
    Error,
    Limits,
    NotificationId,
    Status,
)
from contrada.broker.protocol.wire import Code, Policy
from contrada.client.engine.core import Core
from contrada.client.engine.inbox import Inbox
from contrada.client.engine.kept_requests import Stage
from contrada.client.engine.states import Input, Phase
from contrada.client.options import OptionNames, Options, SubscriptionOptionNames, SubscriptionOptions
from contrada.errors import Disconnected, InvalidValue, Refused
from tests.client.engine.script import Line, ScriptedBroker

if TYPE_CHECKING:
    from contrada.client.engine.kept_requests import KeptAdvertisement
    from contrada.client.engine.outbox import Submission


def make(limits: Limits = Limits(), **options: object) -> Line:  # noqa: B008  # an immutable tuple
    return Line(Core(Options(**options), random=Random(7)), ScriptedBroker(limits))


def opened(limits: Limits = Limits(), **options: object) -> Line:  # noqa: B008  # an immutable tuple
    line = make(limits, **options)
    line.open()
    return line


def subscribe(line: Line, window: int = 4) -> Inbox:
    inbox = line.core.subscribe((b"f",), Policy.DROP_OLDEST, window, 0)
    line.answer()
    return inbox


def test_a_publication_is_finished_by_its_ack_and_knows_its_ids() -> None:
    line = opened()
    submission = line.core.publish([b"a", b"b"])
    assert not submission.done
    line.answer()
    assert submission.done
    assert submission.result == [NotificationId("b", 1), NotificationId("b", 2)]


def test_publishing_before_the_welcome_waits_for_it() -> None:
    line = make()
    line.core.start(0.0)
    submission = line.core.publish([b"a"])
    inbox = line.core.subscribe((b"f",), Policy.BLOCK, 4, 0)
    line.answer()
    assert submission.done
    assert [line.core.take(inbox).id.sequence] == [1], "the subscription was made before it and must see it"


def test_the_window_holds_back_what_the_broker_may_not_get() -> None:
    line = opened(Limits(batch=3, window=5))
    submission = line.core.publish([b"%d" % i for i in range(12)])
    line.act()
    assert line.core.outbox.sent_count == 5
    line.answer()
    assert submission.done
    assert line.broker.accepted == [b"%d" % i for i in range(12)]


def test_a_notification_beyond_the_limit_fails_and_others_go_on() -> None:
    line = opened(Limits(notification_bytes=10))
    large, small = line.core.publish([b"x" * 11]), line.core.publish([b"y"])
    line.answer()
    assert isinstance(large.error, Refused)
    assert large.error.code == "limit"
    assert "11 bytes" in str(large.error)
    assert small.error is None


def test_streamed_notifications_share_messages() -> None:
    line = opened()
    for i in range(50):
        line.core.publish([b"%d" % i], streamed=True)
    line.core.flush()
    assert len(line.core.take_actions()) == 1


def test_the_failure_of_streamed_notifications_is_counted_and_taken_once() -> None:
    line = opened()
    line.core.publish([b"a"], streamed=True)
    line.core.publish([b"b"], streamed=True)
    line.core.flush()
    line.core.take_actions()
    (request,) = line.core.outbox.unanswered
    line.core.receive(frames.encode(Error(request, Code.BAD_NOTIFICATION, "no such type")), 0.0)
    failure = line.core.outbox.take_failure()
    assert isinstance(failure, Refused)
    assert failure.code == Code.BAD_NOTIFICATION
    assert "2 streamed" in str(failure)
    assert "no such type" in str(failure)
    assert line.core.outbox.take_failure() is None


def test_what_was_in_flight_when_the_connection_broke_fails_and_what_was_not_is_sent_later() -> None:
    line = opened(Limits(batch=1, window=1))
    sent, queued = line.core.publish([b"sent"]), line.core.publish([b"queued"])
    line.act()
    line.core.failed(Input.CUT, "cut", line.now)
    line.act()
    assert isinstance(sent.error, Disconnected)
    assert "may or may not" in str(sent.error)
    assert not queued.done
    line.advance(1.0)
    line.answer()
    assert queued.error is None
    assert queued.done
    assert line.core.connections == 2


def test_reconnecting_restores_subscriptions_with_the_credit_that_is_free() -> None:
    line = opened()
    inbox = subscribe(line, window=4)
    line.core.publish([b"1", b"2", b"3"])
    line.answer()
    assert len(inbox.buffer) == 3
    line.core.failed(Input.CUT, "cut", line.now)
    line.advance(1.0)
    assert inbox.stage is Stage.WAITING
    line.answer()
    assert inbox.stage is Stage.LIVE
    assert inbox.interruptions == 1
    assert line.broker.credit[inbox.id] == 1, "three of the window's four are still in the buffer"
    line.core.publish([b"4", b"5", b"6"])
    line.answer()
    assert len(inbox.buffer) == 4
    taken = []
    while inbox.buffer:
        taken.append(line.core.take(inbox)._body)
        line.answer()
    assert taken == [b"1", b"2", b"3", b"4", b"5", b"6"]


def test_credit_comes_back_in_halves_and_never_exceeds_the_window() -> None:
    line = opened()
    inbox = subscribe(line, window=10)
    line.core.publish([b"%d" % i for i in range(100)])
    line.answer()
    assert len(inbox.buffer) == 10
    for i in range(100):
        assert line.core.take(inbox)._body == b"%d" % i
        line.answer()
        inbox._check()
    assert not inbox.buffer


def test_a_refused_subscription_fails_with_the_reason() -> None:
    line = opened()
    inbox = line.core.subscribe((b"f",), Policy.BLOCK, 4, 0)
    line.core.take_actions()
    line.core.receive(frames.encode(Error(1, Code.BAD_FILTER, "hazard > what?")), 0.0)
    assert isinstance(inbox.accepted.error, Refused)
    assert inbox.accepted.error.code == Code.BAD_FILTER
    assert inbox.stage is Stage.ENDED
    assert not line.core.inboxes


def test_a_subscription_refused_by_a_stopping_broker_waits_for_the_next() -> None:
    line = opened()
    inbox = line.core.subscribe((b"f",), Policy.BLOCK, 4, 0)
    line.core.take_actions()
    line.core.receive(frames.encode(Error(1, Code.SHUTTING_DOWN, "stopping")), 0.0)
    assert not inbox.accepted.done
    line.core.receive(frames.encode(Bye("stopping")), 0.0)
    line.advance(1.0)
    line.answer()
    assert inbox.stage is Stage.LIVE


def test_a_subscription_left_before_its_ack_leaves_nothing_behind() -> None:
    line = opened()
    inbox = line.core.subscribe((b"f",), Policy.BLOCK, 4, 0)
    ticket = line.core.withdraw(inbox)
    line.answer()
    assert ticket.done
    assert not line.broker.credit
    assert not line.core.inboxes


def test_an_advertisement_is_restored_and_withdrawn() -> None:
    line = opened()
    advertisement = line.core.advertise((b"f", b"g"))
    line.answer()
    assert advertisement.accepted.done
    assert line.broker.advertised == {1: (b"f", b"g")}
    line.core.failed(Input.CUT, "cut", line.now)
    line.advance(1.0)
    line.answer()
    assert advertisement.stage is Stage.LIVE
    assert line.broker.advertised == {1: (b"f", b"g")}
    ticket = line.core.withdraw(advertisement)
    line.answer()
    assert ticket.done
    assert not line.broker.advertised
    assert not line.core.advertisements


def test_a_refused_advertisement_fails_with_the_reason() -> None:
    line = opened()
    advertisement = line.core.advertise((b"f",))
    line.core.take_actions()
    line.core.receive(frames.encode(Error(1, Code.UNAUTHORISED, "no")), 0.0)
    assert isinstance(advertisement.accepted.error, Refused)
    assert not line.core.advertisements


def test_silence_is_pinged_and_then_given_up() -> None:
    line = opened()
    line.broker.mute = True
    assert line.core.deadline() == 1.0
    line.advance(1.0)
    assert line.core.phase is Phase.OPEN
    line.advance(1.0)
    line.advance(1.0)
    assert line.core.phase is Phase.WAITING
    line.broker.mute = False
    line.advance(1.0)
    line.answer()
    assert line.core.phase is Phase.OPEN


def test_a_pong_is_a_sign_of_life() -> None:
    line = opened()
    for _ in range(10):
        line.advance(1.0)
        line.answer()
    assert line.core.phase is Phase.OPEN
    assert line.core.connections == 1


def test_the_first_connection_fails_in_time_with_the_transport_s_reason() -> None:
    line = make(connect_timeout=4.0, attempt_timeout=1.0)
    line.broker.mute = True
    line.core.start(0.0)
    line.core.failed(Input.CUT, "tcp://x:1: Connection refused", 0.0)
    while line.core.phase is not Phase.CLOSED:
        deadline = line.core.deadline()
        assert deadline is not None
        line.advance(max(deadline - line.now, 0.0))
        line.core.failed(Input.CUT, "tcp://x:1: Connection refused", line.now)
        assert line.now < 5.0
    assert isinstance(line.core.error, Disconnected)
    assert "Connection refused" in str(line.core.error)


def test_a_handshake_that_fails_twice_is_final_the_first_time_and_retried_later() -> None:
    line = make()
    line.core.start(0.0)
    line.core.failed(Input.HANDSHAKE, "wrong key", 0.0)
    assert line.core.phase is Phase.WAITING
    line.advance(1.0)
    line.core.failed(Input.HANDSHAKE, "wrong key", line.now)
    assert line.core.phase is Phase.CLOSED
    assert isinstance(line.core.error, Refused)
    line = opened()
    line.core.failed(Input.CUT, "cut", line.now)
    for _ in range(5):
        line.advance(5.0)
        line.core.failed(Input.HANDSHAKE, "wrong key", line.now)
        assert line.core.phase is Phase.WAITING


def test_reconnecting_gives_up_when_told_to() -> None:
    line = opened(give_up_after=10.0, attempt_timeout=1.0)
    inbox = subscribe(line)
    line.broker.mute = True
    line.core.failed(Input.CUT, "cut", line.now)
    while line.core.phase is not Phase.CLOSED:
        deadline = line.core.deadline()
        assert deadline is not None
        line.advance(max(deadline - line.now, 0.0))
        assert line.now < 12.0
    assert isinstance(inbox.error, Disconnected)


def test_without_reconnect_a_cut_is_the_end() -> None:
    line = opened(reconnect=False)
    submission = line.core.publish([b"a"])
    line.core.failed(Input.CUT, "cut", line.now)
    assert line.core.phase is Phase.CLOSED
    assert isinstance(submission.error, Disconnected)
    with pytest.raises(Disconnected, match="cut"):
        line.core.publish([b"b"])


@pytest.mark.parametrize("code", [Code.UNAUTHORISED, Code.VERSION, Code.SLOW_CONSUMER, Code.BANNED, Code.FLOW])
def test_a_permanent_refusal_ends_the_client_with_its_reason(code: Code) -> None:
    line = opened()
    inbox = subscribe(line)
    line.core.publish([b"kept"])
    line.answer()
    line.core.receive(frames.encode(Error(0, code, "because", fatal=True)), 0.0)
    assert line.core.phase is Phase.CLOSED
    assert isinstance(line.core.error, Refused)
    assert line.core.error.code == code
    assert inbox.error is line.core.error
    assert line.core.take(inbox)._body == b"kept", "what had arrived can still be taken"


@pytest.mark.parametrize("code", [Code.NO_SESSION, Code.SILENT, Code.SHUTTING_DOWN])
def test_a_transient_refusal_reconnects(code: Code) -> None:
    line = opened()
    line.core.receive(frames.encode(Error(0, code, "later", fatal=True)), 0.0)
    assert line.core.phase is Phase.WAITING


def test_the_broker_s_goodbye_reconnects_and_ours_is_answered() -> None:
    line = opened()
    line.core.receive(frames.encode(Bye("restart")), 0.0)
    assert line.core.phase is Phase.WAITING
    line.advance(1.0)
    line.answer()
    line.core.close(line.now)
    assert line.core.phase is Phase.CLOSING
    line.answer()
    assert line.core.phase is Phase.CLOSED
    assert line.core.error is None


def test_closing_does_not_wait_for_ever() -> None:
    line = opened(close_timeout=2.0)
    line.broker.mute = True
    line.core.close(line.now)
    line.advance(2.0)
    assert line.core.phase is Phase.CLOSED


def test_a_query_in_flight_is_asked_again_after_reconnecting() -> None:
    line = opened()
    query = line.core.ask(Status)
    line.act()
    line.core.failed(Input.CUT, "cut", line.now)
    line.advance(1.0)
    line.answer()
    assert query.result == {"sessions": 2}


def test_drops_are_counted() -> None:
    line = opened()
    inbox = subscribe(line)
    line.core.receive(frames.encode(Dropped((Drop(inbox.id, 3, 3),))), 0.0)
    line.core.receive(frames.encode(Dropped((Drop(inbox.id, 2, 5),))), 0.0)
    assert inbox.dropped == 5


@pytest.mark.parametrize(
    "nonsense",
    [
        [b"\xff"],
        frames.encode(Ack((Acked(99),))),
        frames.encode(Deliver((Delivered(NotificationId("b", 1), "p", b"x", (77,)),))),
    ],
)
def test_a_broker_that_breaks_the_protocol_is_left(nonsense: list[bytes]) -> None:
    line = opened()
    line.core.receive(nonsense, 0.0)
    assert line.core.phase is Phase.WAITING


def test_nothing_may_come_before_the_welcome() -> None:
    line = make()
    line.core.start(0.0)
    line.core.receive(frames.encode(Ack((Acked(1),))), 0.0)
    assert line.core.phase is Phase.WAITING


def test_more_deliveries_than_credit_break_the_protocol() -> None:
    line = opened()
    inbox = subscribe(line, window=1)
    for sequence in (1, 2):
        entry = Delivered(NotificationId("b", sequence), "p", b"x", (inbox.id,))
        line.core.receive(frames.encode(Deliver((entry,))), 0.0)
    assert line.core.phase is Phase.WAITING
    assert len(inbox.buffer) == 1


def test_one_delivery_for_several_subscriptions_is_one_object() -> None:
    line = opened()
    first, second = subscribe(line), subscribe(line)
    line.core.take_changed()
    entry = Delivered(NotificationId("b", 1), "p", b"x", (first.id, second.id))
    line.core.receive(frames.encode(Deliver((entry,))), 0.0)
    assert line.core.take(first) is line.core.take(second)
    assert [each.id for each in line.core.take_changed() if isinstance(each, Inbox)] == [first.id, second.id]


def test_pauses_double_up_to_a_bound_and_are_jittered() -> None:
    options = Options(backoff=0.1, backoff_max=1.0)
    random = Random(1)
    for attempt in range(100):
        longest = min(1.0, 0.1 * 2**attempt)
        assert 0.5 * longest <= options.pause(attempt, random) <= longest


@pytest.mark.parametrize(
    "options",
    [{"backoff": 0}, {"connect_timeout": float("nan")}, {"outstanding": 0}, {"key": "a"}, {"server_key": "a"}],
)
def test_bad_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidValue, match=r"must be|needs both"):
        Options(**options)


def test_an_option_that_a_subscription_does_not_have_is_named() -> None:
    with pytest.raises(InvalidValue, match=r"no option 'widow' \(did you mean window\?\)"):
        SubscriptionOptions.of({"widow": 3})


def test_the_keyword_arguments_are_the_options() -> None:
    assert set(OptionNames.__annotations__) == {field.name for field in fields(Options)}
    assert set(SubscriptionOptionNames.__annotations__) == {field.name for field in fields(SubscriptionOptions)}


class AnyOrder(RuleBasedStateMachine):
    """Calls, answers, cuts and time in any order: all invariants hold, nothing acknowledged is lost."""

    @initialize(batch=st.integers(1, 4), window=st.integers(1, 6), outstanding=st.integers(1, 20))
    def begin(self, batch: int, window: int, outstanding: int) -> None:
        self.line = make(Limits(batch=batch, window=window), outstanding=outstanding, connect_timeout=1e9)
        self.core = self.line.core
        self.core.start(0.0)
        self.submissions: list[Submission] = []
        self.inboxes: list[Inbox] = []
        self.advertisements: list[KeptAdvertisement] = []
        self.taken: dict[int, list[int]] = {}
        self.count = 0

    @rule(count=st.integers(0, 8), streamed=st.booleans())
    def publish(self, count: int, streamed: bool) -> None:
        bodies = [b"%d" % (self.count + i) for i in range(count)]
        self.count += count
        self.submissions.append(self.core.publish(bodies, streamed=streamed))

    @rule(window=st.integers(1, 5))
    def subscribe(self, window: int) -> None:
        self.inboxes.append(self.core.subscribe((b"f",), Policy.BLOCK, window, 0))

    @rule(data=st.data())
    def unsubscribe(self, data: st.DataObject) -> None:
        if self.inboxes:
            self.core.withdraw(data.draw(st.sampled_from(self.inboxes)))

    @rule()
    def advertise(self) -> None:
        self.advertisements.append(self.core.advertise((b"f",)))

    @rule(data=st.data())
    def unadvertise(self, data: st.DataObject) -> None:
        if self.advertisements:
            self.core.withdraw(data.draw(st.sampled_from(self.advertisements)))

    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        filled = [inbox for inbox in self.inboxes if inbox.buffer]
        if filled:
            inbox = data.draw(st.sampled_from(filled))
            self.taken.setdefault(id(inbox), []).append(self.core.take(inbox).id.sequence)

    @rule()
    def flush(self) -> None:
        self.core.flush()

    @rule(count=st.integers(1, 20))
    def answer(self, count: int) -> None:
        self.line.answer(count)

    @rule()
    def cut(self) -> None:
        self.line.act()
        self.core.failed(Input.CUT, "cut", self.line.now)
        self.line.act()

    @rule(seconds=st.floats(0.01, 4.0))
    def wait(self, seconds: float) -> None:
        self.line.advance(seconds)

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "core"):
            self.core._check()
            self.core.take_changed()
            for sequences in self.taken.values():
                assert sequences == sorted(set(sequences)), "in order, and never twice"

    def teardown(self) -> None:
        if not hasattr(self, "core"):
            return
        for _ in range(20):  # let it come to rest on a line that works
            self.line.advance(2.0)
            self.core.flush()
            self.line.answer()
        assert self.core.phase is Phase.OPEN
        assert self.core.outbox.empty
        assert self.line.broker.advertised.keys() == self.core.advertisements.keys()
        accepted = set(self.line.broker.accepted)
        assert len(self.line.broker.accepted) == len(accepted), "nothing is published twice"
        for submission in self.submissions:
            assert submission.done
            assert submission.error is not None or accepted.issuperset(submission.bodies)


AnyOrder.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestAnyOrder = AnyOrder.TestCase
