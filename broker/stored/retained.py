"""Last values: of each key the notification that was published last, for those who subscribe later.

Bounded in count and in bytes, the one that changed longest ago goes first, and each is forgotten when it is too old.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contrada.broker.protocol.messages import NotificationId


class LastValue(NamedTuple):
    """The latest notification of a key; `time` is µs since 1970."""

    id: NotificationId
    publisher: str
    body: bytes
    time: int


class Retained:
    """Last values by key, the one that changed longest ago first."""

    def __init__(self, most: int, most_bytes: int, age: int) -> None:
        self.most = most
        self.most_bytes = most_bytes
        self.age = age  # seconds
        self.bytes = 0
        self._values: OrderedDict[str, LastValue] = OrderedDict()
        self._leaving: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def get(self, key: str) -> LastValue | None:
        """The last value of a key."""
        return self._values.get(key)

    def items(self) -> list[tuple[str, LastValue]]:
        """All of them, in the order in which they were published."""
        return sorted(self._values.items(), key=lambda item: item[1].id.sequence)

    def put(self, key: str, value: LastValue) -> None:
        """A key has a new value."""
        if key in self._values:
            self._forget(key)
        self._values[key] = value
        self.bytes += len(key) + len(value.body)
        while len(self._values) > self.most or self.bytes > self.most_bytes:
            self._forget(next(iter(self._values)))

    def restate(self, key: str, value: LastValue) -> None:
        """A key had a value before; if it has one already, that is newer."""
        if key not in self._values:
            self.put(key, value)

    def leave(self, key: str) -> None:
        """A key is to be forgotten as soon as the disk has that: no checkpoint says its value again."""
        self._leaving[key] += 1

    def left(self, key: str, *, forgotten: bool) -> None:
        """The disk has it that a key is forgotten, or does not take it."""
        self._leaving[key] -= 1
        if not self._leaving[key]:
            del self._leaving[key]
        if forgotten:
            self.forget(key)

    def forget(self, key: str) -> None:
        """A key has no value any more."""
        if key in self._values:
            self._forget(key)

    def restated(self) -> Iterator[tuple[str, LastValue]]:
        """All of them, for a checkpoint; they may change between two steps."""
        for key in list(self._values):
            if (value := self._values.get(key)) is not None and key not in self._leaving:
                yield key, value

    def expire(self, now: float) -> None:
        """Forget what is too old."""
        oldest = (now - self.age) * 1e6
        for key in [key for key, value in self._values.items() if value.time < oldest]:
            self._forget(key)

    def _forget(self, key: str) -> None:
        self.bytes -= len(key) + len(self._values.pop(key).body)

    def _check(self) -> None:
        assert self.bytes == sum(len(key) + len(value.body) for key, value in self._values.items())
        assert len(self._values) <= self.most
        assert self.bytes <= self.most_bytes
