"""Filters that are tried one by one, without being found by what they are posted under (types/trying.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.forwarding.kernels.change.choosing import word_span
from contrada.forwarding.kernels.match.matching import decode, forget
from contrada.forwarding.kernels.match.verifying import C_FULL, C_PAIRS, C_PENDING, Message, Scratch, examine
from contrada.forwarding.kernels.memory.bits import low_half, status_now, word_operator
from contrada.forwarding.kernels.memory.layout import (
    ACTIVE,
    F_CODE,
    F_INTERFACE,
    F_SIZE,
    F_STATE,
    PLUG,
    S_FILTERS,
    STRING,
    Index,
    Ints,
)
from contrada.spatial.storage.jit import bare_kernel

if TYPE_CHECKING:
    from contrada.forwarding.kernels.match.batch import Batch


@bare_kernel
def plugged_filters(index: Index, rows: Ints, owners: Ints) -> int:
    """The active filters with a constraint of a plugged-in type, and their interfaces; how many."""
    words, filters = index.words, index.filters
    count = 0
    for f in range(1, index.state[S_FILTERS]):
        if status_now(filters[f, F_STATE]) != ACTIVE:
            continue
        at = filters[f, F_CODE]
        end = at + low_half(filters[f, F_SIZE])
        while at < end and word_operator(words[at]) != PLUG:
            at += word_span(words[at])
        if at < end:
            rows[count] = f
            owners[count] = filters[f, F_INTERFACE]
            count += 1
    return count


@bare_kernel
def try_filters(
    index: Index, batch: Batch, places: Ints, rows: Ints, owners: Ints, scratch: Scratch, verdicts: Ints
) -> bool:
    """Try the filter in `rows[i]` on notification `places[i]`, which ascend: 0 it fails, 1 it matches, 2 it is pending.

    A row that is no active filter of the interface `owners[i]` fails. False if there was no room for what is pending.
    """
    cursor, filters = scratch.cursor, index.filters
    cursor[C_PENDING] = 0
    cursor[C_PAIRS] = 0
    message = Message(scratch.attributes, scratch.slots, batch.text)
    start = 0
    i = 0
    for n in range(batch.ends.shape[0]):
        first = batch.ends[n - 1] if n > 0 else 0
        if i == rows.shape[0]:
            break
        if places[i] > n:
            for r in range(first, batch.ends[n]):
                if batch.rows[r, 0] & 15 == STRING:
                    start += batch.rows[r, 1]
            continue
        _, start = decode(index, batch, first, batch.ends[n], start, message)
        while i < rows.shape[0] and places[i] == n and cursor[C_FULL] == 0:
            f = rows[i]
            verdicts[i] = 0
            known = f < index.state[S_FILTERS] and status_now(filters[f, F_STATE]) == ACTIVE
            if known and filters[f, F_INTERFACE] == owners[i]:
                verdicts[i] = examine(index, message, scratch, n, f, 0)
            i += 1
        forget(message, batch.ends[n] - first)
        if cursor[C_FULL] != 0:
            cursor[C_FULL] = 0
            return False
    return True
