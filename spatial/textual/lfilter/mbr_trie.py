"""The MBRTrie (Yu, Li and Feng, CIKM 2015, Section 3): a trie of keywords whose nodes know the box of all below.

Nodes are numbered level by level, so the children of a node are a run, sorted by label, and can be searched:

    labels int32 (N,)      the node's keyword, negated: ascending labels are rarest first. The root's means nothing
    child  int32 (N + 1,)  node i's children are child[i] .. child[i+1]
    first, last, own       int32 (N,): subscriptions first .. last of the token-set order are below the node (the
                           paper's id range), of which first .. own end there
    mbrs   float32 (N, 4)  box of all of them, each number rounded
    levels int64 (H + 1,)  where each level begins

`own` takes the place of the paper's ε leaves. A path proves the keywords, so a candidate needs only its box checked.

SELECTPAIR is printed with `c_mbr ∩ m.R = φ` where `≠ φ` is meant, as the prose says. The worked example that visits
node 1 (keyword a) for a message without a contradicts Definition 1, which rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from contrada.errors import InvalidValue
from contrada.spatial.storage.jit import kernel
from contrada.spatial.textual.guard import guard_trie
from contrada.spatial.textual.lfilter.layered import (
    ASK,
    NO,
    Layer,
    LayeredIndex,
    as_float32,
    as_labels,
    compare_boxes,
    first_at_least,
    token_label,
)
from contrada.spatial.textual.store import meets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from contrada.spatial.textual.store import Arrays, Rows

PROBE_TOKENS, PROBE_TRIE, PROBE_BY_COST = 0, 1, 2
PROBES = {"tokens": PROBE_TOKENS, "trie": PROBE_TRIE, "cost": PROBE_BY_COST}


class Trie(NamedTuple):
    """The arrays of an MBRTrie, as kernels take them."""

    labels: NDArray[np.int32]
    child: NDArray[np.int32]
    first: NDArray[np.int32]
    last: NDArray[np.int32]
    own: NDArray[np.int32]
    mbrs: NDArray[np.float32]
    levels: NDArray[np.int64]


@kernel
def build_trie(rows: Rows, slots: NDArray[np.int32]) -> tuple[NDArray[np.int32], Trie]:
    """Sort the slots into token-set order and build the trie over them."""
    most, longest = 1, 0
    for slot in slots:
        most += rows.length[slot]
        longest = max(longest, rows.length[slot])
    order = slots.copy()
    labels, child = np.zeros(most, np.int32), np.zeros(most + 1, np.int32)
    first, last, own = np.zeros(most, np.int32), np.zeros(most, np.int32), np.zeros(most, np.int32)
    levels = np.zeros(longest + 2, np.int64)
    last[0] = slots.size
    levels[1] = 1
    count = 1
    for depth in range(longest + 1):
        for node in range(levels[depth], levels[depth + 1]):
            a, b = first[node], last[node]
            keys = np.empty(b - a, np.int32)
            for i in range(a, b):
                ends = rows.length[order[i]] == depth
                keys[i - a] = -(2**31) if ends else token_label(rows, order[i], depth)
            if b - a > 1:
                by = np.argsort(keys, kind="mergesort")
                keys = keys[by]
                order[a:b] = order[a:b][by]
            child[node] = count
            i = a
            while i < b and keys[i - a] == -(2**31):
                i += 1
            own[node] = i
            while i < b:
                labels[count], first[count] = keys[i - a], i
                while i < b and keys[i - a] == labels[count]:
                    i += 1
                last[count] = i
                count += 1
        if depth < longest:
            levels[depth + 2] = count
    child[count] = count
    mbrs = np.empty((count, 4), np.float32)
    for node in range(count - 1, -1, -1):
        x1 = y1 = np.inf
        x2 = y2 = -np.inf
        for i in range(first[node], own[node]):
            box = rows.boxes[order[i]]
            x1, y1, x2, y2 = min(x1, box[0]), min(y1, box[1]), max(x2, box[2]), max(y2, box[3])
        for c in range(child[node], child[node + 1]):
            x1, y1 = min(x1, mbrs[c, 0]), min(y1, mbrs[c, 1])
            x2, y2 = max(x2, mbrs[c, 2]), max(y2, mbrs[c, 3])
        mbrs[node, 0], mbrs[node, 1], mbrs[node, 2], mbrs[node, 3] = x1, y1, x2, y2
    trie = Trie(
        labels[:count].copy(),
        child[: count + 1].copy(),
        first[:count].copy(),
        last[:count].copy(),
        own[:count].copy(),
        mbrs,
        levels,
    )
    return order, trie


@kernel
def overlaps_node(mbrs: NDArray[np.float32], node: int, rounded: NDArray[np.float32]) -> bool:
    """Whether anything below the node may meet the message's box (MBR filter)."""
    return bool(
        mbrs[node, 0] <= rounded[2]
        and rounded[0] <= mbrs[node, 2]
        and mbrs[node, 1] <= rounded[3]
        and rounded[1] <= mbrs[node, 3]
    )


