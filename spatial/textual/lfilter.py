"""LFilter (Yu, Li and Feng, CIKM 2015, Section 5): MBRTrie and PT-Quadtree over one token-set order, chosen by cost.

For each message the trie's cost is held against the quadtree's. If the trie is cheaper it answers alone.
Otherwise the quadtree yields sorted lists of candidates, and the trie is walked with them: a node's id range
cuts each list to a sublist, nodes without candidates are not entered (list pruning, 5.2), and at every node it is
decided anew whether going on (Eq. 5) or verifying what is left of the lists (Eq. 6) is cheaper.

The paper compares the filter steps alone (Eq. 1 and 3), with tokens spread evenly over the vocabulary. Under Zipf's
law both estimates are off by orders of magnitude, and what decides is how much there is to verify (Eq. 2 and 4). So
each equation is kept and its averages are replaced by what the message itself says, at one probe per token looked up:

    Eq. 1  the level-1 nodes of the message's tokens are looked up; below them, subscriptions beyond a node's own
           list are reached with the probability that their next keyword is also in the message
    Eq. 2  the own lists of those nodes
    Eq. 3  the quadtree's filter step is run, a few dozen nodes, and gives cand_Q; but not where the root's own
           lists, which every message meets, are already dearer than the trie
    Eq. 4  the sum of its lists
    Eq. 5  also counts that each child reached cuts every list

The units, nanoseconds per probe and per candidate of either kind, were measured; only their ratios matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from contrada.spatial._jit import kernel
from contrada.spatial.textual.layered import LayeredIndex, rounded
from contrada.spatial.textual.mbr_trie import (
    PROBE_BY_COST,
    Trie,
    as_message,
    build_trie,
    check_trie,
    find_label,
    overlaps_node,
    restored_trie,
    search_trie,
    select_pairs,
    verify_run,
)
from contrada.spatial.textual.pt_quadtree import (
    built_quadtree,
    check_quadtree,
    filter_quadtree,
    restored_quadtree,
    verify_entries,
)
from contrada.spatial.textual.store import token_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from contrada.spatial.textual.pt_quadtree_build import Quadtree
    from contrada.spatial.textual.store import Rows

PROBE = 8.0  # a step of a binary search, or a hash probe
NODE = 100.0  # a trie node, besides its probes
BOX = 8.0  # a subscription of a run, whose box alone is checked
SAMPLED = 64  # tokens of a long message that the estimate looks up
CANDIDATE = 24.0  # an entry of a list, fetched at random, box and keywords


@kernel
def trie_cost(
    labels: NDArray[np.int32],
    child: NDArray[np.int32],
    first: NDArray[np.int32],
    last: NDArray[np.int32],
    own: NDArray[np.int32],
    mbrs: NDArray[np.float32],
    message: NDArray[np.int32],
    rounded: NDArray[np.float32],
) -> float:
    """Expected cost of the MBRTrie algorithm on a message: Eq. 1 and 2 with its own level-1 nodes."""
    begin, end = child[0], child[1]
    steps = np.log2(end - begin + 1.0)
    cost = NODE + BOX * (own[0] - first[0])
    step = max(1, message.size // SAMPLED)
    for i in range(0, message.size, step):
        cost += PROBE * steps * step
        at = find_label(labels, begin, end, message[i])
        if at < end and labels[at] == message[i] and overlaps_node(mbrs, at, rounded):
            fanout = child[at + 1] - child[at]
            remaining = message.size - 1 - i
            probes = min(remaining * np.log2(fanout + 1.0), fanout * np.log2(remaining + 1.0))
            cost += step * (NODE + BOX * (own[at] - first[at]) + PROBE * probes)
            if fanout:
                # Children reached, as if the remaining tokens were drawn from them: each with what it has on average.
                reached = min(float(fanout), remaining * fanout / (fanout + (end - begin)))
                cost += step * reached * (NODE + BOX * (last[at] - own[at]) / fanout)
    return float(cost)


@kernel
def pruning_cost(fanout: int, remaining: int, lists: int, size: int) -> float:
    """Eq. 5: to find a trie node's children, to cut `lists` lists of `size` entries for each, and to check boxes."""
    if fanout == 0 or remaining == 0 or lists == 0:
        return float(BOX * size)
    probes = min(remaining * np.log2(fanout + 1.0), fanout * np.log2(remaining + 1.0))
    reached = min(float(fanout), float(remaining))
    return float(PROBE * probes + reached * lists * 2 * PROBE * np.log2(size / lists + 2.0) + BOX * size)


