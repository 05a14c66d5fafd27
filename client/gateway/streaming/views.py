"""What a page can look at: the part of a subscription that lies in a window of the plane, at a bounded rate. No I/O.

A notification with places passes if one of them touches the bounds; one without any has no place to be outside of, and
passes. Of what passes, at most `rate` a second are shown, spread evenly over what came; the others are counted as
skipped. At most `_LOOKED_AT` times as many as there is room for are looked into, so that a stream of any speed costs
the gateway about as much as what it shows.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from contrada.client.gateway.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contrada.client.notification import Notification

    Bounds = tuple[float, float, float, float]

_LOOKED_AT: Final = 8
_MOST: Final = 100_000  # a second
_TELL: Final = 1.0  # seconds between reports of what was skipped


class View(NamedTuple):
    """A window and a rate; None is no bound."""

    bounds: Bounds | None = None
    rate: int | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> View:
        """Check what was asked for, by query (`bounds=x1,y1,x2,y2`) or message (a list)."""
        return cls(_bounds(given.get("bounds")), _rate(given.get("rate")))


def _bounds(given: object) -> Bounds | None:
    if given is None or given == "":
        return None
    parts: Any = given.split(",") if isinstance(given, str) else given
    try:
        if isinstance(parts, (list, tuple)) and len(parts) == 4 and not any(type(part) is bool for part in parts):
            x1, y1, x2, y2 = map(float, parts)
            if all(map(math.isfinite, (x1, y1, x2, y2))) and x1 <= x2 and y1 <= y2:
                return x1, y1, x2, y2
    except (TypeError, ValueError, OverflowError):
        pass
    raise Problem("bad-request", f"bounds are four numbers, x1, y1, x2, y2, the lesser first, not {given!r:.80}")


def _rate(given: object) -> int | None:
    if given is None or given == "":
        return None
    digits = isinstance(given, str) and given.isascii() and given.isdecimal() and len(given) < 9
    number = int(str(given)) if digits else given
    if type(number) is not int or not 1 <= number <= _MOST:
        raise Problem("bad-request", f"rate is a whole number from 1 to {_MOST}, notifications a second")
    return number


def places(values: Mapping[str, Any]) -> list[Bounds]:
    """The bounds of each value that has a place."""
    found = []
    for value in values.values():
        bounds = getattr(value, "bounds", None)
        if bounds is None:
            bounds = getattr(getattr(value, "place", None), "bounds", None)  # of geotext
        if bounds is not None:
            found.append(bounds)
    return found


def touches(values: Mapping[str, Any], window: Bounds) -> bool:
    """Whether something of a notification is in a window, or nothing of it is anywhere."""
    found = places(values)
    x1, y1, x2, y2 = window
    return not found or any(a <= x2 and c >= x1 and b <= y2 and d >= y1 for a, b, c, d in found)


class Viewer:
    """Lets a view's share of the notifications through, and counts the rest."""

    def __init__(self, view: View, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.view = view
        self.skipped = 0
        self._told = 0
        self._told_at = self._filled_at = clock()
        self._room = float(view.rate or 0)

    def change(self, view: View) -> None:
        """Look elsewhere from now on."""
        before, self.view = self.view.rate, view
        most = float(view.rate or 0)
        self._room = most if before is None else min(self._room, most)

    def select(self, batch: Sequence[Notification]) -> Sequence[Notification]:
        """Those of a batch that are shown."""
        view = self.view
        if view.rate is None:
            chosen = batch if view.bounds is None else [each for each in batch if self._sees(each)]
        else:
            now = self._clock()
            self._room = min(float(view.rate), self._room + view.rate * (now - self._filled_at))
            self._filled_at = now
            room = int(self._room)
            looked_at = _spread(batch, _LOOKED_AT * room if view.bounds is not None else room)
            chosen = _spread([each for each in looked_at if self._sees(each)], room)
            self._room -= len(chosen)
        self.skipped += len(batch) - len(chosen)
        return chosen

    def _sees(self, notification: Notification) -> bool:
        return self.view.bounds is None or touches(notification.values_by_name, self.view.bounds)

    def news(self) -> list[tuple[str, dict[str, int]]]:
        """How many were skipped since it was last told, if there is something to tell and it was not just told."""
        now = self._clock()
        if self.skipped == self._told or now - self._told_at < _TELL:
            return []
        since, self._told, self._told_at = self.skipped - self._told, self.skipped, now
        return [("skipped", {"skipped": since, "total": self.skipped})]


def _spread(items: Sequence[Notification], most: int) -> Sequence[Notification]:
    """At most so many, evenly chosen."""
    if len(items) <= most:
        return items
    return [items[number * len(items) // most] for number in range(most)]
