"""Checks of arrays that hold row numbers of other arrays, as a file gives them: kernels follow them without looking.

Each layout states beside itself which of its arrays are what: a dtype and the sizes of a row (`SHAPES`), and which
columns are rows of what. The functions here hold loaded arrays to that, vectorised: a few passes over each array, and
`CorruptFile` for the first thing that is not so. What they let pass cannot lead a kernel out of its arrays or round in
circles; whether it is the right answer is what checksums are for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.errors import CorruptFile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import DTypeLike, NDArray

    Shapes = Mapping[str, tuple[DTypeLike, tuple[int, ...]]]


def check_shapes(what: str, arrays: Mapping[str, NDArray[Any]], shapes: Shapes) -> None:
    """Every array is there, of its dtype, and its rows of their size: (4,) for rows of four, () for a list."""
    for name, (dtype, row) in shapes.items():
        array = arrays.get(name)
        if array is None:
            raise CorruptFile(f"{what}: the array {name!r} is missing")
        if array.dtype != dtype or array.ndim != 1 + len(row) or array.shape[1:] != row:
            raise CorruptFile(f"{what}: the array {name!r} is {array.dtype} of shape {array.shape}")


def check_lengths(what: str, length: int, *arrays: NDArray[Any]) -> None:
    """All arrays have so many rows."""
    if any(len(array) != length for array in arrays):
        raise CorruptFile(f"{what}: arrays of different lengths")


def check_rows(what: str, numbers: NDArray[Any], limit: int, least: int = 0) -> None:
    """Each is a row number from `least`, -1 where none is one, to below `limit`."""
    if numbers.size and not (least <= int(numbers.min()) and int(numbers.max()) < limit):
        raise CorruptFile(f"{what}: a row number from {numbers.min()} to {numbers.max()}, where rows are below {limit}")


def check_that(what: str, holds: NDArray[np.bool_] | bool | np.bool_) -> None:
    """Something that must hold everywhere does."""
    if not np.all(holds):
        raise CorruptFile(what)


def check_runs(what: str, starts: NDArray[Any], lengths: NDArray[Any], limit: int) -> None:
    """Runs, each by start and length, lie below `limit`."""
    check_rows(what, lengths, limit + 1)
    check_rows(what, starts, limit + 1)
    check_that(f"{what}: a run beyond the end", starts.astype(np.int64) + lengths <= limit)


def check_offsets(what: str, offsets: NDArray[Any], limit: int) -> None:
    """Offsets, one more than there are runs, ascend from 0 to `limit`."""
    if not offsets.size or int(offsets[0]) != 0 or int(offsets[-1]) != limit:
        raise CorruptFile(f"{what}: offsets that do not go from 0 to {limit}")
    check_that(f"{what}: offsets that do not ascend", offsets[1:] >= offsets[:-1])


def check_ends(what: str, links: NDArray[np.int64]) -> None:
    """Following links, row numbers in range or -1, comes to an end from everywhere.

    By doubling: after k rounds each link is 2**k steps long, so there are as many rounds as the longest list has bits.
    """
    steps = 1
    while links.size and int(links.max()) >= 0:
        if steps > links.size:
            raise CorruptFile(f"{what}: a list that runs in a circle")
        links = np.where(links >= 0, links[links], -1)
        steps *= 2


def check_met_once(what: str, numbers: NDArray[Any], size: int) -> None:
    """No row below `size` is named twice; -1 counts for none."""
    if numbers.size and int(np.bincount(numbers[numbers >= 0], minlength=size).max(initial=0)) > 1:
        raise CorruptFile(f"{what}: a row in two places")


def check_probing(what: str, cells: NDArray[Any]) -> None:
    """An open-addressing table, -1 in empty cells: a power of two, not full, or probing would never end."""
    if not cells.size or cells.size & (cells.size - 1) or int(cells.min()) >= 0:
        raise CorruptFile(f"{what}: a hash table of {cells.size} cells, none of them empty or not a power of two")


def spread(starts: NDArray[Any], lengths: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places of all runs, one after another, and which run each is of."""
    counts = lengths.astype(np.int64)
    total = int(counts.sum())
    before = np.cumsum(counts) - counts
    owner = np.repeat(np.arange(len(counts)), counts)
    return np.arange(total) - before[owner] + starts.astype(np.int64)[owner], owner
