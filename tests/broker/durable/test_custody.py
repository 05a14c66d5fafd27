"""Custody over links, step by step: who has what on disk when, and what happens when somebody cannot keep it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contrada.broker.durable.custody import Custody
from contrada.broker.protocol.messages import (
    DurableQuery,
    Error,
    Hello,
    Keep,
    Link,
    Message,
    Reply,
    Store,
    SubscribeDurable,
)
from contrada.broker.protocol.peer_frames import encode_peer
from contrada.broker.protocol.peer_messages import Carried, Carry, Decline, Known, Run
from contrada.broker.protocol.wire import Code, DurableAction, Full
from contrada.client.engine.kept_requests import Stage
from contrada.forwarding.codec.msgpack import encode_filter, encode_notification
from contrada.forwarding.language.filter import as_filters
from contrada.forwarding.language.text.parse import parse
from tests.broker.durable.fake_journal import FakeJournal
from tests.broker.durable.simulation import World
from tests.broker.overlay.linked_cores import Overlay

if TYPE_CHECKING:
    from tests.broker.durable.simulated_parties import SimulatedClient


def publish(world: World, where: str, *values: int) -> None:
    """Publish durably at a broker, and let that broker alone work until it has answered."""
    publisher, host = world.publishers[where], world.hosts[where]
    for value in values:
        world.publish(publisher, value, f"key-{world.x + 1}")
    while not all(each.done for each in publisher.submissions.values()):
        host.turn()
        host.write()
    world.look()


def waiting(world: World, at: str, neighbour: str) -> int:
    return len(world.hosts[at].core.durable.state.links[neighbour].queue)


def received(world: World, name: str) -> list[int]:
    world.exhaust()
    world.subscribers[name].take(world.auditor, 1.0)
    return [x for x, _ in world.auditor.delivered[name]]


def subscribe_at_c(world: World, value: int) -> SimulatedClient:
    """One more durable subscription, `s9`, at the end of the line."""
    world.places["s9"] = ("c", value)
    world.subscribers["s9"] = client = world.subscriber("s9")
    return client


def restart(world: World, name: str) -> None:
    world.hosts[name].die()
    world.hosts[name].start()


def test_it_is_freed_when_the_next_disk_has_it_and_not_before():
    world = World(1, "line")
    publish(world, "a", 0)
    a, b = world.hosts["a"], world.hosts["b"]
    a.turn()
    assert waiting(world, "a", "b") == 1
    for end in list(world.queues):
        world.carry(end, 100)
    b.turn()  # it has heard and matched it; its disk has yet to work
    b.turn()
    for end in list(world.queues):
        world.carry(end, 100)
    assert b.jobs
    assert waiting(world, "a", "b") == 1
    b.write()
    b.turn()
    for end in list(world.queues):
        world.carry(end, 100)
    assert waiting(world, "a", "b") == 0
    assert waiting(world, "b", "c") == 1
    assert received(world, "s0") == [1]
    assert waiting(world, "b", "c") == 0


def test_each_may_be_killed_in_turn():
    world = World(1, "line")
    publish(world, "a", 0, 0)
    restart(world, "b")
    world.spin(3.0)
    restart(world, "a")
    world.hosts["c"].die()
    publish_when_there(world, "a", 0)
    world.spin(3.0)
    world.hosts["c"].start()
    world.spin(3.0)
    assert received(world, "s0") == [1, 2, 3]


def publish_when_there(world: World, where: str, *values: int) -> None:
    world.spin(3.0)
    publish(world, where, *values)


def test_a_neighbour_that_is_away_for_longer_than_routing_remembers_is_still_kept_for():
    world = World(1, "line")
    world.hosts["c"].die()
    world.spin(60.0)  # three times as long
    publish(world, "a", 0, 0, 0)
    world.exhaust()
    assert waiting(world, "b", "c") == 3
    restart(world, "b")
    world.spin(30.0)
    assert waiting(world, "b", "c") == 3
    publish(world, "a", 0)
    world.hosts["c"].start()
    world.spin(5.0)
    assert received(world, "s0") == [1, 2, 3, 4]


def test_what_a_full_subscription_refuses_waits_at_the_broker_before():
    world = World(1, "line")
    client = subscribe_at_c(world, 7)
    world.spin(3.0)
    subscription = world.hosts["c"].core.durable._by_name["s9"]
    subscription.keep = subscription.keep._replace(notifications=2, when_notifications=Full.REFUSE)
    publish(world, "a", 7, 7, 7, 7, 7)
    world.spin(3.0)
    assert len(subscription.queue) == 2
    assert waiting(world, "b", "c") == 3
    assert world.hosts["b"].core.counters["custody_declined"] >= 1
    for _ in range(30):
        client.take(world.auditor, 1.0)
        world.spin(1.0)
    assert [x for x, _ in world.auditor.delivered["s9"]] == [1, 2, 3, 4, 5]
    assert client.inbox.stage is Stage.LIVE


def test_publishers_are_refused_when_too_much_waits_for_a_neighbour():
    world = World(1, "line")
    world.hosts["b"].die()
    cursor = world.hosts["a"].core.durable.state.links["b"]
    cursor.keep = cursor.keep._replace(notifications=2)
    world.spin(5.0)
    publish(world, "a", 0, 0, 0)
    assert sorted(world.auditor.ids) == [1, 2]
    assert world.auditor.refused == {3}


def test_what_waits_for_a_neighbour_that_never_comes_back_is_dropped_and_counted():
    world = World(1, "line")
    world.hosts["b"].die()
    world.spin(5.0)
    publish(world, "a", 0, 0)
    core = world.hosts["a"].core
    world.wall += 40 * 86_400
    world.spin(3.0)
    assert not core.durable.state.links
    assert core.counters["durable_dropped"] == 2
    restart(world, "a")
    world.spin(3.0)
    assert not world.hosts["a"].core.durable.state.links
    world.hosts["b"].start()
    world.spin(5.0)
    publish(world, "a", 0)
    assert received(world, "s0") == [3]


def test_an_operator_ends_what_is_kept_for_a_neighbour_that_is_gone_for_good():
    overlay = overlay_of(True, True)
    encoded = tuple(encode_filter(f) for f in as_filters(parse("x > 0")))
    overlay.say("b", b"client", SubscribeDurable(9, 9, "desk", encoded, "", 100, None, Keep()))
    overlay.run()
    core = overlay.cores["a"]

    def unlink(neighbour: str) -> Message:
        overlay.heard["a", b"client"].clear()
        overlay.say("a", b"client", DurableQuery(8, DurableAction.UNLINK, neighbour))
        return overlay.heard["a", b"client"][0]

    assert unlink("b").code is Code.DUPLICATE  # it is up
    overlay.kill("b")
    overlay.run(5.0)
    overlay.say("a", b"client", Store(5, (encode_notification({"x": 1}),), "", ""))
    answer = unlink("b")
    assert isinstance(answer, Reply)
    assert answer.document["waiting"] == 1
    assert core.counters["durable_dropped"] == 1
    assert not core.durable.state.links
    assert unlink("b").code is Code.UNKNOWN


def test_a_subscription_is_confirmed_when_all_linked_brokers_have_it_on_disk(monkeypatch):
    world = World(1, "line")
    late = subscribe_at_c(world, 9)
    a = world.hosts["a"]
    writing = a.write
    kept = []
    monkeypatch.setattr(a, "write", lambda: kept.append(a.jobs.pop(0)))  # its disk takes its time
    world.spin(3.0)
    assert late.inbox.stage is not Stage.LIVE
    a.jobs[:0] = kept
    monkeypatch.setattr(a, "write", writing)
    world.spin(1.0)
    assert late.inbox.stage is Stage.LIVE
    assert len(a.core.durable.state.links["b"].wanted) == 4


def test_what_is_withdrawn_ends_after_a_while():
    world = World(1, "line")
    core = world.hosts["c"].core
    core.durable.end(core.durable._by_name["s0"], "was removed")
    del world.subscribers["s0"], world.places["s0"]
    world.spin(5.0)
    assert len(world.hosts["b"].core.durable.state.links["c"].wanted) == 2
    world.spin(50.0)
    assert len(world.hosts["b"].core.durable.state.links["c"].wanted) == 1
    publish(world, "a", 0)
    world.spin(1.0)
    assert not any(world.waiting().values())


def overlay_of(*disks: bool) -> Overlay:
    """A line of brokers, of which some have disks."""
    overlay = Overlay()
    names = "abc"[: len(disks)]
    for before, name, disk in zip(" abc", names, disks, strict=False):
        core = overlay.add(name, *([before] if before != " " else []))
        if disk:
            core.durable.open(FakeJournal(), lambda: 1e6)
        overlay.client(name)
    overlay.run()
    return overlay


@pytest.mark.parametrize(("disks", "agreed"), [((True, True), True), ((True, False), False), ((False, True), False)])
def test_custody_needs_a_disk_at_both_ends(disks, agreed):
    overlay = overlay_of(*disks)
    links = [link for core in overlay.cores.values() for link in core.overlay.neighbours.values()]
    assert [link.custody for link in links] == [agreed, agreed]
    overlay.subscribe("b", "x > 0")
    if disks[0]:
        overlay.say("a", b"client", Hello(1, 2, "durable"), Store(5, (encode_notification({"x": 1}),), "", ""))
        assert overlay.delivered("b") == [1]


RUN = Run("z", "p", 1, (7,), (encode_notification({"x": 1}),))


@pytest.mark.parametrize("message", [Carry(1, (1024,), (RUN,)), Carried(((1, 2),)), Decline(1, ""), Known(1)])
@pytest.mark.parametrize("disk", [True, False])
def test_who_speaks_of_custody_without_having_agreed_on_it_is_hung_up_on(message, disk):
    overlay = overlay_of(disk)
    overlay.say("a", b"client", Link("evil", False))
    overlay.heard["a", b"client"].clear()
    overlay.cores["a"].receive(b"client", None, encode_peer(message), overlay.now)
    overlay.settle()
    (error,) = [each for each in overlay.heard["a", b"client"] if isinstance(each, Error)]
    assert error.code is Code.BAD_FRAME
    assert not overlay.cores["a"].overlay.neighbours


def test_what_a_peer_says_of_custody_is_bounded_and_harmless():
    overlay = overlay_of(True)
    core = overlay.cores["a"]
    overlay.say("a", b"client", Link("evil", False, custody=True))
    assert core.overlay.neighbours["evil"].custody
    for message in (Carried(((1, 2**62),)), Decline(9, "no"), Known(10**9), Carry(1, (5, 6), (RUN, RUN))):
        core.receive(b"client", None, encode_peer(message), overlay.now)
    overlay.settle()
    heard = [each for each in overlay.heard["a", b"client"] if isinstance(each, Carried)]
    assert [each.spans for each in heard] == [((5, 6),)]  # the same twice is stored once
    assert core.counters["custody_taken"] == 1
    bad = Run("z", "p", 1, (8,), (b"\xc1",))
    core.receive(b"client", None, encode_peer(Carry(1, (7,), (bad,))), overlay.now)
    overlay.settle()
    assert overlay.heard["a", b"client"][-1] == Carried(((7, 7),))  # it will be no better the next time
    flood = Run("z", "p", 1, tuple(range(10, 1010)), (RUN.bodies[0],) * 1000)
    core.durable.store.beside = lambda job, done: None  # a disk that takes for ever
    for at in range(5):
        frames = encode_peer(
            Carry(1, tuple(range(10**4 * at + 10, 10**4 * at + 1010)), (flood._replace(origin=f"z{at}"),))
        )
        core.receive(b"client", None, frames, overlay.now)
    overlay.settle()
    assert not core.overlay.neighbours
    assert isinstance(core.durable.custody, Custody)


def test_the_limits_of_a_link_are_those_of_a_subscription():
    world = World(1, "line")
    limits = world.hosts["a"].core.settings.durable
    keep = world.hosts["a"].core.durable.state.links["b"].keep
    assert keep == Keep(
        limits.notifications, Full.REFUSE, limits.bytes, Full.REFUSE, limits.abandoned, Full.DROP_OLDEST, 1
    )


@pytest.mark.parametrize("returns", [True, False])
def test_who_was_linked_a_moment_ago_is_waited_for_a_little(returns):
    world = World(1, "line")
    world.hosts["a"].die()
    late = subscribe_at_c(world, 9)
    world.spin(2.0)
    assert late.inbox.stage is not Stage.LIVE
    if returns:
        world.hosts["a"].start()
    world.spin(6.5)
    assert late.inbox.stage is Stage.LIVE
    if returns:
        assert len(world.hosts["a"].core.durable.state.links["b"].wanted) == 4


def test_a_neighbour_that_has_no_disk_any_more_is_forwarded_to():
    overlay = overlay_of(True, True)
    encoded = tuple(encode_filter(f) for f in as_filters(parse("x > 0")))
    overlay.say("b", b"client", SubscribeDurable(9, 9, "desk", encoded, "", 100, None, Keep()))
    overlay.run()
    kept = overlay.cores["a"].durable.state.links["b"]
    assert kept.wanted
    overlay.kill("b")
    overlay.say("a", b"client", Store(5, (encode_notification({"x": 1}),), "", ""))
    assert len(kept.queue) == 1
    overlay.add("b", "a", first_sequence=10**9)
    overlay.client("b")
    overlay.subscribe("b", "x > 0")
    overlay.run(20.0)
    assert not kept.wanted
    overlay.delivered("b")
    overlay.say("a", b"client", Store(6, (encode_notification({"x": 2}),), "", ""))
    assert overlay.delivered("b") == [2]
    assert len(kept.queue) == 1  # for the day when it has its disk again
