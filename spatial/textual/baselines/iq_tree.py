"""`iq-tree` and `rq-tree`: quadtree cells with inverted lists on the rarest keyword ([AP-TREE], sections II-C and VI).

The quadtree is linear: level l has 2**l by 2**l cells over the universe, numbered by level and then by row, and only
cells with subscriptions have lists. A subscription is on the list of (cell, its rarest keyword) for those cells of
one level that its box meets. The level minimises the cost model, matching against update:

    cells * 4**-level  +  weight * cells      cells * 4**-level: how likely a uniformly placed message falls into one

`iq-tree` is spatial first: any level down to the deepest. `rq-tree` is keyword first: the quadtree of a keyword is no
deeper than its subscriptions need for about `capacity` per cell, so rare keywords have a single list. The papers'
models take the message distribution from history; ours assumes it uniform.

A message visits, at each level, the occupied cells that its box meets, and verifies the lists of its tokens. The cell
of a coordinate is a monotone function of it, clipped at the borders: a box meets exactly the cells between those of
its corners, border cells extend to infinity, and the lower left corner of the intersection of two boxes lies in a cell
of both, the one from which a subscription attached to several is reported. The universe and the depths are taken again
when the number of subscriptions has doubled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from contrada.errors import InvalidValue
from contrada.spatial.storage.jit import kernel
from contrada.spatial.storage.row_numbers import check_lengths, check_shapes
from contrada.spatial.textual import postings
from contrada.spatial.textual.base import StoredIndex
from contrada.spatial.textual.baselines.keyword_first import rarest
from contrada.spatial.textual.guard import guard_cells, guard_slot_lists
from contrada.spatial.textual.store import Rows, as_slots, has_all, meets, token_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from contrada.spatial.textual.store import Arrays

DEEPEST = 9


class Cells(NamedTuple):
    """The quadtree: where it lies, how deep each keyword's goes, and how many postings each cell has."""

    universe: NDArray[np.float64]  # x1, y1, width, height
    weight: NDArray[np.float64]  # (1,)
    depth: NDArray[np.int8]  # by word; words beyond the end have the last one's
    occupied: NDArray[np.int32]  # by cell, all levels


@kernel
def _line(value: float, origin: float, extent: float, level: int) -> int:
    """Return the column or row of a coordinate."""
    across = 1 << level
    return min(int(min(max((value - origin) / extent, 0.0), 1.0) * across), across - 1)


@kernel
def _range(u: NDArray[np.float64], box: NDArray[np.float64], level: int) -> tuple[int, int, int, int]:
    """Return the first and last column, first and last row that a box meets in a universe."""
    return (
        _line(box[0], u[0], u[2], level),
        _line(box[2], u[0], u[2], level),
        _line(box[1], u[1], u[3], level),
        _line(box[3], u[1], u[3], level),
    )


@kernel
def _number(level: int, column: int, row: int) -> int:
    return ((1 << (2 * level)) - 1) // 3 + (row << level) + column


@kernel
def _depth(depths: NDArray[np.int8], token: int) -> int:
    return int(depths[min(token, depths.size - 1)])


@kernel
def _level(cells: Cells, box: NDArray[np.float64], deepest: int) -> int:
    best, least = 0, 1.0 + cells.weight[0]
    for level in range(1, deepest + 1):
        a, b, c, d = _range(cells.universe, box, level)
        count = float((b - a + 1) * (d - c + 1))
        cost = count / (1 << (2 * level)) + cells.weight[0] * count
        if cost < least:
            best, least = level, cost
    return best


@kernel
def _place(lists: postings.Postings, cells: Cells, rows: Rows, slot: int, add: bool) -> postings.Postings:
    """Post a slot to its cells, or take it off."""
    token = rarest(rows, slot)
    level = _level(cells, rows.boxes[slot], _depth(cells.depth, token))
    a, b, c, d = _range(cells.universe, rows.boxes[slot], level)
    for row in range(c, d + 1):
        for column in range(a, b + 1):
            cell = _number(level, column, row)
            if add:
                lists = postings.post(lists, cell, token, slot)
                cells.occupied[cell] += 1
            else:
                postings.unpost(lists, cell, token, slot)
                cells.occupied[cell] -= 1
    return lists


