"""The distance constraints of one attribute: a CR-tree of grown boxes and, while nothing changes, a grid beside it.

The tree finds whatever is asked (`searching`). Where the constraints are circles, and many points have been searched
for since the last change, a grid (`cells`) finds them several times as fast; every change drops it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial import allowance
from contrada.spatial.cr_tree import layout as c
from contrada.spatial.cr_tree.tree import CRTree
from contrada.spatial.distance import searching
from contrada.spatial.distance.cells import make_cells, pays, search_cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.cr_tree.layout import Floats, Ints
    from contrada.spatial.distance.cells import Cells
    from contrada.spatial.geometry.region import Box


_PER_POINT: Final = 300  # nanoseconds, about, that it takes to look through a cell,
_PER_CIRCLE: Final = 150  # and for each circle to make a grid


class Reach:
    """Constraints by id, whose rows and paths (`searching`) the owner keeps and hands to each search."""

    def __init__(self, tree: CRTree | None = None) -> None:
        self.tree = CRTree() if tree is None else tree
        self._cells: Cells | None = None
        self._tried = False  # to make cells, since the last change
        self._asked = 0  # points searched for without them

    def insert(self, id: int, box: Box, mask: int) -> None:
        """Add a constraint under its box, with the mask that `searching.mask_of` gives."""
        self.tree.insert(id, box, mask)
        self._changed()

    def remove(self, id: int) -> None:
        """Take a constraint out."""
        self.tree.remove(id)
        self._changed()

    @property
    def cells(self) -> Cells | None:
        """The grid, if there is one now."""
        return self._cells

    def _changed(self) -> None:
        self._cells, self._tried, self._asked = None, False, 0

    def __len__(self) -> int:
        """How many constraints there are."""
        return len(self.tree)

    def search_places(self, rows: Ints, heap: Floats, places: Floats) -> tuple[Ints, Ints]:
        """The ids of the constraints that points (n, 2) of the plane satisfy, and where each point's end."""
        ends: NDArray[np.int64] = np.zeros(len(places), np.int64)
        cells = self.cells_for(rows, heap, len(places))
        out = np.empty((16 * len(places) if cells else 2 * len(self.tree)) + 8 * c.CHUNK, np.int64)
        done, left = 0, allowance.left()
        while done < len(places):
            if cells is not None:
                done = search_cells(cells, places, done, out, ends)
            else:
                done = searching.search_near_points(
                    self.tree.tree, rows, heap, places, done, out, ends, self.tree.tally, left
                )
            if done < len(places):
                out = np.concatenate((out, np.empty_like(out)))
        if cells is not None:
            left[0] -= _PER_POINT * len(places)
        allowance.check(left)
        return out, ends

    def cells_for(self, rows: Ints, heap: Floats, asked: int) -> Cells | None:
        """The grid, made once that pays; None while it does not, and where there is more than circles.

        `asked` is how many points are about to be searched for, or have been.
        """
        if not self._tried:
            self._asked += asked
            cost = _PER_CIRCLE * len(self.tree)
            if not pays(self._asked, len(self.tree)) or allowance.left()[0] < cost:
                return None
            allowance.spend(cost)
            ids = self.tree.ids
            mine = rows[ids]
            if (mine[:, searching.FLAGS] == searching.POINT).all():
                centres = mine[:, searching.BLOCK]
                lengths = np.ascontiguousarray(mine[:, searching.LENGTH]).view(np.float64)
                self._cells = make_cells(np.column_stack((heap[centres], heap[centres + 1], lengths)), ids)
            self._tried = True
        return self._cells
