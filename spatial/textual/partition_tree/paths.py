"""Ways from the root of a partition tree down: what a way has proved, and which buckets of a node a subscription is in.

Building and updating both visit nodes that are pending on a stack, each with the word of the arena that points to it
and the way that led there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contrada.spatial.storage.jit import inline_kernel, kernel
from contrada.spatial.textual.partition_tree.nodes import (
    DIRECTORY,
    HEADER,
    KEYWORD,
    MIRROR,
    SHAPE,
    Arena,
    cell_region,
    children,
    find_cut,
    find_line,
    kind_of,
    spans,
    word_at,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.textual.partition_tree.settings import Settings
    from contrada.spatial.textual.store import Rows


class Path(NamedTuple):
    """What is known of the subscriptions below a node from the way to it."""

    offset: int  # so many of their keywords, in the tree's order, are in a message that comes here
    refining: bool  # the next one lies in a cut of several words, which may be divided again
    region: NDArray[np.float64]  # they have a part in here


class Stack(NamedTuple):
    """Pending nodes: where the pointer to each is, 2·offset + refining, and two numbers of the builder's; regions."""

    tasks: NDArray[np.int64]
    regions: NDArray[np.float64]


@kernel
def new_stack() -> Stack:
    """Make an empty stack."""
    return Stack(np.empty((256, 4), np.int64), np.empty((256, 4)))


@kernel
def grow_stack(stack: Stack, top: int, more: int) -> Stack:
    """Make room for `more` tasks above the `top` that there are."""
    if top + more <= len(stack.tasks):
        return stack
    tasks, regions = np.empty((2 * (top + more), 4), np.int64), np.empty((2 * (top + more), 4))
    tasks[:top], regions[:top] = stack.tasks[:top], stack.regions[:top]
    return Stack(tasks, regions)


@kernel
def push(stack: Stack, top: int, at: int, path: Path, begin: int, depth: int) -> int:
    """Add the node that word `at` points to; returns the stack's new height."""
    tasks = stack.tasks
    tasks[top, 0], tasks[top, 1], tasks[top, 2], tasks[top, 3] = at, 2 * path.offset + path.refining, begin, depth
    stack.regions[top] = path.region
    return top + 1


@kernel
def path_at(stack: Stack, place: int) -> Path:
    """Return the way to a pending node."""
    state = stack.tasks[place, 1]
    return Path(state >> 1, (state & 1) == 1, stack.regions[place].copy())


@kernel
def path_below(arena: Arena, p: int, bucket: int, path: Path) -> Path:
    """Return the way to a child of the inner node `p`, given the way to `p`."""
    shape = arena[p + SHAPE]
    if kind_of(arena, p) == DIRECTORY:
        return Path(1, False, path.region)
    if kind_of(arena, p) == KEYWORD:
        if bucket >= shape:
            return path
        single = arena[p + HEADER + bucket] == arena[p + HEADER + shape + bucket]
        return Path(path.offset + (1 if single else 0), not single, path.region)
    columns, lines = shape & 0xFFFF, shape >> 16
    if bucket == columns * lines:
        return path
    cell = cell_region(arena.view(np.float32), p, columns, lines, bucket // lines, bucket % lines, path.region)
    return Path(path.offset, path.refining, cell)


@inline_kernel
def buckets_of(
    arena: Arena, p: int, rows: Rows, slot: int, path: Path, settings: Settings
) -> tuple[int, int, int, int]:
    """In which children of the inner node `p` a slot belongs: first and last column, first and last row of a grid.

    Child `column * (shape >> 16) + row`. Where there is only one it is given as row of column 0.
    """
    _, n = children(arena, p)
    shape = arena[p + SHAPE]
    column, last_column, row = 0, 0, n - 1
    last_row = row
    if kind_of(arena, p) == DIRECTORY:
        row = last_row = MIRROR - word_at(rows, slot, 0, True)
    elif kind_of(arena, p) == KEYWORD:
        row = n - 2
        if rows.length[slot] > path.offset:
            row = find_cut(arena, p, word_at(rows, slot, path.offset, settings.rare))
        last_row = row
    elif not spans(rows.boxes, slot, path.region, settings.universe):
        real = arena.view(np.float32)
        columns, lines = shape & 0xFFFF, shape >> 16
        xs, ys = p + HEADER, p + HEADER + columns - 1
        column = find_line(real, xs, columns - 1, rows.boxes[slot, 0])
        last_column = find_line(real, xs, columns - 1, rows.boxes[slot, 2])
        row = find_line(real, ys, lines - 1, rows.boxes[slot, 1])
        last_row = find_line(real, ys, lines - 1, rows.boxes[slot, 3])
    return column, last_column, row, last_row
