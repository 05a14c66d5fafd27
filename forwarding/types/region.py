"""Regions in the forwarding table: a CR-tree per name for filters posted under a region, one kernel for the others.

A constraint that is a filter's access is in the CR-tree of its name (tree.py), so that an attribute finds
all it satisfies at once. The rings of all constraints, posted or not, also stand in one arena, so that the pairs
(value, constraint) which the table leaves pending are related in a single call, whatever regions they are of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from contrada.forwarding.batches.encode import as_ints
from contrada.forwarding.batches.packed_columns import distinct, relation_texts
from contrada.forwarding.covering.budget import OF_REGIONS
from contrada.forwarding.state.growable import GrowableArray
from contrada.forwarding.types.plain import PlainType, nested, numbered, within
from contrada.forwarding.types.records import ALIVE, NAME_BITS, POSTED, Records
from contrada.forwarding.types.relating import (
    BLOCK,
    EDGES,
    EXACTLY,
    HELD,
    MASK,
    NOT_ASKED,
    SAMPLED,
    SAMPLED_HALO,
    placed,
    relate_pairs,
    relate_pending,
)
from contrada.spatial import allowance
from contrada.spatial.cr_tree.tree import CRTree
from contrada.spatial.geometry import ring_arena
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Region, ring_of
from contrada.spatial.geometry.ring_arena import in_one_part, is_box, ring_boxes, ring_xy
from contrada.spatial.relations.compound.relating import relate_regions
from contrada.spatial.relations.mbr import POSSIBLE, POSSIBLE_OF_PARTS, relate_boxes
from contrada.spatial.relations.rcc8 import COMPOSITION, covering_relations
from contrada.spatial.relations.relate import EXACT, Uniform
from contrada.spatial.relations.relation import (
    ALL,
    CONTAINS,
    COVERED_BY,
    COVERS,
    DISJOINT,
    EQUALS,
    INSIDE,
    MEETS,
    OVERLAPS,
)
from contrada.spatial.storage.jit import kernel
from contrada.spatial.storage.row_numbers import check_lengths, check_rows, check_shapes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from contrada.forwarding.batches.packed_columns import Relations
    from contrada.forwarding.covering.budget import CoveringBudget
    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.forwarding.language.constraint import Constraint
    from contrada.forwarding.types.plugged import Settings
    from contrada.forwarding.types.shares import Traffic
    from contrada.forwarding.types.wanted import Wanted
    from contrada.spatial.relations.relate import Rings

_SHAPES = {"heap": (np.int64, ()), "rows": (np.int64, (3,)), "rings": (np.int64, ())}

_BY_CHANCE: Final = 1 / 64  # how much rarer boundaries that touch are than the relation without that
_IN: Final = 1 << INSIDE | 1 << COVERED_BY
_AROUND: Final = 1 << CONTAINS | 1 << COVERS
_SIDE_BY_SIDE: Final = ALL & ~(_IN | _AROUND | 1 << EQUALS)

_PACKED: Final = 1024  # regions of a new tree from which on it is packed
_NOTHING: Final = np.zeros(0, np.int64)


class RegionType(PlainType):
    """Region constraints; points are among the values."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._trees: dict[int, CRTree] = {}  # by name
        self._heap = GrowableArray(0, 4096)
        self._rows = GrowableArray(3, 256)
        self._rings: Ints = np.full(ring_arena.STATE_SIZE, -1, np.int64)
        self._rings[ring_arena.USED] = 0
        self._made_lately: list[tuple[int, Floats, int]] = []  # handle, ring, mask of those that are not stored yet
        self._unasked: list[int] = []  # handles that estimates have not learned from
        self._filled: Relations | None = None  # what `fill` took in, by handle, until it is posted

    def fill(self, relations: Relations) -> Ints:
        """Take in many constraints, their names by number, when new: the handle of each. `post_many` comes next."""
        text, ends = relation_texts(relations)
        saved, kept, handles = distinct(text, ends, relations.names)
        self._records = Records.of(saved)
        counts = np.diff(relations.ends, prepend=0)
        if len(kept) < len(ends):
            chosen = np.zeros(len(ends), np.bool_)
            chosen[kept] = True
            coords = relations.coords[np.repeat(chosen, counts)]
            counts = counts[kept]
            relations = relations._replace(ops=relations.ops[kept], coords=coords, ends=np.cumsum(counts))
        self._filled = relations._replace(names=saved.names)
        self._rows.reserve(len(kept))
        self._heap.reserve(int(sum(2 * ring_arena.ring_size(n) * m for n, m in _tally(counts))) + 8)
        rows = self._rows.array
        _store_rings(relations.coords, relations.ends, self._heap.array.view(np.float64), self._rings, rows)
        rows[: len(kept), MASK] = relations.masks
        return handles

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The constraints, their rings and the trees."""
        arrays = super().arrays()
        arrays["heap"] = self._heap.array[: self._rings[ring_arena.USED]]
        arrays["rows"] = self._rows.array[: len(arrays["records.flags"])]
        arrays["rings"] = self._rings
        for name, tree in self._trees.items():
            arrays |= nested(f"tree.{name}", tree.arrays())
        return arrays

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take all of it back, mapped or not."""
        super().restore(arrays)
        check_shapes("regions", arrays, _SHAPES)
        check_lengths("regions", self._records.top, arrays["rows"])
        check_lengths("regions", ring_arena.STATE_SIZE, arrays["rings"])
        alive = arrays["rows"][self._records.marked(ALIVE)]
        ring_arena.guard_rings(arrays["heap"].view(np.float64), arrays["rings"], alive[:, BLOCK], alive[:, EDGES])
        check_rows("regions: relations", alive[:, MASK], ALL + 1)
        self._heap, self._rows = GrowableArray.over(arrays["heap"]), GrowableArray.over(arrays["rows"])
        self._rings = arrays["rings"]
        for name in numbered("tree", arrays):
            self._trees[name] = CRTree.from_arrays(within(f"tree.{name}", arrays), self.settings.discretization)

    def _made(self, handle: int, constraint: Constraint) -> None:
        xy = ring_of(cast("Region", constraint.value))[0]
        self._made_lately.append((handle, xy, constraint.op.mask))

    def store_made(self) -> None:
        """Store the rings of new constraints, all by one call."""
        if not self._made_lately:
            return
        made = self._made_lately
        self._made_lately = []
        rings = [ring for _, ring, _ in made]
        coords = rings[0] if len(rings) == 1 else np.concatenate(rings)
        self._rows.reserve(max([handle for handle, _, _ in made]) + 1)
        # A vertex is two numbers; there is a box of four for some edges, and for some of those boxes, and so on.
        self._heap.reserve(int(self._rings[ring_arena.USED]) + 2 * (3 * len(coords) + 64 * len(rings)))
        new, heap = np.array([(handle, mask, len(ring)) for handle, ring, mask in made]), self._heap.array
        _store_made(coords, new, heap.view(np.float64), self._rings, self._rows.array)

    def _forgotten(self, handle: int) -> None:
        block, edges, _ = self._rows.array[handle].tolist()
        ring_arena.release(self._heap.array.view(np.float64), self._rings, block, edges)

    def post(self, handle: int) -> None:
        """Put a constraint into the tree of its name."""
        super().post(handle)
        block, edges, mask = self._rows.array[handle].tolist()
        tree = self._tree_of(self._records.name(handle))
        tree.insert_stored(handle, mask, block, edges, self._heap.array.view(np.float64))

    def _tree_of(self, name: int) -> CRTree:
        """The tree of a name, made if need be."""
        if name not in self._trees:
            self._trees[name] = CRTree(self.settings.discretization)
        return self._trees[name]

    def post_many(self, handles: Sequence[int]) -> None:
        """As `post` of each, all of a name by one call; what `fill` took in is packed into trees at once."""
        if self._filled is not None:
            filled, self._filled = self._filled, None
            known = len(filled.ends)
            given = np.sort([handle for handle in handles if handle < known]).astype(np.int64)
            handles = [handle for handle in handles if handle >= known]
            self._records.flags[given] |= POSTED
            starts, masks = np.concatenate(([0], filled.ends)), filled.masks
            for name in np.unique(filled.names[given]).tolist():
                mine = given[filled.names[given] == name]
                counts = starts[mine + 1] - starts[mine]
                offsets = np.concatenate(([0], np.cumsum(counts)))
                where = np.repeat(starts[mine] - offsets[:-1], counts) + np.arange(int(offsets[-1]))
                rings = filled.coords[where], offsets
                self._trees[name] = CRTree.bulk(mine, rings, masks[mine], self.settings.discretization)
        others = np.array(handles, np.int64)
        names = self._records.flags[others] >> NAME_BITS
        for name in np.unique(names).tolist():
            mine = others[names == name]
            self._records.flags[mine] |= POSTED
            if name not in self._trees and len(mine) > _PACKED:
                regions = [cast("Region", self._records.get(handle)[2]) for handle in mine.tolist()]
                masks = self._rows.array[mine, MASK]
                self._trees[name] = CRTree.bulk(mine, regions, masks, self.settings.discretization)
                continue
            rows = np.empty((len(mine), 4), np.int64)
            rows[:, 0] = mine
            rows[:, (2, 3, 1)] = self._rows.array[mine]
            self._tree_of(name).insert_rows(rows, self._heap.array.view(np.float64))

    def unpost(self, handle: int) -> None:
        """Take a constraint out of its tree."""
        super().unpost(handle)
        name = self._records.name(handle)
        self._trees[name].remove(handle)
        if not len(self._trees[name]):
            del self._trees[name]
            self._traffic.pop(name, None)  # the number may become another name's

    def search(self, names: Sequence[int], values: Sequence[Any]) -> list[Ints | None]:
        """Search the tree of each value's name."""
        answers: list[Ints | None] = self._search(names, values) if self._trees else [None] * len(names)
        self._learn_search(names, values, answers)
        return answers

    def _search(self, names: Sequence[int], values: Sequence[Any]) -> list[Ints | None]:
        if len({*names}) == 1 and {*map(type, values)} == {Point}:  # nothing to sort out
            tree = self._trees.get(names[0])
            return [None] * len(names) if tree is None else list(tree.search_points(values))
        answers: list[Ints | None] = [None] * len(names)
        points: dict[int, list[int]] = {}
        for place, (name, value) in enumerate(zip(names, values, strict=True)):
            if (tree := self._trees.get(name)) is not None:
                if type(value) is Point:
                    points.setdefault(name, []).append(place)
                else:
                    answers[place] = tree.search(value)
        for name, places in points.items():
            found = self._trees[name].search_points([values[place] for place in places])
            for place, answer in zip(places, found, strict=True):
                answers[place] = answer
        return answers

    def sift(self, names: Sequence[int], values: Sequence[Any]) -> list[Ints | None]:
        """By their MBRs; points, of which these tell more, are searched for. Nothing is learned from it."""
        answers: list[Ints | None] = [None] * len(names)
        for place, (name, value) in enumerate(zip(names, values, strict=True)):
            if (tree := self._trees.get(name)) is not None:
                answers[place] = tree.search(value) if type(value) is Point else tree.sift(value)
        return answers

    def search_points(self, names: Ints, xy: Floats, wanted: Wanted) -> tuple[Ints, Ints] | None:
        """As `search` of points by their coordinates, for what matters: all handles, and where those of each point end.

        None if coordinates do not tell all.
        """
        looked_at = self._searched.chosen(len(names))
        wanted.missing[looked_at] = 0
        found = self._find_points(names, xy, wanted)
        if found is None:
            return None
        hits, ends = found
        for place in looked_at:
            x, y = xy[place].tolist()
            hit = hits[ends[place - 1] if place else 0 : ends[place]].tolist()
            self.note_point(int(names[place]), Point.unchecked(x, y), hit)
        return found

    def _find_points(self, names: Ints, xy: Floats, wanted: Wanted) -> tuple[Ints, Ints] | None:
        if not (names == names[0]).all():
            return _search_by_name(self._trees, names, xy, wanted)
        tree, numbers = self._trees.get(int(names[0])), np.arange(len(names))
        return (_NOTHING, np.zeros(len(names), np.int64)) if tree is None else wanted.search(tree, numbers, xy)

    def note_point(self, name: int, point: Point, found: list[int]) -> None:
        """Learn from a point that was searched for under a name, and the handles that it has hit."""
        self._learn_value(self._traffic_of(name), point, found)

    @property
    def decided(self) -> int:
        """How many relations searches have evaluated, in the trees that there are."""
        return sum(tree.counters.relations_evaluated for tree in self._trees.values())

    def holds(self, numbers: Ints, handles: Ints, values: Sequence[Any]) -> NDArray[np.bool_]:
        """Relate the pairs in one call."""
        held = np.empty(len(numbers), np.bool_)
        relate_pairs(*self._operands_of_pairs(values, numbers), numbers, handles, held, left := allowance.left())
        allowance.check(left)
        self._learn_pairs(handles, held)
        return held

    def decide_pending(
        self, pending: Ints, pairs: Ints, owners: Ints, matched: Ints, values: Sequence[Any], *, learn: bool = True
    ) -> NDArray[np.int8] | None:
        """As plugged.py says."""
        verdicts, held = np.empty(len(pending), np.int8), np.empty(len(pairs), np.int8)
        left = allowance.left()
        operands = self._operands_of_pairs(values, pairs[:, 0])
        relate_pending(*operands, pending, pairs, owners, matched, verdicts, held, left)
        allowance.check(left)
        if learn:
            known = held != NOT_ASKED
            self._learn_pairs(pairs[known, 2], held[known] == HELD)
        return verdicts

    def _operands_of_pairs(
        self, values: Sequence[Any], numbers: Ints
    ) -> tuple[Floats, Ints, Floats, Rings, float, int]:
        """What kernels that relate pairs take first."""
        density, how, way = 0.0, EXACTLY, self.settings.discretization
        if isinstance(way, Uniform):
            density, how = way.density, SAMPLED_HALO if way.halo else SAMPLED
        return self._heap.array.view(np.float64), self._rows.array, *placed(values, numbers), density, how

    def _learn_value(self, traffic: Traffic, value: Any, found: list[int]) -> None:
        if type(value) is Point:
            self.news |= traffic.meet((value.x, value.y, value.x, value.y), found)
        else:
            self.news |= traffic.meet(value.bounds, found, len(ring_of(value)[0]) - 1)

    def note_constraints(self, handles: Sequence[int]) -> None:
        """Learn where constraints are and how large, when it is first asked for."""
        self._unasked += handles

    def _learn_constraints(self) -> None:
        """Learn from those that nobody has asked about and that are still there."""
        if self._unasked:
            handles = as_ints(self._unasked)
            self._unasked.clear()
            flags = self._records.flags[handles]
            for name in np.unique(flags[flags & ALIVE != 0] >> NAME_BITS).tolist():
                mine = handles[(flags >> NAME_BITS == name) & (flags & ALIVE != 0)]
                self._traffic_of(name).ask(self.boxes(mine), self._rows.array[mine, EDGES])

    def _work(self, handles: Ints, traffic: Traffic) -> Floats:
        """A search relates the edges of one with those of the other, for all whose relation the MBRs leave open."""
        edges: Floats = self._rows.array[handles, EDGES].astype(np.float64)
        masks, boxes = self._rows.array[handles, MASK], self.boxes(handles)
        related = (masks & _IN != 0) * traffic.within(boxes)
        related += (masks & _AROUND != 0) * traffic.within(boxes, around=True)
        related = np.where(masks & _SIDE_BY_SIDE != 0, traffic.touching(boxes), related)
        return related * ((edges - 4.0) / 16.0 + edges * (traffic.value()[2] / 64.0))

    def boxes(self, handles: Ints) -> Floats:
        """The MBRs of the regions."""
        boxes = np.empty((len(handles), 4))
        _ring_bounds(self._heap.array.view(np.float64), self._rows.array, handles, boxes)
        return boxes

    def _guesses(self, handles: Ints) -> Floats:
        """What touches a region touches the box around it, mostly; what is apart from it does not; and so on."""
        self._learn_constraints()
        boxes, names = self.boxes(handles), self._records.flags[handles] >> NAME_BITS
        masks = self._rows.array[handles, MASK]
        shares = np.empty(len(handles))
        for name in np.unique(names).tolist():
            mine = names == name
            traffic = self._traffic_of(name)
            traffic.ask(boxes[mine], self._rows.array[handles[mine], EDGES])
            touching = traffic.touching(boxes[mine])
            within, around = traffic.within(boxes[mine]), traffic.within(boxes[mine], around=True)
            wanted = np.zeros(len(touching))
            for relation, share in (
                (OVERLAPS, np.maximum(touching - within - around, 0.0)),
                (INSIDE, within),
                (CONTAINS, around),
                (COVERED_BY, within * _BY_CHANCE),
                (COVERS, around * _BY_CHANCE),
                (MEETS, touching * _BY_CHANCE),
            ):
                wanted += (masks[mine] >> relation & 1) * share
            apart = masks[mine] >> DISJOINT & 1
            shares[mine] = np.minimum(wanted, touching) + apart * (1.0 - touching)
        return shares

    def covers(self, first: int, second: int, budget: CoveringBudget) -> bool:
        """Whether the relations to the two regions imply it. Sampled relations imply nothing for certain."""
        if self.settings.discretization != EXACT:
            return False
        budget.spend(OF_REGIONS)
        (promise,) = self.promise(second, np.array([first]), above=True).tolist()
        if promise in (0.0, np.inf):
            return bool(promise)
        rows = self._rows.array
        budget.spend(0, int(rows[first, EDGES] + rows[second, EDGES]))
        code = _relate_rows(self._heap.array.view(np.float64), rows, second, first)
        return bool(covering_relations(int(rows[first, MASK]), int(rows[second, MASK])) >> code & 1)

    def promise(self, handle: int, others: Ints, *, above: bool) -> NDArray[np.float64]:
        """What the MBRs say; where they leave it open, the more unlike the regions are in size, the likelier.

        Which of the two has to be within the other depends on the relations asked for, and the MBRs see to that. Of
        regions whose MBRs are around a given one, the widest are the least likely to leave some of it out.
        """
        promises = np.zeros(len(others))
        if self.settings.discretization == EXACT:
            _promise(self._heap.array.view(np.float64), self._rows.array, handle, others, above, promises)
        return promises

    def _check(self) -> None:
        super()._check()
        posted = self._posted()
        assert self._trees.keys() == posted.keys()
        for name, tree in self._trees.items():
            tree._check()
            assert all(handle in tree for handle in posted[name])
            assert len(tree) == len(posted[name])


