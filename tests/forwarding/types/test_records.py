"""Handles of constraints against a dictionary, across loading: saved ones are decoded and found like new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from contrada.errors import CorruptFile
from contrada.forwarding.language.constraint import Operator
from contrada.forwarding.language.operands import TextMatch
from contrada.forwarding.types.records import ALIVE, FIRST_MARK, POSTED, Records
from contrada.spatial.geometry.region import Box, Region

_VALUES = (
    (Operator.INSIDE, Box(0, 0, 1, 1)),
    (Operator.INSIDE, Region([(0, 0), (1, 0), (0, 1)])),
    (Operator.MEETS, Box(0, 0, 1, 1)),
    (Operator.MATCHES, TextMatch(frozenset({"ipad", "é"}), Box(0, 0, 1, 1))),
    (Operator.MATCHES, TextMatch(frozenset({"ipad"}))),
)
keys = st.builds(lambda name, rest: (name, *rest), st.integers(1, 300), st.sampled_from(_VALUES))


class RecordsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.records = Records()
        self.naive: dict[Any, tuple[int, set[int]]] = {}  # key -> handle, marks

    @rule(key=keys)
    def find_or_add(self, key: Any) -> None:
        handle = self.records.find(key)
        assert handle == self.naive.get(key, (-1,))[0]
        if handle < 0:
            expected = self.records.next()
            handle = self.records.add(key)
            assert handle == expected
            assert handle not in {taken for taken, _ in self.naive.values()}
            self.naive[key] = handle, set()

    @rule(data=st.data())
    def remove(self, data: Any) -> None:
        if self.naive:
            key = data.draw(st.sampled_from(list(self.naive)))
            self.records.remove(self.naive.pop(key)[0])

    @rule(data=st.data(), mark=st.sampled_from((POSTED, FIRST_MARK)), on=st.booleans())
    def mark(self, data: Any, mark: int, on: bool) -> None:
        if self.naive:
            handle, marks = self.naive[data.draw(st.sampled_from(list(self.naive)))]
            (self.records.mark if on else self.records.unmark)(handle, mark)
            (marks.add if on else marks.discard)(mark)

    @rule()
    def save_and_load(self) -> None:
        self.records = Records.from_arrays({name: a.copy() for name, a in self.records.arrays().items()})

    @invariant()
    def agrees(self) -> None:
        assert len(self.records) == len(self.naive)
        for key, (handle, _) in self.naive.items():
            assert self.records.get(handle) == key
            assert self.records.name(handle) == key[0]
        for mark in (ALIVE, POSTED, FIRST_MARK):
            expected = sorted(handle for handle, marks in self.naive.values() if mark in marks | {ALIVE})
            assert self.records.marked(mark).tolist() == expected
        self.records._check()


TestRecords = RecordsMachine.TestCase
TestRecords.settings = settings(max_examples=40, stateful_step_count=30)


def test_arrays_that_do_not_fit_together():
    records = Records()
    records.add((1, *_VALUES[0]))
    with pytest.raises(CorruptFile):
        Records.from_arrays({**records.arrays(), "ends": np.zeros(0, np.int64)})
