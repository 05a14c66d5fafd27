"""Insertion, removal and adaptation to drift in a partition tree ([AP-TREE], Section IV-E).

A subscription's leaves follow from its keywords and box alone, so insertion and removal walk the same paths. A leaf
that outgrows θ_q is built anew as a subtree; an inner node that shrinks below half of that becomes a leaf.

Drift. When a quarter of an inner node's weight has changed, the Kullback-Leibler divergence of its buckets' weights at
construction from those of now is computed. Sampling alone makes it (n - 1)/2 · |1/A - 1/B| for n buckets and weights
A before, B now, which for small nodes is far above θ_KL, so a node counts as drifted only beyond θ_KL plus twice that.
As in the paper only nodes with at least 0.1 % of the population are looked at. A drifted node is rebuilt; one with
more than `rebuild` subscriptions would stall its caller, so there the buckets that gained most are rebuilt
instead, as many as `rebuild` allows: below a cut of several keywords, or in a cell, the same partition is refined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.storage.jit import kernel
from contrada.spatial.textual.partition_tree import paths
from contrada.spatial.textual.partition_tree.build import build_subtree
from contrada.spatial.textual.partition_tree.nodes import (
    DIRECTORY,
    HEADER,
    QUERY,
    RECORD,
    RETRY,
    ROOT,
    SHAPE,
    UPDATES,
    WEIGHT,
    Arena,
    Meta,
    children,
    free,
    gather,
    key_of,
    kind_of,
    move_entry,
    new_leaf,
    put_entry,
)

if TYPE_CHECKING:
    from contrada.spatial.textual.partition_tree.settings import Settings
    from contrada.spatial.textual.store import Rows


@kernel
def divergence(arena: Arena, p: int) -> tuple[float, float]:
    """KL divergence of an inner node's bucket weights, old from new, and what sampling alone is expected to give."""
    first, n = children(arena, p)
    before = now = 0.0
    for i in range(first, first + n):
        before += arena[n + i] + 0.5
        now += (arena[arena[i] + WEIGHT] if arena[i] else 0) + 0.5
    total = 0.0
    for i in range(first, first + n):
        a = (arena[n + i] + 0.5) / before
        b = ((arena[arena[i] + WEIGHT] if arena[i] else 0) + 0.5) / now
        total += a * np.log(a / b)
    return total, (n - 1) / 2 * abs(1 / before - 1 / now)


