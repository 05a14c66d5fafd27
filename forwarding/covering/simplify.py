"""Simplification of predicates, rules 1 to 3 of [SIENA-2D], section 4.2: what the table does in Python.

Rules 1 and 2 look at one filter. They matter only where a filter speaks of a name twice, and are left to
`forwarding.covering`. Rule 3 is the kernels' (kernels/change/simplifying.py), but for filters whose constraints are of
plugged-in types: then the kernel says which pairs of filters remain to be decided, and the types decide them here.
"""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from contrada.forwarding.covering.budget import UNLIMITED, OutOfBudget
from contrada.forwarding.covering.covering import covers, is_satisfiable
from contrada.forwarding.kernels.change.adding import I_COUNT, I_FIRST
from contrada.forwarding.kernels.change.changing import cover_filter, single_plugs, weigh_filter, weigh_some
from contrada.forwarding.kernels.change.simplifying import EFFORT
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.language.constraint import Operator
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.language.values import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contrada.forwarding.covering.budget import CoveringBudget
    from contrada.forwarding.covering.crowds import Crowds
    from contrada.forwarding.kernels.memory.layout import Index, Ints
    from contrada.forwarding.language.constraint import Constraint
    from contrada.forwarding.types.plugged import PluggedType

_TOGETHER = 32  # constraints on one name among which redundant ones are looked for, in quadratic time
_GATHERED = 4096  # of an interface's filters that are kept by their boxes when that begins
_NEAR = 64  # filters found by their boxes that count as one comparison
_CANDIDATES = 128  # filters that types are asked about, for each question about a new filter
_LOW_HALF = (1 << 32) - 1
_BELOW: Final = (Operator.LT, Operator.LE)
_ABOVE: Final = (Operator.GT, Operator.GE)


def split_redundant(
    filter: Filter, budget: CoveringBudget = UNLIMITED
) -> tuple[tuple[Constraint, ...], tuple[Constraint, ...], bool]:
    """A filter's needed constraints, its redundant ones (rule 2), and whether nothing satisfies it (rule 1)."""
    needed: list[Constraint] = []
    redundant: list[Constraint] = []
    for _, group in groupby(filter.constraints, attrgetter("name")):
        together = tuple(group)
        if len(together) == 1 or _is_range(together):
            needed += together
            continue
        if not is_satisfiable(Filter(together), budget):
            return filter.constraints, (), True
        if len(together) > _TOGETHER:
            needed += together
            continue
        kept = list(together)
        for constraint in together:
            others = [each for each in kept if each is not constraint]
            if others and covers(Filter((constraint,)), Filter(others), budget):
                kept = others
                redundant.append(constraint)
        needed += kept
    return tuple(needed), tuple(redundant), False


def _is_range(constraints: tuple[Constraint, ...]) -> bool:
    """Whether these are `x > a and x < b` with a below b, of which neither is redundant: the usual case."""
    if len(constraints) != 2 or constraints[0].kind is not Kind.NUMBER or constraints[1].kind is not Kind.NUMBER:
        return False
    first, second = constraints
    if first.op in _ABOVE:
        first, second = second, first
    return first.op in _BELOW and second.op in _ABOVE and cast("float", second.value) < cast("float", first.value)


def _joined(found: Ints, near: Ints) -> Ints:
    """Both, each once."""
    return np.array(sorted({*found.tolist(), *near.tolist()}), np.int64) if len(near) else found


