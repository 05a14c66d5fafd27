"""A large batch in several threads: in pieces, whose answers come in their order.

Kernels run without the GIL, so threads match at once what is encoded one after another: it pays where values are
searched for in indexes, regions most of all, and hardly for a few scalars.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from contrada.errors import InvalidValue, shown
from contrada.forwarding.batches.columns import Columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contrada.forwarding.kernels.memory.layout import Ints

_NOTHING: Final = np.zeros(0, np.int64)
_P = TypeVar("_P")
_T = TypeVar("_T")


def thread_count(threads: int | None) -> int:
    """How many threads are asked for: as many as there are cores for this process if that is None."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InvalidValue(f"threads is a positive integer, or None for all cores, not {shown(threads)}")
    return threads


def in_threads(work: Callable[[_P], _T], pieces: Sequence[_P], threads: int) -> list[_T]:
    """What `work` makes of each piece, in their order."""
    threads = min(threads, len(pieces))
    if threads <= 1:
        return [work(piece) for piece in pieces]
    with ThreadPoolExecutor(threads, "contrada-match") as pool:
        return list(pool.map(work, pieces))


def cut(
    given: Columns | Sequence[Mapping[str, object]], most: int
) -> list[tuple[int, Columns | Sequence[Mapping[str, object]]]]:
    """Notifications in pieces of so many at most, each with the place of its first."""
    if isinstance(given, Columns):
        starts = range(0, given.size, most)
        return [(start, given.take(np.arange(start, min(start + most, given.size)))) for start in starts]
    return [(start, given[start : start + most]) for start in range(0, len(given), most)]


def joined_pairs(pieces: Sequence[tuple[int, object]], pairs: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """The places and ids that pieces have, with the places of the whole."""
    places = [found + start for (start, _), (found, _) in zip(pieces, pairs, strict=True)]
    return np.concatenate((_NOTHING, *places)), np.concatenate((_NOTHING, *(ids for _, ids in pairs)))
