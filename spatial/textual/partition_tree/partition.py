"""How an AP-tree node is divided: ordered keyword cuts, grids, and the cost model comparing them ([AP-TREE], IV A-C).

The expected cost of a partition is the sum over its buckets of weight × hit probability (Eq. 1).

Keyword cuts. `dp_cuts` is optimal (Eq. 2, 3). The cost W·P of a cut obeys the quadrangle inequality, since W and P
are sums of non-negative terms, so the best first cut moves monotonically and divide and conquer finds the optimum in
O(f V log V) where the paper's Algorithm 2 needs O(f V²). `heuristic_cuts` is Algorithm 3.

Grids. Each axis is cut on its own at sample centres: evenly, then every line is moved to where the cost of the two
strips beside it is least. With the centres sorted, c_j the j-th, A_j = #(x1 < c_j) and E_j = #(x2 < c_j), the strip
from c_j to c_k meets A_k - E_j boxes and holds k - j centres, so a candidate costs O(1).

Both work on a bounded sample. Cuts are given as the first index of each; lines as coordinates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contrada.spatial.storage.jit import kernel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@kernel
def cut_cost(weights: Floats, chances: Floats, first: Ints) -> float:
    """Eq. 1 for cuts that begin at `first` and end where the next begins."""
    total = 0.0
    for c in range(first.size):
        end = first[c + 1] if c + 1 < first.size else weights.size
        total += weights[first[c] : end].sum() * chances[first[c] : end].sum()
    return float(total)


@kernel
def even_cuts(weights: Floats, cuts: int) -> Ints:
    """At most `cuts` non-empty cuts of nearly equal weight."""
    n = weights.size
    cuts = min(cuts, n)
    first = np.zeros(cuts, np.int64)
    total = weights.sum()
    below, c = 0.0, 1
    for i in range(1, n):
        below += weights[i - 1]
        if c < cuts and (below * cuts >= total * c or n - i == cuts - c):
            first[c] = i
            c += 1
    return first[:c]


@kernel
def heuristic_cuts(weights: Floats, chances: Floats, cuts: int) -> Ints:
    """Algorithm 3: even cuts, then each boundary moved to its best place between its neighbours."""
    first = even_cuts(weights, cuts)
    n = weights.size
    w, p = np.zeros(n + 1), np.zeros(n + 1)
    for i in range(n):
        w[i + 1] = w[i] + weights[i]
        p[i + 1] = p[i] + chances[i]
    for c in range(1, first.size):
        a = first[c - 1]
        b = first[c + 1] if c + 1 < first.size else n
        best, best_cost = first[c], np.inf
        for m in range(a + 1, b):
            cost = (w[m] - w[a]) * (p[m] - p[a]) + (w[b] - w[m]) * (p[b] - p[m])
            if cost < best_cost:
                best, best_cost = m, cost
        first[c] = best
    return first


@kernel
def dp_cuts(weights: Floats, chances: Floats, cuts: int) -> Ints:
    """Return the cuts of least cost."""
    n = weights.size
    cuts = min(cuts, n)
    w, p = np.zeros(n + 1), np.zeros(n + 1)
    for i in range(n):
        w[i + 1] = w[i] + weights[i]
        p[i + 1] = p[i] + chances[i]
    # cost[j]: least cost of the first j words in c cuts; last[c, j]: where the last of them begins.
    cost = np.empty(n + 1)
    for j in range(n + 1):
        cost[j] = w[j] * p[j]
    last = np.zeros((cuts + 1, n + 1), np.int32)
    spans = np.empty((2 * n + 64, 4), np.int64)  # pending: j from, j to, and where its best split may lie
    for c in range(2, cuts + 1):
        following = np.full(n + 1, np.inf)
        spans[0, 0], spans[0, 1], spans[0, 2], spans[0, 3] = c, n, c - 1, n - 1
        top = 1
        while top:
            top -= 1
            from_j, to_j, from_m, to_m = spans[top, 0], spans[top, 1], spans[top, 2], spans[top, 3]
            j = (from_j + to_j) // 2
            best = from_m
            for m in range(from_m, min(to_m, j - 1) + 1):
                value = cost[m] + (w[j] - w[m]) * (p[j] - p[m])
                if value < following[j]:
                    following[j] = value
                    best = m
            last[c, j] = best
            if from_j < j:
                spans[top, 0], spans[top, 1], spans[top, 2], spans[top, 3] = from_j, j - 1, from_m, best
                top += 1
            if j < to_j:
                spans[top, 0], spans[top, 1], spans[top, 2], spans[top, 3] = j + 1, to_j, best, to_m
                top += 1
        cost = following
    first = np.zeros(cuts, np.int64)
    j = n
    for c in range(cuts, 1, -1):
        j = last[c, j]
        first[c - 1] = j
    return first


@kernel
def grid_lines(low: Floats, high: Floats, strips: int) -> NDArray[np.float32]:
    """Inner lines of at most `strips` strips for the intervals [low, high], strictly ascending float32."""
    n = low.size
    centres = np.sort(low * 0.5 + high * 0.5)
    starts, ends = np.sort(low), np.sort(high)
    started, ended = np.zeros(n + 1), np.zeros(n + 1)
    a = e = 0
    for j in range(n):
        while a < n and starts[a] < centres[j]:
            a += 1
        while e < n and ends[e] < centres[j]:
            e += 1
        started[j], ended[j] = a, e
    started[n], ended[n] = n, n
    place = np.empty(strips + 1, np.int64)
    for s in range(strips + 1):
        place[s] = s * n // strips
    for s in range(1, strips):
        a, b = place[s - 1], place[s + 1]
        best_cost = np.inf
        for j in range(a + 1, b):
            cost = (started[j] - (ended[a] if s > 1 else 0.0)) * (j - a)
            cost += ((started[b] if s + 1 < strips else n) - ended[j]) * (b - j)
            if cost < best_cost:
                place[s], best_cost = j, cost
    lines = np.empty(strips - 1, np.float32)
    count = 0
    for s in range(1, strips):
        if place[s] < n:
            line = np.float32(centres[place[s]])
            if np.isfinite(line) and (count == 0 or line > lines[count - 1]):
                lines[count] = line
                count += 1
    return lines[:count].copy()


@kernel
def strip_of(lines: NDArray[np.float32], x: float) -> int:
    """Which strip holds x: how many lines are at or below it."""
    a, b = 0, lines.size
    while a < b:
        middle = (a + b) >> 1
        if lines[middle] <= x:
            a = middle + 1
        else:
            b = middle
    return a


@kernel
def grid_cost(boxes: Floats, xs: NDArray[np.float32], ys: NDArray[np.float32]) -> tuple[float, float]:
    """Eq. 1 for a grid, hit probabilities being the centres' shares; and how many (box, cell) pairs there are."""
    columns, rows = xs.size + 1, ys.size + 1
    # A box adds one to a rectangle of cells: four corners of a difference array, summed up at the end.
    weight = np.zeros((columns + 1, rows + 1))
    hits = np.zeros((columns, rows))
    for i in range(len(boxes)):
        c1, c2 = strip_of(xs, boxes[i, 0]), strip_of(xs, boxes[i, 2])
        r1, r2 = strip_of(ys, boxes[i, 1]), strip_of(ys, boxes[i, 3])
        weight[c1, r1] += 1
        weight[c2 + 1, r1] -= 1
        weight[c1, r2 + 1] -= 1
        weight[c2 + 1, r2 + 1] += 1
        x = boxes[i, 0] * 0.5 + boxes[i, 2] * 0.5
        y = boxes[i, 1] * 0.5 + boxes[i, 3] * 0.5
        hits[strip_of(xs, x), strip_of(ys, y)] += 1
    cost = pairs = 0.0
    for c in range(columns):
        for r in range(rows):
            if c > 0:
                weight[c, r] += weight[c - 1, r]
            if r > 0:
                weight[c, r] += weight[c, r - 1]
            if c > 0 and r > 0:
                weight[c, r] -= weight[c - 1, r - 1]
            cost += weight[c, r] * hits[c, r]
            pairs += weight[c, r]
    return cost / max(1, len(boxes)), pairs
