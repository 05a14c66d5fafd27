"""The AP-tree (Wang et al., ICDE 2015): subscriptions divided by keywords or by space, whichever prunes more.

    ap_tree_nodes      the nodes, in one arena of 32-bit words
    ap_tree_partition  keyword cuts and grids, and what they are expected to cost
    ap_tree_build      Algorithm 4, with what we do differently and why
    ap_tree_search     Algorithm 1, for points and boxes
    ap_tree_update     insertion, removal, rebuilds on drift

Keywords are ordered by descending frequency (tf order), as the vocabulary numbers them. A message visits about
f-ary log n nodes per token that occurs in the subscriptions near it; an insertion touches one leaf per cell that the
box meets and regroups at most `rebuild` subscriptions.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from contrada.errors import InvalidValue
from contrada.spatial.textual.ap_tree.build import (
    ADAPTIVE,
    KEYWORD_FIRST,
    SPATIAL_FIRST,
    TRIE,
    Settings,
    build_subtree,
)
from contrada.spatial.textual.ap_tree.guard import guard_arena
from contrada.spatial.textual.ap_tree.nodes import (
    BINS,
    DIRECTORY,
    FIRST_BLOCK,
    HEADER,
    KEYWORD,
    META_SIZE,
    QUERY,
    RECORD,
    ROOT,
    SHAPE,
    USED,
    WEIGHT,
    cell_region,
    children,
    find_cut,
    find_line,
    key_of,
    kind_of,
    node_words,
    spans,
    word_at,
)
from contrada.spatial.textual.ap_tree.search import search_tree
from contrada.spatial.textual.ap_tree.update import insert_slot, remove_slot
from contrada.spatial.textual.base import StoredIndex

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_EVERYWHERE = (-np.inf, -np.inf, np.inf, np.inf)
_FAR = (-1e99, -1e99, 1e99, 1e99)
_PRIORITIES = {"cost": ADAPTIVE, "keyword": KEYWORD_FIRST, "space": SPATIAL_FIRST, "trie": TRIE}


class APTree(StoredIndex):
    """Adaptive spatial-textual partition tree.

    Options: `fanout` f, `leaf` θ_q and `drift` θ_KL as in the paper; `tokens`, how many tokens an expected message
    has; `cuts`, "heuristic" or "dp"; `first`, what decides between partitions: "cost", or always "keyword" or
    "space" where it gains anything, or "trie" for an ordered keyword trie with quadtrees below (all but "cost" for
    comparison); `rebuild`, the most subscriptions that one insertion may regroup.
    """

    name = "ap-tree"
    version = 2
    defaults: ClassVar[Mapping[str, Any]] = {
        "fanout": 200,
        "leaf": 40,
        "drift": 0.001,
        "tokens": 9.0,
        "cuts": "heuristic",
        "first": "cost",
        "rebuild": 1 << 15,
    }
    rare_first: ClassVar[bool] = False
    rebuilt: int
    """Nodes rebuilt because of drift since this index was built or loaded."""

    def _settings(self) -> Settings:
        o = self.options
        if o["cuts"] not in ["heuristic", "dp"]:
            raise InvalidValue(f"{self.name}: cuts is {o['cuts']!r}; choose 'heuristic' or 'dp'")
        if o["first"] not in list(_PRIORITIES):
            raise InvalidValue(f"{self.name}: first is {o['first']!r}; choose 'cost', 'keyword', 'space' or 'trie'")
        for name, least, most in (("fanout", 4, 4096), ("leaf", 1, 1 << 20), ("rebuild", 1, 1 << 30)):
            if isinstance(o[name], bool) or not (isinstance(o[name], int) and least <= o[name] <= most):
                raise InvalidValue(f"{self.name}: {name} is {o[name]!r}; it must lie in {least}..{most}")
        for name in ("drift", "tokens"):
            if not (isinstance(o[name], (int, float)) and 0 <= o[name] < 1e12 and (o[name] or name == "drift")):
                raise InvalidValue(
                    f"{self.name}: {name} is {o[name]!r}; drift must not be negative, tokens must be positive"
                )
        return Settings(
            int(o["fanout"]),
            int(o["leaf"]),
            float(o["drift"]),
            float(o["tokens"]),
            o["cuts"] == "dp",
            _PRIORITIES[o["first"]],
            int(o["rebuild"]),
            self.rare_first,
        )

    def _build(self) -> None:
        self._parameters = self._settings()
        self.rebuilt = 0
        slots = self.store.slots
        boxes = (
            self.store.rows.boxes[: self.store.used][slots]
            if slots.size < self.store.used
            else (self.store.rows.boxes[: self.store.used])
        )
        if slots.size:
            self._universe = np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])
        else:
            # What will come is not known: the rim of every grid then reaches as far as coordinates do. A universe that
            # is too small takes boxes that only cross a line for such that span a cell.
            self._universe = np.array(_FAR)
        self._arena = np.zeros(FIRST_BLOCK + 24 * max(8, slots.size), np.int32)
        self._meta = np.zeros(META_SIZE, np.int64)
        self._meta[USED] = FIRST_BLOCK
        self._build_root(slots, np.array(_EVERYWHERE))

    def _build_root(self, slots: NDArray[np.int32], region: NDArray[np.float64]) -> None:
        if slots.size:
            self._arena = build_subtree(
                self._arena,
                self._meta,
                self.store.rows,
                slots,
                ROOT,
                0,
                False,
                region,
                self._universe,
                self._parameters,
            )

    def rebuild(self) -> None:
        """Build the whole tree anew for the subscriptions of now, however long that takes."""
        self._build()

    def _insert(self, slot: int) -> None:
        self._arena, rebuilt = insert_slot(
            self._arena, self._meta, self.store.rows, slot, len(self.store), self._universe, self._parameters
        )
        self.rebuilt += rebuilt

    def _remove(self, slot: int) -> None:
        self._arena, _ = remove_slot(self._arena, self._meta, self.store.rows, slot, self._universe, self._parameters)

    def _search(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        return search_tree(self._arena, self.store.columns, tokens, box, self.rare_first)

    def nbytes(self) -> int:
        """Bytes of the tree itself, without the subscriptions."""
        return int(4 * self._meta[USED])

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"arena": self._arena[: self._meta[USED]], "meta": self._meta, "universe": self._universe}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._parameters = self._settings()
        self.rebuilt = 0
        self._arena, self._meta, self._universe = arrays["arena"], arrays["meta"], arrays["universe"]
        guard_arena(self._arena, self._meta, self._universe, self.store.used)

    def _check_structure(self) -> None:
        """Assert that every slot is exactly where its keywords and box lead, and that no word of the arena is lost."""
        arena, rows, real = self._arena, self.store.rows, self._arena.view(np.float32)
        used: list[tuple[int, int]] = []
        everywhere = np.array(_EVERYWHERE)

        def walk(p: int, slots: set[int], offset: int, region: NDArray[np.float64]) -> None:
            """Node `p` holds exactly `slots`."""
            if p == 0:
                assert not slots
                return
            used.append((p, node_words(arena, p)))
            assert arena[p + WEIGHT] == len(slots)
            shape = int(arena[p + SHAPE])
            if kind_of(arena, p) == DIRECTORY:
                assert p == arena[ROOT]
                by_word: dict[int, set[int]] = {}
                for s in slots:
                    by_word.setdefault(int(self.store.keywords(s)[-1]), set()).add(s)
                for word in range(shape):
                    walk(int(arena[p + HEADER + word]), by_word.pop(word, set()), 1, region)
                assert not by_word
                return
            assert slots
            if kind_of(arena, p) == QUERY:
                assert len(slots) <= shape
                at = p + HEADER + shape
                records = slice(at, at + RECORD * len(slots))
                entries = arena[records].reshape(-1, RECORD)[:, 0].tolist()
                assert set(entries) == slots
                keys = arena[p + HEADER : p + HEADER + len(slots)].tolist()
                assert keys == [key_of(rows, s, offset, self.rare_first) for s in entries]
                with np.errstate(over="ignore"):
                    boxes = rows.boxes[entries].astype(np.float32)
                assert (boxes == real[records].reshape(-1, RECORD)[:, 1:]).all()
                return
            first, n = children(arena, p)
            inside: list[set[int]] = [set() for _ in range(n)]
            below = [(offset, region)] * n
            if kind_of(arena, p) == KEYWORD:
                low, high = arena[p + HEADER : p + HEADER + shape], arena[p + HEADER + shape : first]
                assert (low <= high).all()
                assert (high[:-1] < low[1:]).all()
                for s in slots:
                    known = rows.length[s] <= offset
                    inside[shape if known else find_cut(arena, p, word_at(rows, s, offset, self.rare_first))].add(s)
                below = [(offset + 1 if b < shape and low[b] == high[b] else offset, region) for b in range(n)]
            else:
                columns, lines = shape & 0xFFFF, shape >> 16
                xs, ys = p + HEADER, p + HEADER + columns - 1
                assert (np.diff(real[xs:ys]) > 0).all()
                assert (np.diff(real[ys:first]) > 0).all()
                for s in slots:
                    x1, y1, x2, y2 = rows.boxes[s]
                    if spans(rows.boxes, s, region, self._universe):
                        inside[n - 1].add(s)
                        continue
                    for c in range(find_line(real, xs, columns - 1, x1), find_line(real, xs, columns - 1, x2) + 1):
                        for r in range(find_line(real, ys, lines - 1, y1), find_line(real, ys, lines - 1, y2) + 1):
                            inside[c * lines + r].add(s)
                cells = [cell_region(real, p, columns, lines, b // lines, b % lines, region) for b in range(n - 1)]
                below = [*((offset, cell) for cell in cells), (offset, region)]
            for b in range(n):
                walk(int(arena[first + b]), inside[b], *below[b])

        walk(int(arena[ROOT]), set(self.store.slots.tolist()), 0, everywhere)
        for b, head in enumerate(self._meta[BINS:].tolist()):
            while head:
                used.append((head, (4 + b % 4) << (b // 4)))
                head = int(arena[head])
        used = [*sorted(used), (int(self._meta[USED]), 0)]
        for (p, words), (q, _) in pairwise(used):
            assert p + words <= q, "blocks overlap"