@kernel
def _enter_leaf(
    arena: Arena, meta: Meta, rows: Rows, at: int, slot: int, offset: int, settings: Settings
) -> tuple[Arena, int]:
    """Add a slot to the leaf that word `at` points to, making or moving it as needed."""
    leaf = arena[at]
    if leaf == 0:
        arena, fresh = new_leaf(arena, meta, 4, settings.leaf, False)
        arena[at] = fresh
        leaf = arena[at]
    count = arena[leaf + WEIGHT]
    if count == arena[leaf + SHAPE]:
        arena, larger = new_leaf(arena, meta, count + 2 + count // 4, int(arena[leaf + RETRY]), False)
        for i in range(count):
            move_entry(arena, leaf, i, larger, i)
        free(arena, meta, leaf)
        arena[at] = larger
        leaf = arena[at]
    put_entry(arena, leaf, count, slot, key_of(rows, slot, offset, settings.rare), rows.boxes)
    arena[leaf + WEIGHT] = count + 1
    return arena, int(leaf)


@kernel
def _rebuild_gainers(arena: Arena, meta: Meta, rows: Rows, p: int, path: paths.Path, settings: Settings) -> Arena:
    """Rebuild the buckets of a large drifted node whose shares grew by a quarter or more, within the allowance."""
    first, n = children(arena, p)
    before = now = 1.0
    for i in range(first, first + n):
        before += arena[n + i]
        now += arena[arena[i] + WEIGHT] if arena[i] else 0
    allowance = settings.rebuild
    for b in range(n):
        q = arena[first + b]
        if q == 0:
            continue
        weight = arena[q + WEIGHT]
        if settings.leaf < weight <= allowance and weight / now > 1.25 * arena[first + n + b] / before:
            allowance -= weight
            slots = gather(arena, meta, q)
            arena = build_subtree(arena, meta, rows, slots, first + b, paths.path_below(arena, p, b, path), settings)
    for i in range(first, first + n):
        arena[n + i] = arena[arena[i] + WEIGHT] if arena[i] else 0
    return arena


@kernel
def _root_pending() -> paths.Stack:
    """Make a stack that has the root pending."""
    stack = paths.new_stack()
    paths.push(stack, 0, ROOT, paths.Path(0, False, np.array([-np.inf, -np.inf, np.inf, np.inf])), 0, 0)
    return stack


@kernel
def _push_children(
    arena: Arena, rows: Rows, slot: int, p: int, path: paths.Path, settings: Settings, stack: paths.Stack, top: int
) -> tuple[paths.Stack, int]:
    """Push the children of an inner node that a slot belongs to; returns the stack, perhaps moved, and its height."""
    child, _ = children(arena, p)
    lines = arena[p + SHAPE] >> 16
    c1, c2, r1, r2 = paths.buckets_of(arena, p, rows, slot, path, settings)
    stack = paths.grow_stack(stack, top, (c2 - c1 + 1) * (r2 - r1 + 1))
    for c in range(c1, c2 + 1):
        for r in range(r1, r2 + 1):
            b = c * lines + r
            top = paths.push(stack, top, child + b, paths.path_below(arena, p, b, path), 0, 0)
    return stack, top


@kernel
def insert_slot(
    arena: Arena, meta: Meta, rows: Rows, slot: int, population: int, settings: Settings
) -> tuple[Arena, int]:
    """Add one slot. Returns the arena, perhaps moved, and how many nodes were rebuilt because of drift."""
    stack, top = _root_pending(), 1
    rebuilt = 0
    while top:
        top -= 1
        at, path = stack.tasks[top, 0], paths.path_at(stack, top)
        p = arena[at]
        if p == 0 or kind_of(arena, p) == QUERY:
            arena, leaf = _enter_leaf(arena, meta, rows, at, slot, path.offset, settings)
            if arena[leaf + WEIGHT] > arena[leaf + RETRY]:
                arena = build_subtree(arena, meta, rows, gather(arena, meta, leaf), at, path, settings)
            continue
        weight = arena[p + WEIGHT]
        arena[p + UPDATES] += 1
        if 4 * arena[p + UPDATES] > weight and 1000 * weight >= population and kind_of(arena, p) != DIRECTORY:
            arena[p + UPDATES] = 0
            drift, noise = divergence(arena, p)
            if drift > settings.drift + 2 * noise:
                rebuilt += 1
                if weight < settings.rebuild:
                    slots = gather(arena, meta, p)
                    with_slot = np.empty(slots.size + 1, np.int32)
                    with_slot[: slots.size] = slots
                    with_slot[slots.size] = slot
                    arena = build_subtree(arena, meta, rows, with_slot, at, path, settings)
                    continue
                arena = _rebuild_gainers(arena, meta, rows, p, path, settings)
        arena[p + WEIGHT] += 1
        stack, top = _push_children(arena, rows, slot, p, path, settings, stack, top)
    return arena, rebuilt


@kernel
def remove_slot(arena: Arena, meta: Meta, rows: Rows, slot: int, settings: Settings) -> tuple[Arena, int]:
    """Take one slot out. Returns the arena, perhaps moved, and from how many leaves it was taken."""
    stack, top = _root_pending(), 1
    taken = 0
    while top:
        top -= 1
        at, path = stack.tasks[top, 0], paths.path_at(stack, top)
        p = arena[at]
        if p == 0:
            continue
        weight = arena[p + WEIGHT]
        if kind_of(arena, p) == QUERY:
            slots = p + HEADER + arena[p + SHAPE]
            for i in range(weight):
                if arena[slots + RECORD * i] == slot:
                    taken += 1
                    weight -= 1
                    move_entry(arena, p, weight, p, i)
                    arena[p + WEIGHT] = weight
                    if weight == 0:
                        free(arena, meta, p)
                        arena[at] = 0
                    break
        elif 2 * (weight - 1) < settings.leaf and kind_of(arena, p) != DIRECTORY:
            taken += 1
            below = gather(arena, meta, p)
            arena[at] = 0
            if below.size == 1:
                continue
            arena, leaf = new_leaf(arena, meta, below.size - 1, settings.leaf, False)
            count = 0
            for other in below:
                if other != slot:
                    put_entry(arena, leaf, count, other, key_of(rows, other, path.offset, settings.rare), rows.boxes)
                    count += 1
            arena[leaf + WEIGHT] = count
            arena[at] = leaf
        else:
            arena[p + WEIGHT] = weight - 1
            arena[p + UPDATES] += 1
            stack, top = _push_children(arena, rows, slot, p, path, settings, stack, top)
    return arena, taken
