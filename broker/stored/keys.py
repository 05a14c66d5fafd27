"""Idempotency keys: what a publisher has had accepted before is not accepted again.

A key belongs to a scope, the publisher's name. Of all keys together the latest `most` are remembered, on disk too: a
publisher that tries again after more than that has been published with keys is not recognised. A key whose notification
is on its way to the disk has followers, who are answered with it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contrada.errors import ContradaError

    Follower = Callable[[int, ContradaError | None], None]


class Keys:
    """The latest keys, and the sequence number of what each was accepted as."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._known: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._under_way: dict[tuple[str, str], list[Follower]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, scope: str, key: str) -> int | None:
        """What a key was accepted as."""
        return self._known.get((scope, key))

    def begin(self, scope: str, key: str) -> bool:
        """A notification with this key is on its way to the disk; False if another one is already."""
        if (scope, key) in self._under_way:
            return False
        self._under_way[scope, key] = []
        return True

    def follow(self, scope: str, key: str, follower: Follower) -> None:
        """Tell somebody what becomes of the one that is on its way."""
        self._under_way[scope, key].append(follower)

    def finish(self, scope: str, key: str, sequence: int, failure: ContradaError | None) -> None:
        """It is on disk under this number, or failed."""
        if failure is None:
            self.remember(scope, key, sequence)
        for follower in self._under_way.pop((scope, key), ()):
            follower(sequence, failure)

    def remember(self, scope: str, key: str, sequence: int) -> None:
        """A key was accepted: remember it, and forget the oldest beyond the bound."""
        self._known[scope, key] = sequence
        self._known.move_to_end((scope, key))
        while len(self._known) > self.most:
            self._known.popitem(last=False)

    def rows(self) -> Iterator[tuple[str, str, int]]:
        """Everything that is remembered, the oldest first."""
        return ((scope, key, sequence) for (scope, key), sequence in self._known.items())

    def _check(self) -> None:
        assert len(self._known) <= self.most