def _search_by_name(trees: Mapping[int, CRTree], names: Ints, xy: Floats, wanted: Wanted) -> tuple[Ints, Ints]:
    """Search the tree of each point's name: all handles, and where those of each point end."""
    counts = np.zeros(len(names), np.int64)
    parts: list[tuple[Ints, Ints, Ints]] = []
    for name in np.unique(names).tolist():
        if (tree := trees.get(name)) is not None:
            mine = np.flatnonzero(names == name)
            hits, ends = wanted.search(tree, mine, np.ascontiguousarray(xy[mine]))
            counts[mine] = np.diff(ends, prepend=0)
            parts.append((mine, hits, ends))
    ends = np.cumsum(counts)
    found = np.empty(int(counts.sum()), np.int64)
    for mine, hits, last in parts:
        shift = np.repeat(ends[mine] - last, counts[mine])
        found[np.arange(len(hits)) + shift] = hits
    return found, ends


def _tally(counts: Ints) -> zip[tuple[int, int]]:
    numbers, times = np.unique(counts, return_counts=True)
    return zip(numbers.tolist(), times.tolist(), strict=True)


@kernel
def _store_rings(coords: Floats, ends: Ints, heap: Floats, state: Ints, rows: Ints) -> None:
    """Store rings that are not closed, one after another; where they are goes to the rows from the first on."""
    start = 0
    for i in range(ends.shape[0]):
        edges = ends[i] - start
        xy = np.empty((edges + 1, 2))
        xy[:-1] = coords[start : ends[i]]
        xy[edges] = coords[start]
        rows[i, BLOCK] = ring_arena.store(heap, state, xy)
        rows[i, EDGES] = edges
        start = ends[i]


