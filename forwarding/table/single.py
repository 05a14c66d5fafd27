"""A single notification, matched by one entry into compiled code (kernels/match/single.py), no Python per attribute.

msgpack's own packer, which is C, writes the notification as bytes; a kernel reads them, as it reads what clients send.
What that kernel leaves, because it is rare or wrong, goes the long way (matcher.py), which says what is wrong with it.

A `Single` has all that one such call writes to, and the addresses of all that it reads. Those change when arrays grow:
after somebody has changed the table they are compared, and written anew if need be. Arrays that grow in place are not
held on to (growable.py), so they are known by how often they have moved. Threads that match at once have one each.
"""

from __future__ import annotations

import struct
from random import Random
from typing import TYPE_CHECKING, Any, Final, cast

import msgpack  # type: ignore[import-untyped]  # it ships no types
import numpy as np

from contrada.forwarding.codec.msgpack import POINT
from contrada.forwarding.kernels.match import single as k
from contrada.forwarding.kernels.match.reading import LONGEST, MOST, PADDING, T_POINTS, T_SIZE, Reading
from contrada.forwarding.kernels.match.verifying import C_PAIRS, C_PENDING, C_SUSPECTS
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.kernels.memory.addresses import address_of
from contrada.forwarding.types.trying import EACH
from contrada.spatial.cr_tree.layout import CHUNK
from contrada.spatial.geometry.point import Point

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contrada.forwarding.state.memory import Memory
    from contrada.forwarding.state.numbering import NameNumbering
    from contrada.forwarding.types.plugged import PluggedType
    from contrada.forwarding.types.shape import ShapeType
    from contrada.spatial.cr_tree.layout import Tree
    from contrada.spatial.cr_tree.tree import CRTree
    from contrada.spatial.distance.cells import Cells
    from contrada.spatial.distance.reach import Reach

_PAIR: Final = struct.Struct("<2d").pack
_EXT: Final = msgpack.ExtType
_ROWS: Final = 2 * MOST  # attributes, each with its folded twin
_FEW: Final = 16  # notifications between two looks at whether filters are posted well
_POINTS: Final = 64  # points of which one is looked at, and
_PENDING: Final = 32  # notifications with filters decided late, of which one is
_SUSPECTED: Final = 8  # of those filters: one that may be noted as a suspect
_PATIENCE: Final = 8  # notifications that may be left, one after another, before
_PAUSE: Final = 56  # so many go the long way at once
UNPACKABLE: Final = (TypeError, ValueError, OverflowError, UnicodeEncodeError)  # the long way says what is wrong


def _packed_point(value: Any) -> Any:
    """A point as the codec writes it."""
    if type(value) is not Point:
        raise TypeError
    return tuple.__new__(_EXT, (POINT, _PAIR(value._x, value._y)))  # without its checks, which take longer than packing


def new_packer() -> Callable[[object], bytes]:
    """What writes notifications of scalars and points as the codec does, and refuses others. For one thread."""
    pack: Callable[[object], bytes] = msgpack.Packer(default=_packed_point, datetime=True, strict_types=True).pack
    return pack


def packed(notifications: Sequence[Mapping[str, object]]) -> list[bytes] | None:
    """Notifications as bytes; None if one has what is not packed here."""
    if {*map(type, notifications)} != {dict}:
        return None
    try:
        bodies = [*map(new_packer(), notifications)]
    except UNPACKABLE:
        return None
    return None if any("" in each for each in notifications) else bodies


