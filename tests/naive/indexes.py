"""The slow twins of what the forwarding table's arrays are made of: dictionaries, lists and Python's own operators."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ORDERS: dict[str, Callable[[object, object], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
AFFIXES: dict[str, Callable[[bytes, bytes], bool]] = {
    "prefix": bytes.startswith,
    "suffix": bytes.endswith,
    "contains": lambda text, pattern: pattern in text,
}


class NaiveThresholds:
    """Order constraints, each with a payload."""

    def __init__(self) -> None:
        self.entries: set[tuple[str, object, int]] = set()

    def satisfied(self, value: object) -> list[int]:
        """The payloads of those that hold on a value."""
        return sorted(payload for op, threshold, payload in self.entries if ORDERS[op](value, threshold))


class NaivePatterns:
    """Patterns over strings."""

    def __init__(self) -> None:
        self.patterns: set[tuple[str, bytes]] = set()

    def found(self, text: bytes) -> set[tuple[str, bytes]]:
        """Those that a text has."""
        return {(op, pattern) for op, pattern in self.patterns if AFFIXES[op](text, pattern)}


class NaiveCells:
    """Dyadic cells: intervals of integers of length 2**level."""

    def __init__(self) -> None:
        self.cells: set[tuple[int, int]] = set()

    def found(self, key: int) -> set[tuple[int, int]]:
        """The (cell, level) pairs that an integer lies in."""
        return {(cell, level) for cell, level in self.cells if cell * 2**level <= key < (cell + 1) * 2**level}
