"""External id → slot, as one array: open addressing with linear probing over the slots themselves.

`table[h]` is a slot or -1; the key of a slot is `ids[slot]`, kept by the store, so an entry is four bytes and the map
of twenty million subscriptions 256 MB where a dictionary would need two gigabytes. The table is a power of two, at
most two thirds full; removal shifts the run back, so there are no tombstones and nothing to clean up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contrada.spatial.storage.hashing import home
from contrada.spatial.storage.jit import kernel

Slots = NDArray[np.int32]


def table_size(entries: int) -> int:
    """Return the table's size for so many entries: a power of two at most two thirds full."""
    size = 16
    while size * 2 < entries * 3:
        size *= 2
    return size


@kernel
def find_slot(table: Slots, ids: Slots, id: int) -> int:
    """Return the slot of an id, or -1."""
    h = home(id, table.size)
    while table[h] >= 0:
        if ids[table[h]] == id:
            return int(table[h])
        h = (h + 1) & (table.size - 1)
    return -1


@kernel
def enter_slots(table: Slots, ids: Slots, first: int, last: int) -> int:
    """Enter the live slots first..last-1; returns the first slot whose id is already there, or -1."""
    for slot in range(first, last):
        if ids[slot] < 0:
            continue
        h = home(ids[slot], table.size)
        while table[h] >= 0:
            if ids[table[h]] == ids[slot]:
                return slot
            h = (h + 1) & (table.size - 1)
        table[h] = slot
    return -1


@kernel
def drop_slot(table: Slots, ids: Slots, id: int) -> None:
    """Take the entry of an id out and close the gap it leaves in its run."""
    mask = table.size - 1
    hole = home(id, table.size)
    while ids[table[hole]] != id:
        hole = (hole + 1) & mask
    h = (hole + 1) & mask
    while table[h] >= 0:
        # The entry may move back to the hole unless its home lies cyclically after the hole.
        if (h - home(ids[table[h]], table.size)) & mask >= (h - hole) & mask:
            table[hole] = table[h]
            hole = h
        h = (h + 1) & mask
    table[hole] = -1
