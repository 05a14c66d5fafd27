"""What waits for a durable subscription: positions in the journal, not the notifications themselves.

    positions   p0 p1 p2 p3 p4 p5 p6 p7 …     ascending; with each the size and the time of its notification
                ▲head    ▲next
    acknowledged out of order: {p3, p6}

From `head` on nothing is forgotten; from `next` on nothing was sent to the client of now. An acknowledgement of the
head moves it over everything that is acknowledged. 16 bytes for each notification: a million that wait take 16 MB.
Append, take and acknowledge are O(1) each, amortised; finding a position is a binary search.

Invariants (`_check`): positions ascend; `head ≤ next ≤ len`; what is acknowledged out of order lies behind the head;
`len()` and `bytes` are those of what is not acknowledged.
"""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPACT: Final = 4096  # acknowledged places at the front before they are cut off


class DiskQueue:
    """Positions that are not acknowledged."""

    __slots__ = ("_done", "_head", "_next", "_positions", "_sizes", "_times", "bytes")

    def __init__(self) -> None:
        self._positions = array("Q")
        self._sizes = array("I")
        self._times = array("I")  # seconds since 1970
        self._head = 0
        self._next = 0
        self._done: set[int] = set()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._positions) - self._head - len(self._done)

    @property
    def unsent(self) -> bool:
        """Whether there may be something that was not sent yet."""
        return self._next < len(self._positions)

    @property
    def in_flight(self) -> int:
        """About how many were sent and are not acknowledged."""
        return self._next - self._head

    @property
    def first(self) -> int | None:
        """The oldest position that is not acknowledged."""
        return self._positions[self._head] if self._head < len(self._positions) else None

    @property
    def oldest_time(self) -> int | None:
        """When the oldest was stored, in seconds since 1970."""
        return self._times[self._head] if self._head < len(self._positions) else None

    def append(self, position: int, size: int, time: int) -> None:
        """Let a notification wait, behind all others."""
        assert not self._positions or position > self._positions[-1], "positions ascend"
        self._positions.append(position)
        self._sizes.append(min(size, 0xFFFF_FFFF))
        before = self._times[-1] if self._times else 0  # times never fall, whatever the clock did
        self._times.append(min(max(time, before), 0xFFFF_FFFF))
        self.bytes += self._sizes[-1]

    def extend(self, positions: array[int], sizes: array[int], time: int) -> None:
        """As `append` of each, all of one time."""
        self.append(positions[0], sizes[0], time)
        self._positions.extend(positions[1:])
        self._sizes.extend(sizes[1:])
        self._times.extend(array("I", (self._times[-1],)) * (len(positions) - 1))
        self.bytes += sum(sizes[1:])

    def upcoming(self, most: int) -> list[int]:
        """The next positions to be sent, at most so many."""
        found: list[int] = []
        at = self._next
        while at < len(self._positions) and len(found) < most:
            if (position := self._positions[at]) not in self._done:
                found.append(position)
            at += 1
        return found

    def sent(self, position: int) -> None:
        """Everything up to a position was sent."""
        self._next = max(self._next, bisect_right(self._positions, position, self._head))

    def rewind(self) -> None:
        """What is not acknowledged is to be sent again."""
        self._next = self._head

    def acknowledge(self, first: int, last: int) -> int:
        """Forget the positions from one to another; how many that were."""
        start = bisect_left(self._positions, first, self._head)
        end = bisect_right(self._positions, last, start)
        if not self._done:  # all of them, however many
            self.bytes -= sum(self._sizes[start:end])
            if start == self._head:
                self._move_to(end)
            else:
                self._done.update(self._positions[start:end])
            return end - start
        count = 0
        for at in range(start, end):
            if self._positions[at] not in self._done:
                count += 1
                self.bytes -= self._sizes[at]
                self._done.add(self._positions[at])
        if count and start == self._head:
            self._advance()
        return count

    def _advance(self) -> None:
        positions, done = self._positions, self._done
        head = self._head
        while head < len(positions) and positions[head] in done:
            done.remove(positions[head])
            head += 1
        self._move_to(head)

    def _move_to(self, head: int) -> None:
        self._head = head
        self._next = max(self._next, head)
        if head > _COMPACT and 2 * head > len(self._positions):
            del self._positions[:head], self._sizes[:head], self._times[:head]
            self._next -= head
            self._head = 0

    def oldest(self) -> Iterator[tuple[int, int]]:
        """Positions that are not acknowledged, the oldest first, each with its size."""
        for at in range(self._head, len(self._positions)):
            if self._positions[at] not in self._done:
                yield self._positions[at], self._sizes[at]

    def older_than(self, time: int) -> list[int]:
        """The oldest positions, as far as they were stored before a time; those of a second that is cut off count."""
        end = bisect_left(self._times, time, self._head)
        return [p for p in self._positions[self._head : end] if p not in self._done]

    def snapshot(self, most: int) -> Iterator[tuple[bytes, bytes, bytes]]:
        """Everything that is not acknowledged, packed, at most so many at once: for `restore`."""
        kept = [at for at in range(self._head, len(self._positions)) if self._positions[at] not in self._done]
        whole = len(kept) == len(self._positions) - self._head
        for start in range(0, len(kept), most):
            if whole:  # the usual case, without a list
                places = slice(self._head + start, min(self._head + start + most, len(self._positions)))
                yield self._positions[places].tobytes(), self._sizes[places].tobytes(), self._times[places].tobytes()
            else:
                some = kept[start : start + most]
                yield (
                    array("Q", (self._positions[at] for at in some)).tobytes(),
                    array("I", (self._sizes[at] for at in some)).tobytes(),
                    array("I", (self._times[at] for at in some)).tobytes(),
                )

    def restore(self, positions: bytes, sizes: bytes, times: bytes) -> None:
        """Put back what `snapshot` packed, behind all others."""
        more = array("Q", positions)
        assert not self._positions or not more or more[0] > self._positions[-1], "positions ascend"
        added = array("I", sizes)
        self._positions += more
        self._sizes += added
        self._times += array("I", times)
        self.bytes += sum(added)

    def _check(self) -> None:
        positions = self._positions
        assert all(a < b for a, b in itertools.pairwise(positions))
        assert len(positions) == len(self._sizes) == len(self._times)
        assert 0 <= self._head <= self._next <= len(positions)
        left = [at for at in range(self._head, len(positions)) if positions[at] not in self._done]
        assert self._done <= set(positions[self._head :])
        assert not left or self._head == left[0]
        assert len(self) == len(left)
        assert self.bytes == sum(self._sizes[at] for at in left)
