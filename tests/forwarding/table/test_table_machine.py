"""The forwarding table against its twin, whatever is added, removed and matched in whatever order, and however."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.table.table import ForwardingTable
from tests.forwarding.strategies import filters, notifications, predicates
from tests.naive.table import NaiveTable

if TYPE_CHECKING:
    from contrada.forwarding.language.filter import Filter

interfaces = st.sampled_from(("I1", "I2", "I3", "é", ""))


class TableMachine(RuleBasedStateMachine):
    """Table and twin, side by side."""

    matching = "selective"

    ids: Bundle[int] = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.table = ForwardingTable(geotext_index="scan", matching=self.matching)
        self.naive = NaiveTable()

    @rule(target=ids, interface=interfaces, expression=predicates())
    def add(self, interface: str, expression: Any) -> Any:
        ids = self.table.add(interface, expression)
        self.naive.add(interface, expression, ids)
        return multiple(*ids)

    @rule(target=ids, pairs=st.lists(st.tuples(interfaces, filters()), max_size=20))
    def add_many(self, pairs: list[tuple[str, Filter]]) -> Any:
        ids = self.table.add_many(pairs)
        for (interface, each), given_ids in zip(pairs, ids, strict=True):
            self.naive.add(interface, each, given_ids)
        return multiple(*(id for given_ids in ids for id in given_ids))

    @rule(id=ids)
    def remove(self, id: int) -> None:
        if id in self.naive.filters:
            self.table.remove(id)
            self.naive.remove(id)
        else:
            with pytest.raises(KeyError):
                self.table.remove(id)

    @rule(interface=interfaces)
    def remove_interface(self, interface: str) -> None:
        if any(owner == interface for owner, _ in self.naive.filters.values()):
            self.table.remove_interface(interface)
            self.naive.remove_interface(interface)
        else:
            with pytest.raises(KeyError):
                self.table.remove_interface(interface)

    @rule(batch=st.lists(notifications(), max_size=8))
    def match(self, batch: list[Any]) -> None:
        expected = [self.naive.match_filters(each) for each in batch]
        assert self.table.match_many_filters(batch) == expected
        assert self.table.match_many(batch) == [{self.naive.filters[id][0] for id in ids} for ids in expected]
        for each, ids in zip(batch, expected, strict=True):
            assert self.table.match(each) == {self.naive.filters[id][0] for id in ids}
        for each, ids in zip(batch[:1], expected, strict=False):
            assert self.table.match_filters(each) == ids

    @rule()
    def save_and_load(self) -> None:
        with TemporaryDirectory() as directory:
            self.table.save(Path(directory) / "table")
            self.table = ForwardingTable.load(Path(directory) / "table")
        assert self.table.stats().matching == self.matching

    @rule(seed=st.integers(0, 2**32))
    def reconsider(self, seed: int) -> None:
        """Filters go wherever whatever estimates send them."""
        rng = np.random.default_rng(seed)
        for plugged in self.table._types.values():
            plugged.shares = lambda handles: rng.random(len(handles)) ** 16
        rows = np.arange(1, self.table._memory.state[layout.S_FILTERS])
        with self.table._lock.writing():
            self.table._changer.reconsider(rows, 1000)

    @rule(id=ids, notification=notifications())
    def explain(self, id: int, notification: Any) -> None:
        if id in self.naive.filters:
            explanation = self.table.explain(notification, id)
            assert explanation.filter == self.naive.filters[id][1] == self.table.filter(id)
            assert explanation.matches == self.naive.filters[id][1].matches(notification)
            assert explanation.interface == self.naive.filters[id][0]
            assert all(str(verdict.constraint) in str(explanation) for verdict in explanation.verdicts)

    @invariant()
    def sound(self) -> None:
        self.table._check()
        assert len(self.table) == len(self.naive.filters)


class CountingMachine(TableMachine):
    matching = "counting"


class AutoMachine(TableMachine):
    matching = "auto"


TestSelective = TableMachine.TestCase
TestCounting = CountingMachine.TestCase
TestAuto = AutoMachine.TestCase
TestSelective.settings = TestCounting.settings = settings(max_examples=60, stateful_step_count=20)
TestAuto.settings = settings(max_examples=40, stateful_step_count=20)