class Single:
    """What one thread needs to match one notification at a time."""

    def __init__(self, memory: Memory, names: NameNumbering, types: Mapping[int, PluggedType]) -> None:
        self._memory, self._names, self._types = memory, names, types
        self.pack = new_packer()
        self._scratch = memory.new_scratch()
        size = LONGEST + PADDING
        self._reading = Reading(
            rows=np.empty((_ROWS, 2), np.int64),
            ends=np.empty(1, np.int64),
            floats=np.empty(_ROWS, np.int64),
            text=np.empty(2 * size, np.uint8),
            points=np.empty((MOST, 2), np.int64),
            left=np.empty(1, np.int64),
            hashes=np.empty(MOST, np.int64),
            cursor=np.zeros(T_SIZE, np.int64),
        )
        self._body = np.zeros(size, np.uint8)
        self._room = memoryview(cast("Any", self._body))
        self._hits = np.empty(0, np.int64)
        self._hit_ends, self._ends = np.zeros(MOST, np.int64), np.zeros(1, np.int64)
        self._where = np.zeros((k.ROWS, 2), np.int64)
        self._seen = -1  # how often the table had been changed when the addresses were looked at
        self._moves = -1
        self._known: Any = None  # names
        self._regions: ShapeType | None = None  # whose trees points are looked up in
        self._ring_moves = -1
        self._reaches: dict[int, Reach] = {}
        # Whose addresses are written, by place among the trees: name, tree of relations, tree of distances, its grid.
        self._searched: list[tuple[int, Tree | None, Tree | None, Cells | None]] = []
        self._left = 0  # notifications that were left, one after another
        self._asked = self._matched = 0
        self._random = Random(1)
        self.is_due = False  # whether the table should look at how filters are posted

    def match(self, body: bytes, writes: int) -> memoryview | None:
        """The numbers of the interfaces that match a notification as bytes; None if it is to go the long way.

        They are there until the next call. `writes` is how often the table has been changed.
        """
        size = len(body)
        if size > LONGEST:
            return None
        if self._left >= _PATIENCE:
            self._left = self._left - 1 if self._left > _PATIENCE else 0
            return None
        if writes != self._seen:
            self._look(writes)
        self._room[:size] = body
        while (answer := k.match_single(self._where, size)) < 0:
            if answer == k.LEFT:
                self._left += 1
                if self._left == _PATIENCE:
                    self._left += _PAUSE
                return None
            self._scratch = self._memory.larger(self._scratch)
            self._write_scratch()
        self._left = 0
        count = answer >> k.FLAG_BITS
        self._asked += 1
        self._matched += count
        if answer & ((1 << k.FLAG_BITS) - 1) or self._asked == _FEW:
            self._learn(answer)
        return self._found[:count]

    def _learn(self, answer: int) -> None:
        """Note what estimates rest on, as matching of batches does (matcher.py)."""
        memory, scratch = self._memory, self._scratch
        if answer & k.HAS_POINTS:
            self._learn_points()
        if answer & k.HAS_PENDING:
            self._where[k.PENDING_LEFT, 0] = self._gap(_PENDING)
            assert self._regions is not None, "only regions are decided here"
            pairs = scratch.pairs[: scratch.cursor[C_PAIRS]]
            self._regions.note_pairs(pairs[:, 2], pairs[:, 1] != 0)
            count = int(scratch.cursor[C_PENDING])
            some = scratch.pending[[self._random.randrange(count) for _ in range(1 + count // _SUSPECTED)]]
            memory.suspects.note(some[some[:, 0] == 0, 1].tolist())
        if answer & k.HAS_SUSPECTS and self._types:
            memory.suspects.note(scratch.suspects[: scratch.cursor[C_SUSPECTS]].tolist())
        if self._asked == _FEW:
            if memory.state[layout.S_MATCHING] >= layout.AUTO:
                memory.matched.note(_FEW * int(memory.state[layout.S_INTERFACES]), self._matched)
            self._asked = self._matched = 0
            self.is_due = True
            if self._reaches:
                self._look_for_cells()

    def _look_for_cells(self) -> None:
        """Count the latest as if those before were alike; look again at the trees if there is another grid now."""
        assert self._regions is not None
        *_, heap, rows = (each.array for each in self._regions.rings_of_points())
        names = {*self._reading.points[: self._reading.cursor[T_POINTS], 0].tolist()}
        for name, _, _, cells in self._searched:
            reach = self._reaches.get(name) if name in names else None
            if reach is not None and reach.cells_for(rows, heap.view(np.float64), _FEW) is not cells:
                self._seen = -1

    def _gap(self, average: int) -> int:
        """Until the next that is looked at: uneven, so as not to keep step with anything."""
        return self._random.randrange(2 * average)

    def _learn_points(self) -> None:
        points = self._reading.points[: self._reading.cursor[T_POINTS]].tolist()
        trying = self._memory.trying
        trying.note_search(int(self._where[k.DECIDED, 0]), len(points))
        trying.note_hits(int(self._hit_ends[len(points) - 1]), len(points))
        trying.note_late(int(self._scratch.cursor[C_PAIRS]), len(points))
        state = self._memory.state
        if trying.searches_are_dear and state[layout.S_FILTER_COUNT] >= EACH * state[layout.S_INTERFACES]:
            self._left = _PATIENCE + _PAUSE  # filters may have to be tried first (types/trying.py)
        if self._where[k.POINTS_LEFT, 0] < 0:
            self._where[k.POINTS_LEFT, 0] = self._gap(_POINTS)
            if self._regions is not None:
                place = self._random.randrange(len(points))
                name, at = points[place]
                found = self._hits[self._hit_ends[place - 1] if place else 0 : self._hit_ends[place]]
                handles = self._memory.index.operands[found, layout.O_KEY].tolist()
                x, y = self._reading.floats[at : at + 2].view(np.float64).tolist()
                self._regions.note_point(name, Point.unchecked(x, y), handles)

    # -- addresses ----------------------------------------------------------------------------------------

    def _look(self, writes: int) -> None:
        """Write the addresses of what has moved since the last look."""
        self._seen = writes
        memory, names = self._memory, self._names.names
        if memory.moves != self._moves or names is not self._known:
            self._moves, self._known = memory.moves, names
            self._write(k.INDEX, *memory.index)
            self._write(k.NAMES, *names)
            self._scratch = memory.fitted(self._scratch, _ROWS, LONGEST)
            self._write(k.READING, *self._reading)
            self._write(k.BODY, self._body)
            self._write(k.HIT_ENDS, self._hit_ends, self._ends)
            self._write_scratch()
        self._look_at_regions(cast("ShapeType | None", self._types.get(layout.REGION)))

    def _look_at_regions(self, regions: ShapeType | None) -> None:
        """Write where what points are looked up in is."""
        where, found = self._where, None if regions is None else regions.trees_of_points()
        names = None if found is None else {*found[0], *found[1]}
        if regions is None or found is None or names is None or len(names) > k.MOST_TREES:
            where[k.HOW_MANY, 0] = 0 if regions is None else -1
            self._regions, self._reaches, self._searched = None, {}, []
            return
        self._regions, (trees, self._reaches) = regions, found
        room = sum([len(each) + CHUNK for either in found for each in either.values()])
        if room > len(self._hits):
            self._hits = np.empty(2 * room, np.int64)
            self._write(k.HITS, self._hits)
        self._write(k.POSTED, self._memory.posted.of(layout.REGION))
        rings = regions.rings_of_points()
        if sum([each.moves for each in rings]) != self._ring_moves:
            self._ring_moves = sum([each.moves for each in rings])
            heap, rows, marks, *paths = (each.array for each in rings)
            self._write(k.RINGS, heap, rows, marks)
            self._write(k.PATHS, *paths)
            where[k.FAR, 0], where[k.NOT_HERE, 0] = regions.MARK_OF_DISTANCES, regions.MARK_OF_OTHERS
        where[k.HOW_MANY, 0] = len(names)
        for place, name in enumerate(sorted(names)):
            self._look_at_trees(place, name, trees.get(name), self._reaches.get(name))
        del self._searched[len(names) :]

    def _look_at_trees(self, place: int, name: int, tree: CRTree | None, reach: Reach | None) -> None:
        """Write where the trees of a name are, if they are others than were written at that place."""
        mine, far = None if tree is None else tree.tree, None if reach is None else reach.tree.tree
        cells = None if reach is None else reach.cells
        if place < len(self._searched):
            known = self._searched[place]
            if known[0] == name and known[1] is mine and known[2] is far and known[3] is cells:
                return
        self._searched[place : place + 1] = [(name, mine, far, cells)]
        row = k.TREES + place * k.TREE_ROWS
        self._where[row] = name, 0
        if tree is not None:
            self._where[row, 1] |= k.TREE_HERE
            self._write(row + k.TREE, *tree.tree, tree.tally)
        if reach is not None:
            self._where[row, 1] |= k.REACH_HERE
            self._write(row + k.REACH, *reach.tree.tree, reach.tree.tally)
        if cells is not None:
            self._where[row, 1] |= k.CELLS_HERE
            self._write(row + k.CELLS, *cells)

    def _write(self, row: int, *arrays: Any) -> None:
        self._where[row : row + len(arrays)] = [address_of(each) for each in arrays]

    def _write_scratch(self) -> None:
        self._write(k.SCRATCH, *self._scratch)
        self._found = memoryview(cast("Any", self._scratch.found))
