"""Insertion, removal and adaptation to drift in an AP-tree ([AP-TREE], Section IV-E).

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
from contrada.spatial.textual.ap_tree.build import Settings, build_subtree
from contrada.spatial.textual.ap_tree.nodes import (
    DIRECTORY,
    HEADER,
    KEYWORD,
    MIRROR,
    QUERY,
    RECORD,
    RETRY,
    ROOT,
    SHAPE,
    SPATIAL,
    UPDATES,
    WEIGHT,
    Arena,
    Meta,
    cell_region,
    children,
    find_cut,
    find_line,
    free,
    gather,
    key_of,
    kind_of,
    move_entry,
    new_leaf,
    put_entry,
    spans,
    word_at,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
def _down(
    arena: Arena,
    rows: Rows,
    slot: int,
    p: int,
    offset: int,
    refining: bool,
    rare: bool,
    region: NDArray[np.float64],
    universe: NDArray[np.float64],
    ats: NDArray[np.int64],
    states: NDArray[np.int64],
    regions: NDArray[np.float64],
    top: int,
) -> int:
    """Push where in an inner node a slot belongs: the words that point there, with offsets and regions.

    `states` holds 2·offset + refining.
    """
    shape = arena[p + SHAPE]
    child, n = children(arena, p)
    if kind_of(arena, p) == DIRECTORY:
        ats[top], states[top] = child + MIRROR - word_at(rows, slot, 0, True), 2
        regions[top] = region
        return top + 1
    if kind_of(arena, p) == KEYWORD:
        bucket = shape
        state = 2 * offset + (1 if refining else 0)
        if rows.length[slot] > offset:
            bucket = find_cut(arena, p, word_at(rows, slot, offset, rare))
            if bucket < shape:
                single = arena[p + HEADER + bucket] == arena[p + HEADER + shape + bucket]
                state = 2 * (offset + 1) if single else 2 * offset + 1
        ats[top], states[top] = child + bucket, state
        regions[top] = region
        return top + 1
    state = 2 * offset + (1 if refining else 0)
    if spans(rows.boxes, slot, region, universe):
        ats[top], states[top] = child + n - 1, state
        regions[top] = region
        return top + 1
    real = arena.view(np.float32)
    columns, lines = shape & 0xFFFF, shape >> 16
    xs, ys = p + HEADER, p + HEADER + columns - 1
    box = rows.boxes[slot]
    for c in range(find_line(real, xs, columns - 1, box[0]), find_line(real, xs, columns - 1, box[2]) + 1):
        for r in range(find_line(real, ys, lines - 1, box[1]), find_line(real, ys, lines - 1, box[3]) + 1):
            ats[top], states[top] = child + c * lines + r, state
            regions[top] = cell_region(real, p, columns, lines, c, r, region)
            top += 1
    return top


@kernel
def _from_root() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], int]:
    """Return the stack of a walk that has the root pending, and its height; see `_down`."""
    ats, states, regions = np.empty(256, np.int64), np.empty(256, np.int64), np.empty((256, 4))
    ats[0], states[0] = ROOT, 0
    regions[0, 0] = regions[0, 1] = -np.inf
    regions[0, 2] = regions[0, 3] = np.inf
    return ats, states, regions, 1


@kernel
def _grown_stack(
    arena: Arena, p: int, top: int, ats: NDArray[np.int64], states: NDArray[np.int64], regions: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the walk's stack, with room for all children of a node."""
    _, n = children(arena, p)
    if top + n <= ats.size or kind_of(arena, p) == DIRECTORY:
        return ats, states, regions
    size = 2 * (top + n)
    more_ats, more_states, more_regions = np.empty(size, np.int64), np.empty(size, np.int64), np.empty((size, 4))
    more_ats[:top], more_states[:top], more_regions[:top] = ats[:top], states[:top], regions[:top]
    return more_ats, more_states, more_regions


