"""Building a partition tree, or any subtree of one, from a set of slots ([AP-TREE], Algorithm 4).

Pending nodes are tasks on a stack; the slots of all tasks lie one after another in a pool, in the order of the stack,
so the topmost task's slots are always at the pool's end and can be replaced by those of its children. Nothing
recurses, and the peak memory beyond the arena is the pool.

Each task decides on a sample of at most `SAMPLE` of its slots: a query node, a keyword node, or a spatial node with
one of a few grid sizes, whichever has the least expected cost. The flags kP and sP of Algorithm 4 are not needed:
where keywords are exhausted or all boxes span the region, the partition gains nothing and is not chosen.

Beyond the paper, each measured in benchmarks/geotext.py:
- A cut of several keywords does not advance the offset: below it the same offset may be divided again, until a cut
  holds one keyword. So `offset` is also the number of keywords proved to be in the message.
- The hit probability of a keyword is 1 - exp(-tokens × share), for a message of `tokens` tokens distributed
  as the subscriptions are; the paper's shares alone add up to one, as if a message had a single token. Below a cut
  of several keywords, which one token reached, the paper's shares are right.
- A grid's cost is multiplied by its replication, which the paper leaves unpriced: memory stays in proportion.
- Where all share the next keyword, the keyword partition is judged by the first offset at which they differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contrada.spatial.storage.jit import kernel
from contrada.spatial.textual.partition_tree.nodes import (
    HEADER,
    KEYWORD,
    QUERY,
    SHAPE,
    SPATIAL,
    UPDATES,
    WEIGHT,
    Arena,
    Meta,
    allocate,
    children,
    key_of,
    new_leaf,
    put_entry,
    spans,
    word_at,
)
from contrada.spatial.textual.partition_tree.partition import dp_cuts, grid_cost, grid_lines, heuristic_cuts
from contrada.spatial.textual.partition_tree.paths import (
    Path,
    buckets_of,
    grow_stack,
    new_stack,
    path_at,
    path_below,
    push,
)
from contrada.spatial.textual.partition_tree.settings import ADAPTIVE, KEYWORD_FIRST, TRIE, Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.textual.store import Rows

SAMPLE = 1024
GAIN = 0.75  # a partition must bring the expected cost below this share of its node's weight
DEEPEST_GRID = 12  # spatial nodes on one path
LOOKAHEAD = 16  # how many shared keywords the judgement of a partition looks past


class Plan(NamedTuple):
    """How a node is to be divided."""

    kind: int  # QUERY: not at all
    cuts: NDArray[np.int32]  # the first word of each cut of a keyword node
    xs: NDArray[np.float32]  # the lines of a spatial node
    ys: NDArray[np.float32]


@kernel
def draw_sample(slots: NDArray[np.int32]) -> NDArray[np.int32]:
    """At most `SAMPLE` of the slots: one of each of as many runs of nearly equal length, at a hashed place in it.

    Slots come in the order of subscribing, which may have a period (sixteen cities in turn): every k-th of them would
    be one city's.
    """
    count = slots.size
    if count <= SAMPLE:
        return slots.copy()
    chosen = np.empty(SAMPLE, np.int32)
    for i in range(SAMPLE):
        first, end = i * count // SAMPLE, (i + 1) * count // SAMPLE
        mixed = (i + 1) * 6364136223846793005 + count * 3202034522624059733  # wraps around, as the next does
        mixed ^= mixed >> 29
        mixed *= 3202034522624059733
        mixed ^= mixed >> 32
        chosen[i] = slots[first + (mixed & 0x7FFFFFFF) % (end - first)]
    return chosen


@kernel
def _keyword_plan(
    rows: Rows, sample: NDArray[np.int32], offset: int, refining: bool, count: int, settings: Settings
) -> tuple[float, NDArray[np.int32]]:
    """Cut at `offset`: the share of the weight then expected to be verified, and the first word of each cut."""
    words = np.empty(sample.size, np.int32)
    n = 0
    unproved = 0
    for slot in sample:
        length = rows.length[slot]
        if length > offset:
            words[n] = word_at(rows, slot, offset, settings.rare)
            unproved += length - offset
            n += 1
    exhausted = sample.size - n
    if n == 0:
        return 1.0, words[:0]
    words = np.sort(words[:n])
    weights = np.empty(n)
    v = 0
    for i in range(n):
        if i == 0 or words[i] != words[i - 1]:
            words[v] = words[i]
            weights[v] = 0.0
            v += 1
        weights[v - 1] += 1.0
    words, weights = words[:v], weights[:v]
    chances = np.empty(v)
    for i in range(v):
        chances[i] = weights[i] / n if refining else 1.0 - np.exp(-settings.tokens * weights[i] / unproved)
    cuts = min(settings.fanout, max(2, 2 * count // settings.leaf))
    first = dp_cuts(weights, chances, cuts) if settings.optimal else heuristic_cuts(weights, chances, cuts)
    cost = float(exhausted)
    starts = np.empty(first.size, np.int32)
    for c in range(first.size):
        end = first[c + 1] if c + 1 < first.size else v
        cost += weights[first[c] : end].sum() * min(1.0, chances[first[c] : end].sum())
        starts[c] = words[first[c]]
    return cost / sample.size, starts


@kernel
def _judge_keywords(
    rows: Rows, sample: NDArray[np.int32], offset: int, refining: bool, count: int, settings: Settings
) -> tuple[float, NDArray[np.int32]]:
    """As `_keyword_plan`, looking past keywords that all of the sample share."""
    cost, starts = _keyword_plan(rows, sample, offset, refining, count, settings)
    if starts.size == 1 and cost > GAIN:
        word = starts[0]
        for slot in sample:
            if rows.length[slot] <= offset or word_at(rows, slot, offset, settings.rare) != word:
                return cost, starts
        longest = 0
        for slot in sample:
            longest = max(longest, rows.length[slot])
        further = offset + 1
        while further < min(longest, offset + LOOKAHEAD):
            later_cost, later = _keyword_plan(rows, sample, further, False, count, settings)
            if later.size > 1 or later_cost <= GAIN:
                return later_cost, starts
            further += 1
    return cost, starts


@kernel
def _judge_grids(
    rows: Rows,
    sample: NDArray[np.int32],
    region: NDArray[np.float64],
    count: int,
    settings: Settings,
) -> tuple[float, float, NDArray[np.float32], NDArray[np.float32]]:
    """Find the best grid: its expected share of verified weight times its replication, that share, and its lines."""
    boxes = np.empty((sample.size, 4))
    n = 0
    for slot in sample:
        if not spans(rows.boxes, slot, region, settings.universe):
            # What lies outside the region is no reason to cut it.
            boxes[n, 0] = max(rows.boxes[slot, 0], region[0])
            boxes[n, 1] = max(rows.boxes[slot, 1], region[1])
            boxes[n, 2] = min(rows.boxes[slot, 2], region[2])
            boxes[n, 3] = min(rows.boxes[slot, 3], region[3])
            n += 1
    boxes = boxes[:n]
    dummies = sample.size - n
    none = np.empty(0, np.float32)
    best, best_cost, best_xs, best_ys = np.inf, np.inf, none, none
    if n < 2:
        return best, best_cost, best_xs, best_ys
    most = int(np.sqrt(settings.fanout))
    side = 2
    while True:
        side = min(side, most)
        xs = grid_lines(boxes[:, 0].copy(), boxes[:, 2].copy(), side)
        ys = grid_lines(boxes[:, 1].copy(), boxes[:, 3].copy(), side)
        if xs.size + ys.size > 0:
            cost, pairs = grid_cost(boxes, xs, ys)
            cost = (cost + dummies) / sample.size
            score = cost * (pairs + dummies) / sample.size
            if score < best:
                best, best_cost, best_xs, best_ys = score, cost, xs, ys
        side *= 2
        if side >= 2 * most or 2 * side * side > count:
            return best, best_cost, best_xs, best_ys


@kernel
def _trie_plan(rows: Rows, slots: NDArray[np.int32], path: Path, depth: int, settings: Settings) -> Plan:
    """Divide without a cost model (Trie-Qd of Fig. 11): one cut per word; a quadtree where no keyword is left."""
    region, universe = path.region, settings.universe
    words = np.empty(slots.size, np.int32)
    n = 0
    for slot in slots:
        if rows.length[slot] > path.offset:
            words[n] = word_at(rows, slot, path.offset, settings.rare)
            n += 1
    none = np.empty(0, np.float32)
    if n:
        return Plan(KEYWORD, np.unique(words[:n]), none, none)
    if slots.size > settings.leaf and depth < DEEPEST_GRID:
        x = np.float32(max(region[0], universe[0]) * 0.5 + min(region[2], universe[2]) * 0.5)
        y = np.float32(max(region[1], universe[1]) * 0.5 + min(region[3], universe[3]) * 0.5)
        if np.isfinite(x) and np.isfinite(y):
            return Plan(SPATIAL, words[:0], np.full(1, x, np.float32), np.full(1, y, np.float32))
    return Plan(QUERY, words[:0], none, none)


@kernel
def _make_plan(rows: Rows, slots: NDArray[np.int32], path: Path, depth: int, settings: Settings) -> Plan:
    """Choose what a node over these slots is to be, with `depth` spatial nodes above it."""
    if settings.first == TRIE:
        return _trie_plan(rows, slots, path, depth, settings)
    kind = QUERY
    cuts = np.empty(0, np.int32)
    xs = ys = np.empty(0, np.float32)
    if slots.size > settings.leaf:
        sample = draw_sample(slots)
        keyword_cost, cuts = _judge_keywords(rows, sample, path.offset, path.refining, slots.size, settings)
        grid_score = grid_share = np.inf
        if depth < DEEPEST_GRID:
            grid_score, grid_share, xs, ys = _judge_grids(rows, sample, path.region, slots.size, settings)
        keyword_gains, grid_gains = keyword_cost <= GAIN, grid_score <= GAIN and grid_share <= GAIN
        if keyword_gains and (
            settings.first == KEYWORD_FIRST
            or not grid_gains
            or (settings.first == ADAPTIVE and keyword_cost <= grid_score)
        ):
            kind = KEYWORD
        elif grid_gains:
            kind = SPATIAL
    return Plan(kind, cuts, xs, ys)


@kernel
def write_leaf(
    arena: Arena, meta: Meta, rows: Rows, slots: NDArray[np.int32], offset: int, settings: Settings
) -> tuple[Arena, int]:
    """Make a query node of just these slots."""
    retry = max(settings.leaf, 2 * slots.size if slots.size > settings.leaf else 0)
    arena, leaf = new_leaf(arena, meta, slots.size, retry, True)
    for i in range(slots.size):
        put_entry(arena, leaf, i, slots[i], key_of(rows, slots[i], offset, settings.rare), rows.boxes)
    arena[leaf + WEIGHT] = slots.size
    return arena, leaf


@kernel
def _write_keyword_node(
    arena: Arena, meta: Meta, rows: Rows, slots: NDArray[np.int32], offset: int, starts: NDArray[np.int32], rare: bool
) -> tuple[Arena, int]:
    """Make a childless keyword node; each cut is as tight as its slots allow, so that a message may miss it."""
    cuts = starts.size
    arena, p, _, tag = allocate(arena, meta, HEADER + 2 * cuts + 2 * (cuts + 2), False)
    arena[p], arena[p + WEIGHT], arena[p + SHAPE], arena[p + UPDATES] = KEYWORD | tag, slots.size, cuts, 0
    low, high = p + HEADER, p + HEADER + cuts
    arena[low : low + cuts] = 2**31 - 1
    arena[high : high + cuts] = -1
    for slot in slots:
        if rows.length[slot] > offset:
            word = word_at(rows, slot, offset, rare)
            a, b = 0, cuts
            while a < b:
                middle = (a + b) >> 1
                if starts[middle] <= word:
                    a = middle + 1
                else:
                    b = middle
            c = max(0, a - 1)  # a word below all sampled ones joins the first cut
            arena[low + c] = min(arena[low + c], word)
            arena[high + c] = max(arena[high + c], word)
    return arena, p


@kernel
def _write_spatial_node(
    arena: Arena, meta: Meta, weight: int, xs: NDArray[np.float32], ys: NDArray[np.float32]
) -> tuple[Arena, int]:
    """Make a spatial node without children."""
    columns, rows = xs.size + 1, ys.size + 1
    arena, p, _, tag = allocate(arena, meta, HEADER + columns + rows - 2 + 2 * (columns * rows + 1), False)
    arena[p], arena[p + WEIGHT], arena[p + SHAPE], arena[p + UPDATES] = SPATIAL | tag, weight, columns | rows << 16, 0
    real = arena.view(np.float32)
    real[p + HEADER : p + HEADER + xs.size] = xs
    real[p + HEADER + xs.size : p + HEADER + xs.size + ys.size] = ys
    return arena, p


@kernel
def _divide(
    arena: Arena, p: int, rows: Rows, path: Path, settings: Settings, pool: NDArray[np.int32], begin: int, end: int
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Replace the slots of the new node `p`, which end the pool, by those of its children, one child after another.

    Returns the pool, perhaps moved, and where each child's slots begin, counted from `begin`, with the end of the last.
    """
    mine = pool[begin:end]
    child, n = children(arena, p)
    lines = arena[p + SHAPE] >> 16
    buckets = np.empty((mine.size, 4), np.int32)
    places = np.zeros(n + 1, np.int64)
    for i in range(mine.size):
        c1, c2, r1, r2 = buckets_of(arena, p, rows, mine[i], path, settings)
        buckets[i, 0], buckets[i, 1], buckets[i, 2], buckets[i, 3] = c1, c2, r1, r2
        for c in range(c1, c2 + 1):
            for r in range(r1, r2 + 1):
                places[c * lines + r + 1] += 1
    for b in range(n):
        arena[child + b] = 0
        arena[child + n + b] = places[b + 1]
        places[b + 1] += places[b]
    total = places[n]
    if end + total > pool.size:
        larger = np.empty((end + total) * 5 // 4, np.int32)
        larger[:end] = pool[:end]
        pool = larger
    cursor = end + places[:n]
    for i in range(end - begin):
        for c in range(buckets[i, 0], buckets[i, 1] + 1):
            for r in range(buckets[i, 2], buckets[i, 3] + 1):
                b = c * lines + r
                pool[cursor[b]] = pool[begin + i]
                cursor[b] += 1
    for i in range(total):
        pool[begin + i] = pool[end + i]
    return pool, places


@kernel
def build_subtree(
    arena: Arena, meta: Meta, rows: Rows, slots: NDArray[np.int32], at: int, path: Path, settings: Settings
) -> Arena:
    """Build a tree over `slots` and let word `at` of the arena point to it. Returns the arena, perhaps moved."""
    pool = np.empty(slots.size + slots.size // 2 + 64, np.int32)
    pool[: slots.size] = slots
    end = slots.size
    stack = new_stack()
    top = push(stack, 0, at, path, 0, 0)  # with each task: where its slots begin in the pool, spatial nodes above it
    while top:
        top -= 1
        its_path = path_at(stack, top)
        its_at, begin, depth = stack.tasks[top, 0], stack.tasks[top, 2], stack.tasks[top, 3]
        mine = pool[begin:end]
        plan = _make_plan(rows, mine, its_path, depth, settings)
        if plan.kind == QUERY:
            arena, p = write_leaf(arena, meta, rows, mine, its_path.offset, settings)
            arena[its_at] = p
            end = begin
            continue
        if plan.kind == KEYWORD:
            arena, p = _write_keyword_node(arena, meta, rows, mine, its_path.offset, plan.cuts, settings.rare)
        else:
            arena, p = _write_spatial_node(arena, meta, mine.size, plan.xs, plan.ys)
            depth += 1
        arena[its_at] = p
        pool, places = _divide(arena, p, rows, its_path, settings, pool, begin, end)
        child, n = children(arena, p)
        end = begin + places[n]
        stack = grow_stack(stack, top, n)
        for b in range(n):
            if places[b] < places[b + 1]:
                top = push(stack, top, child + b, path_below(arena, p, b, its_path), begin + places[b], depth)
    return arena
