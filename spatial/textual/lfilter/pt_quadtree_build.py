"""Building a PT-Quadtree ([LFILTER], Section 4.1): MX-CIF placement, pivotal tokens, cover and non-cover sets.

    child    int32 (N,)     first of a node's four children, 0 for none; they follow one another, level by level
    middles  float64 (N, 2) where they meet: child 2·(x >= middle x) + (y >= middle y). The outer ones reach to infinity
    groups   int32 (N + 1,) the node's groups are groups[i] .. groups[i+1]
    pivots   int32 (G,)     a group's pivotal token, ascending within a node
    starts   int32 (G + 1,) the group's entries are starts[g] .. starts[g+1]
    entries  int32 (n,)     subscriptions by their place in token-set order, ascending within a group
    cover_at int32 (N + 1,), cover int32      the nodes' cover sets, one after another, each ascending
    other_at int32 (N + 1,), other int32      and their non-cover sets

Every subscription is in one node, the smallest whose half-open cell holds its box, and there in one group, that of its
pivot, so no answer can come twice. The paper keeps a node's subscriptions in one list; grouped by pivot, those
whose pivot the message lacks are never looked at, and each group is one of the sorted lists that list pruning takes.

The pivotal tokens of a node are those of its own subscriptions and of its children. Tokens in all four children's sets
are its cover set, and are taken out of the children's; the rest is its non-cover set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.textual.store import Rows

DEEPEST = 24  # the paper's threshold on a region's area


class Quadtree(NamedTuple):
    """The arrays of a PT-Quadtree, as kernels take them."""

    child: NDArray[np.int32]
    middles: NDArray[np.float64]
    groups: NDArray[np.int32]
    pivots: NDArray[np.int32]
    starts: NDArray[np.int32]
    entries: NDArray[np.int32]
    cover_at: NDArray[np.int32]
    cover: NDArray[np.int32]
    other_at: NDArray[np.int32]
    other: NDArray[np.int32]


@kernel
def greedy_pivots(rows: Rows, slots: NDArray[np.int32], counts: NDArray[np.int32]) -> NDArray[np.int32]:
    """Give each slot one of its keywords, from a small set that hits all: the most frequent first, again and again.

    `counts` is scratch of the vocabulary's size, all zero before and after. Tokens wait in buckets by how many
    subscriptions they were in when last looked at; that number only falls, so one pass down the buckets is enough.
    """
    pivots = np.full(slots.size, -1, np.int32)
    total = 0
    for slot in slots:
        total += rows.length[slot]
    words = np.empty(total, np.int32)
    distinct = 0
    for slot in slots:
        for i in range(rows.start[slot], rows.start[slot] + rows.length[slot]):
            if counts[rows.keywords[i]] == 0:
                words[distinct] = rows.keywords[i]
                distinct += 1
            counts[rows.keywords[i]] += 1
    words = np.sort(words[:distinct])
    # Where each word's list of subscriptions begins; until they are filled, `counts` maps words to their ranks.
    begin = np.zeros(distinct + 1, np.int64)
    left = np.empty(distinct, np.int32)
    most = 0
    for w in range(distinct):
        left[w] = counts[words[w]]
        most = max(most, left[w])
        begin[w + 1] = begin[w] + left[w]
        counts[words[w]] = w
    holders = np.empty(total, np.int32)
    cursor = begin[:distinct].copy()
    for s in range(slots.size):
        slot = slots[s]
        for i in range(rows.start[slot], rows.start[slot] + rows.length[slot]):
            w = counts[rows.keywords[i]]
            holders[cursor[w]] = s
            cursor[w] += 1
    bucket = np.full(most + 1, -1, np.int32)
    following = np.empty(distinct, np.int32)
    for w in range(distinct - 1, -1, -1):
        following[w] = bucket[left[w]]
        bucket[left[w]] = w
    for height in range(most, 0, -1):
        while bucket[height] >= 0:
            w = bucket[height]
            bucket[height] = following[w]
            if left[w] < height:
                following[w] = bucket[left[w]]
                bucket[left[w]] = w
                continue
            for h in range(begin[w], begin[w + 1]):
                s = holders[h]
                if pivots[s] < 0:
                    pivots[s] = words[w]
                    slot = slots[s]
                    for i in range(rows.start[slot], rows.start[slot] + rows.length[slot]):
                        left[counts[rows.keywords[i]]] -= 1
    for w in range(distinct):
        counts[words[w]] = 0
    return pivots


@kernel
def _place(
    rows: Rows, order: NDArray[np.int32], universe: NDArray[np.float64], leaf: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]:
    """MX-CIF placement: the entries node by node, where each node's begin, and the nodes' middles and children."""
    entries = np.arange(order.size).astype(np.int32)
    scratch = np.empty(order.size, np.int32)
    size = 64
    first, last, child = np.zeros(size, np.int32), np.zeros(size, np.int32), np.zeros(size, np.int32)
    own, depth = np.zeros(size, np.int32), np.zeros(size, np.int32)
    middles, regions = np.zeros((size, 2)), np.zeros((size, 4))
    last[0], regions[0] = order.size, universe
    count, node = 1, 0
    quarter = np.empty(order.size, np.int8)
    while node < count:
        a, b = first[node], last[node]
        own[node] = b
        if b - a > leaf and depth[node] < DEEPEST:
            x1, y1, x2, y2 = regions[node, 0], regions[node, 1], regions[node, 2], regions[node, 3]
            x, y = x1 * 0.5 + x2 * 0.5, y1 * 0.5 + y2 * 0.5
            sizes = np.zeros(6, np.int64)
            for i in range(a, b):
                box = rows.boxes[order[entries[i]]]
                k = 0
                if (box[2] < x or box[0] >= x) and (box[3] < y or box[1] >= y):
                    k = 1 + (2 if box[0] >= x else 0) + (1 if box[1] >= y else 0)
                quarter[i] = k
                sizes[k + 1] += 1
            if sizes[1] < b - a:
                for k in range(5):
                    sizes[k + 1] += sizes[k]
                cursor = sizes[:5] + a
                for i in range(a, b):
                    scratch[cursor[quarter[i]]] = entries[i]
                    cursor[quarter[i]] += 1
                entries[a:b] = scratch[a:b]
                if count + 4 > size:
                    size *= 2
                    first, last, child = _doubled(first), _doubled(last), _doubled(child)
                    own, depth = _doubled(own), _doubled(depth)
                    more_middles, more_regions = np.zeros((size, 2)), np.zeros((size, 4))
                    more_middles[:count], more_regions[:count] = middles[:count], regions[:count]
                    middles, regions = more_middles, more_regions
                own[node] = a + sizes[1]
                child[node] = count
                middles[node, 0], middles[node, 1] = x, y
                for k in range(4):
                    first[count], last[count], depth[count] = a + sizes[k + 1], a + sizes[k + 2], depth[node] + 1
                    regions[count, 0], regions[count, 2] = (x, x2) if k >= 2 else (x1, x)
                    regions[count, 1], regions[count, 3] = (y, y2) if k % 2 else (y1, y)
                    count += 1
        node += 1
    # Children's entries follow their parents'; collect each node's own, level by level.
    begin = np.zeros(count + 1, np.int32)
    for node in range(count):
        begin[node + 1] = begin[node] + own[node] - first[node]
        scratch[begin[node] : begin[node + 1]] = entries[first[node] : own[node]]
    return scratch, begin, middles[:count].copy(), child[:count].copy()


@kernel
def _doubled(array: NDArray[np.int32]) -> NDArray[np.int32]:
    larger = np.zeros(2 * array.size, np.int32)
    larger[: array.size] = array
    return larger


@kernel
def _extend(array: NDArray[np.int32], used: int, more: NDArray[np.int32]) -> NDArray[np.int32]:
    if used + more.size > array.size:
        larger = np.zeros(2 * (used + more.size), np.int32)
        larger[:used] = array[:used]
        array = larger
    array[used : used + more.size] = more
    return array


@kernel
def _in_all_four(merged: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the numbers that occur four times in a sorted array."""
    found = np.empty(merged.size // 4, np.int32)
    count = 0
    for i in range(3, merged.size):
        if merged[i - 3] == merged[i]:
            found[count] = merged[i]
            count += 1
    return found[:count]


@kernel
def _distinct(merged: NDArray[np.int32]) -> NDArray[np.int32]:
    found = np.empty(merged.size, np.int32)
    count = 0
    for i in range(merged.size):
        if i == 0 or merged[i] != merged[i - 1]:
            found[count] = merged[i]
            count += 1
    return found[:count]


@kernel
def _without(some: NDArray[np.int32], gone: NDArray[np.int32], also: NDArray[np.int32]) -> NDArray[np.int32]:
    """Sorted set difference, by two sets at once."""
    found = np.empty(some.size, np.int32)
    count = g = a = 0
    for value in some:
        while g < gone.size and gone[g] < value:
            g += 1
        while a < also.size and also[a] < value:
            a += 1
        if (g == gone.size or gone[g] != value) and (a == also.size or also[a] != value):
            found[count] = value
            count += 1
    return found[:count]


@kernel
def build_quadtree(
    rows: Rows, order: NDArray[np.int32], words: int, universe: NDArray[np.float64], leaf: int
) -> Quadtree:
    """Build the quadtree over subscriptions in token-set order; regions of at most `leaf` of them are not divided."""
    entries, begin, middles, child = _place(rows, order, universe, leaf)
    count = child.size
    counts = np.zeros(words, np.int32)
    groups = np.zeros(count + 1, np.int32)
    pivots, starts = np.empty(order.size, np.int32), np.zeros(order.size + 1, np.int32)
    made = 0
    for node in range(count):
        a, b = begin[node], begin[node + 1]
        mine = np.sort(entries[a:b])
        chosen = greedy_pivots(rows, order[mine], counts)
        by = np.argsort(chosen, kind="mergesort")
        for i in range(a, b):
            entries[i] = mine[by[i - a]]
            pivot = chosen[by[i - a]]
            if i == a or pivot != pivots[made - 1]:
                pivots[made], starts[made] = pivot, i
                made += 1
        groups[node + 1] = made
    starts[made] = order.size

    # All pivotal tokens below each node, children before parents.
    full, used = np.empty(max(16, made), np.int32), 0
    full_at, full_end = np.zeros(count, np.int64), np.zeros(count, np.int64)
    cover, cover_used = np.empty(16, np.int32), 0
    cover_from, cover_to = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for node in range(count - 1, -1, -1):
        own = pivots[groups[node] : groups[node + 1]]
        everything = own
        if child[node]:
            a, b = full_at[child[node] + 3], full_end[child[node]]  # written one after another, the last child first
            merged = np.sort(full[a:b])
            shared = _in_all_four(merged)
            cover = _extend(cover, cover_used, shared)
            cover_from[node], cover_to[node] = cover_used, cover_used + shared.size
            cover_used += shared.size
            everything = _distinct(np.sort(np.concatenate((merged, own))))
        full = _extend(full, used, everything)
        full_at[node], full_end[node] = used, used + everything.size
        used += everything.size

    parent = np.full(count, -1, np.int32)
    for node in range(count):
        for k in range(4 if child[node] else 0):
            parent[child[node] + k] = node
    cover_at, other_at = np.zeros(count + 1, np.int32), np.zeros(count + 1, np.int32)
    kept, other = np.empty(max(16, cover_used), np.int32), np.empty(max(16, used), np.int32)
    none = np.empty(0, np.int32)
    for node in range(count):
        mine = cover[cover_from[node] : cover_to[node]]
        above = none
        if parent[node] >= 0:
            above = cover[cover_from[parent[node]] : cover_to[parent[node]]]
        own_cover = _without(mine, above, none)
        rest = _without(full[full_at[node] : full_end[node]], mine, above)
        cover_at[node + 1], other_at[node + 1] = cover_at[node] + own_cover.size, other_at[node] + rest.size
        kept[cover_at[node] : cover_at[node + 1]] = own_cover
        other[other_at[node] : other_at[node + 1]] = rest
    return Quadtree(
        child,
        middles,
        groups,
        pivots[:made].copy(),
        starts[: made + 1].copy(),
        entries,
        cover_at,
        kept[: cover_at[count]].copy(),
        other_at,
        other[: other_at[count]].copy(),
    )