class Weigher:
    """Decides what the kernels could not about filters with constraints of plugged-in types, within a budget."""

    def __init__(
        self,
        index: Index,
        interfaces: Ints,
        types: Mapping[int, PluggedType],
        budget: CoveringBudget,
        crowds: Crowds,
    ) -> None:
        self._index = index
        self._interfaces = interfaces
        self._types = types
        self._budget = budget
        self._crowds = crowds
        self._room: Ints = np.empty(16, np.int64)
        self._found: Ints = np.empty(2 * _CANDIDATES, np.int64)

    def weigh(self, f: int, events: Ints) -> None:
        """Cover an active filter by another, or others by it, where the types say so."""
        counts = weigh_filter(self._index, f, self._room, self._found)
        above, below = self._found[: counts % 1000], self._found[_CANDIDATES : _CANDIDATES + counts // 1000]
        mine = self._plugged(f)
        interface = int(self._index.filters[f, layout.F_INTERFACE])
        box = None
        if len(mine) == 1 and self._interfaces[interface, I_COUNT] > EFFORT:
            box = self._boxes(mine[0][0], np.array([mine[0][1]], np.int64))[0]
            above, below = self._crowded(f, interface, mine[0][0], box, above, below)
        for g in self._promising(mine, above, above=True):
            if self._covers(self._plugged(g), mine):
                cover_filter(self._index, f, g, events)
                return
        for g in self._promising(mine, below, above=False):
            if self._covers(mine, self._plugged(g)):
                cover_filter(self._index, g, f, events)
                if box is not None:
                    self._crowds.drop(interface, mine[0][0], g)
        if box is not None:
            self._crowds.put(interface, mine[0][0], f, box)

    def _boxes(self, tag: int, handles: Ints) -> list[tuple[float, float, float, float]]:
        return [(a, b, c, d) for a, b, c, d in self._types[tag & 255].boxes(handles).tolist()]

    def _crowded(
        self, f: int, interface: int, tag: int, box: tuple[float, float, float, float], above: Ints, below: Ints
    ) -> tuple[Ints, Ints]:
        """What may cover a filter of an interface with many, and be covered: besides what was found, by boxes."""
        crowds = self._crowds
        if not crowds.has(interface, tag):
            self._gather(interface, tag)
        near = crowds.near(interface, tag, box)
        try:
            self._budget.spend(len(near) // _NEAR)
        except OutOfBudget:
            return above, below
        answers = np.zeros(len(near), np.int64)
        weigh_some(self._index, f, near, answers)
        for gone in near[answers < 0].tolist():
            crowds.drop(interface, tag, gone)
        covering, covered = near[(answers > 0) & (answers & 1 == 1)], near[answers >= 2]
        return _joined(above, covering), _joined(below, covered)

    def _gather(self, interface: int, tag: int) -> None:
        """Begin to keep an interface's filters by their boxes, with the latest that there are."""
        rows: list[int] = []
        row = int(self._interfaces[interface, I_FIRST])
        while row and len(rows) < _GATHERED:
            rows.append(row)
            row = int(self._index.filters[row, layout.F_FOLLOWING])
        found = np.array(rows, np.int64)
        tags, handles = np.empty_like(found), np.empty_like(found)
        single_plugs(self._index, found, tags, handles)
        states = self._index.filters[found, layout.F_STATE] & 255
        mine = (tags == tag) & (states == layout.ACTIVE)
        for each, box in zip(found[mine].tolist(), self._boxes(tag, handles[mine]), strict=True):
            self._crowds.put(interface, tag, each, box)

    def weigh_pair(self, f: int, coverer: int, events: Ints) -> None:
        """Cover an active filter by another, if both are of one interface and a single constraint, and that is so."""
        one, two = self._index.filters[f], self._index.filters[coverer]
        if f == coverer or one[layout.F_INTERFACE] != two[layout.F_INTERFACE]:
            return
        if one[layout.F_SIZE] & _LOW_HALF != 1 or two[layout.F_SIZE] & _LOW_HALF != 1:
            return
        mine, its = self._plugged(f), self._plugged(coverer)
        if mine and its and self._covers(its, mine):
            cover_filter(self._index, f, coverer, events)

    def _promising(self, mine: list[tuple[int, int]], found: Ints, *, above: bool) -> list[int]:
        """Of the filters found, those that might cover (`above`), or be covered by, the one with these constraints.

        The most promising come first, for the budget may not suffice for all.
        """
        if len(mine) != 1 or not len(found):
            return found.tolist()  # type: ignore[no-any-return]  # numpy's types have no ints in lists
        tag, handle = mine[0]
        tags, handles = np.empty_like(found), np.empty_like(found)
        single_plugs(self._index, found, tags, handles)
        same = tags == tag
        plugged = self._types[tag & 255]
        if same.all():
            promises = plugged.promise(handle, handles, above=above)
        else:
            promises = np.where(tags == -1, 1.0, 0.0)
            promises[same] = plugged.promise(handle, handles[same], above=above)
        chosen = np.flatnonzero(promises)
        if len(chosen) > 1:
            chosen = chosen[np.argsort(-promises[chosen], kind="stable")]
        return found[chosen].tolist()  # type: ignore[no-any-return]  # numpy's types have no ints in lists

    def _plugged(self, f: int) -> list[tuple[int, int]]:
        """The tags and handles of a filter's constraints of plugged-in types. They are its last words, one each."""
        row = self._index.filters[f]
        start = int(row[layout.F_CODE])
        words = self._index.words[start : start + (int(row[layout.F_SIZE]) & _LOW_HALF)].tolist()
        operands = []
        skip = 0
        for word in words:
            if skip:
                skip -= 1
            elif word & 15 == layout.IN:
                skip = word >> 4
            elif word & 15 == layout.PLUG:
                operands.append(word >> 4)
        rows = self._index.operands[operands]
        return list(zip(rows[:, layout.O_TAG].tolist(), rows[:, layout.O_KEY].tolist(), strict=True))

    def _covers(self, first: list[tuple[int, int]], second: list[tuple[int, int]]) -> bool:
        budget = self._budget
        try:
            return all(
                any(tag == other and (a == b or self._types[tag & 255].covers(a, b, budget)) for other, b in second)
                for tag, a in first
            )
        except OutOfBudget:
            return False
