"""Filters back out of the table's arrays, for explanations and for weighing covers. The table keeps no objects."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from contrada.forwarding.batches.indexed import as_given, own_name, unfolded
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.language.operands import ValueSet
from contrada.forwarding.language.values import from_microseconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contrada.forwarding.kernels.memory.layout import Index
    from contrada.forwarding.language.operands import Scalar
    from contrada.forwarding.types.plugged import PluggedType

_OPERATORS: Final = (
    Operator.EQ,
    Operator.NE,
    Operator.LT,
    Operator.LE,
    Operator.GT,
    Operator.GE,
    Operator.EXISTS,
    Operator.IN,
    Operator.PREFIX,  # IS, whose operand tells which pattern was empty
    Operator.PREFIX,
    Operator.SUFFIX,
    Operator.CONTAINS,
)


_PRESENCE: Final = {layout.EXISTS: Operator.EXISTS, layout.ABSENT: Operator.NOT_EXISTS}
_REFUSED: Final = {
    layout.PATTERN_SUFFIX: Operator.NOT_SUFFIX,
    layout.PATTERN_CONTAINS: Operator.NOT_CONTAINS,
    layout.PATTERN_LIKE: Operator.NOT_LIKE,
}


def key_float(key: int) -> float:
    """The float whose order-preserving key this is (kernels/memory/keys.py)."""
    number: float = struct.unpack("<d", struct.pack("<q", key if key >= 0 else key ^ (2**63 - 1)))[0]
    return number


class Rebuilder:
    """Reads the filters of one table."""

    def __init__(self, index: Index, names: Sequence[str | None], types: Mapping[int, PluggedType]) -> None:
        self._index = index
        self._names = names
        self._types = types

    def filter(self, f: int) -> Filter:
        """The filter of a row, redundant constraints included."""
        row = self._index.filters[f]
        at = int(row[layout.F_CODE])
        end = at + (int(row[layout.F_SIZE]) >> 32)
        constraints = []
        while at < end:
            word = int(self._index.words[at])
            if word & 15 == layout.IN:
                members = [int(w) >> 4 for w in self._index.words[at + 1 : at + 1 + (word >> 4)]]
                values = ValueSet(self._value(operand) for operand in members)
                constraints.append(Constraint(self._name(members[0]), Operator.IN, values))
                at += 1 + len(members)
            else:
                constraints.append(self._constraint(word >> 4, word & 15))
                at += 1
        return Filter(as_given(constraints))

    def _name(self, operand: int) -> str:
        name = self._names[int(self._index.operands[operand, layout.O_TAG]) >> 8]
        assert name is not None
        return name

    def _constraint(self, operand: int, op: int) -> Constraint:
        name = self._name(operand)
        if (own := own_name(name)) is not None:
            return unfolded(own, _OPERATORS[op], self._value(operand))
        if op == layout.LIKE:
            return Constraint(name, Operator.LIKE, self._value(operand))
        if op == layout.PLUG:
            kind = int(self._index.operands[operand, layout.O_TAG]) & 255
            return self._types[kind].constraint(int(self._index.operands[operand, layout.O_KEY]), name)
        if op in _PRESENCE:
            return Constraint(name, _PRESENCE[op])
        if op == layout.NOT:
            return Constraint(
                name, _REFUSED[int(self._index.operands[operand, layout.O_TAG]) & 255], self._value(operand)
            )
        if op == layout.IS:
            return Constraint(name, _OPERATORS[int(self._index.operands[operand, layout.O_KEY])], "")
        return Constraint(name, _OPERATORS[op], self._value(operand))

    def _value(self, operand: int) -> Scalar:
        row = [int(number) for number in self._index.operands[operand]]
        kind, key, low = row[layout.O_TAG] & 255, row[layout.O_KEY], row[layout.O_LOW]
        if kind == layout.NUMBER:
            number = key_float(key)
            return int(number) + low if low or (number.is_integer() and abs(number) < 2.0**63) else number
        if kind == layout.BOOL:
            return bool(key)
        if kind == layout.TIME:
            return from_microseconds(key)
        if kind == layout.POINT:
            from contrada.spatial.geometry.point import Point

            return Point(key_float(key), key_float(low))
        return bytes(self._index.text[low : low + row[layout.O_LEN]]).decode()
