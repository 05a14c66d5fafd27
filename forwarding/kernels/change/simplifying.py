"""Rule 3 of [SIENA-2D], section 4.2, in the table: filters that another of the same interface covers are not posted.

Covered filters hang under their coverer (F_PARENT, F_CHILD, F_ELDER, F_YOUNGER) and may cover others in turn. They are
examined only when filters are asked for and the coverer matched. Candidates are found through *groups*: the active
filters of one interface that ask for the same names are chained under an operand of kind GROUP. A coverer's names are
among those of what it covers, so a new filter looks up the groups of its subsets of names. Effort per filter is
bounded: what is not found stays posted, which costs time and never an answer.

When a coverer goes, those it covered must come back. Bringing many back at once would stall the table, so the coverer
stays as a *ghost*: posted, leading to the filters under it, but no match itself. Every later change moves a few of
them, under another coverer or into the index, until the ghost is alone and goes too.
"""

from __future__ import annotations

from contrada.forwarding.kernels.change.choosing import word_span
from contrada.forwarding.kernels.change.filing import post_filter, unpost_filter
from contrada.forwarding.kernels.change.weighing import YES, covers_filter, first_operand
from contrada.forwarding.kernels.memory.bits import low_half, status_now, status_of, status_rest, tag_name
from contrada.forwarding.kernels.memory.interning import find_scalar, free_operand, intern_scalar
from contrada.forwarding.kernels.memory.keys import mix
from contrada.forwarding.kernels.memory.layout import (
    ACTIVE,
    COVERED,
    F_CHILD,
    F_CODE,
    F_ELDER,
    F_FOLLOWING,
    F_GROUP,
    F_GROUP_NEXT,
    F_GROUP_PREVIOUS,
    F_INTERFACE,
    F_MASK,
    F_PARENT,
    F_SIZE,
    F_STATE,
    F_YOUNGER,
    GROUP,
    O_LEN,
    O_REFS,
    O_TAG,
    S_ACTIVE,
    S_COVERED,
    Index,
    Ints,
)
from contrada.spatial.storage.jit import bare_kernel

_SUBSETS = 5  # names of which all subsets are looked up
EFFORT = 64  # filters of a group weighed for each question about a new filter
_LATEST = 16  # filters of its interface that a new filter may cover, besides those of its own group


@bare_kernel
def set_state(index: Index, f: int, state: int) -> None:
    """Change a filter's state and the counts of active and covered ones."""
    old = status_now(index.filters[f, F_STATE])
    if old == ACTIVE:
        index.state[S_ACTIVE] -= 1
    elif old == COVERED:
        index.state[S_COVERED] -= 1
    if state == ACTIVE:
        index.state[S_ACTIVE] += 1
    elif state == COVERED:
        index.state[S_COVERED] += 1
    index.filters[f, F_STATE] = status_of(status_rest(index.filters[f, F_STATE]), state)


@bare_kernel
def names_of(index: Index, f: int, room: Ints) -> int:
    """Write the different names of a filter, at most as many as there is room for; how many there are."""
    at = index.filters[f, F_CODE]
    end = at + low_half(index.filters[f, F_SIZE])
    count = 0
    while at < end:
        name = tag_name(index.operands[first_operand(index, at), O_TAG])
        new = True
        for i in range(min(count, room.shape[0])):
            if room[i] == name:
                new = False
        if new:
            if count < room.shape[0]:
                room[count] = name
            count += 1
        at += word_span(index.words[at])
    return count


@bare_kernel
def _names_hash(room: Ints, chosen: int, count: int) -> int:
    """A hash of those of the first `count` names whose bit is in `chosen`; the same in any order."""
    total = 0
    for i in range(count):
        if chosen >> i & 1:
            total += mix(room[i], 7)
    return total


@bare_kernel
def join_group(index: Index, f: int, room: Ints) -> None:
    """Chain an active filter to those of its interface with the same names. One of very many names stays out."""
    count = names_of(index, f, room)
    if count > room.shape[0]:
        return
    filters, operands = index.filters, index.operands
    group = intern_scalar(index, GROUP, _names_hash(room, -1, count), filters[f, F_INTERFACE])
    first = operands[group, O_LEN]
    filters[f, F_GROUP] = group
    filters[f, F_GROUP_PREVIOUS] = 0
    filters[f, F_GROUP_NEXT] = first
    if first != 0:
        filters[first, F_GROUP_PREVIOUS] = f
    operands[group, O_LEN] = f
    operands[group, O_REFS] += 1


@bare_kernel
def leave_group(index: Index, f: int) -> None:
    """Unchain a filter from its group."""
    filters, operands = index.filters, index.operands
    group = filters[f, F_GROUP]
    if group == 0:
        return
    previous, following = filters[f, F_GROUP_PREVIOUS], filters[f, F_GROUP_NEXT]
    if previous != 0:
        filters[previous, F_GROUP_NEXT] = following
    else:
        operands[group, O_LEN] = following
    if following != 0:
        filters[following, F_GROUP_PREVIOUS] = previous
    filters[f, F_GROUP] = 0
    operands[group, O_REFS] -= 1
    if operands[group, O_REFS] == 0:
        free_operand(index, group)