@kernel
def direct_cost(size: int, average: float) -> float:
    """Eq. 6: to verify `size` entries whose subscriptions have `average` keywords."""
    return float(size * (CANDIDATE + PROBE * (average - 1)))


@kernel
def _entries_at_root(tree: Quadtree, tokens: NDArray[np.int32]) -> int:
    """How many entries the message has to meet at the quadtree's root, wherever it is."""
    a, b = tree.groups[0], tree.groups[1]
    pivots, starts = tree.pivots, tree.starts
    entries = 0
    for token in tokens:
        a = _below(pivots, a, b, token)
        if a == b:
            break
        if pivots[a] == token:
            entries += starts[a + 1] - starts[a]
    return int(entries)


@kernel
def _below(values: NDArray[np.int32], begin: int, end: int, value: int) -> int:
    """Where in a sorted run the first value at or above `value` is."""
    while begin < end:
        middle = (begin + end) >> 1
        if values[middle] < value:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def hybrid_prune(
    trie: Trie,
    tree: Quadtree,
    order: NDArray[np.int32],
    boxes: NDArray[np.float32],
    rows: Rows,
    groups: NDArray[np.int32],
    most: int,
    message: NDArray[np.int32],
    table: NDArray[np.int32],
    rounded: NDArray[np.float32],
    box: NDArray[np.float64],
    average: float,
) -> tuple[NDArray[np.int32], int, int]:
    """HYBRIDPRUNE: slots that match among the groups' entries; trie nodes visited; candidates verified.

    The lists of a pending node are runs of (begin, end) into `tree.entries`, kept on a stack beside the nodes'.
    """
    found = np.empty(most, np.int32)
    matched = nodes = verified = 0
    pairs = np.zeros((256, 2), np.int32)
    runs = np.empty((256 + 4 * groups.size, 2), np.int32)
    ends = np.empty(256, np.int64)  # where in `runs` each pending pair's lists end; they begin where the last one's do
    for g in range(groups.size):
        runs[g, 0], runs[g, 1] = tree.starts[groups[g]], tree.starts[groups[g] + 1]
    ends[0] = groups.size
    top = 1
    while top:
        top -= 1
        node, start = pairs[top, 0], pairs[top, 1]
        run_end = ends[top]
        run_begin = ends[top - 1] if top else 0
        nodes += 1
        size = 0
        for r in range(run_begin, run_end):
            size += runs[r, 1] - runs[r, 0]
        remaining = message.size - start
        begin, end = trie.child[node], trie.child[node + 1]
        fanout = end - begin
        if fanout and direct_cost(size, average) <= pruning_cost(fanout, remaining, run_end - run_begin, size):
            verified += size
            for r in range(run_begin, run_end):
                matched = verify_entries(
                    tree.entries,
                    order,
                    boxes,
                    rows.boxes,
                    rows.start,
                    rows.length,
                    rows.keywords,
                    table,
                    rounded,
                    box,
                    runs[r, 0],
                    runs[r, 1],
                    found,
                    matched,
                )
            continue
        # The node's own subscriptions have all their keywords on its path: only their boxes are left to check.
        for r in range(run_begin, run_end):
            a = _below(tree.entries, runs[r, 0], runs[r, 1], trie.first[node])
            b = _below(tree.entries, a, runs[r, 1], trie.own[node])
            verified += b - a
            for i in range(a, b):
                p = tree.entries[i]
                matched = verify_run(order, boxes, rows.boxes, p, p + 1, rounded, box, found, matched)
        mine = runs[run_begin:run_end].copy()
        base = top
        pairs, top = select_pairs(
            trie.labels, trie.mbrs, begin, end, message, start, rounded, PROBE_BY_COST, pairs, top
        )
        if top > ends.size:
            more_ends = np.empty(2 * top, np.int64)
            more_ends[:base] = ends[:base]
            ends = more_ends
        kept, at = base, run_begin
        for c in range(base, top):
            child = pairs[c, 0]
            if at + len(mine) > len(runs):
                more_runs = np.empty((2 * (at + len(mine)), 2), np.int32)
                more_runs[:at] = runs[:at]
                runs = more_runs
            before = at
            for r in range(len(mine)):
                a = _below(tree.entries, mine[r, 0], mine[r, 1], trie.first[child])
                b = _below(tree.entries, a, mine[r, 1], trie.last[child])
                if b > a:
                    runs[at, 0], runs[at, 1] = a, b
                    at += 1
            if at > before:
                pairs[kept, 0], pairs[kept, 1] = child, pairs[c, 1]
                ends[kept] = at
                kept += 1
        top = kept
    return found[:matched], nodes, verified