@kernel
def select_pairs(
    labels: NDArray[np.int32],
    mbrs: NDArray[np.float32],
    begin: int,
    end: int,
    message: NDArray[np.int32],
    start: int,
    rounded: NDArray[np.float32],
    probe: int,
    pairs: NDArray[np.int32],
    top: int,
) -> tuple[NDArray[np.int32], int]:
    """SELECTPAIR: push those of the children begin .. end whose label the message has from `start` on and box it meets.

    `pairs` holds (child, position after its label in the message).
    """
    fanout, remaining = end - begin, message.size - start
    if fanout == 0 or remaining == 0:
        return pairs, top
    room = top + min(fanout, remaining)
    if room > len(pairs):
        larger = np.empty((2 * room, 2), np.int32)
        larger[:top] = pairs[:top]
        pairs = larger
    if probe == PROBE_TRIE or (
        probe == PROBE_BY_COST and remaining * np.log2(fanout + 1.0) < fanout * np.log2(remaining + 1.0)
    ):
        for j in range(start, message.size):
            begin = first_at_least(labels, begin, end, message[j])
            if begin == end:
                break
            if labels[begin] == message[j] and overlaps_node(mbrs, begin, rounded):
                pairs[top, 0], pairs[top, 1] = begin, j + 1
                top += 1
    else:
        j = start
        for c in range(begin, end):
            j = first_at_least(message, j, message.size, labels[c])
            if j == message.size:
                break
            if message[j] == labels[c] and overlaps_node(mbrs, c, rounded):
                pairs[top, 0], pairs[top, 1] = c, j + 1
                top += 1
    return pairs, top


@kernel
def verify_run(
    order: NDArray[np.int32],
    boxes: NDArray[np.float32],
    exact: NDArray[np.float64],
    a: int,
    b: int,
    rounded: NDArray[np.float32],
    box: NDArray[np.float64],
    found: NDArray[np.int32],
    matched: int,
) -> int:
    """MBRTrie-VERIFY: append those of subscriptions a .. b that meet the box; returns how many are found by then."""
    x1, y1, x2, y2 = rounded[0], rounded[1], rounded[2], rounded[3]
    for p in range(a, b):
        answer = compare_boxes(boxes[p, 0], boxes[p, 1], boxes[p, 2], boxes[p, 3], x1, y1, x2, y2)
        if answer == NO or order[p] < 0 or (answer == ASK and not meets(exact, order[p], box)):
            continue
        found[matched] = order[p]
        matched += 1
    return matched