@kernel
def _places(cells: Cells, rows: Rows, slots: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return all (cell, token) keys and slots, for `bulk_postings`, and count the cells occupied."""
    boxes, start, length, keywords = rows.boxes, rows.start, rows.length, rows.keywords
    depths, occupied = cells.depth, cells.occupied
    levels = np.empty(slots.size, np.int64)
    total = 0
    for i in range(slots.size):
        slot = slots[i]
        token = keywords[start[slot] + length[slot] - 1]
        levels[i] = _level(cells, boxes[slot], _depth(depths, token))
        a, b, c, d = _range(cells.universe, boxes[slot], levels[i])
        total += (b - a + 1) * (d - c + 1)
    keys = np.empty(total, np.int64)
    values = np.empty(total, np.int32)
    written = 0
    for i in range(slots.size):
        slot = slots[i]
        token = np.int64(keywords[start[slot] + length[slot] - 1])
        a, b, c, d = _range(cells.universe, boxes[slot], levels[i])
        for row in range(c, d + 1):
            for column in range(a, b + 1):
                cell = _number(levels[i], column, row)
                keys[written] = (np.int64(cell) << 32) | token
                values[written] = slot
                occupied[cell] += 1
                written += 1
    return keys, values


@kernel
def _search(
    index: NDArray[np.int64],
    pool: NDArray[np.int32],
    cells: Arrays,
    columns: Arrays,
    tokens: NDArray[np.int32],
    box: NDArray[np.float64],
) -> tuple[NDArray[np.int32], int, int]:
    u, _, depths, occupied = cells
    boxes, start, length, keywords = columns
    table = token_table(tokens)
    found = [np.int32(0) for _ in range(0)]
    nodes, verified = 0, 0
    deepest = 0
    for token in tokens:
        deepest = max(deepest, _depth(depths, token))
    for level in range(deepest + 1):
        a, b, c, d = _range(u, box, level)
        for row in range(c, d + 1):
            for column in range(a, b + 1):
                cell = _number(level, column, row)
                if occupied[cell] == 0:
                    continue
                nodes += 1
                for token in tokens:
                    at = postings.find_list(index, cell, token) if _depth(depths, token) >= level else -1
                    if at < 0:
                        continue
                    first, last = postings.list_bounds(index, at)
                    for i in range(first, last):
                        slot = pool[i]
                        verified += 1
                        if not (meets(boxes, slot, box) and has_all(table, keywords, start[slot], length[slot])):
                            continue
                        x, y = max(boxes[slot, 0], box[0]), max(boxes[slot, 1], box[1])
                        if _line(x, u[0], u[2], level) == column and _line(y, u[1], u[3], level) == row:
                            found.append(slot)
    return as_slots(found), nodes, verified


class IQTree(StoredIndex):
    """Spatial first. Option: `weight`, of update against matching cost."""

    name = "iq-tree"
    defaults: ClassVar[Mapping[str, Any]] = {"weight": 1e-3}

    def _depths(self) -> NDArray[np.int8]:
        return np.array([DEEPEST], np.int8)

    def _build(self) -> None:
        weight = self.options["weight"]
        if not isinstance(weight, float | int) or not 0 <= weight < np.inf:
            raise InvalidValue(f"{self.name}: weight {weight!r} must be a number from 0 on")
        slots = self.store.slots
        boxes = self.store.rows.boxes[slots] if len(slots) else np.zeros((1, 4))
        lower, upper = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
        # A universe without extent, or with one beyond the floats, still needs a positive finite size.
        extent = np.clip(upper / 2 - lower / 2, 5e-301, 5e307) * 2
        self.cells = Cells(
            np.concatenate([lower, extent]),
            np.array([float(weight)]),
            self._depths(),
            np.zeros(((1 << (2 * DEEPEST + 2)) - 1) // 3, np.int32),
        )
        self.lists = postings.bulk_postings(*_places(self.cells, self.store.rows, slots))
        self._built = len(slots)

    def _insert(self, slot: int) -> None:
        if len(self.store) > 2 * self._built + 64:
            self._build()
        else:
            self.lists = _place(self.lists, self.cells, self.store.rows, slot, True)

    def _remove(self, slot: int) -> None:
        _place(self.lists, self.cells, self.store.rows, slot, False)

    def _search(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        return _search(self.lists.table, self.lists.pool, self.cells[:], self.store.columns, tokens, box)

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {**self.lists._asdict(), **self.cells._asdict(), "built": np.array([self._built])}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.lists = postings.Postings(*(arrays[name] for name in postings.Postings._fields))
        self.cells = Cells(*(arrays[name] for name in Cells._fields))
        guard_cells(self.cells, DEEPEST)
        guard_slot_lists(self.lists, self.name, self.cells.occupied.size, self.store.used)
        check_shapes(self.name, arrays, {"built": (np.int64, ())})
        check_lengths(self.name, 1, arrays["built"])
        self._built = int(arrays["built"][0])

    def _check_structure(self) -> None:
        postings.check_postings(self.lists)
        found = postings.contents(self.lists)
        occupied = np.zeros_like(self.cells.occupied)
        for (cell, _), listed in found.items():
            occupied[cell] += len(listed)
        assert np.array_equal(occupied, self.cells.occupied)
        expected: dict[tuple[int, int], set[int]] = {}
        for slot in self.store.slots.tolist():
            token, box = rarest(self.store.rows, slot), self.store.rows.boxes[slot]
            level = _level(self.cells, box, _depth(self.cells.depth, token))
            a, b, c, d = _range(self.cells.universe, box, level)
            for cell in (_number(level, column, row) for row in range(c, d + 1) for column in range(a, b + 1)):
                expected.setdefault((cell, token), set()).add(slot)
        assert {key: set(listed) for key, listed in found.items()} == expected
        assert sum(map(len, found.values())) == sum(map(len, expected.values())), "a slot is on a list twice"


class RQTree(IQTree):
    """Keyword first. Options: `weight`, and `capacity`, how many subscriptions of a keyword a cell should have."""

    name = "rq-tree"
    defaults: ClassVar[Mapping[str, Any]] = {"weight": 1e-3, "capacity": 40}

    def _depths(self) -> NDArray[np.int8]:
        capacity = self.options["capacity"]
        if not isinstance(capacity, int) or capacity < 1:
            raise InvalidValue(f"{self.name}: capacity {capacity!r} must be a positive integer")
        rows, slots = self.store.rows, self.store.slots
        last = rows.keywords[rows.start[slots] + rows.length[slots] - 1]
        lists = np.bincount(last, minlength=self.vocabulary.size + 1)  # a word to come is rare
        levels = np.ceil(np.log(np.maximum(lists / capacity, 1)) / np.log(4))
        return np.asarray(np.minimum(levels, DEEPEST), np.int8)
