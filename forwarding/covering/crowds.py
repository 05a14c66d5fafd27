"""Interfaces of many filters: who may cover a new one, or be covered by it, found by the boxes around their places.

The kernels compare a new filter with the latest of its interface that ask for the same names
(kernels/change/simplifying.py). Where an interface has more filters than those, the ones with a place, a single
constraint of a plugged-in type, are also kept here by the box around it, one set for each interface and attribute
(envelope_index.py). A coverer's box is around the covered one's or within it, whatever the relations are, so these two
questions find every candidate; which of the two is needed, and whether the rest of the filters goes together, is for
those who asked to see.

Nothing here is told when a filter goes or is covered: what is found is looked at again, and taken out if it is no
longer active. So is what is saved: a loaded table knows the filters that have come since, and the latest before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.forwarding.covering.envelope_index import EnvelopeIndex

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Ints

    Box = tuple[float, float, float, float]

MOST: Final = 1 << 15  # filters of a set: it is built anew when it has doubled, and that must not take long


class _Crowd:
    """The filters of one interface with a place under one attribute."""

    def __init__(self) -> None:
        self.boxes = EnvelopeIndex(2)
        self.rows: dict[int, int] = {}  # by their number in the index
        self.numbers: dict[int, int] = {}  # and the reverse

    def put(self, row: int, box: Box) -> None:
        self.drop(row)
        if len(self.numbers) < MOST:
            low, high = box[:2], box[2:]
            number = self.boxes.add((low, high, low, high))
            self.rows[number], self.numbers[row] = row, number

    def drop(self, row: int) -> None:
        number = self.numbers.pop(row, None)
        if number is not None:
            self.boxes.remove(number)
            del self.rows[number]

    def near(self, box: Box) -> Ints:
        found = {*self.boxes.around(box[:2], box[2:]), *self.boxes.within(box[:2], box[2:])}
        return np.array([self.rows[number] for number in found], np.int64)


class Crowds:
    """The sets of one table."""

    def __init__(self) -> None:
        self._crowds: dict[int, dict[int, _Crowd]] = {}  # by interface number and tag

    def has(self, interface: int, tag: int) -> bool:
        """Whether there is a set of filters of that interface and attribute."""
        return tag in self._crowds.get(interface, ())

    def put(self, interface: int, tag: int, row: int, box: Box) -> None:
        """Keep a filter by its box; one that has none, or reaches infinitely far, is not kept."""
        if max(map(abs, box)) < np.inf:
            self._crowds.setdefault(interface, {}).setdefault(tag, _Crowd()).put(row, box)

    def drop(self, interface: int, tag: int, row: int) -> None:
        """Let a filter go."""
        if self.has(interface, tag):
            self._crowds[interface][tag].drop(row)

    def near(self, interface: int, tag: int, box: Box) -> Ints:
        """The rows of filters whose boxes contain this one, or lie in it. Some may be no longer active."""
        if not self.has(interface, tag) or not max(map(abs, box)) < np.inf:
            return np.zeros(0, np.int64)
        return self._crowds[interface][tag].near(box)

    def forget(self, interface: int) -> None:
        """Let all filters of an interface go."""
        self._crowds.pop(interface, None)
