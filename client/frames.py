"""What a subscription receives as a GeoDataFrame: for notebooks, with the optional geopandas."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from contrada.errors import ContradaError, InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contrada.client.notification import Notification


class Collecting:
    """How much to wait for: so many notifications, so many seconds, or whichever comes first."""

    def __init__(self, n: int | None, seconds: float | None) -> None:
        if n is None and seconds is None:
            raise InvalidValue("say how many notifications to wait for, n=…, or how long, seconds=…")
        if n is not None and (type(n) is not int or n < 1):
            raise InvalidValue(f"n is a whole number of at least 1, not {n!r}")
        if seconds is not None and not seconds >= 0:
            raise InvalidValue(f"seconds is a number of at least 0, not {seconds!r}")
        self._n = n
        self._end = None if seconds is None else time.monotonic() + seconds
        self.found: list[Notification] = []

    @property
    def wanting(self) -> bool:
        """Whether there is more to wait for."""
        return (self._n is None or len(self.found) < self._n) and (self._end is None or time.monotonic() < self._end)

    @property
    def left(self) -> float | None:
        """Seconds to wait for the next; None for ever."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())


def geodataframe(notifications: Iterable[Notification], geometry: str | None = None) -> Any:
    """A row for each: its id, publisher and attributes; the geometry is that of `geometry`, or of the first place."""
    try:
        import geopandas
        from shapely.geometry import shape
    except ImportError as error:
        raise ContradaError(
            f"to_geodataframe needs {error.name}: install the extra, pip install 'contrada[notebook]'"
        ) from error

    rows = []
    for each in notifications:
        row: dict[str, Any] = {"id": str(each.id), "publisher": each.publisher}
        place = None
        for name, value in each.items():
            found = _shape(value)
            if found is not None and place is None and geometry in (None, name):
                place = shape(found)
            elif found is not None:
                row[name] = shape(found)
            else:
                row[name] = value
        rows.append(row | {"geometry": place})
    return geopandas.GeoDataFrame(rows, columns=None if rows else ["id", "publisher", "geometry"], geometry="geometry")


def _shape(value: object) -> Any:
    """The GeoJSON geometry of a place, or of geotext's; None for what has none."""
    found = getattr(value, "__geo_interface__", None) or getattr(
        getattr(value, "place", None), "__geo_interface__", None
    )
    return found.get("geometry", found) if isinstance(found, dict) else None
