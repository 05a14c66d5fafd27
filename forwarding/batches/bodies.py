"""Encoded notifications into a batch: compiled code (reading.py) reads what is plain, the codec the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.errors import CodecError
from contrada.forwarding.batches.encode import PointColumn, Values
from contrada.forwarding.codec.msgpack import decode_notification
from contrada.forwarding.kernels.match.batch import Batch
from contrada.forwarding.kernels.match.reading import (
    MOST,
    PADDING,
    T_FLOATS,
    T_POINTS,
    T_READ,
    T_ROWS,
    T_SIZE,
    T_TEXT,
    T_WIDEST,
    Reading,
    read_bodies,
)
from contrada.forwarding.kernels.memory.names import R_TWIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contrada.forwarding.kernels.memory.names import Names
    from contrada.forwarding.language.values import Value

_PADDING: Final = bytes(PADDING)


def read_plain(bodies: Sequence[bytes], names: Names) -> tuple[Batch, Values, int, list[int]]:
    """The batch of the bodies that are plain, the points in them, and how many attributes the widest has.

    Last the places of the other bodies, ascending, whatever is the matter with them.
    """
    count = len(bodies)
    data = np.frombuffer(b"".join((*bodies, _PADDING)), np.uint8)
    size = len(data)
    twice = 1 + bool(names.rows[:, R_TWIN].any())  # each string may have a folded twin
    out = Reading(
        rows=np.empty((twice * (size // 3 + 1), 2), np.int64),  # an attribute is at least three bytes
        ends=np.empty(count, np.int64),
        floats=np.empty(size // 8 + 2, np.int64),
        text=np.empty(twice * size + PADDING, np.uint8),
        points=np.empty((size // 16 + 1, 2), np.int64),
        left=np.empty(count, np.int64),
        hashes=np.empty(MOST, np.int64),
        cursor=np.empty(T_SIZE, np.int64),
    )
    read_bodies(data, np.cumsum(np.fromiter(map(len, bodies), np.int64, count)), names, out)
    cursor = out.cursor.tolist()
    floats = out.floats[: cursor[T_FLOATS]].view(np.float64)
    batch = Batch(out.rows[: cursor[T_ROWS]], out.ends[: cursor[T_READ]], floats, out.text[: cursor[T_TEXT] + PADDING])
    points = out.points[: cursor[T_POINTS]]
    values = Values()
    if len(points):
        values = Values(PointColumn(floats[points[:, 1:] + (0, 1)]), points[:, 0].tolist())
    return batch, values, cursor[T_WIDEST], out.left[: count - cursor[T_READ]].tolist()


def decode_some(bodies: Sequence[bytes], places: Iterable[int]) -> tuple[list[dict[str, Value]], dict[int, CodecError]]:
    """The notifications at these places, an empty one for each that the codec refuses, and why it does."""
    notifications: list[dict[str, Value]] = []
    refused: dict[int, CodecError] = {}
    for place in places:
        try:
            notifications.append(decode_notification(bodies[place]))
        except CodecError as error:
            notifications.append({})
            refused[place] = error
    return notifications, refused
