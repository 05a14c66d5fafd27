"""Which notifications this broker has handled: the last few thousand of every origin.

On a tree that everybody agrees on, no notification comes twice. While the tree changes one may, on another path; its
id gives it away. An origin's memory is a ring of its newest ids, so it is bounded whatever arrives; one that comes
again after that many others is stopped by its hop count instead.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from contrada.broker.messages import NotificationId

PER_ORIGIN: Final = 8192
ORIGINS: Final = 4096


class SeenIds:
    """Bounded memory of notification ids. `first_time` is O(1)."""

    def __init__(self, per_origin: int = PER_ORIGIN, origins: int = ORIGINS) -> None:
        self._per_origin = per_origin
        self._origins = origins
        self._seen: OrderedDict[str, tuple[set[int], deque[int]]] = OrderedDict()

    def first_time(self, id: NotificationId) -> bool:
        """Whether this id is new; it is remembered from now on."""
        entry = self._seen.get(id.broker)
        if entry is None:
            entry = self._seen[id.broker] = (set(), deque())
            if len(self._seen) > self._origins:
                self._seen.popitem(last=False)
        else:
            self._seen.move_to_end(id.broker)
        numbers, order = entry
        if id.sequence in numbers:
            return False
        numbers.add(id.sequence)
        order.append(id.sequence)
        if len(order) > self._per_origin:
            numbers.discard(order.popleft())
        return True
