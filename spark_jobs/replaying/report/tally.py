"""What a replay counts beside its deliveries: events and deliveries over time and by place.

Each task keeps a tally and hands it over at its end, so that a report needs no second pass over anything. Tallies are
merged in any order with the same result.

Places are counted in square cells of side 2^level whose corners are multiples of that side. A cell of one level lies
in one cell of the next, so a grid that has grown too large is coarsened by halving its coordinates, and grids of
different levels are merged at the coarser: nobody has to know the extent beforehand, and nothing is estimated.

Times are counted in the same way, in bins from a millisecond to a century. Each of `STEPS` is a multiple of the one
before it; the step is the finest with which all that was counted lies in `BINS` bins, whoever counted it first.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contrada.forwarding.batches.columns import Columns
from contrada.forwarding.language.values import Kind
from contrada.spatial.geometry.point import Point

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contrada.forwarding.kernels.memory.layout import Floats, Ints

_MILLISECOND: Final = 1000  # microseconds
_SECOND: Final = 1000 * _MILLISECOND
_DAY: Final = 86_400 * _SECOND
STEPS: Final = (
    *(n * _MILLISECOND for n in (1, 5, 20, 100, 500)),
    *(n * _SECOND for n in (1, 5, 15, 60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600)),
    *(n * _DAY for n in (1, 7, 28, 364, 3640, 36400)),
)
"""Widths of bins in microseconds."""
BINS: Final = 360  # from the first to the last, at most
CELLS: Final = 4096  # of a grid at most
_FINEST: Final = -20  # the side of the smallest cells is 2^-20: about a millionth of a degree, a tenth of a metre
_SIDE: Final = 512
_PLACES: Final = (Kind.POINT, Kind.REGION, Kind.LINE, Kind.GEOTEXT)


class Tally:
    """Counts of [events, deliveries] by bin of time, numbered from 1970, and by cell."""

    def __init__(self) -> None:
        self.events = 0
        self.deliveries = 0
        self.rejected = 0
        self.level = _FINEST
        self.scale = 0  # place in STEPS
        self.bins: dict[int, list[int]] = {}
        self.ends: tuple[int, int] | None = None  # the times of the first and the last event
        self.cells: dict[tuple[int, int], list[int]] = {}

    def add(self, times: Ints, places: Floats, deliveries: Ints, *, count_events: bool = True) -> None:
        """Count events of these times and places, NaN for none, which led to so many deliveries each."""
        events = int(count_events)
        self.events += events * len(times)
        self.deliveries += int(deliveries.sum())
        if len(times):
            self._widen(int(times.min()), int(times.max()))
            bins, which = np.unique(times // self.step, return_inverse=True)
            _add_up(self.bins, bins.tolist(), which, deliveries, events)
        somewhere = np.isfinite(places[:, 0])
        if somewhere.any():
            places, deliveries = places[somewhere], deliveries[somewhere]
            self._coarsen_to(_level_of(places))
            at = np.floor(places / 2.0**self.level).astype(np.int64)
            low = at.min(axis=0)
            keys, which = np.unique((at[:, 0] - low[0]) << 32 | (at[:, 1] - low[1]), return_inverse=True)
            x, y = (keys >> 32) + low[0], (keys & 0xFFFFFFFF) + low[1]
            _add_up(self.cells, list(zip(x.tolist(), y.tolist(), strict=True)), which, deliveries, events)
            self._shrink()

    def merge(self, other: Tally) -> None:
        """Take over what another has counted."""
        self.events += other.events
        self.deliveries += other.deliveries
        self.rejected += other.rejected
        if other.ends is not None:
            self._widen(*other.ends)
            for bin, counts in other.bins.items():
                _increase(self.bins, bin * other.step // self.step, counts)
        self._coarsen_to(other.level)
        shift = self.level - other.level
        for (x, y), counts in other.cells.items():
            _increase(self.cells, (x >> shift, y >> shift), counts)
        self._shrink()

    @property
    def step(self) -> int:
        """The width of a bin in microseconds."""
        return STEPS[self.scale]

    def _widen(self, first: int, last: int) -> None:
        """Make room for times from one to another: if need be by wider bins."""
        if self.ends is not None:
            first, last = min(first, self.ends[0]), max(last, self.ends[1])
        self.ends = first, last
        before = self.step
        while self.scale < len(STEPS) - 1 and last // self.step - first // self.step >= BINS:
            self.scale += 1
        if self.step != before:
            bins, self.bins = self.bins, {}
            for bin, counts in bins.items():
                _increase(self.bins, bin * before // self.step, counts)

    def _coarsen_to(self, level: int) -> None:
        if level > self.level:
            shift, self.level = level - self.level, level
            before, self.cells = self.cells, {}
            for (x, y), counts in before.items():
                _increase(self.cells, (x >> shift, y >> shift), counts)

    def _shrink(self) -> None:
        while len(self.cells) > CELLS:
            self._coarsen_to(self.level + 1)

    def _check(self) -> None:
        assert len(self.cells) <= CELLS
        assert all(a < b and b % a == 0 for a, b in pairwise(STEPS))
        assert (self.ends is None) == (not self.bins)
        if self.ends is not None:
            low, high = (time // self.step for time in self.ends)
            assert all(low <= bin <= high for bin in self.bins)
            assert high - low < BINS or self.step == STEPS[-1]
        assert sum(counts[0] for counts in self.bins.values()) == self.events
        assert sum(counts[1] for counts in self.bins.values()) == self.deliveries
        assert sum(counts[0] for counts in self.cells.values()) <= self.events


def places_of(notifications: Columns | Sequence[Mapping[str, Any]]) -> Floats:
    """Where each event is: the centre of its first attribute that is a place; NaN for one that has none."""
    if not isinstance(notifications, Columns):
        return np.array([_place_of(each) for each in notifications], np.float64).reshape(-1, 2)
    places = np.full((notifications.size, 2), np.nan)
    for column in notifications.columns:
        if column.kind in _PLACES:
            boxes = column.bounds()
            open = np.isnan(places[:, 0])
            if column.present is not None:
                open &= column.present
            places[open] = (boxes[open, :2] + boxes[open, 2:]) / 2
    return places


def shapes_of(notifications: Columns | Sequence[Mapping[str, Any]]) -> list[Any]:
    """The first attribute of each event that is a place, as a point or region; None where there is none."""
    if not isinstance(notifications, Columns):
        return [next(filter(None, map(_shape, each.values())), None) for each in notifications]
    shapes: list[Any] = [None] * notifications.size
    for column in (each for each in notifications.columns if each.kind in _PLACES):
        present = [True] * notifications.size if column.present is None else column.present.tolist()
        for row, there in enumerate(present):
            if there and shapes[row] is None:
                value: Any = column.values[row]
                shapes[row] = Point(*value.tolist()) if column.kind is Kind.POINT else _shape(value)
    return shapes


def _shape(value: Any) -> Any:
    """A value's place, if it has one."""
    place = getattr(value, "place", value)
    return place if hasattr(place, "to_shapely") else None


