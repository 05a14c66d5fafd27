"""What a broker writes into its journal: groups of rows.

An entry of the journal is a group: msgpack of `(time in µs, [row, …])`, at most `GROUP_ROWS` rows. A row is an array
that begins with its `Row`. The position of a row is `entry << POSITION_BITS | place in its group`: positions grow with
time, and are what durable subscriptions count in. Whatever a broker has to remember is what its rows say, in order.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgpack  # type: ignore[import-untyped]  # it ships no types

from contrada.errors import CorruptFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

POSITION_BITS: Final = 10
GROUP_ROWS: Final = 1 << POSITION_BITS
GROUP_BYTES: Final = 256 << 10  # about: a row that is longer has a group of its own
GROUP: Final = 1  # the journal's kind of all our entries
ROW_BYTES: Final = 64  # that a row takes besides what it says

RowOf = tuple[Any, ...]


class Row(IntEnum):
    """The first field of a row; behind it come those named here. A number is that of a durable subscription."""

    PUBLISHED = 1  # broker, sequence, publisher, body, [number, …] that get it, scope, key, retain
    SUBSCRIBED = 2  # number, name, owner, [filter, …], interface of the index, [keep …], whether a replay follows
    ENDED = 3  # number
    ACKNOWLEDGED = 4  # number, first position, last position
    WAITING = 5  # number, positions, sizes, times (packed integers): these wait for it, too
    CONFIRMED = 6  # number: all that was replayed for it is said
    DELIVERED = 7  # number, last position, [[position, attempt], …] of those that were sent more than once
    DROPPED = 8  # number, last position, how many so far: it loses everything up to there
    DEAD = 9  # number, position, reason, broker, sequence, publisher, body, time
    LEFT = 10  # number, time: its client is gone
    CHECKPOINT = 11  # what follows, up to COMPLETE, says everything again
    STATE = (
        12  # number, name, owner, [filter, …], interface, [keep …], delivered, dropped, left, [[position, attempt], …]
    )
    KEYS = 13  # [[scope, key, sequence], …]
    RETAINED = 14  # key, broker, sequence, publisher, body, time
    COMPLETE = 15  # [number, …] of all subscriptions, the next number, the last sequence of a notification
    GIVEN = 16  # as PUBLISHED: a copy, for these subscriptions alone
    FORGOTTEN = 17  # key: it has no last value any more
    LINKED = 18  # number, neighbour, [filter, …], dropped, left: what is kept for a neighbour; its WAITING follow
    WANTED = 19  # number, [filter, …], [key, …]: what the neighbour wants durably besides, and no more
    CARRIED = 20  # as PUBLISHED, and the links crossed: a neighbour was told that it is here
    CARRIED_IDS = 21  # broker, sequences (packed integers): these were carried here


HOLDING: Final = frozenset((Row.PUBLISHED, Row.GIVEN, Row.CARRIED))  # rows that hold a notification


class Group(NamedTuple):
    """An entry of the journal as it is read."""

    entry: int
    time: int
    rows: Sequence[RowOf]

    def positions(self) -> Iterator[tuple[int, RowOf]]:
        """Every row with its position."""
        first = self.entry << POSITION_BITS
        return ((first | place, row) for place, row in enumerate(self.rows))


def pack_group(time: int, rows: Sequence[RowOf]) -> bytes:
    """Write a group."""
    packed: bytes = msgpack.packb((time, rows))
    return packed


def unpack_group(entry: int, payload: bytes) -> Group:
    """Read a group; `CorruptFile` if it is none."""
    try:
        time, rows = msgpack.unpackb(payload, use_list=False)
        return Group(entry, int(time), rows)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise CorruptFile(
            f"entry {entry} of the journal is no group of rows: {error or type(error).__name__}"
        ) from error


def entry_of(position: int) -> int:
    """The journal's entry that has a position."""
    return position >> POSITION_BITS


def row_bytes(row: RowOf) -> int:
    """About how long a row is when it is packed."""
    if row[0] in HOLDING:  # nearly all of them
        return ROW_BYTES + len(row[4])
    return ROW_BYTES + sum(len(field) for field in row if isinstance(field, (bytes, str)))


def cut_groups(rows: Sequence[RowOf]) -> Iterator[Sequence[RowOf]]:
    """Rows in groups of the sizes that a group may have."""
    start = size = 0
    for at, row in enumerate(rows):
        length = row_bytes(row)
        if at > start and (at - start == GROUP_ROWS or size + length > GROUP_BYTES):
            yield rows[start:at]
            start, size = at, 0
        size += length
    if start < len(rows):
        yield rows[start:]