@bare_kernel
def _weigh_group(index: Index, f: int, group: int, outcome: int, found: Ints, count: int) -> int:
    """Collect the filters of a group that cover `f` with that outcome, up to the room there is."""
    g = index.operands[group, O_LEN] if group != 0 else 0
    effort = EFFORT
    while g != 0 and effort > 0 and count < found.shape[0]:
        if g != f and covers_filter(index, g, f) == outcome:
            found[count] = g
            count += 1
        effort -= 1
        g = index.filters[g, F_GROUP_NEXT]
    return count


@bare_kernel
def find_coverers(index: Index, f: int, outcome: int, room: Ints, found: Ints) -> int:
    """Active filters of the same interface that cover `f` with that outcome; how many, up to the room there is."""
    names = names_of(index, f, room)
    known = min(names, room.shape[0])
    interface = index.filters[f, F_INTERFACE]
    count = 0
    if known <= _SUBSETS:
        for chosen in range(1 << known):  # with none of them: `true`
            group = find_scalar(index, GROUP, _names_hash(room, chosen, known), interface)
            count = _weigh_group(index, f, group, outcome, found, count)
        return count
    every = (1 << known) - 1
    for i in range(known):  # of many names: single ones, all, and all but one
        group = find_scalar(index, GROUP, _names_hash(room, 1 << i, known), interface)
        count = _weigh_group(index, f, group, outcome, found, count)
        group = find_scalar(index, GROUP, _names_hash(room, every & ~(1 << i), known), interface)
        count = _weigh_group(index, f, group, outcome, found, count)
    group = find_scalar(index, GROUP, 0, interface)
    count = _weigh_group(index, f, group, outcome, found, count)
    group = find_scalar(index, GROUP, _names_hash(room, every, known), interface)
    return _weigh_group(index, f, group, outcome, found, count)


@bare_kernel
def find_covered(index: Index, f: int, outcome: int, found: Ints) -> int:
    """Active filters that `f` covers with that outcome, among its group and its interface's latest."""
    filters = index.filters
    count = 0
    mask = filters[f, F_MASK]
    g = index.operands[filters[f, F_GROUP], O_LEN] if filters[f, F_GROUP] != 0 else 0
    effort = EFFORT
    while g != 0 and effort > 0 and count < found.shape[0]:
        if g != f and covers_filter(index, f, g) == outcome:
            found[count] = g
            count += 1
        effort -= 1
        g = filters[g, F_GROUP_NEXT]
    g = filters[f, F_FOLLOWING]
    effort = _LATEST
    while g != 0 and effort > 0 and count < found.shape[0]:
        if (
            filters[g, F_MASK] & mask == mask
            and status_now(filters[g, F_STATE]) == ACTIVE
            and filters[g, F_GROUP] != filters[f, F_GROUP]
            and covers_filter(index, f, g) == outcome
        ):
            found[count] = g
            count += 1
        effort -= 1
        g = filters[g, F_FOLLOWING]
    return count


@bare_kernel
def hang(index: Index, f: int, parent: int) -> None:
    """Make `f` the first of those that `parent` covers."""
    filters = index.filters
    first = filters[parent, F_CHILD]
    filters[f, F_PARENT] = parent
    filters[f, F_ELDER] = 0
    filters[f, F_YOUNGER] = first
    if first != 0:
        filters[first, F_ELDER] = f
    filters[parent, F_CHILD] = f
    set_state(index, f, COVERED)


@bare_kernel
def unhang(index: Index, f: int) -> None:
    """Take `f` from under its coverer."""
    filters = index.filters
    elder, younger = filters[f, F_ELDER], filters[f, F_YOUNGER]
    if elder != 0:
        filters[elder, F_YOUNGER] = younger
    else:
        filters[filters[f, F_PARENT], F_CHILD] = younger
    if younger != 0:
        filters[younger, F_ELDER] = elder
    filters[f, F_PARENT] = 0
    filters[f, F_ELDER] = 0
    filters[f, F_YOUNGER] = 0


@bare_kernel
def cover(index: Index, f: int, coverer: int, events: Ints) -> None:
    """Move an active filter, with all it covers, under a coverer."""
    unpost_filter(index, f, events)
    leave_group(index, f)
    hang(index, f, coverer)


@bare_kernel
def place_filter(index: Index, f: int, simplify: bool, events: Ints, room: Ints, found: Ints) -> None:
    """Give a filter that is neither posted nor covered its place: under a coverer, or in the index."""
    if simplify and find_coverers(index, f, YES, room, found[:1]) != 0:
        hang(index, f, found[0])
        return
    set_state(index, f, ACTIVE)
    post_filter(index, f, events)
    if simplify:
        join_group(index, f, room)
        for i in range(find_covered(index, f, YES, found)):
            cover(index, found[i], f, events)
