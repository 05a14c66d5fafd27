"""Searching a CR-tree for the points of a batch, but for what their notifications rule out (refusing.py of kernels)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contrada.forwarding.kernels.match.refusing import missing_bits, search_all_wanted
from contrada.forwarding.kernels.match.verifying import C_SUSPECTS
from contrada.forwarding.kernels.memory import layout
from contrada.spatial import allowance
from contrada.spatial.cr_tree.layout import CHUNK, CONSTRAINTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contrada.forwarding.kernels.match.batch import Batch
    from contrada.forwarding.kernels.match.verifying import Scratch
    from contrada.forwarding.kernels.memory.layout import Floats, Index, Ints
    from contrada.forwarding.state.memory import Memory
    from contrada.spatial.cr_tree.tree import CRTree


class Wanted(NamedTuple):
    """What tells which constraints matter to the points of a batch."""

    missing: Ints  # by the number of a point: the bits that its notification lacks; 0 where all matter
    filters: Index  # and what they are posted under
    posted: Ints  # by handle, the operand that filters are posted under
    scratch: Scratch

    def search(self, tree: CRTree, points: Ints, xy: Floats) -> tuple[Ints, Ints]:
        """The handles that points of these numbers and coordinates satisfy and that matter; where each one's end."""
        ends = np.zeros(len(points), np.int64)
        missing, left = self.missing[points], allowance.left()
        out = np.empty(2 * int(tree.tree.state[CONSTRAINTS]) + 8 * CHUNK, np.int64)
        done = 0
        while (
            done := search_all_wanted(
                tree.tree, xy, done, out, ends, self.posted, self.filters, missing, self.scratch, tree.tally, left
            )
        ) < len(points):
            out = np.concatenate((out, np.empty_like(out)))
        tree.tally[-1] += len(points)
        allowance.check(left)
        return out[: ends[-1] if len(ends) else 0], ends


@contextmanager
def wanted_of(batch: Batch, points: int, widest: int, memory: Memory) -> Iterator[Wanted]:
    """What tells that of a batch with so many points, and at most `widest` attributes each."""
    scratch = memory.take_scratch(widest, len(batch.text))
    try:
        missing = np.zeros(points, np.int64)
        missing_bits(memory.index, batch, scratch, missing)
        yield Wanted(missing, memory.index, memory.posted.of(layout.REGION), scratch)
        memory.suspects.note(scratch.suspects[: scratch.cursor[C_SUSPECTS]].tolist())
    finally:
        memory.give_scratch(scratch)