def _place_of(notification: Mapping[str, Any]) -> tuple[float, float]:
    for value in notification.values():
        if not isinstance(value, str | int | float):
            bounds = getattr(getattr(value, "place", value), "bounds", None)
            if bounds is not None:
                return (bounds[0] + bounds[2]) / 2, (bounds[1] + bounds[3]) / 2
    return math.nan, math.nan


def _level_of(places: Floats) -> int:
    """The finest level worth having: so many cells a side as a picture has points, and coordinates that fit."""
    largest = float(np.abs(places).max())
    extent = float(np.ptp(places, axis=0).max())
    return max(_FINEST, math.frexp(largest)[1] - 50, math.frexp(extent / _SIDE)[1] if extent else _FINEST)


def _add_up(counts: dict[Any, list[int]], keys: list[Any], which: Ints, deliveries: Ints, events: int) -> None:
    sums = np.bincount(which, weights=deliveries, minlength=len(keys)).astype(np.int64).tolist()
    sizes = np.bincount(which, minlength=len(keys)).tolist()
    for key, size, total in zip(keys, sizes, sums, strict=True):
        _increase(counts, key, (events * size, total))


def _increase(counts: dict[Any, list[int]], key: Any, by: Sequence[int]) -> None:
    found = counts.setdefault(key, [0, 0])
    found[0] += by[0]
    found[1] += by[1]
