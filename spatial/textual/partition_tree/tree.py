"""`PartitionTree`: subscriptions divided by keywords or by space, whichever prunes more. The AP-tree and the rk-tree.

Both indexes are this tree: the same nodes, partitions, insertion, removal and adaptation to drift. They differ in two
things, which `ap_tree.py` and `rk_tree.py` say: the order in which keywords are read (`rare_first`), and the root.

A message visits about f-ary log n nodes per token that occurs in the subscriptions near it; an insertion touches one
leaf per cell that the box meets and regroups at most `rebuild` subscriptions.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from contrada.errors import InvalidValue
from contrada.spatial.textual.base import StoredIndex
from contrada.spatial.textual.partition_tree.check import check_tree
from contrada.spatial.textual.partition_tree.guard import guard_arena
from contrada.spatial.textual.partition_tree.nodes import FIRST_BLOCK, META_SIZE, USED
from contrada.spatial.textual.partition_tree.paths import Path
from contrada.spatial.textual.partition_tree.search import search_tree, search_tree_many
from contrada.spatial.textual.partition_tree.settings import ADAPTIVE, KEYWORD_FIRST, SPATIAL_FIRST, TRIE, Settings
from contrada.spatial.textual.partition_tree.update import insert_slot, remove_slot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_EVERYWHERE = (-np.inf, -np.inf, np.inf, np.inf)
_FAR = (-1e99, -1e99, 1e99, 1e99)
_PRIORITIES = {"cost": ADAPTIVE, "keyword": KEYWORD_FIRST, "space": SPATIAL_FIRST, "trie": TRIE}


class PartitionTree(StoredIndex):
    """A tree of keyword and spatial partitions, chosen by cost.

    Options: `fanout` f, `leaf` θ_q and `drift` θ_KL as in [AP-TREE]; `tokens`, how many tokens an expected message
    has; `cuts`, "heuristic" or "dp"; `first`, what decides between partitions: "cost", or always "keyword" or
    "space" where it gains anything, or "trie" for an ordered keyword trie with quadtrees below (all but "cost" for
    comparison); `rebuild`, the most subscriptions that one insertion may regroup.
    """

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
    rare_first: ClassVar[bool]
    """Whether a subscription's rarest keyword is read first, or its most frequent."""
    rebuilt: int
    """Nodes rebuilt because of drift since this index was built or loaded."""

    def _make_settings(self, universe: NDArray[np.float64]) -> Settings:
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
            universe,
        )

    def _build(self) -> None:
        self.rebuilt = 0
        slots, boxes = self.store.slots, self.store.rows.boxes[: self.store.used]
        if slots.size < self.store.used:
            boxes = boxes[slots]
        # While nothing is there, what will come is not known: the rim of every grid then reaches as far as coordinates
        # do. A universe that is too small takes boxes that only cross a line for such that span a cell.
        universe = np.array(_FAR)
        if slots.size:
            universe = np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)])
        self._settings = self._make_settings(universe)
        self._arena = np.zeros(FIRST_BLOCK + 24 * max(8, slots.size), np.int32)
        self._meta = np.zeros(META_SIZE, np.int64)
        self._meta[USED] = FIRST_BLOCK
        self._build_root(slots, Path(0, False, np.array(_EVERYWHERE)))

    @abstractmethod
    def _build_root(self, slots: NDArray[np.int32], path: Path) -> None:
        """Build the tree over `slots` in the empty arena; `path` is the way to the root."""

    def rebuild(self) -> None:
        """Build the whole tree anew for the subscriptions of now, however long that takes."""
        self._build()

    def _insert(self, slot: int) -> None:
        self._arena, rebuilt = insert_slot(
            self._arena, self._meta, self.store.rows, slot, len(self.store), self._settings
        )
        self.rebuilt += rebuilt

    def _remove(self, slot: int) -> None:
        self._arena, _ = remove_slot(self._arena, self._meta, self.store.rows, slot, self._settings)

    def _search(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        return search_tree(self._arena, self.store.columns, tokens, box, self.rare_first)

    def _search_many(
        self, tokens: NDArray[np.int32], ends: NDArray[np.int64], boxes: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        return search_tree_many(self._arena, self.store.columns, tokens, ends, boxes, self.rare_first)

    def nbytes(self) -> int:
        """Bytes of the tree itself, without the subscriptions."""
        return int(4 * self._meta[USED])

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"arena": self._arena[: self._meta[USED]], "meta": self._meta, "universe": self._settings.universe}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.rebuilt = 0
        self._arena, self._meta, universe = arrays["arena"], arrays["meta"], arrays["universe"]
        guard_arena(self._arena, self._meta, universe, self.store.used)
        self._settings = self._make_settings(universe)

    def _check_structure(self) -> None:
        check_tree(self._arena, self._meta, self.store, self._settings)
