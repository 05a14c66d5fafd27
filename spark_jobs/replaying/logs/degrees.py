"""Events for an index of longitudes and latitudes: places as such indexes have them, and rejects where they are none.

Places within -180 to 180 and -90 to 90 stay as they are, columns at a time; an event with any other is looked at by
itself, and moved or rejected (forwarding/language/lonlat.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from contrada.errors import InvalidValue
from contrada.forwarding.batches.columns import Columns, columns_in_degrees
from contrada.forwarding.language.lonlat import notification_in_degrees
from contrada.forwarding.language.values import Kind
from contrada.spark_jobs.replaying.logs.decoding import Events, Reject
from contrada.spark_jobs.replaying.logs.event_stream import row_of

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Ints

_PLACES = (Kind.POINT, Kind.REGION, Kind.LINE, Kind.GEOTEXT)
_RAW = 4096  # characters of a rejected event that are kept


def events_in_degrees(events: Events) -> Events:
    """The same events, without those that are nowhere on Earth."""
    given = events.notifications
    odd = _odd(given) if isinstance(given, Columns) else np.arange(len(events))
    moved: dict[int, Any] = {}
    rejects = list(events.rejects)
    wrong: set[int] = set()
    for place in odd.tolist():
        notification = row_of(given, place) if isinstance(given, Columns) else given[place]
        try:
            moved[place] = notification_in_degrees(notification)
        except InvalidValue as error:
            wrong.add(place)
            row, id = int(events.rows[place]), events.ids[place].as_py()
            rejects.append(Reject(row, id, str(error), str(notification)[:_RAW]))
    good = np.array([place for place in range(len(events)) if place not in wrong], np.int64)
    kept: Columns | list[dict[str, Any]]
    if isinstance(given, Columns):
        kept = columns_in_degrees(given.take(good) if wrong else given)
    else:
        kept = [moved[place] for place in good.tolist()]
    return Events(events.rows[good], events.ids.take(pa.array(good)), events.times[good], kept, rejects)


def _odd(given: Columns) -> Ints:
    """The events with a place that has to be looked at."""
    odd = np.zeros(given.size, np.bool_)
    for column in given.columns:
        if column.kind in _PLACES:
            beyond = (np.abs(column.bounds()) > (180.0, 90.0, 180.0, 90.0)).any(axis=1)
            odd |= beyond if column.present is None else beyond & column.present
    return np.flatnonzero(odd)