@kernel
def walk_trie(
    trie: Trie,
    layer: Layer,
    message: NDArray[np.int32],
    near: NDArray[np.float32],
    box: NDArray[np.float64],
    probe: int,
    pairs: NDArray[np.int32],
    top: int,
) -> tuple[NDArray[np.int32], int, int]:
    """MBRTrie-FILTER and MBRTrie-VERIFY in one walk from `top` pairs: slots that match, nodes visited, boxes seen."""
    labels, child, first, _, own, mbrs, _ = trie
    order, boxes, exact, _, _, _ = layer
    found = np.empty(64, np.int32)
    matched = nodes = verified = 0
    while top:
        top -= 1
        node, start = pairs[top, 0], pairs[top, 1]
        nodes += 1
        a, b = first[node], own[node]
        if b > a:
            verified += b - a
            if matched + b - a > found.size:
                larger = np.empty(2 * (matched + b - a), np.int32)
                larger[:matched] = found[:matched]
                found = larger
            matched = verify_run(order, boxes, exact, a, b, near, box, found, matched)
        pairs, top = select_pairs(labels, mbrs, child[node], child[node + 1], message, start, near, probe, pairs, top)
    return found[:matched], nodes, verified


@kernel
def search_trie(
    parts: Arrays, read: Arrays, tokens: NDArray[np.int32], box: NDArray[np.float64], probe: int
) -> tuple[NDArray[np.int32], int, int]:
    """Slots that match, nodes visited, boxes checked. `parts` are of a `Trie`, `read` of a `Layer`."""
    trie, layer, near = Trie(*parts), Layer(*read), as_float32(box)
    pairs = np.zeros((256, 2), np.int32)
    top = 1 if layer.order.size and overlaps_node(trie.mbrs, 0, near) else 0
    return walk_trie(trie, layer, as_labels(tokens), near, box, probe, pairs, top)


class MBRTrie(LayeredIndex):
    """Option `probe`: "tokens" (trie nodes probe the token set), "trie" (tokens probe the trie), "cost" (by node)."""

    name = "mbr-trie"
    defaults: ClassVar[Mapping[str, Any]] = {"probe": "cost"}
    trie: Trie

    def _build_layer(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        if self.options["probe"] not in PROBES:
            raise InvalidValue(f"mbr-trie: probe is {self.options['probe']!r}; choose one of: {', '.join(PROBES)}")
        order, self.trie = build_trie(self.store.rows, slots)
        return order

    def _search_layer(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        return search_trie(self.trie[:], self._layer(), tokens, box, PROBES[self.options["probe"]])

    def _layer_arrays(self) -> dict[str, NDArray[Any]]:
        return self.trie._asdict()

    def _restore_layer(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.trie = restore_trie(arrays, self.order.size)

    def _check_layer(self) -> None:
        check_trie(self.trie, self)


def restore_trie(arrays: Mapping[str, NDArray[Any]], size: int) -> Trie:
    """Return the trie of a file's arrays, refused when it is not over `size` subscriptions."""
    trie = Trie(*(arrays[name] for name in Trie._fields))
    guard_trie(trie, size)
    return trie


def check_trie(trie: Trie, index: LayeredIndex) -> None:
    """Assert that ranges nest, labels ascend, paths spell the keywords and boxes hold what is below."""
    live = index.order >= 0
    rows = index.store.rows

    pending: list[tuple[int, list[int]]] = [(0, [])]  # not recursion: a path is as long as a keyword set
    while pending:
        node, path = pending.pop()
        first, last, own = trie.first[node], trie.last[node], trie.own[node]
        assert first <= own <= last
        at = own
        for child in range(trie.child[node], trie.child[node + 1]):
            assert trie.first[child] == at < trie.last[child]
            at = trie.last[child]
            pending.append((child, [*path, int(trie.labels[child])]))
        assert at == last
        assert (np.diff(trie.labels[trie.child[node] : trie.child[node + 1]]) > 0).all()
        inside = index.boxes[first:last][live[first:last]]
        assert (trie.mbrs[node, :2] <= inside[:, :2]).all()
        assert (trie.mbrs[node, 2:] >= inside[:, 2:]).all()
        for p in range(first, own):
            if live[p]:
                slot = int(index.order[p])
                assert [token_label(rows, slot, i) for i in range(rows.length[slot])] == path

    assert trie.levels[-1] == trie.labels.size
