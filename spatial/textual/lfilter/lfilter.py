"""LFilter (Yu, Li and Feng, CIKM 2015, Section 5): MBRTrie and PT-Quadtree over one token-set order, chosen by cost.

For each message the trie's cost is held against the quadtree's. If the trie is cheaper it answers alone.
Otherwise the quadtree yields sorted lists of candidates, and the trie is walked with them: a node's id range
cuts each list to a sublist, nodes without candidates are not entered (list pruning, 5.2), and at every node it is
decided anew whether going on (Eq. 5) or verifying what is left of the lists (Eq. 6) is cheaper.

The paper compares the filter steps alone (Eq. 1 and 3), with tokens spread evenly over the vocabulary. Under Zipf's
law both estimates are off by orders of magnitude, and what decides is how much there is to verify (Eq. 2 and 4). So
each equation is kept and its averages are replaced by what the message itself says, at one probe per token looked up,
which the walk need not repeat:

    Eq. 1  the level-1 nodes of the message's tokens are looked up; below them, subscriptions beyond a node's own
           list are reached with the probability that their next keyword is also in the message
    Eq. 2  the own lists of those nodes
    Eq. 3  the quadtree's filter step is run, a few dozen nodes, and gives cand_Q; but not where the root's own
           lists, which every message meets and whose lengths are kept by word, are already dearer than the trie
    Eq. 4  the sum of its lists
    Eq. 5  also counts that each child reached cuts every list

Running the quadtree's filter step costs as much as some short messages do altogether. So how often it has paid is
remembered, and the less often, the dearer the trie must be before the quadtree is asked again.

The units, nanoseconds per probe and per candidate of either kind, were measured; only their ratios matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from contrada.spatial.storage.jit import kernel
from contrada.spatial.textual.lfilter.layered import Layer, LayeredIndex, as_float32, as_labels, first_at_least
from contrada.spatial.textual.lfilter.mbr_trie import (
    PROBE_BY_COST,
    Trie,
    build_trie,
    check_trie,
    overlaps_node,
    restore_trie,
    select_pairs,
    verify_run,
    walk_trie,
)
from contrada.spatial.textual.lfilter.pt_quadtree import (
    built_quadtree,
    check_quadtree,
    filter_quadtree,
    restore_quadtree,
    verify_entries,
)
from contrada.spatial.textual.lfilter.pt_quadtree_build import Quadtree
from contrada.spatial.textual.slot_index import name_arrays
from contrada.spatial.textual.store import token_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from contrada.spatial.textual.store import Arrays


PROBE = 8.0  # a step of a binary search, or a hash probe
NODE = 100.0  # a trie node, besides its probes
BOX = 8.0  # a subscription of a run, whose box alone is checked
SAMPLED = 24  # of a long message: tokens whose cost is looked up, besides as many of the most frequent ones
CANDIDATE = 24.0  # an entry of a list, fetched at random, box and keywords
_FADING = 0.99  # of the experience with the quadtree, each time that it is asked


@kernel
def trie_cost(
    trie: Trie, message: NDArray[np.int32], near: NDArray[np.float32], pairs: NDArray[np.int32]
) -> tuple[float, int]:
    """Expected cost of the MBRTrie algorithm on a message: Eq. 1 and 2 with its own level-1 nodes.

    Those found are left in `pairs`, of at least 4 · SAMPLED, as SELECTPAIR would, and their number is returned, so that
    a walk can go on from there; -1 when not all tokens of a long message were looked up.
    """
    labels, child, first, last, own, mbrs, _ = trie
    begin, end = child[0], child[1]
    steps = np.log2(end - begin + 1.0)
    cost = NODE + BOX * (own[0] - first[0])
    count = 0
    step = max(1, (message.size - SAMPLED) // SAMPLED)
    i = 0
    while i < message.size:
        # Of the rare tokens a few stand for all; the frequent ones, which come last, have the long lists.
        stands_for = step if i + step <= message.size - SAMPLED else 1
        cost += PROBE * steps * stands_for
        at = first_at_least(labels, begin, end, message[i])
        if at < end and labels[at] == message[i] and overlaps_node(mbrs, at, near):
            pairs[count, 0], pairs[count, 1] = at, i + 1
            count += 1
            fanout = child[at + 1] - child[at]
            cost += stands_for * (NODE + BOX * (own[at] - first[at]))
            if fanout:
                remaining = message.size - 1 - i
                probes = min(remaining * np.log2(fanout + 1.0), fanout * np.log2(remaining + 1.0))
                # Children reached, as if the remaining tokens were drawn from them: each with what it has on average.
                reached = min(float(fanout), remaining * fanout / (fanout + (end - begin)))
                cost += stands_for * (PROBE * probes + reached * (NODE + BOX * (last[at] - own[at]) / fanout))
        i += stands_for
    return float(cost), count if step == 1 else -1


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


def entries_at_root(tree: Quadtree, words: int) -> NDArray[np.int32]:
    """How many entries of each word a message has to meet at the quadtree's root, wherever it is."""
    entries = np.zeros(words, np.int32)
    a, b = tree.groups[:2]
    entries[tree.pivots[a:b]] = np.diff(tree.starts[a : b + 1])
    return entries


