"""The PT-Quadtree (Yu, Li and Feng, CIKM 2015, Section 4): a quadtree whose nodes know which tokens lead anywhere.

A node is left alone when neither its cover nor its non-cover set shares a token with the message. A token in the cover
set is in all four children, so from there on only space is looked at; else its children are tested in turn. What the
nodes reached hold under the message's tokens is verified, box and keywords. Layout and construction are in
pt_quadtree_build; a box outside the universe still reaches its cells, since the outer ones have no end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from contrada.errors import InvalidValue
from contrada.spatial.storage.jit import kernel
from contrada.spatial.textual.guard import guard_quadtree
from contrada.spatial.textual.lfilter.layered import ASK, NO, LayeredIndex, as_float32, compare_boxes, first_at_least
from contrada.spatial.textual.lfilter.mbr_trie import build_trie
from contrada.spatial.textual.lfilter.pt_quadtree_build import Quadtree, build_quadtree
from contrada.spatial.textual.store import has_token, meets, token_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from contrada.spatial.textual.store import Arrays


@kernel
def _share(
    values: NDArray[np.int32], begin: int, end: int, tokens: NDArray[np.int32], table: NDArray[np.int32]
) -> bool:
    """Whether a sorted run and the message have a token in common, probing with the smaller side (Section 4.2)."""
    if (end - begin) <= 4 * tokens.size:
        for i in range(begin, end):  # noqa: SIM110  # kernels have no generators
            if has_token(table, values[i]):
                return True
        return False
    for token in tokens:
        begin = first_at_least(values, begin, end, token)
        if begin == end:
            return False
        if values[begin] == token:
            return True
    return False


@kernel
def filter_quadtree(
    tree: Quadtree, tokens: NDArray[np.int32], table: NDArray[np.int32], box: NDArray[np.float64]
) -> tuple[NDArray[np.int32], int, int]:
    """PT-QUADTREE-FILTER: groups whose pivot the message has in nodes it reaches; nodes visited; entries in them."""
    found = np.empty(64, np.int32)
    count = nodes = entries = 0
    stack = np.zeros((4 * 32, 2), np.int32)  # node, and whether a cover set above it was hit
    top = 1
    while top:
        top -= 1
        node, covered = stack[top, 0], stack[top, 1]
        nodes += 1
        if not covered:
            if _share(tree.cover, tree.cover_at[node], tree.cover_at[node + 1], tokens, table):
                covered = 1
            elif not _share(tree.other, tree.other_at[node], tree.other_at[node + 1], tokens, table):
                continue
        a, b = tree.groups[node], tree.groups[node + 1]
        if count + min(b - a, tokens.size) > found.size:
            larger = np.empty(2 * (count + tokens.size), np.int32)
            larger[:count] = found[:count]
            found = larger
        if b - a <= 4 * tokens.size:
            for g in range(a, b):
                if has_token(table, tree.pivots[g]):
                    found[count] = g
                    count += 1
                    entries += tree.starts[g + 1] - tree.starts[g]
        else:
            for token in tokens:
                a = first_at_least(tree.pivots, a, b, token)
                if a == b:
                    break
                if tree.pivots[a] == token:
                    found[count] = a
                    count += 1
                    entries += tree.starts[a + 1] - tree.starts[a]
        first = tree.child[node]
        if first:
            x, y = tree.middles[node, 0], tree.middles[node, 1]
            for k in range(4):
                if (box[2] >= x if k >= 2 else box[0] < x) and (box[3] >= y if k % 2 else box[1] < y):
                    stack[top, 0], stack[top, 1] = first + k, covered
                    top += 1
    return found[:count], nodes, entries


@kernel
def verify_entries(
    entries: NDArray[np.int32],
    order: NDArray[np.int32],
    boxes: NDArray[np.float32],
    exact: NDArray[np.float64],
    start: NDArray[np.int64],
    length: NDArray[np.int32],
    keywords: NDArray[np.int32],
    table: NDArray[np.int32],
    rounded: NDArray[np.float32],
    box: NDArray[np.float64],
    a: int,
    b: int,
    found: NDArray[np.int32],
    count: int,
) -> int:
    """PT-QUADTREE-VERIFY: append the slots of entries a .. b that match; returns how many are found by then."""
    x1, y1, x2, y2 = rounded[0], rounded[1], rounded[2], rounded[3]
    for i in range(a, b):
        p = entries[i]
        answer = compare_boxes(boxes[p, 0], boxes[p, 1], boxes[p, 2], boxes[p, 3], x1, y1, x2, y2)
        slot = order[p]
        if answer == NO or slot < 0 or (answer == ASK and not meets(exact, slot, box)):
            continue
        word = start[slot] + length[slot] - 1
        while word >= start[slot] and has_token(table, keywords[word]):
            word -= 1
        if word < start[slot]:
            found[count] = slot
            count += 1
    return count


@kernel
def search_quadtree(
    parts: Arrays, read: Arrays, tokens: NDArray[np.int32], box: NDArray[np.float64]
) -> tuple[NDArray[np.int32], int, int]:
    """Slots that match, nodes visited, entries verified. `parts` are of a `Quadtree`, `read` of a `Layer`."""
    tree = Quadtree(*parts)
    order, boxes, exact, start, length, keywords = read
    table, near = token_table(tokens), as_float32(box)
    reached, nodes, most = filter_quadtree(tree, tokens, table, box)
    found = np.empty(most, np.int32)
    count = 0
    for g in reached:
        a, b = tree.starts[g], tree.starts[g + 1]
        count = verify_entries(
            tree.entries, order, boxes, exact, start, length, keywords, table, near, box, a, b, found, count
        )
    return found[:count], nodes, most


class PTQuadtree(LayeredIndex):
    """Option `leaf`: regions of at most so many subscriptions are not divided (the paper's τ_num)."""

    name = "pt-quadtree"
    defaults: ClassVar[Mapping[str, Any]] = {"leaf": 64}
    quadtree: Quadtree

    def _build_layer(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        order, _ = build_trie(self.store.rows, slots)
        self.quadtree = built_quadtree(self, order)
        return order

    def _search_layer(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        return search_quadtree(self.quadtree[:], self._layer(), tokens, box)

    def _layer_arrays(self) -> dict[str, NDArray[Any]]:
        return self.quadtree._asdict()

    def _restore_layer(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.quadtree = restore_quadtree(arrays, self.order.size, self.vocabulary.size)

    def _check_layer(self) -> None:
        check_quadtree(self.quadtree, self)


def built_quadtree(index: LayeredIndex, order: NDArray[np.int32]) -> Quadtree:
    """Build the quadtree of an index that has an option `leaf`."""
    leaf = index.options["leaf"]
    if not (isinstance(leaf, int) and leaf >= 1):
        raise InvalidValue(f"{index.name}: leaf is {leaf!r}; it must be a positive number")
    universe = np.zeros(4)
    if order.size:
        boxes = index.store.rows.boxes[order]
        universe = np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])
    return build_quadtree(index.store.rows, order, index.vocabulary.size, universe, leaf)


def restore_quadtree(arrays: Mapping[str, NDArray[Any]], size: int, words: int) -> Quadtree:
    """Return the quadtree of a file's arrays, refused when it is not over `size` subscriptions."""
    tree = Quadtree(*(arrays[name] for name in Quadtree._fields))
    guard_quadtree(tree, size, words)
    return tree


def check_quadtree(tree: Quadtree, index: LayeredIndex) -> None:
    """Assert that every subscription is once in the smallest cell that holds it, under a keyword of its own."""
    assert sorted(tree.entries.tolist()) == list(range(index.order.size))
    everywhere = (-np.inf, -np.inf, np.inf, np.inf)

    def walk(node: int, cell: tuple[float, float, float, float], above: set[int]) -> set[int]:
        """Return all pivotal tokens below the node; `above` is its parent's cover set."""
        own = tree.pivots[tree.groups[node] : tree.groups[node + 1]]
        assert (np.diff(own) > 0).all()
        x, y = tree.middles[node]
        for g in range(tree.groups[node], tree.groups[node + 1]):
            members = tree.entries[tree.starts[g] : tree.starts[g + 1]]
            assert members.size > 0
            assert (np.diff(members) > 0).all()
            for slot in index.order[members].tolist():
                if slot >= 0:
                    x1, y1, x2, y2 = index.store.rows.boxes[slot]
                    assert tree.pivots[g] in index.store.keywords(slot)
                    assert cell[0] <= x1 <= x2
                    assert cell[1] <= y1 <= y2
                    assert x2 < cell[2]
                    assert y2 < cell[3]
                    if tree.child[node]:
                        assert x1 < x <= x2 or y1 < y <= y2, "fits into a child"
        cover = set(tree.cover[tree.cover_at[node] : tree.cover_at[node + 1]].tolist())
        other = set(tree.other[tree.other_at[node] : tree.other_at[node + 1]].tolist())
        full = set(own.tolist())
        shared: set[int] = set()
        if tree.child[node]:
            below = []
            for k in range(4):
                x1, x2 = (x, cell[2]) if k >= 2 else (cell[0], x)
                y1, y2 = (y, cell[3]) if k % 2 else (cell[1], y)
                below.append((int(tree.child[node]) + k, (x1, y1, x2, y2)))
            tokens_below = [_tokens_below(tree, child) for child, _ in below]
            shared = set.intersection(*tokens_below)
            for child, its_cell in below:
                full |= walk(child, its_cell, shared)
        assert cover == shared - above
        assert other == full - shared - above
        return full

    walk(0, everywhere, set())


def _tokens_below(tree: Quadtree, node: int) -> set[int]:
    found = set(tree.pivots[tree.groups[node] : tree.groups[node + 1]].tolist())
    if tree.child[node]:
        for k in range(4):
            found |= _tokens_below(tree, int(tree.child[node]) + k)
    return found
