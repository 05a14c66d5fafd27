"""However many filters there are, an event of the router and a step of it do a bounded amount."""

from __future__ import annotations

import pytest

from contrada.broker.core.ports import EncodedFilter
from contrada.broker.protocol.peer_messages import Change, Digest, Flow, LinkState, LinkStates, Replace
from contrada.broker.routing import flow, interests
from contrada.broker.routing.actions import Send
from contrada.broker.routing.router import Router
from contrada.forwarding.codec.msgpack import decode_filter, encode_filter
from contrada.forwarding.covering.covering_set import CoveringSet
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.filter import as_filters
from tests.broker.routing.scenarios import calm, check, faulty, populate, random_overlay


def encoded(expression) -> EncodedFilter:
    (only,) = as_filters(expression)
    return EncodedFilter(only, encode_filter(only))


def link(router: Router, *neighbours: str) -> list:
    """Links that both ends confirm, so that the tree uses them; what the last event said."""
    actions = []
    for neighbour in neighbours:
        router.link_up(neighbour)
        states = LinkStates((LinkState(neighbour, 1, frozenset((router.broker,)), 200),))
        actions = router.receive(neighbour, states)
    return actions


def finish(router: Router, each=lambda: None) -> tuple[int, list]:
    """Go on until nothing is left: how many steps it took, and what was said."""
    steps, actions = 0, []
    while router.busy:
        actions += router.go_on()
        router._check()
        steps += 1
        each()
    return steps, [action.message for action in actions if isinstance(action, Send)]


@pytest.fixture
def compared(monkeypatch):
    """How many filters were compared with what is wanted since it was last cleared."""
    seen = []
    for name in ("add", "remove"):
        real = getattr(CoveringSet, name)
        monkeypatch.setattr(
            CoveringSet, name, lambda self, *arguments, real=real: (seen.append(1), real(self, *arguments))[1]
        )
    return seen


@pytest.fixture
def small_steps(monkeypatch):
    for module, name in ((interests, "LOOKS"), (interests, "TELLS"), (flow, "REPLACE_BYTES")):
        monkeypatch.setattr(module, name, 1)


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("first", range(0, 30, 10))
def test_the_smallest_steps_lead_to_the_same(first):
    for seed in range(first, first + 10):
        check(calm(seed))
        check(faulty(seed))


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("seed", range(10))
def test_the_smallest_steps_lead_to_the_same_with_advertisements(seed):
    simulator = random_overlay(seed, brokers=5, extra_links=2, advertisements=True)
    for name in sorted(simulator.brokers):
        simulator.advertise(name, encoded(attr("x") >= 0).filter)
        simulator.advertise(name, encoded(attr("s").exists()).filter)
    populate(simulator, 20)
    simulator.run()
    simulator.check_quiet()
    ids = [simulator.publish(name, {"x": 3, "s": "a"}) for name in sorted(simulator.brokers)]
    expected = simulator.expected("b00", {"x": 3, "s": "a"})
    simulator.run()
    assert expected
    assert simulator.deliveries == {(subscription, id): 1 for subscription in expected for id in ids}


def test_a_new_link_learns_many_filters_by_steps(compared):
    router = Router("m", decode=decode_filter)
    filters = [encoded(attr("x") == number) for number in range(2000)]
    router.subscribe(*filters)
    link(router, "a")
    digest = Digest(Flow.SUBSCRIPTIONS, (0,) * 64)
    compared.clear()
    actions = router.receive("a", digest)
    assert len(compared) <= interests.LOOKS
    assert not [action for action in actions if isinstance(action, Send)], "nothing is told of half of it"
    most: list[int] = []
    compared.clear()
    steps, messages = finish(router, lambda: (most.append(len(compared)), compared.clear()))
    assert steps >= 2000 // interests.LOOKS - 2
    assert max(most) <= interests.LOOKS
    assert all(isinstance(message, Replace) for message in messages)
    assert sorted(body for message in messages for body in message.filters) == sorted(f.body for f in filters)
    sizes = [sum(map(len, message.filters)) for message in messages]
    assert len(messages) > 1 or sizes[0] < 2 * flow.REPLACE_BYTES


def test_a_digest_is_answered_by_steps_of_some_bytes(monkeypatch):
    monkeypatch.setattr(flow, "REPLACE_BYTES", 1000)
    router = Router("m", decode=decode_filter)
    link(router, "a")
    router.subscribe(*(encoded(attr("x") == number) for number in range(2000)))
    finish(router)
    router.receive("a", Digest(Flow.SUBSCRIPTIONS, (1,) * 64))
    late = encoded(attr("y") == 1)
    late_actions = router.subscribe(late)
    steps, messages = finish(router)
    assert steps > 10
    assert max(sum(map(len, message.filters)) for message in messages) < 2500
    said = [action.message for action in late_actions if isinstance(action, Send)] + messages
    filters = {body for each in said for body in (each.add if isinstance(each, Change) else each.filters)}
    assert late.body in filters


