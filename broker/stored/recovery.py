"""How a broker's durable state comes back from its journal.

The rows behind the last whole checkpoint say everything; it is looked for from the end, in steps that grow, because it
is near: one is written whenever the journal has grown by `CHECKPOINT_BYTES`, or `CHECKPOINT_ENTRIES` entries.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from contrada.broker.stored.rows import Row, unpack_group
from contrada.broker.stored.state import State
from contrada.errors import CorruptFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contrada.broker.stored.limits import DurableLimits
    from contrada.broker.stored.rows import Group
    from contrada.broker.stored.store import Journal

log = logging.getLogger("contrada.broker")

CHECKPOINT_BYTES: Final = 64 << 20
CHECKPOINT_ENTRIES: Final = 65_536
_FIRST_LOOK: Final = 1024  # entries
_FURTHER: Final = 8  # times as many, the next time


def recover(journal: Journal, limits: DurableLimits, broker: str) -> State:
    """Rebuild the state."""
    look = _FIRST_LOOK
    while True:
        start = max(journal.first, journal.on_disk - look)
        begin = _checkpoint_in(journal, start)
        if begin is not None or start <= journal.first:
            break
        look *= _FURTHER
    state = State(limits, broker)
    for group in _groups(journal, begin if begin is not None else journal.first):
        for position, row in group.positions():
            try:
                state.apply(position, group.time, row)
            except (TypeError, ValueError, AssertionError, LookupError) as error:  # it is whole, and yet no row of ours
                log.error("journal: a row that cannot be applied", extra={"position": position, "reason": str(error)})
    state.finish()
    if journal.first > 1 and not state.complete:
        log.error("journal: no whole checkpoint is left; what was subscribed before is unknown")
    return state


def _checkpoint_in(journal: Journal, start: int) -> int | None:
    """The entry at which the last whole checkpoint behind `start` begins."""
    begun = whole = None
    for group in _groups(journal, start):
        for row in group.rows:
            if row[0] == Row.CHECKPOINT:
                begun = group.entry
            elif row[0] == Row.COMPLETE and begun is not None:
                whole, begun = begun, None
    return whole


def _groups(journal: Journal, start: int) -> Iterator[Group]:
    for entry in journal.read(start):
        try:
            yield unpack_group(entry.sequence, entry.payload)
        except CorruptFile as error:
            log.error("journal damaged", extra={"reason": str(error)})
