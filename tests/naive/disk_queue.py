"""The slow twin of `broker.stored.disk_queue`: a list of everything that waits."""

from __future__ import annotations


class NaiveQueue:
    def __init__(self) -> None:
        self.waiting: list[tuple[int, int, int]] = []  # position, size, time
        self.last_sent = 0

    def append(self, position: int, size: int, time: int) -> None:
        self.waiting.append((position, size, time))

    def upcoming(self, most: int) -> list[int]:
        return [position for position, _, _ in self.waiting if position > self.last_sent][:most]

    def sent(self, position: int) -> None:
        self.last_sent = max(self.last_sent, position)

    def rewind(self) -> None:
        self.last_sent = 0

    def acknowledge(self, first: int, last: int) -> int:
        before = len(self.waiting)
        self.waiting = [each for each in self.waiting if not first <= each[0] <= last]
        return before - len(self.waiting)

    def older_than(self, time: int) -> list[int]:
        return [position for position, _, stored in self.waiting if stored < time]