def test_a_tree_that_no_longer_uses_a_link_takes_back_by_steps_and_adds_nothing(compared):
    router = Router("m", decode=decode_filter)
    link(router, "a", "b")
    bodies = tuple(encoded(attr("x") > number).body for number in range(500))
    for at in range(0, 500, 50):
        router.receive("a", Change(Flow.SUBSCRIPTIONS, bodies[at : at + 50], ()))
    router.receive("b", Digest(Flow.SUBSCRIPTIONS, (0,) * 64))
    finish(router)
    compared.clear()
    router.link_down("a", 0.0)
    assert len(compared) <= interests.LOOKS
    steps, messages = finish(router)
    assert steps >= 500 // interests.LOOKS - 2
    assert [(message.add, len(message.remove)) for message in messages] == [((), 1)], "one of them showed for all"


def test_what_a_lost_neighbour_wanted_is_forgotten_by_steps(compared):
    router = Router("m", decode=decode_filter)
    link(router, "a")
    for at in range(0, 500, 50):
        bodies = tuple(encoded(attr("x") == number).body for number in range(at, at + 50))
        router.receive("a", Change(Flow.SUBSCRIPTIONS, bodies, ()))
    finish(router)
    router.link_down("a", 0.0)
    finish(router)
    actions = router.tick(1000.0)
    assert len(actions) <= interests.LOOKS
    steps, _ = finish(router)
    assert steps >= 500 // interests.LOOKS - 1
    assert router.links == {}


def test_a_link_that_comes_back_while_it_is_forgotten_is_kept():
    router = Router("m", decode=decode_filter)
    link(router, "a")
    bodies = tuple(encoded(attr("x") == number).body for number in range(100))
    router.receive("a", Change(Flow.SUBSCRIPTIONS, bodies, ()))
    router.link_down("a", 0.0)
    router.tick(1000.0)
    held = len(router.flow_state("a").asked)
    assert 0 < held < 100
    router.link_up("a")
    finish(router)
    assert len(router.flow_state("a").asked) == held


def test_an_advertisement_is_compared_with_a_subscription_at_each_step(monkeypatch):
    asked = []
    real = interests.conflicts
    monkeypatch.setattr(interests, "conflicts", lambda *arguments: (asked.append(1), real(*arguments))[1])
    router = Router("m", decode=decode_filter, advertisements=True)
    link(router, "a")
    router.subscribe(*(encoded(attr("x") == number) for number in range(300)))
    finish(router)
    asked.clear()
    router.receive("a", Change(Flow.ADVERTISEMENTS, (encoded(attr("x") < 10).body,), ()))
    assert len(asked) <= 1
    steps, _ = finish(router)
    assert steps >= 298
    assert len(asked) == 300
    assert len(router.flow_state("a").wanted) == 10


def test_many_advertisements_are_compared_with_over_steps(monkeypatch):
    asked = []
    monkeypatch.setattr(interests, "conflicts", lambda f, g, _budget: (asked.append(1), f.conflicts(g))[1])
    monkeypatch.setattr(interests, "CONSTRAINTS", 10)
    router = Router("m", decode=decode_filter, advertisements=True)
    link(router, "a")
    for number in range(100):
        router.receive("a", Change(Flow.ADVERTISEMENTS, (encoded(attr("x") == number).body,), ()))
    asked.clear()
    router.subscribe(encoded(attr("x") == -1))
    most = [len(asked)]
    asked.clear()
    finish(router, lambda: (most.append(len(asked)), asked.clear()))
    assert sum(most) == 100
    assert max(most) <= 12
    assert not router.flow_state("a").wanted
    router.subscribe(encoded(attr("x") == 99))
    finish(router)
    assert len(router.flow_state("a").wanted) == 1
    router.receive("a", Change(Flow.ADVERTISEMENTS, (), tuple(encoded(attr("x") == n).key for n in range(50, 100))))
    finish(router)
    assert not router.flow_state("a").wanted


def test_beyond_so_many_advertisements_every_subscription_is_wanted(monkeypatch):
    asked = []
    monkeypatch.setattr(interests, "conflicts", lambda *_arguments: (asked.append(1), True)[1])
    monkeypatch.setattr(interests, "MOST_ADVERTISEMENTS", 5)
    router = Router("m", decode=decode_filter, advertisements=True)
    link(router, "a")
    for number in range(5):
        router.receive("a", Change(Flow.ADVERTISEMENTS, (encoded(attr("x") == number).body,), ()))
    router.subscribe(encoded(attr("x") == 100))
    assert (len(asked), len(router.flow_state("a").wanted)) == (5, 0)
    router.receive("a", Change(Flow.ADVERTISEMENTS, (encoded(attr("x") == 6).body,), ()))
    finish(router)
    asked.clear()
    router.subscribe(encoded(attr("x") == 101))
    assert (len(asked), len(router.flow_state("a").wanted)) == (0, 2)


def test_filters_come_and_go_while_much_is_unsure():
    router = Router("m", decode=decode_filter)
    filters = [encoded(attr("x") == number) for number in range(200)]
    router.subscribe(*filters)
    link(router, "a", "b")
    router.unsubscribe(*(each.key for each in filters[::2]))
    router.receive("b", Change(Flow.SUBSCRIPTIONS, tuple(each.body for each in filters[:20]), ()))
    router._check()
    finish(router)
    assert set(router.flow_state("a").wanted) == {each.key for each in (*filters[1::2], *filters[:20])}
    assert set(router.flow_state("b").wanted) == {each.key for each in filters[1::2]}
