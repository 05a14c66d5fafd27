"""`ap-tree`, the AP-tree of [AP-TREE]: a partition tree that reads frequent keywords first, from a plain root.

Keywords are ordered by descending frequency (the paper's tf order), as the vocabulary numbers them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from contrada.spatial.textual.partition_tree.build import build_subtree
from contrada.spatial.textual.partition_tree.nodes import ROOT
from contrada.spatial.textual.partition_tree.tree import PartitionTree

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contrada.spatial.textual.partition_tree.paths import Path


class APTree(PartitionTree):
    """Adaptive spatial-textual partition tree. Options: see `PartitionTree`."""

    name = "ap-tree"
    rare_first: ClassVar[bool] = False

    def _build_root(self, slots: NDArray[np.int32], path: Path) -> None:
        if slots.size:
            self._arena = build_subtree(self._arena, self._meta, self.store.rows, slots, ROOT, path, self._settings)
