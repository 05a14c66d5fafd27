"""What the table calls to change itself: add a batch of filters, remove one, cover one by another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.forwarding.kernels.change.adding import add_rows, free_row, leave_interface
from contrada.forwarding.kernels.change.choosing import word_span
from contrada.forwarding.kernels.change.filing import post_filter, repost_filter, unpost_filter
from contrada.forwarding.kernels.change.simplifying import (
    cover,
    find_covered,
    find_coverers,
    hang,
    leave_group,
    place_filter,
    set_state,
    unhang,
)
from contrada.forwarding.kernels.change.weighing import PERHAPS, covers_filter
from contrada.forwarding.kernels.memory.bits import low_half, status_now, word_operand, word_operator
from contrada.forwarding.kernels.memory.layout import (
    ACTIVE,
    AUTO,
    COVERED,
    F_CHILD,
    F_CODE,
    F_GROUP_NEXT,
    F_GROUP_PREVIOUS,
    F_INTERFACE,
    F_PARENT,
    F_SIZE,
    F_STATE,
    GHOST,
    O_KEY,
    O_TAG,
    PLUG,
    S_GHOST,
    S_GHOSTS,
    S_MATCHING,
    S_VOID,
    VOID,
    Index,
    Ints,
)
from contrada.spatial.storage.jit import bare_kernel

if TYPE_CHECKING:
    from contrada.forwarding.kernels.match.batch import Batch

MOVES = 8  # filters that a change moves from under ghosts


@bare_kernel
def add_filters(
    index: Index,
    interfaces: Ints,
    batch: Batch,
    needed: Ints,
    owners: Ints,
    void: Ints,
    simplify: bool,
    events: Ints,
    room: Ints,
    made: Ints,
) -> None:
    """Make a batch of filters and give them their places; their rows go to `made`.

    Filter i is of interface `owners[i]`; `void[i]` says that nothing satisfies it. `room` has 64 words and twice as
    many as the batch has rows.
    """
    add_rows(index, interfaces, batch, needed, owners, room, made)
    for i in range(made.shape[0]):
        if void[i]:
            index.state[S_VOID] += 1
            set_state(index, made[i], VOID)
        else:
            place_filter(index, made[i], simplify, events, room[:16], room[16:64])
    _move_from_ghosts(index, simplify, events, room)


@bare_kernel
def remove_filter(index: Index, interfaces: Ints, f: int, simplify: bool, events: Ints, room: Ints) -> None:
    """Take a filter out; those it covered come back, at once or in the course of the next changes."""
    filters = index.filters
    state = status_now(filters[f, F_STATE])
    leave_interface(index, interfaces, f)
    if state == VOID:
        index.state[S_VOID] -= 1
        free_row(index, f, events)
    elif state == COVERED:
        parent = filters[f, F_PARENT]
        unhang(index, f)
        while filters[f, F_CHILD] != 0:  # what covers f covers them
            child = filters[f, F_CHILD]
            unhang(index, child)
            hang(index, child, parent)
        set_state(index, f, VOID)
        free_row(index, f, events)
        if filters[parent, F_CHILD] == 0 and status_now(filters[parent, F_STATE]) == GHOST:
            _free_ghost(index, parent, events)
    else:
        unpost_filter(index, f, events)
        leave_group(index, f)
        if filters[f, F_CHILD] == 0:
            set_state(index, f, VOID)
            free_row(index, f, events)
        else:
            set_state(index, f, GHOST)
            post_filter(index, f, events)
            first = index.state[S_GHOST]
            filters[f, F_GROUP_PREVIOUS] = 0
            filters[f, F_GROUP_NEXT] = first
            if first != 0:
                filters[first, F_GROUP_PREVIOUS] = f
            index.state[S_GHOST] = f
            index.state[S_GHOSTS] += 1
    _move_from_ghosts(index, simplify, events, room)


@bare_kernel
def _free_ghost(index: Index, ghost: int, events: Ints) -> None:
    filters = index.filters
    previous, following = filters[ghost, F_GROUP_PREVIOUS], filters[ghost, F_GROUP_NEXT]
    if previous != 0:
        filters[previous, F_GROUP_NEXT] = following
    else:
        index.state[S_GHOST] = following
    if following != 0:
        filters[following, F_GROUP_PREVIOUS] = previous
    index.state[S_GHOSTS] -= 1
    unpost_filter(index, ghost, events)
    set_state(index, ghost, VOID)
    free_row(index, ghost, events)


@bare_kernel
def _move_from_ghosts(index: Index, simplify: bool, events: Ints, room: Ints) -> None:
    for _ in range(MOVES):
        ghost = index.state[S_GHOST]
        if ghost == 0:
            return
        child = index.filters[ghost, F_CHILD]
        unhang(index, child)
        set_state(index, child, VOID)
        place_filter(index, child, simplify, events, room[:16], room[16:64])
        if index.filters[ghost, F_CHILD] == 0:
            _free_ghost(index, ghost, events)


@bare_kernel
def weigh_filter(index: Index, f: int, room: Ints, found: Ints) -> int:
    """Filters that cover `f` if plugged-in types say so, and after `found[half]` those that it covers likewise.

    Returns how many there are of the first, plus a thousand times how many of the second.
    """
    half = found.shape[0] // 2
    coverers = find_coverers(index, f, PERHAPS, room, found[:half])
    return coverers + 1000 * find_covered(index, f, PERHAPS, found[half:])


@bare_kernel
def weigh_some(index: Index, f: int, rows: Ints, answers: Ints) -> None:
    """Of some filters, whether each covers `f` if plugged-in types say so (1), or is covered by it (2).

    -1 for what is no longer an active filter of the same interface.
    """
    filters = index.filters
    for i in range(rows.shape[0]):
        g = rows[i]
        if status_now(filters[g, F_STATE]) != ACTIVE or filters[g, F_INTERFACE] != filters[f, F_INTERFACE]:
            answers[i] = -1
            continue
        answers[i] = 0
        if g != f and covers_filter(index, g, f) == PERHAPS:
            answers[i] = 1
        if g != f and covers_filter(index, f, g) == PERHAPS:
            answers[i] |= 2


@bare_kernel
def single_plugs(index: Index, found: Ints, tags: Ints, handles: Ints) -> None:
    """The tag and the handle of each filter's constraint of a plugged-in type; tag -1 where it has several."""
    words = index.words
    for i in range(found.shape[0]):
        at = index.filters[found[i], F_CODE]
        end = at + low_half(index.filters[found[i], F_SIZE])
        tags[i] = 0
        handles[i] = 0
        while at < end:
            op = word_operator(words[at])
            if op == PLUG:
                operand = word_operand(words[at])
                tags[i] = index.operands[operand, O_TAG] if tags[i] == 0 else -1
                handles[i] = index.operands[operand, O_KEY]
            at += word_span(words[at])


