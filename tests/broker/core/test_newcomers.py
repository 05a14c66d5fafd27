"""A table with newcomers against a plain one: whoever holds it meanwhile, the answers are the same."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from contrada.broker.core.newcomers import OpenTable
from contrada.errors import NotFound
from contrada.forwarding.codec.msgpack import encode_notification
from contrada.forwarding.language.filter import Predicate, as_filters
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.table.table import ForwardingTable

FILTERS = [parse(text) for text in ("a = 1", "a > 1", "a < 3 and b = 2", "b exists", "area inside BOX(0 0, 4 4)")]
NOTIFICATIONS = [{"a": 1}, {"a": 2, "b": 2}, {"b": 7}, {"a": 9}, {}]
BODIES = [encode_notification(each) for each in NOTIFICATIONS]
predicates = st.lists(st.sampled_from(FILTERS), min_size=1, max_size=3).map(Predicate)


class Changes(RuleBasedStateMachine):
    """Anything that a broker does, in any order; `twin` is a plain table, and `filters` has both ids of each."""

    @initialize()
    def begin(self):
        self.table, self.twin = OpenTable(ForwardingTable(), clock=lambda: 0.0), ForwardingTable()
        self.filters = {}

    @rule(interface=st.integers(1, 4), predicate=predicates)
    def add(self, interface, predicate):
        ids = self.table.add(interface, predicate)
        self.filters.update(zip(ids, self.twin.add(interface, predicate), strict=True))

    @rule(interface=st.integers(1, 4), held=st.lists(st.booleans(), max_size=3))
    def add_by_steps(self, interface, held):
        predicate = Predicate(parse(f"n = {k}") for k in range(150))
        ids = []
        for some in self.table.adding(interface, predicate):
            ids += some
            if held and held.pop() and self.table.may_lend:
                self.table.lend()
        self.filters.update(zip(ids, self.twin.add(interface, predicate), strict=True))

    @precondition(lambda self: self.table.may_lend)
    @rule()
    def hold(self):
        self.table.lend()

    @precondition(lambda self: self.table.lent)
    @rule(place=st.integers(0, len(BODIES) - 1))
    def release(self, place):
        found, refused = self.table.match_lent(BODIES[place])
        assert not refused
        assert found[0] <= self.twin.match(NOTIFICATIONS[place])
        self.table.take_back()

    @rule()
    def move(self):
        before = self.table.newcomers
        self.table.move_some(0.0)
        assert self.table.newcomers == (before if self.table.lent else max(0, before - 1))

    @precondition(lambda self: self.filters and not self.table.lent)
    @rule(data=st.data())
    def remove(self, data):
        id = data.draw(st.sampled_from(sorted(self.filters)))
        self.table.remove(id)
        self.twin.remove(self.filters.pop(id))

    @precondition(lambda self: not self.table.lent)
    @rule(interface=st.integers(1, 4))
    def remove_interface(self, interface):
        gone = set(self.twin.interface_filters(interface))
        if gone:
            self.table.remove_interface(interface)
            self.twin.remove_interface(interface)
        else:
            with pytest.raises(NotFound):
                self.table.remove_interface(interface)
        self.filters = {id: twin for id, twin in self.filters.items() if twin not in gone}

    @rule(data=st.data(), place=st.integers(0, len(BODIES) - 1))
    def explain(self, data, place):
        if self.filters:
            id = data.draw(st.sampled_from(sorted(self.filters)))
            assert self.table.filter(id) == self.twin.filter(self.filters[id])
            ours = self.table.explain(NOTIFICATIONS[place], id)
            assert str(ours) == str(self.twin.explain(NOTIFICATIONS[place], self.filters[id]))

    @invariant()
    def answers(self):
        if hasattr(self, "table"):
            self.table._check()
            found, refused = self.table.match_bodies([*BODIES, b"\xc1"])
            assert [set(each) for each in found] == [*self.twin.match_many(NOTIFICATIONS), set()]
            assert list(refused) == [len(BODIES)]


Changes.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
TestChanges = Changes.TestCase


def test_an_empty_table_alike_has_the_same_settings():
    table = ForwardingTable(simplify=False, geotext_index="ap-tree")
    table.add("I", "a = 1")
    empty = table.alike()
    assert len(empty) == 0
    empty.add("J", "a > 1 or a > 2")
    assert empty.stats().covered == 0, "not simplified"
    assert empty._state.settings == table._state.settings
    assert table.match({"a": 3}) == set()
    assert [len(as_filters(each)) for each in FILTERS] == [1] * len(FILTERS)