@kernel
def _rebuild_gainers(
    arena: Arena,
    meta: Meta,
    rows: Rows,
    p: int,
    offset: int,
    refining: bool,
    region: NDArray[np.float64],
    universe: NDArray[np.float64],
    settings: Settings,
) -> Arena:
    """Rebuild the buckets of a large drifted node whose shares grew by a quarter or more, within the allowance."""
    first, n = children(arena, p)
    before = now = 1.0
    for i in range(first, first + n):
        before += arena[n + i]
        now += arena[arena[i] + WEIGHT] if arena[i] else 0
    allowance = settings.rebuild
    shape = arena[p + SHAPE]
    columns, lines = shape & 0xFFFF, shape >> 16
    for b in range(n):
        q = arena[first + b]
        if q == 0:
            continue
        weight = arena[q + WEIGHT]
        if settings.leaf < weight <= allowance and weight / now > 1.25 * arena[first + n + b] / before:
            allowance -= weight
            its_offset, its_refining, its_region = offset, refining, region
            if kind_of(arena, p) == SPATIAL:
                if b < n - 1:
                    its_region = cell_region(arena.view(np.float32), p, columns, lines, b // lines, b % lines, region)
            elif b < shape:
                its_refining = arena[p + HEADER + b] != arena[p + HEADER + shape + b]
                its_offset = offset if its_refining else offset + 1
            slots = gather(arena, meta, q)
            arena = build_subtree(
                arena, meta, rows, slots, first + b, its_offset, its_refining, its_region, universe, settings
            )
    for i in range(first, first + n):
        arena[n + i] = arena[arena[i] + WEIGHT] if arena[i] else 0
    return arena


@kernel
def insert_slot(
    arena: Arena,
    meta: Meta,
    rows: Rows,
    slot: int,
    population: int,
    universe: NDArray[np.float64],
    settings: Settings,
) -> tuple[Arena, int]:
    """Add one slot. Returns the arena, perhaps moved, and how many nodes were rebuilt because of drift."""
    ats, states, regions, top = _from_root()
    rebuilt = 0
    while top:
        top -= 1
        at, offset, refining, region = ats[top], states[top] >> 1, (states[top] & 1) == 1, regions[top].copy()
        p = arena[at]
        if p == 0 or kind_of(arena, p) == QUERY:
            arena, leaf = _enter_leaf(arena, meta, rows, at, slot, offset, settings)
            if arena[leaf + WEIGHT] > arena[leaf + RETRY]:
                slots = gather(arena, meta, leaf)
                arena = build_subtree(arena, meta, rows, slots, at, offset, refining, region, universe, settings)
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
                    arena = build_subtree(
                        arena, meta, rows, with_slot, at, offset, refining, region, universe, settings
                    )
                    continue
                arena = _rebuild_gainers(arena, meta, rows, p, offset, refining, region, universe, settings)
        arena[p + WEIGHT] += 1
        ats, states, regions = _grown_stack(arena, p, top, ats, states, regions)
        top = _down(arena, rows, slot, p, offset, refining, settings.rare, region, universe, ats, states, regions, top)
    return arena, rebuilt


@kernel
def remove_slot(
    arena: Arena, meta: Meta, rows: Rows, slot: int, universe: NDArray[np.float64], settings: Settings
) -> tuple[Arena, int]:
    """Take one slot out. Returns the arena, perhaps moved, and from how many leaves it was taken."""
    ats, states, regions, top = _from_root()
    taken = 0
    while top:
        top -= 1
        at, offset, refining, region = ats[top], states[top] >> 1, (states[top] & 1) == 1, regions[top].copy()
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
                    put_entry(arena, leaf, count, other, key_of(rows, other, offset, settings.rare), rows.boxes)
                    count += 1
            arena[leaf + WEIGHT] = count
            arena[at] = leaf
        else:
            arena[p + WEIGHT] = weight - 1
            arena[p + UPDATES] += 1
            ats, states, regions = _grown_stack(arena, p, top, ats, states, regions)
            top = _down(
                arena, rows, slot, p, offset, refining, settings.rare, region, universe, ats, states, regions, top
            )
    return arena, taken