@kernel
def _store_made(coords: Floats, new: Ints, heap: Floats, state: Ints, rows: Ints) -> None:
    """Store closed rings, one after another; `new` has the handle, the mask and the vertices of each."""
    start = 0
    for i in range(new.shape[0]):
        handle, end = new[i, 0], start + new[i, 2]
        rows[handle, BLOCK] = ring_arena.store(heap, state, coords[start:end])
        rows[handle, EDGES] = new[i, 2] - 1
        rows[handle, MASK] = new[i, 1]
        start = end


@kernel
def _ring_bounds(heap: Floats, rows: Ints, handles: Ints, boxes: Floats) -> None:
    """The boxes around stored rings: of the run boxes of each, the last."""
    for i in range(handles.shape[0]):
        runs = ring_boxes(heap, rows[handles[i], BLOCK], rows[handles[i], EDGES])
        for side in range(4):
            boxes[i, side] = runs[runs.shape[0] - 1, side]


@kernel
def _relate_rows(heap: Floats, rows: Ints, a: int, b: int) -> int:
    """The code of the relation of one constraint's region to another's."""
    axy = ring_xy(heap, rows[a, BLOCK], rows[a, EDGES])
    aboxes = ring_boxes(heap, rows[a, BLOCK], rows[a, EDGES])
    bxy = ring_xy(heap, rows[b, BLOCK], rows[b, EDGES])
    return relate_regions(axy, aboxes, bxy, ring_boxes(heap, rows[b, BLOCK], rows[b, EDGES]))


