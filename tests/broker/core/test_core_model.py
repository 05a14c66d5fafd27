"""Random histories: the core against the naive model, and against anything that bytes can say."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from contrada.broker.protocol.frames import encode
from contrada.broker.protocol.messages import Bye, Credit, Grant, Hello, Publish, Unsubscribe
from contrada.broker.protocol.wire import Policy
from tests.broker.strategies import messages
from tests.broker.table_top import TableTop, acked, body, delivered, dropped
from tests.naive.delivery import ModelSubscription
from tests.naive.recording import NaiveRecording

CLIENTS = (b"a", b"b", b"c")
clients = st.sampled_from(CLIENTS)
values = st.integers(0, 2)
ids = st.integers(0, 3)


class Deliveries(RuleBasedStateMachine):
    """Clients subscribe, publish, give credit, stop reading and leave; every delivery, loss and ACK is foretold."""

    def __init__(self) -> None:
        super().__init__()
        self.top = TableTop(block_timeout=1e5, timeout=1e5)
        self.recording = self.top.core.delivery.recording = NaiveRecording()
        self.model: dict[tuple[bytes, int], ModelSubscription] = {}
        self.got: dict[tuple[bytes, int], list[int]] = {}
        self.reported: dict[tuple[bytes, int], int] = {}
        self.full: set[bytes] = set()  # the core knows it to be congested
        self.waiting: dict[tuple[bytes, int], set[tuple[bytes, int]]] = {}  # request → queues that hold its ACK
        self.sequence = 1
        self.request = 0

    @initialize()
    def everybody_connects(self) -> None:
        self.top.connect(*CLIENTS)

    def settle(self) -> None:
        """One turn of the core and of the model, and everybody reads what came."""
        for key, subscription in self.model.items():
            if key[0] not in self.full:
                subscription.drain()
        self.top.turn()
        self.full = {c for c in CLIENTS if any(s.congested for s in self.sessions(c))}
        for client in CLIENTS:
            self.read(client)

    def sessions(self, client):
        return [s for s in self.top.core.sessions.by_number.values() if s.connection == client]

    def read(self, client: bytes) -> None:
        heard = self.top.inbox.pop(client, [])
        for sequence, subscriptions in delivered(heard):
            for id in subscriptions:
                self.got[client, id].append(sequence)
        for id, lost, total in dropped(heard):
            self.reported[client, id] += lost
            assert self.reported[client, id] == total
        for request in acked(heard):
            if (client, request) in self.waiting:
                held = self.waiting.pop((client, request))
                assert not any(len(self.model[k].queue) > self.model[k].limit for k in held if k in self.model)

    def forget(self, key: tuple[bytes, int]) -> None:
        del self.model[key]

    @rule(client=clients, id=ids, value=values, policy=st.sampled_from([Policy.BLOCK, Policy.DROP_OLDEST]),
          credit=st.integers(0, 4), queue=st.integers(1, 3))  # fmt: skip
    def subscribe(self, client, id, value, policy, credit, queue) -> None:
        if (client, id) in self.model or client in self.top.full:
            return
        self.settle()
        if client in self.full:
            return
        self.top.subscribe(client, id, value, policy, credit, queue)
        self.model[client, id] = ModelSubscription("a", value, policy, credit, queue)
        self.got[client, id] = []
        self.reported[client, id] = 0

    @rule(client=clients, chosen=st.lists(values, min_size=1, max_size=5))
    def publish(self, client, chosen) -> None:
        self.settle()
        self.request += 1
        held = set()
        for value in chosen:
            for key, subscription in self.model.items():
                over = subscription.value == value and subscription.offer(self.sequence, congested=key[0] in self.full)
                if over and subscription.policy is Policy.BLOCK:
                    held.add(key)
            self.sequence += 1
        self.waiting[client, self.request] = held
        self.top.say(client, Publish(self.request, tuple(body(a=value) for value in chosen)))
        self.settle()

    @rule(client=clients, id=ids, credit=st.integers(1, 5))
    def grant(self, client, id, credit) -> None:
        self.settle()
        self.top.say(client, Credit((Grant(id, credit),)))
        if (client, id) in self.model:
            self.model[client, id].credit += credit
        self.settle()

    @rule(client=clients, id=ids)
    def unsubscribe(self, client, id) -> None:
        if (client, id) in self.model and client not in self.top.full:
            self.settle()
            self.settle()
            self.request += 1
            self.top.say(client, Unsubscribe(self.request, id))
            self.forget((client, id))
            self.settle()

    @rule(client=clients)
    def stop_reading(self, client) -> None:
        self.top.full.add(client)

    @precondition(lambda self: self.top.full)
    @rule()
    def read_again(self) -> None:
        self.top.full.clear()
        self.settle()
        self.settle()

    @rule(client=clients, how=st.sampled_from(["bye", "hello"]))
    def leave_and_return(self, client, how) -> None:
        if client in self.top.full or client in self.full:
            return
        self.settle()
        self.top.say(client, *([Bye()] if how == "bye" else []), Hello(1, 1, "again"))
        for key in [k for k in self.model if k[0] == client]:
            self.forget(key)
        for key in [k for k in self.waiting if k[0] == client]:
            del self.waiting[key]
        self.settle()
        self.top.inbox.pop(client, None)

    @invariant()
    def deliveries_are_as_foretold(self) -> None:
        self.top.core._check()
        if self.top.full or self.full:
            return
        self.settle()
        self.settle()
        self.top.tick()
        for client in CLIENTS:
            self.read(client)
        core = self.top.core
        self.recording._check(core)
        for key, subscription in self.model.items():
            assert self.got[key] == subscription.delivered
            (interface,) = (
                number for number, s in core.subscriptions.by_interface.items() if (s.session.connection, s.id) == key
            )
            assert self.recording.routed[interface] == subscription.delivered + subscription.queue
            assert self.reported[key] == len(subscription.lost)
        for key, held in self.waiting.items():
            assert any(len(self.model[k].queue) > self.model[k].limit for k in held if k in self.model), key


Deliveries.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestDeliveries = Deliveries.TestCase


class AnythingGoes(RuleBasedStateMachine):
    """One client says anything at all, in any order; a well-behaved pair beside it notices nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.top = TableTop(bad_frames=5, ban=3.0, timeout=1e5)
        self.recording = self.top.core.delivery.recording = NaiveRecording()
        self.top.connect(b"good", b"pub")
        self.top.subscribe(b"good", 1, "x", credit=10**9)
        self.request = 0

    @rule(message=messages)
    def say(self, message) -> None:
        self.top.raw(b"evil", *encode(message))

    @rule(frames=st.lists(st.binary(max_size=30), max_size=3))
    def babble(self, frames) -> None:
        self.top.raw(b"evil", *frames)

    @rule(message=messages, at=st.integers(0, 10_000), flip=st.integers(1, 255))
    def garble(self, message, at, flip) -> None:
        head, *attachments = encode(message)
        damaged = bytearray(head)
        damaged[at % len(head)] ^= flip
        self.top.raw(b"evil", bytes(damaged), *attachments)

    @rule()
    def greet(self) -> None:
        self.top.say(b"evil", Hello(1, 1, "evil"))

    @rule(seconds=st.floats(0, 2))
    def wait(self, seconds) -> None:
        self.top.tick(seconds)

    @rule(full=st.booleans())
    def read_or_not(self, full) -> None:
        (self.top.full.add if full else self.top.full.discard)(b"evil")

    @invariant()
    def others_are_served(self) -> None:
        self.request += 1
        self.top.publish(b"pub", self.request, "x")
        assert len(delivered(self.top.heard(b"good"))) == 1
        assert self.request in acked(self.top.heard(b"pub"))
        self.recording._check(self.top.core)


AnythingGoes.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestAnythingGoes = AnythingGoes.TestCase
