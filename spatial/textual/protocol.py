"""What every spatio-textual index does, so that one can stand in for another.

A subscription is a set of keywords and a box (the MBR of whatever region the user gave; exact regions are verified
by the caller). A message is a set of tokens and a box, degenerate for a point. A subscription matches when all its
keywords are among the message's tokens and the two closed boxes intersect. Ids are the caller's, non-negative,
below 2**31, each used once at a time. Keywords are strings here; every index maps them to dense integers through
one `Vocabulary`, so kernels never see text.

All indexes give the same answers; they differ in what they visit on the way, which `counters` tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable

    import numpy as np
    from numpy.typing import NDArray


class Subscription(NamedTuple):
    """Keywords and a closed box (x1, y1, x2, y2) with x1 <= x2 and y1 <= y2, under the caller's id."""

    id: int
    keywords: frozenset[str]
    box: tuple[float, float, float, float]


class TextCounters(NamedTuple):
    """Work done by the last search: what the papers plot, and what tests can hold an index to."""

    nodes: int  # nodes, cells or lists visited
    verified: int  # candidates whose keywords or box had to be checked
    matched: int  # ids returned


class TextualIndex(Protocol):
    """An index over subscriptions. `search` is read-only; `insert` and `remove` take effect before they return."""

    counters: TextCounters

    @classmethod
    def build(cls, subscriptions: Iterable[Subscription]) -> Self:
        """Bulk load; answers as if every subscription had been inserted."""
        ...

    def insert(self, subscription: Subscription) -> None:
        """Add one subscription. `InvalidValue` when its id is in use or its box is not a finite box."""
        ...

    def remove(self, id: int) -> None:
        """Take a subscription out. `NotFound` when there is none of that id."""
        ...

    def search(self, tokens: Collection[str], box: tuple[float, float, float, float]) -> NDArray[np.int64]:
        """Ids of the subscriptions that match, each once, in ascending order."""
        ...

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one file that `load` maps back."""
        ...

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Map a saved index; it can be searched at once and changed afterwards."""
        ...

    def _check(self) -> None:
        """Assert every invariant of the structure."""
        ...

    def __len__(self) -> int: ...