@bare_kernel
def choosers(index: Index, rows: Ints, operands: Ints) -> tuple[int, int]:
    """Keep those rows, in place, of filters that are posted and have a choice of access, some of plugged-in types.

    Their operands of such types go to `operands`, as many as there is room for; how many of either. Where filters may
    be counted or not, those without such types are kept too.
    """
    words, filters = index.words, index.filters
    auto = index.state[S_MATCHING] >= AUTO
    kept = 0
    count = 0
    for i in range(rows.shape[0]):
        f = rows[i]
        state = status_now(filters[f, F_STATE])
        at = filters[f, F_CODE]
        end = at + low_half(filters[f, F_SIZE])
        if state not in (ACTIVE, GHOST) or at == end or at + word_span(words[at]) == end:
            continue
        before = count
        while at < end and count < operands.shape[0]:
            if word_operator(words[at]) == PLUG:
                operands[count] = word_operand(words[at])
                count += 1
            at += word_span(words[at])
        if count > before or auto:
            rows[kept] = f
            kept += 1
    return kept, count


@bare_kernel
def repost_filters(index: Index, rows: Ints, most: int, events: Ints) -> tuple[int, int]:
    """Give filters that are posted a better access where there is one, until `most` have moved.

    How many have moved, and how many of the rows were looked at.
    """
    moved = 0
    for i in range(rows.shape[0]):
        if moved == most:
            return moved, i
        if repost_filter(index, rows[i], events):
            moved += 1
    return moved, rows.shape[0]


@bare_kernel
def cover_filter(index: Index, f: int, coverer: int, events: Ints) -> None:
    """Move an active filter under another that is known to cover it."""
    cover(index, f, coverer, events)