@kernel
def hybrid_prune(
    trie: Trie,
    tree: Quadtree,
    layer: Layer,
    groups: NDArray[np.int32],
    most: int,
    message: NDArray[np.int32],
    table: NDArray[np.int32],
    near: NDArray[np.float32],
    box: NDArray[np.float64],
    average: float,
) -> tuple[NDArray[np.int32], int, int]:
    """HYBRIDPRUNE: slots that match among the groups' entries; trie nodes visited; candidates verified.

    The lists of a pending node are runs of (begin, end) into `tree.entries`, kept on a stack beside the nodes'.
    """
    order, boxes, exact, start, length, keywords = layer
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
        node, position = pairs[top, 0], pairs[top, 1]
        run_end = ends[top]
        run_begin = ends[top - 1] if top else 0
        nodes += 1
        size = 0
        for r in range(run_begin, run_end):
            size += runs[r, 1] - runs[r, 0]
        remaining = message.size - position
        begin, end = trie.child[node], trie.child[node + 1]
        fanout = end - begin
        if fanout and direct_cost(size, average) <= pruning_cost(fanout, remaining, run_end - run_begin, size):
            verified += size
            for r in range(run_begin, run_end):
                a, b = runs[r, 0], runs[r, 1]
                matched = verify_entries(
                    tree.entries, order, boxes, exact, start, length, keywords, table, near, box, a, b, found, matched
                )
            continue
        # The node's own subscriptions have all their keywords on its path: only their boxes are left to check.
        for r in range(run_begin, run_end):
            a = first_at_least(tree.entries, runs[r, 0], runs[r, 1], trie.first[node])
            b = first_at_least(tree.entries, a, runs[r, 1], trie.own[node])
            verified += b - a
            for i in range(a, b):
                p = tree.entries[i]
                matched = verify_run(order, boxes, exact, p, p + 1, near, box, found, matched)
        mine = runs[run_begin:run_end].copy()
        base = top
        pairs, top = select_pairs(
            trie.labels, trie.mbrs, begin, end, message, position, near, PROBE_BY_COST, pairs, top
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
                a = first_at_least(tree.entries, mine[r, 0], mine[r, 1], trie.first[child])
                b = first_at_least(tree.entries, a, mine[r, 1], trie.last[child])
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
def search_trie_first(
    parts: Arrays,
    read: Arrays,
    at_root: NDArray[np.int32],
    tokens: NDArray[np.int32],
    box: NDArray[np.float64],
    average: float,
    chance: float,
) -> tuple[NDArray[np.int32], int, int, float]:
    """Let the trie answer if it is cheap, or the quadtree's root dear; else -1 nodes, and the trie's expected cost.

    Asking the quadtree must be likely to pay: what that costs is known, it saves at most what the trie costs, and
    `chance` is the share of messages that it has saved something for. `parts` are of a `Trie`, `read` of a `Layer`.
    """
    trie, message, near = Trie(*parts), as_labels(tokens), as_float32(box)
    pairs = np.zeros((256, 2), np.int32)
    cost, top = trie_cost(trie, message, near, pairs)
    asking = 20 * NODE + 6 * PROBE * tokens.size
    if chance * cost > 4 * asking:
        entries = 0
        for token in tokens:
            entries += at_root[token] if token < at_root.size else 0
        if cost > direct_cost(entries, average) + 2 * asking:
            return tokens[:0], -1, 0, cost
    if top < 0 or trie.own[0] > trie.first[0]:
        pairs[0, 0] = pairs[0, 1] = 0
        top = 1
    found, nodes, verified = walk_trie(trie, Layer(*read), message, near, box, PROBE_BY_COST, pairs, top)
    return found, nodes, verified, cost


@kernel
def search_both(
    parts: Arrays,
    tree_parts: Arrays,
    read: Arrays,
    tokens: NDArray[np.int32],
    box: NDArray[np.float64],
    average: float,
    by_trie: float,
) -> tuple[NDArray[np.int32], int, int, bool]:
    """LFILTER (Algorithm 3) where the trie is dear: slots that match, nodes visited, candidates verified.

    Last, whether the quadtree's lists were cheaper than the trie. `parts` are of a `Trie`, `tree_parts` of a
    `Quadtree`, `read` of a `Layer`.
    """
    trie, tree, layer = Trie(*parts), Quadtree(*tree_parts), Layer(*read)
    message, near, table = as_labels(tokens), as_float32(box), token_table(tokens)
    reached, nodes, most = filter_quadtree(tree, tokens, table, box)
    fanout = trie.child[1] - trie.child[0]
    by_lists = min(direct_cost(most, average), pruning_cost(fanout, tokens.size, reached.size, most))
    if by_lists < by_trie:
        found, trie_nodes, verified = hybrid_prune(trie, tree, layer, reached, most, message, table, near, box, average)
        return found, nodes + trie_nodes, verified, True
    pairs = np.zeros((256, 2), np.int32)
    found, trie_nodes, verified = walk_trie(trie, layer, message, near, box, PROBE_BY_COST, pairs, 1)
    return found, nodes + trie_nodes, verified, False


class LFilter(LayeredIndex):
    """Option `leaf` as in `pt-quadtree`."""

    name = "lfilter"
    defaults: ClassVar[Mapping[str, Any]] = {"leaf": 64}
    trie: Trie
    quadtree: Quadtree
    _asked: float = 0.0
    _paid: float = 0.0

    def _build_layer(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        order, self.trie = build_trie(self.store.rows, slots)
        self.quadtree = built_quadtree(self, order)
        self._average = float(self.store.rows.length[order].mean()) if order.size else 1.0
        self._at_root = entries_at_root(self.quadtree, self.vocabulary.size)
        return order

    def _search_layer(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        trie, layer = self.trie[:], self._layer()
        average, chance = self._average, (1.0 + self._paid) / (1.0 + self._asked)
        found, nodes, verified, cost = search_trie_first(trie, layer, self._at_root, tokens, box, average, chance)
        if nodes >= 0:
            return found, nodes, verified
        found, nodes, verified, paid = search_both(trie, self.quadtree[:], layer, tokens, box, average, cost)
        # Old experience counts for less and less. Threads that search at once may lose a count: it is an estimate.
        self._asked, self._paid = _FADING * self._asked + 1.0, _FADING * self._paid + paid
        return found, nodes, verified

    def _layer_arrays(self) -> dict[str, NDArray[Any]]:
        return name_arrays(trie=self.trie._asdict(), quadtree=self.quadtree._asdict())

    def _restore_layer(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        parts: dict[str, dict[str, NDArray[Any]]] = {"trie": {}, "quadtree": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            parts.setdefault(part, {})[rest] = array
        self.trie = restore_trie(parts["trie"], self.order.size)
        self.quadtree = restore_quadtree(parts["quadtree"], self.order.size, self.vocabulary.size)
        live = self.order[self.order >= 0]
        self._average = float(self.store.rows.length[live].mean()) if live.size else 1.0
        self._at_root = entries_at_root(self.quadtree, self.vocabulary.size)

    def _check_layer(self) -> None:
        check_trie(self.trie, self)
        check_quadtree(self.quadtree, self)