@kernel
def _promise(heap: Floats, rows: Ints, handle: int, others: Ints, above: bool, promises: Floats) -> None:
    """See `RegionType.promise`."""
    for i in range(others.shape[0]):
        a, b = (handle, others[i]) if above else (others[i], handle)  # whether b covers a
        a_edges, b_edges = rows[a, EDGES], rows[b, EDGES]
        a_box = rows[a, BLOCK] + ring_arena.ring_size(a_edges) - 4  # the last of its boxes is the MBR
        b_box = rows[b, BLOCK] + ring_arena.ring_size(b_edges) - 4
        ax1, ay1, ax2, ay2 = heap[a_box], heap[a_box + 1], heap[a_box + 2], heap[a_box + 3]
        bx1, by1, bx2, by2 = heap[b_box], heap[b_box + 1], heap[b_box + 2], heap[b_box + 3]
        code = relate_boxes(ax1, ay1, ax2, ay2, bx1, by1, bx2, by2)
        possible = POSSIBLE[code]
        if not in_one_part(heap, rows[a, BLOCK]) or not in_one_part(heap, rows[b, BLOCK]):
            possible = POSSIBLE_OF_PARTS[code]
        if is_box(heap, rows[a, BLOCK], a_edges) and is_box(heap, rows[b, BLOCK], b_edges):
            possible = 1 << code
        yes = no = False
        for k in range(8):
            if possible >> k & 1:
                left = 0  # the relations to b's region that a's constraint leaves possible
                for r in range(8):
                    if rows[a, MASK] >> r & 1:
                        left |= COMPOSITION[r][k]
                if left & ~rows[b, MASK]:
                    no = True
                else:
                    yes = True
        if not yes:
            promises[i] = 0.0
        elif not no:
            promises[i] = np.inf
        else:
            a_area, b_area = (ax2 - ax1) * (ay2 - ay1), (bx2 - bx1) * (by2 - by1)
            least = min(a_area, b_area)
            # Areas of tiny boxes may be too small for a double, and those of huge ones too large.
            promises[i] = min(max(a_area, b_area) / least, 1e300) if 0.0 < least < np.inf else 1.0
