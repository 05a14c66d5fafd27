"""What the table calls to change itself: add a batch of filters, remove some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.forwarding.index.adding import add_rows, free_row
from contrada.forwarding.index.filing import post_filter, unpost_filter
from contrada.forwarding.index.layout import F_STATE, S_ACTIVE, S_VOID, VOID, Index, Ints
from contrada.spatial._jit import bare_kernel

if TYPE_CHECKING:
    from contrada.forwarding.index.batch import Batch


@bare_kernel
def add_filters(
    index: Index,
    interfaces: Ints,
    batch: Batch,
    needed: Ints,
    owners: Ints,
    states: Ints,
    events: Ints,
    room: Ints,
    made: Ints,
) -> None:
    """Make and post a batch of filters; their rows go to `made`."""
    add_rows(index, interfaces, batch, needed, owners, states, room, made)
    for i in range(made.shape[0]):
        if states[i] == VOID:
            index.state[S_VOID] += 1
        else:
            index.state[S_ACTIVE] += 1
            post_filter(index, made[i], events)


@bare_kernel
def remove_filter(index: Index, interfaces: Ints, f: int, events: Ints) -> None:
    """Unpost a filter and free it."""
    if index.filters[f, F_STATE] & 255 == VOID:
        index.state[S_VOID] -= 1
    else:
        index.state[S_ACTIVE] -= 1
        unpost_filter(index, f, events)
    free_row(index, interfaces, f, events)
