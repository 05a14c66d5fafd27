"""A batch that many tables match: notifications are read once, then offered to each table in its own numbers.

A batch (kernels/match/batch.py) names attributes by numbers, and every table gives numbers of its own. So notifications
are read by the names of all tables together (`SharedNames`); for each table whose gate admits any of them, the rows it
knows are taken out and renumbered (`SharedBatch.select`): a few array operations per table, whatever the notifications.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contrada.forwarding.batches.encode import PointColumn, Values
from contrada.forwarding.kernels.match.batch import FLOAT, Batch
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.segments.gate import bounds_of
from contrada.forwarding.state.numbering import NameNumbering

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from contrada.forwarding.batches.encode import Encoded
    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.forwarding.segments.gate import Gate
    from contrada.forwarding.segments.segment import Segment

_PADDING: Final = np.zeros(8, np.uint8)  # kernels read strings eight bytes at a time
_NOWHERE: Final = (np.nan, np.nan, np.nan, np.nan)
_ANYWHERE: Final = 1  # what a gate asks of an attribute; 0 is nothing
_IN_BOX: Final = 2


class TableNames(NamedTuple):
    """One table's view of shared numbers. Each array ends with an entry of nothing, for all numbers given later."""

    numbers: Ints  # the table's own number of the name, or 0
    asked: Ints | None  # what the gate asks of the attribute; None for a gate that stands open
    boxes: Floats  # (n, 4) and where

    @classmethod
    def of(cls, shared: Mapping[str, int], own: Mapping[str, int], gate: Gate | None = None) -> TableNames:
        """Of the numbers that are shared, those of the table, and its gate if it has one."""
        size = len(shared) + 2
        numbers = np.zeros(size, np.int64)
        for name, number in own.items():
            numbers[shared[name]] = number
        if gate is None or gate.attributes is None:
            return cls(numbers, None, np.zeros((0, 4)))
        asked, boxes = np.zeros(size, np.int64), np.zeros((size, 4))
        for name, box in gate.attributes.items():
            asked[shared[name]] = _ANYWHERE if box is None else _IN_BOX
            boxes[shared[name]] = _NOWHERE if box is None else box
        return cls(numbers, asked, boxes)


class SharedNames:
    """Numbers for the names of some segments, which stay, and of a table of additions as it is at this moment."""

    def __init__(self, segments: tuple[Segment, ...], fixed: Mapping[str, int], added: NameNumbering) -> None:
        more = (name for name in added.numbers if name not in fixed)
        self.segments = segments
        self.numbering = NameNumbering.of([None, *fixed, *more])
        self.changes = added.changes
        self.added = TableNames.of(self.numbering.numbers, added.numbers)


def extend(numbers: dict[str, int], names: Iterable[str]) -> None:
    """Give numbers, from 1, to the names that have none yet."""
    for name in names:
        numbers.setdefault(name, len(numbers) + 1)


class SharedBatch:
    """Notifications in shared numbers."""

    def __init__(self, batch: Batch, values: Values, widest: int) -> None:
        self._batch, self._values, self._widest = batch, values, widest
        values.make(range(len(values.values)))
        self._names = batch.rows[:, 0] >> 8
        kinds = batch.rows[:, 0] & 15
        self._notifications = np.repeat(np.arange(len(batch.ends)), np.diff(batch.ends, prepend=0))
        self._lengths = np.where(kinds == layout.STRING, batch.rows[:, 1], 0)
        self._value_names, self._value_kinds = np.array(values.names, np.int64), np.array(values.kinds, np.int64)
        self._owners = np.empty(len(values.values), np.int64)  # the notification of each value
        plugged = np.flatnonzero((kinds >= layout.POINT) & (kinds != FLOAT))
        number = batch.rows[plugged, 1]
        self._owners[np.where(kinds[plugged] == layout.POINT, number >> 32, number)] = self._notifications[plugged]
        self._boxes: Floats | None = None  # of the values, once a gate asks for them

    def __len__(self) -> int:
        """How many notifications there are."""
        return len(self._batch.ends)

    def admitted(self, names: TableNames) -> NDArray[np.bool_]:
        """Which notifications a table's gate admits."""
        if names.asked is None:
            return np.ones(len(self), np.bool_)
        found = np.zeros(len(self), np.bool_)
        last = len(names.asked) - 1
        found[self._notifications[names.asked[np.minimum(self._names, last)] == _ANYWHERE]] = True
        if len(self._owners):
            known = np.minimum(self._value_names, last)
            box, own = names.boxes[known], self._bounds()
            meets = (own[:, :2] <= box[:, 2:]).all(axis=1) & (box[:, :2] <= own[:, 2:]).all(axis=1)
            found[self._owners[meets & (names.asked[known] == _IN_BOX)]] = True
        return found

    def _bounds(self) -> Floats:
        values = self._values.values
        if isinstance(values, PointColumn):
            self._boxes = np.concatenate((values.xy, values.xy), axis=1)
        if self._boxes is None:
            boxes = [bounds_of(value) or _NOWHERE for value in values]
            self._boxes = np.array(boxes, np.float64).reshape(-1, 4)
        return self._boxes

    def select(self, names: TableNames, admitted: NDArray[np.bool_]) -> Encoded:
        """The notifications that are admitted, as a batch in the table's own numbers."""
        batch = self._batch
        numbers = names.numbers[np.minimum(self._names, len(names.numbers) - 1)]
        kept = (numbers != 0) & admitted[self._notifications]
        rows = batch.rows[kept]
        rows[:, 0] = numbers[kept] << 8 | rows[:, 0] & 255
        ends = np.concatenate(([0], np.cumsum(kept)))[batch.ends[admitted]]
        text = batch.text
        if not kept.all():
            used = np.repeat(kept, self._lengths)
            text = np.concatenate((text[: len(used)][used], _PADDING))
        return Batch(rows, ends, batch.floats, text), self._values_of(names, admitted), self._widest

    def _values_of(self, names: TableNames, admitted: NDArray[np.bool_]) -> Values:
        """The values, of kind 0 where the table does not get them: no type searches for those."""
        values = Values()
        if len(self._owners):
            numbers = names.numbers[np.minimum(self._value_names, len(names.numbers) - 1)]
            kept = (numbers != 0) & admitted[self._owners]
            values.values = self._values.values
            values.names = numbers.tolist()
            values.kinds = np.where(kept, self._value_kinds, 0).tolist()
        return values