@kernel
def search_both(
    trie: Trie,
    tree: Quadtree,
    order: NDArray[np.int32],
    boxes: NDArray[np.float32],
    rows: Rows,
    tokens: NDArray[np.int32],
    message: NDArray[np.int32],
    rounded: NDArray[np.float32],
    box: NDArray[np.float64],
    average: float,
) -> tuple[NDArray[np.int32], int, int]:
    """LFILTER (Algorithm 3): slots that match, nodes visited, candidates verified."""
    by_trie = trie_cost(trie.labels, trie.child, trie.first, trie.last, trie.own, trie.mbrs, message, rounded)
    # Asking the quadtree must be likely to pay: what it costs is known, and it saves at most what the trie costs.
    asking = 20 * NODE + 6 * PROBE * tokens.size
    if by_trie <= 4 * asking or by_trie <= direct_cost(_entries_at_root(tree, tokens), average):
        return search_trie(trie, order, boxes, rows, message, rounded, box, PROBE_BY_COST)
    table = token_table(tokens)
    groups, nodes, entries = filter_quadtree(tree, tokens, table, box)
    fanout = trie.child[1] - trie.child[0]
    by_lists = min(direct_cost(entries, average), pruning_cost(fanout, tokens.size, groups.size, entries))
    if by_trie <= by_lists:
        found, trie_nodes, verified = search_trie(trie, order, boxes, rows, message, rounded, box, PROBE_BY_COST)
        return found, nodes + trie_nodes, verified
    found, trie_nodes, verified = hybrid_prune(
        trie, tree, order, boxes, rows, groups, entries, message, table, rounded, box, average
    )
    return found, nodes + trie_nodes, verified


class LFilter(LayeredIndex):
    """Option `leaf` as in `pt-quadtree`."""

    name = "lfilter"
    defaults: ClassVar[Mapping[str, Any]] = {"leaf": 64}
    trie: Trie
    quadtree: Quadtree

    def _build_layer(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        order, self.trie = build_trie(self.store.rows, slots)
        self.quadtree = built_quadtree(self, order)
        self._average = float(self.store.rows.length[order].mean()) if order.size else 1.0
        return order

    def _search_layer(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        return search_both(
            self.trie,
            self.quadtree,
            self.order,
            self.boxes,
            self.store.rows,
            tokens,
            as_message(tokens),
            rounded(box),
            box,
            self._average,
        )

    def _layer_arrays(self) -> dict[str, NDArray[Any]]:
        parts = {"trie": self.trie._asdict(), "quadtree": self.quadtree._asdict()}
        return {f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()}

    def _restore_layer(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        parts: dict[str, dict[str, NDArray[Any]]] = {"trie": {}, "quadtree": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = array
        self.trie = restored_trie(parts["trie"], self.order.size)
        self.quadtree = restored_quadtree(parts["quadtree"], self.order.size)
        live = self.order[self.order >= 0]
        self._average = float(self.store.rows.length[live].mean()) if live.size else 1.0

    def _check_layer(self) -> None:
        check_trie(self.trie, self)
        check_quadtree(self.quadtree, self)
