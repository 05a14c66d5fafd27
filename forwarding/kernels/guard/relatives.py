"""Filters of a loaded table among one another: those of one interface, of one group, and what covers what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.forwarding.kernels.change.adding import I_FIRST
from contrada.forwarding.kernels.guard import marks as m
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.kernels.memory.bits import high_half, low_half, status_now
from contrada.forwarding.kernels.memory.layout import (
    F_CHILD,
    F_ELDER,
    F_GROUP,
    F_GROUP_NEXT,
    F_GROUP_PREVIOUS,
    F_INTERFACE,
    F_PARENT,
    F_STATE,
    F_YOUNGER,
)
from contrada.spatial.storage.jit import bare_inline_kernel, bare_kernel

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Index, Ints


@bare_kernel
def is_filter(filters: Ints, top: int, f: int) -> bool:
    """Whether it is the row, of those below `top`, of a filter that is in use."""
    return 1 <= f < top and status_now(filters[f, F_STATE]) != layout.FREE


@bare_kernel
def _is_beside(filters: Ints, top: int, other: int, link: int, f: int, same: int) -> bool:
    """Whether another filter knows this one by a column, and is the same as it in another column; 0 is nobody."""
    if other == 0:
        return True
    return is_filter(filters, top, other) and filters[other, link] == f and filters[other, same] == filters[f, same]


@bare_kernel
def _is_ghost(filters: Ints, f: int) -> bool:
    return status_now(filters[f, F_STATE]) == layout.GHOST


@bare_kernel
def _guard_interface(filters: Ints, top: int, interfaces: Ints, f: int) -> bool:
    """The list of a filter's interface, on both sides of it; ghosts are in none."""
    before, behind = filters[f, layout.F_PREVIOUS], filters[f, layout.F_FOLLOWING]
    if before == 0 and interfaces[filters[f, F_INTERFACE], I_FIRST] != f:
        return False
    return (
        _is_beside(filters, top, before, layout.F_FOLLOWING, f, F_INTERFACE)
        and _is_beside(filters, top, behind, layout.F_PREVIOUS, f, F_INTERFACE)
        and not _is_ghost(filters, before)
        and not _is_ghost(filters, behind)
    )


@bare_kernel
def _guard_kin(filters: Ints, top: int, f: int) -> bool:
    """The filter that covers a filter, those beside it, and the first that it covers."""
    parent, child, elder = filters[f, F_PARENT], filters[f, F_CHILD], filters[f, F_ELDER]
    state = status_now(filters[f, F_STATE])
    if child != 0:
        if state == layout.VOID or not is_filter(filters, top, child):
            return False
        if filters[child, F_PARENT] != f or filters[child, F_ELDER] != 0:
            return False
    elif state == layout.GHOST:
        return False
    if (parent != 0) != (state == layout.COVERED):
        return False
    if parent == 0:
        return elder == 0 and filters[f, F_YOUNGER] == 0
    if not is_filter(filters, top, parent) or filters[parent, F_INTERFACE] != filters[f, F_INTERFACE]:
        return False
    if elder == 0 and filters[parent, F_CHILD] != f:
        return False
    if not _is_beside(filters, top, elder, F_YOUNGER, f, F_PARENT):
        return False
    return _is_beside(filters, top, filters[f, F_YOUNGER], F_ELDER, f, F_PARENT)


@bare_inline_kernel
def _guard_group(index: Index, f: int, holders: Ints) -> bool:
    """The chain of a filter's group, or that of ghosts, on both sides of it."""
    filters, top = index.filters, index.state[layout.S_FILTERS]
    group = filters[f, F_GROUP]
    first = index.state[layout.S_GHOST]
    if group != 0:
        if status_now(filters[f, F_STATE]) != layout.ACTIVE or not m.is_operand(holders, group):
            return False
        if high_half(holders[group]) != layout.GROUP or low_half(holders[group]) == 0:
            return False
        if index.operands[group, layout.O_LOW] != filters[f, F_INTERFACE]:
            return False
        holders[group] -= 1
        first = index.operands[group, layout.O_LEN]
    elif not _is_ghost(filters, f):
        return True
    before, behind = filters[f, F_GROUP_PREVIOUS], filters[f, F_GROUP_NEXT]
    if before == 0 and first != f:
        return False
    if not _is_beside(filters, top, before, F_GROUP_NEXT, f, F_GROUP):
        return False
    if not _is_beside(filters, top, behind, F_GROUP_PREVIOUS, f, F_GROUP):
        return False
    return group != 0 or ((before == 0 or _is_ghost(filters, before)) and (behind == 0 or _is_ghost(filters, behind)))


@bare_inline_kernel
def guard_relatives(index: Index, interfaces: Ints, f: int, marks: m.Marks) -> int:
    """Whom a filter is linked with. Its interface has a number that there is."""
    filters, top = index.filters, index.state[layout.S_FILTERS]
    if not _is_ghost(filters, f):
        marks.counts[filters[f, F_INTERFACE]] += 1
        if not _guard_interface(filters, top, interfaces, f):
            return m.INTERFACE
    if not _guard_kin(filters, top, f):
        return m.FOREST
    return 0 if _guard_group(index, f, marks.holders) else m.GROUPED


@bare_kernel
def guard_forest(index: Index, marks: m.Marks) -> int:
    """From those that nothing covers every covered filter is reached, so none is above itself."""
    filters, top = index.filters, index.state[layout.S_FILTERS]
    reached = 0
    for root in range(1, top):
        if not is_filter(filters, top, root) or filters[root, F_PARENT] != 0 or filters[root, F_CHILD] == 0:
            continue
        f = filters[root, F_CHILD]
        while f != root:
            reached += 1
            if filters[f, F_CHILD] != 0:
                f = filters[f, F_CHILD]
                continue
            while f != root and filters[f, F_YOUNGER] == 0:
                f = filters[f, F_PARENT]
            if f != root:
                f = filters[f, F_YOUNGER]
    return 0 if reached == marks.sums[m.M_STATES + layout.COVERED] else m.FOREST
