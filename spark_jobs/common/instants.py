"""Times as instants, whatever a log makes of them: in microseconds since 1970 in UTC.

Where a log tells local time only, it counts as time in the zone that the user has given, and is refused if none was. A
local time that summer time skips is refused; one that occurs twice is the earlier of the two.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa

from contrada.errors import InvalidValue
from contrada.forwarding.language.values import check_time, microseconds
from contrada.spark_jobs.common.arrow import mask_of, numbers_of

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Ints

TIME_TYPE: Final = pa.timestamp("us", tz="UTC")
_FIRST: Final = microseconds(datetime.min.replace(tzinfo=UTC))
_LAST: Final = microseconds(datetime.max.replace(tzinfo=UTC))


def zone_of(name: str | None) -> ZoneInfo | None:
    """The time zone of a name such as Europe/Rome; `InvalidValue` when there is none."""
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidValue(f"no time zone is called {name!r}; give one such as UTC or Europe/Rome") from error


def parse_time(value: object, zone: ZoneInfo | None) -> int:
    """The instant that a text in ISO 8601, or a datetime, tells; in microseconds since 1970."""
    if isinstance(value, str):
        text = value
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            raise InvalidValue(f"{text[:40]!r} is not a time in ISO 8601, such as 2026-11-16T09:30:00Z") from None
    if not isinstance(value, datetime):
        raise InvalidValue(f"a time is a text in ISO 8601, not {type(value).__name__}")
    if value.tzinfo is None:
        if zone is None:
            raise InvalidValue(f"{value.isoformat()} has no time zone, and none was given for such times (--timezone)")
        local = value.replace(tzinfo=zone)
        if local.astimezone(UTC).astimezone(zone).replace(tzinfo=None, fold=0) != value.replace(fold=0):
            raise InvalidValue(f"{value.isoformat()} does not exist in {zone.key}: summer time skips it")
        value = local
    return microseconds(check_time(value))


def instants(column: pa.Array, zone: ZoneInfo | None, what: str, faults: dict[int, str]) -> Ints:
    """The instants of a column of timestamps or texts; what is none becomes a fault of its row, but null does not."""
    if pa.types.is_timestamp(column.type) and column.type.tz is not None:
        times: Ints = numbers_of(column.cast(TIME_TYPE).cast(pa.int64()))
        wrong = (times < _FIRST) | (times > _LAST)
        for row in np.flatnonzero(wrong & mask_of(column.is_valid())).tolist():
            faults.setdefault(row, f"{what}: {times[row]} µs since 1970 lies outside the years 1 to 9999")
        return times
    cells = column.to_pylist()
    times = np.zeros(len(cells), np.int64)
    for row, cell in enumerate(cells):
        if cell is not None:
            try:
                times[row] = parse_time(cell, zone)
            except InvalidValue as error:
                faults.setdefault(row, f"{what}: {error}")
    return times
