"""Points and regions in the forwarding table: relations to regions (region.py), and distances from shapes.

A distance constraint is, for all that only needs to know where it is, a relation to the box around its shape, grown by
its length: so estimates treat it. Its shape stands in an arena beside (paths.py), by its handle; posted, it is in a
CR-tree of such boxes for its name, of circles with a grid beside it (spatial/distance/reach.py). Distances are exact
under every discretization.

A relation to a point, `contains` or `meets`, is one to a region at no distance from it, of which then the side decides
on which the point lies; exact as well. Relations to lines, `crosses` and `contains`, are posted likewise, and decided
one by one.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import numpy as np

from contrada.errors import InvalidValue
from contrada.forwarding.batches.encode import PointColumn
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.lonlat import LONLAT, holds_in_degrees, other_side
from contrada.forwarding.types.paths import Paths, box_of, distance_of, locate_pairs
from contrada.forwarding.types.plain import OBJECTS_COST, PlainType, nested, numbered, within
from contrada.forwarding.types.records import FIRST_MARK
from contrada.forwarding.types.region import RegionType
from contrada.forwarding.types.relating import placed
from contrada.spatial import allowance
from contrada.spatial.cr_tree import layout as c
from contrada.spatial.cr_tree.tree import CRTree
from contrada.spatial.distance import searching
from contrada.spatial.distance.near import path_of
from contrada.spatial.distance.reach import Reach
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.lines.line import Line, path_of_line
from contrada.spatial.relations.relation import DISJOINT
from contrada.spatial.storage.row_numbers import check_rows, check_that

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from contrada.forwarding.covering.budget import CoveringBudget
    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.forwarding.state.growable import GrowableArray
    from contrada.forwarding.types.plugged import Settings
    from contrada.forwarding.types.shares import Traffic
    from contrada.forwarding.types.wanted import Wanted
    from contrada.spatial.cr_tree.layout import Tree

_FAR: Final = FIRST_MARK << 4  # marks distance constraints (records.py), relations to points among them, and
_AT: Final = FIRST_MARK << 5  # these besides
_APART: Final = 1 << DISJOINT
_REGIONS: Final = frozenset((Region, Box))
_FAR_COST: Final = 2_000  # nanoseconds, about, for each edge of a line and of the shape whose distance is asked for
_NONE: Final = np.zeros(0, np.int64)


class ShapeType(RegionType):
    """Constraints of relations and of distances, on points and regions."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._degrees = settings.crs == LONLAT
        self._any_at = False  # whether there has been a relation to a point
        self._reaches: dict[int, Reach] = {}  # by name, of posted distance constraints
        self._paths = Paths()

    def handle(self, name: int, constraint: Constraint) -> int:
        """The handle of a constraint, marked if it is one of a distance."""
        distance = constraint.value
        if type(distance) in _REGIONS:  # most are no more than that
            return super().handle(name, constraint)
        if isinstance(distance, Distance) and distance.unit and not self._degrees:
            raise InvalidValue(f"{constraint}: metres need longitudes and latitudes: a table or broker of crs lonlat")
        handle = super().handle(name, constraint)
        if constraint.at_point or constraint.at_line:
            self._records.mark(handle, _FAR | _AT)
            self._any_at = True
        elif isinstance(distance, Distance):
            self._records.mark(handle, _FAR)
        return handle

    def _made(self, handle: int, constraint: Constraint) -> None:
        value = None if type(constraint.value) in _REGIONS else distance_of(constraint.value, self._degrees)
        if value is None:
            super()._made(handle, constraint)
            return
        relation = _AS_RELATION.get(constraint.op, Operator.INTERSECTS)
        super()._made(handle, Constraint(constraint.name, relation, box_of(value, self._degrees)))
        self._paths.store(handle, constraint.op, value)

    def _forgotten(self, handle: int) -> None:
        super()._forgotten(handle)
        if self._is_far(handle):
            self._paths.release(handle)

    def _is_far(self, handle: int) -> bool:
        return bool(self._records.flags[handle] & _FAR)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As of relations; paths and trees of distances, where there are any."""
        arrays = super().arrays()
        if len(self._records.marked(_FAR)):
            arrays |= self._paths.arrays(self._records.top)
            for name, reach in self._reaches.items():
                arrays |= nested(f"reach.{name}", reach.tree.arrays())
        return arrays

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take all of it back, mapped or not."""
        super().restore(arrays)
        far = self._records.marked(_FAR)
        if not len(far):
            return
        self._any_at = len(self._records.marked(_AT)) > 0
        self._paths.restore(arrays, far, self._records.top)
        marked = np.zeros(self._records.top, np.bool_)
        marked[far] = True
        for name in numbered("reach", arrays):
            self._reaches[name] = Reach(CRTree.from_arrays(within(f"reach.{name}", arrays)))
            posted = self._reaches[name].tree.ids
            check_rows("distances: handles", posted, self._records.top)
            check_that("distances: handles of other constraints", marked[posted])

    def post(self, handle: int) -> None:
        """Put a constraint into the tree of its name, of relations or of distances."""
        if not self._is_far(handle):
            super().post(handle)
            return
        PlainType.post(self, handle)
        name = self._records.name(handle)
        if name not in self._reaches:
            self._reaches[name] = Reach()
        self._reaches[name].insert(handle, *self._filed(handle))

    def post_many(self, handles: Sequence[int]) -> None:
        """As `post` of each; a tree of distances that is not there yet is packed at once."""
        new: dict[int, list[int]] = {}
        far = self._records.flags[np.array(handles, np.int64)] & _FAR != 0
        super().post_many([handle for handle, is_far in zip(handles, far, strict=True) if not is_far])
        for handle in [handle for handle, is_far in zip(handles, far, strict=True) if is_far]:
            if self._records.name(handle) in self._reaches:
                self.post(handle)
            else:
                new.setdefault(self._records.name(handle), []).append(handle)
        for name, mine in new.items():
            boxes, masks = zip(*map(self._filed, mine), strict=True)
            self._reaches[name] = Reach(CRTree.bulk(mine, boxes, np.array(masks)))
            for handle in mine:
                PlainType.post(self, handle)

    def _filed(self, handle: int) -> tuple[Box, int]:
        """The box and the mask under which a tree of distances has a constraint."""
        flags = int(self._paths.rows[handle, searching.FLAGS])
        return Box.trusted_corners(*self.boxes(np.array([handle]))[0].tolist()), searching.mask_of(flags)

    def unpost(self, handle: int) -> None:
        """Take a constraint out of its tree."""
        if not self._is_far(handle):
            super().unpost(handle)
            return
        PlainType.unpost(self, handle)
        name = self._records.name(handle)
        self._reaches[name].remove(handle)
        if not len(self._reaches[name]):
            del self._reaches[name]

    def search(self, names: Sequence[int], values: Sequence[Any]) -> list[Ints | None]:
        """Search both trees of each value's name."""
        if Line in {*map(type, values)}:
            return self._search_with_lines(names, values)
        if not self._reaches and not self._degrees:
            return super().search(names, values)
        answers: list[Ints | None] = self._search(names, values) if self._trees else [None] * len(names)
        if self._degrees and self._trees:
            self._add_other_sides(names, values, answers)
        for place, found in self._search_far(names, values):
            before = answers[place]
            answers[place] = found if before is None else np.concatenate((before, found))
        self._learn_search(names, values, answers)
        return answers

    def sift(self, names: Sequence[int], values: Sequence[Any]) -> list[Ints | None]:
        """As of relations; lines, distances and what is on the Earth are searched for."""
        if self._degrees or self._reaches or Line in {*map(type, values)}:
            return self.search(names, values)
        return super().sift(names, values)

    # -- for points that compiled code looks up by itself (table/single.py) -------------------------------

    MARK_OF_DISTANCES: ClassVar = _FAR  # marks constraints that paths decide, and not the rings
    MARK_OF_OTHERS: ClassVar = _AT  # marks those that neither decides

    @property
    def _others_of_points(self) -> bool:
        """Whether trees do not tell all: on the Earth, and where `contains` may ask for a region around a point."""
        return self._degrees or (self._any_at and bool(self._reaches))

    def trees_of_points(self) -> tuple[dict[int, CRTree], dict[int, Reach]] | None:
        """What tells, by name, the relations and the distances that a point satisfies; None if that is not all."""
        return None if self._others_of_points else (self._trees, self._reaches)

    def rings_of_points(self) -> tuple[GrowableArray, ...]:
        """Rings of all constraints, where each one's is, their marks; the same of the paths of distances."""
        return self._heap, self._rows, self._records.marks, *self._paths.growing

    def _find_points(self, names: Ints, xy: Floats, wanted: Wanted) -> tuple[Ints, Ints] | None:
        """Relations, distances or both; None where that is not all."""
        if self._others_of_points:
            return None
        if not self._reaches:
            return super()._find_points(names, xy, wanted)
        near = self._near_points(names, xy)
        related = super()._find_points(names, xy, wanted) if self._trees else None
        return near if related is None else _joined(related, near)

    def _near_points(self, names: Ints, xy: Floats) -> tuple[Ints, Ints]:
        """The distance constraints that points satisfy, and where each point's end."""
        first = int(names[0])
        if first in self._reaches and (names == first).all():
            out, ends = self.search_places(first, xy)
            return out[: ends[-1]], ends
        found = _NONE, np.zeros(len(names), np.int64)
        for name in self._reaches:
            mine = np.flatnonzero(names == name)
            if len(mine):
                out, ends = self.search_places(name, xy[mine])
                counts = np.zeros(len(names), np.int64)
                counts[mine] = np.diff(ends, prepend=0)
                found = _joined(found, (out[: ends[-1]], np.cumsum(counts)))
        return found

    def _search_with_lines(self, names: Sequence[int], values: Sequence[Any]) -> list[Ints | None]:
        """As `search`, of values some of which are lines: what their boxes meet is decided one by one."""
        answers: list[Ints | None] = [None] * len(names)
        others = [place for place, value in enumerate(values) if type(value) is not Line]
        found = self.search([names[place] for place in others], [values[place] for place in others])
        for place, answer in zip(others, found, strict=True):
            answers[place] = answer
        for place, value in enumerate(values):
            if type(value) is Line:
                parts = [part for _, part in self._search_far([names[place]], [value])]
                if names[place] in self._trees:
                    parts.append(self._related_to(value, self._trees[names[place]].tree))
                answers[place] = np.concatenate(parts) if parts else None
        return answers

    def _related_to(self, line: Line, tree: Tree) -> Ints:
        """The posted relations that a line satisfies."""
        size = int(tree.state[c.CONSTRAINTS])
        out, slots, stack = np.empty(size + c.CHUNK, np.int64), np.empty(size, np.int64), searching.stack_size(tree)
        box = path_of_line(line)[1][-1]
        certain, met = searching.split_by_box(tree, box, np.empty(stack, np.int64), out, 0, slots)
        near = [h for h in tree.constraint[slots[:met], c.ID].tolist() if self._holds(h, line)]
        return np.concatenate((out[:certain], np.array(near, np.int64)))

    def _cost(self, handle: int, value: Any) -> int:
        """Of relations, besides what `relate_line` takes itself."""
        far = self._is_far(handle)
        edges = int((self._paths.rows if far else self._rows.array)[handle, searching.EDGES])
        return OBJECTS_COST + (_FAR_COST * (edges + len(value)) if far and type(value) is Line else 0)

    def _learn_value(self, traffic: Traffic, value: Any, found: list[int]) -> None:
        if type(value) is Line:
            self.news |= traffic.meet(value.bounds, found, len(value))
        else:
            super()._learn_value(traffic, value, found)

    def _add_other_sides(self, names: Sequence[int], values: Sequence[Any], answers: list[Ints | None]) -> None:
        """Let points on the 180th meridian be on both sides of it (lonlat.py says how)."""
        for place, value in enumerate(values):
            mine = answers[place]
            if mine is not None and (other := other_side(value)) is not None:
                theirs = self._trees[names[place]].search(other)
                either, both = np.union1d(mine, theirs), np.intersect1d(mine, theirs)
                apart = self._rows.array[either, 2] & _APART != 0
                answers[place] = either[~apart | np.isin(either, both)]

    def _search_far(self, names: Sequence[int], values: Sequence[Any]) -> list[tuple[int, Ints]]:
        """The places of values, and the distance constraints that each satisfies."""
        answers: list[tuple[int, Ints]] = []
        points: dict[int, list[int]] = {}
        rows, heap, left = self._paths.rows, self._paths.heap, allowance.left()
        for place, (name, value) in enumerate(zip(names, values, strict=True)):
            if name not in self._reaches:
                continue
            if type(value) is Point and not self._degrees:
                points.setdefault(name, []).append(place)
            else:
                tree = self._reaches[name].tree.tree
                out = np.empty(int(tree.state[c.CONSTRAINTS]) + c.CHUNK, np.int64)
                if self._degrees:
                    answers.append((place, self._search_earth(tree, value, out)))
                    continue
                stack = np.empty(searching.stack_size(tree), np.int64)
                count = searching.search_near(tree, rows, heap, *path_of(value), stack, out, 0, left)
                answers.append((place, self._on_its_side(out[:count].copy(), value)))
        for name, places in points.items():
            given = np.array([xy for place in places for xy in (values[place].x, values[place].y)]).reshape(-1, 2)
            out, ends = self.search_places(name, given)
            spans = pairwise([0, *ends.tolist()])
            found = [(place, out[a:b]) for place, (a, b) in zip(places, spans, strict=True)]
            if self._any_at:
                found = [(place, self._on_its_side(each, values[place])) for place, each in found]
            answers += found
        allowance.check(left)
        return answers

    def search_places(self, name: int, places: Floats) -> tuple[Ints, Ints]:
        """The posted distance constraints of a name that points (n, 2) of the plane satisfy, and where each's end.

        Relations to points are among them where the point is at no distance.
        """
        return self._reaches[name].search_places(self._paths.rows, self._paths.heap, places)

    def _on_its_side(self, handles: Ints, value: Any) -> Ints:
        """Of the constraints whose shapes a value is near enough, those whose points it is also related to."""
        if not self._any_at or not (at := self._records.flags[handles] & _AT != 0).any():
            return handles
        fits = np.ones(len(handles), np.bool_)
        fits[at] = self._related(np.zeros(int(at.sum()), np.int64), handles[at], [value])
        return handles[fits]

    def _related(self, numbers: Ints, handles: Ints, values: Sequence[Any]) -> NDArray[np.bool_]:
        """Whether the value of each number is in its relation to the point or line of each handle."""
        lines = [self._one_by_one(values[n], self._records.get(h)[2]) for n, h in _pairs(numbers, handles)]
        if any(lines):
            one_by_one = np.array(lines)
            held = np.empty(len(numbers), np.bool_)
            held[one_by_one] = PlainType.holds(self, numbers[one_by_one], handles[one_by_one], values)
            if not all(lines):
                held[~one_by_one] = self._related(numbers[~one_by_one], handles[~one_by_one], values)
            return held
        places, rings = placed(values, numbers)
        held = np.empty(len(numbers), np.bool_)
        wanted = np.array([self._records.get(handle)[1].mask for handle in handles.tolist()], np.int64)
        heap = self._paths.heap
        locate_pairs(heap, self._paths.rows[handles, searching.BLOCK], places, rings, numbers, wanted, held)
        return held

    def _one_by_one(self, value: Any, operand: object) -> bool:
        """Whether lines are concerned, or a point on the 180th meridian that may be on both sides of a region."""
        return Line in (type(value), type(operand)) or (self._degrees and other_side(operand) is not None)

    def _holds(self, handle: int, value: Any) -> bool:
        if not self._degrees:
            return super()._holds(handle, value)
        allowance.spend(self._cost(handle, value))
        return holds_in_degrees(self.constraint(handle, "x"), value, discretization=self.settings.discretization)

    def _search_earth(self, tree: Tree, value: Any, out: Ints) -> Ints:
        from contrada.spatial.distance.searching_earth import search_near_on_earth  # compiled where it is needed

        rows, heap, left = self._paths.rows, self._paths.heap, allowance.left()
        found = out[: search_near_on_earth(tree, rows, heap, *path_of(value), out, left)].copy()
        return self._on_its_side(found, value)

    def holds(self, numbers: Ints, handles: Ints, values: Sequence[Any]) -> NDArray[np.bool_]:
        """Decide the pairs of relations in one call, those of distances in another, and those of lines one by one."""
        if not isinstance(values, PointColumn) and Line in {*map(type, values)}:
            lined = np.array([type(value) is Line for value in values])[numbers]
            held = np.empty(len(numbers), np.bool_)
            held[lined] = PlainType.holds(self, numbers[lined], handles[lined], values)
            if not lined.all():
                rest = [None if type(value) is Line else value for value in values]
                held[~lined] = self.holds(numbers[~lined], handles[~lined], rest)
            return held
        far = self._records.flags[handles] & _FAR != 0
        if not far.any():
            return self._relate(numbers, handles, values)
        held = np.empty(len(numbers), np.bool_)
        if not far.all():
            held[~far] = self._relate(numbers[~far], handles[~far], values)
        places, rings = placed(values, numbers[far])
        mine = np.empty(int(far.sum()), np.bool_)
        heap = self._paths.heap
        decide = searching.decide_pairs
        if self._degrees:
            from contrada.spatial.distance.searching_earth import decide_pairs_on_earth as decide
        decide(self._paths.rows, heap, places, rings, numbers[far], handles[far], mine, left := allowance.left())
        allowance.check(left)
        at = self._records.flags[handles[far]] & _AT != 0
        if at.any():
            mine[at] = self._related(numbers[far][at], handles[far][at], values)
        held[far] = mine
        self._learn_pairs(handles[far], mine)
        return held

    def decide_pending(
        self, pending: Ints, pairs: Ints, owners: Ints, matched: Ints, values: Sequence[Any], *, learn: bool = True
    ) -> NDArray[np.int8] | None:
        """Those of relations of points and regions; if there are others, the caller asks `holds`."""
        lines = not isinstance(values, PointColumn) and Line in {*map(type, values)}
        if self._degrees or lines or (self._records.flags[pairs[:, 2]] & _FAR).any():
            return None
        return super().decide_pending(pending, pairs, owners, matched, values, learn=learn)

    def _relate(self, numbers: Ints, handles: Ints, values: Sequence[Any]) -> NDArray[np.bool_]:
        """Decide pairs of relations."""
        held = super().holds(numbers, handles, values)
        if self._degrees:
            others = [other_side(value) for value in values]
            twice = np.array([others[number] is not None for number in numbers.tolist()], np.bool_)
            if twice.any():
                also = super().holds(numbers[twice], handles[twice], others)
                apart = self._rows.array[handles[twice], 2] & _APART != 0
                held[twice] = np.where(apart, held[twice] & also, held[twice] | also)
        return held

    def covers(self, first: int, second: int, budget: CoveringBudget) -> bool:
        """Whether the second handle's constraint implies the first's."""
        if self._is_far(first) or self._is_far(second):
            return PlainType.covers(self, first, second, budget)
        return super().covers(first, second, budget)

    def promise(self, handle: int, others: Ints, *, above: bool) -> NDArray[np.float64]:
        """As of relations; of distances by the grown boxes, of which one must contain the other."""
        far = (self._records.flags[others] & _FAR != 0) | self._is_far(handle)
        if not far.any():
            return super().promise(handle, others, above=above)
        promises = np.zeros(len(others))
        if not far.all():
            promises[~far] = super().promise(handle, others[~far], above=above)
        mine, theirs = np.repeat(self.boxes(np.array([handle])), int(far.sum()), axis=0), self.boxes(others[far])
        apart = self._rows.array[handle, 2] == _APART
        alike = apart == (self._rows.array[others[far], 2] == _APART)
        inner, outer = (mine, theirs) if above != apart else (theirs, mine)
        fits = alike & (outer[:, :2] <= inner[:, :2]).all(axis=1) & (inner[:, 2:] <= outer[:, 2:]).all(axis=1)
        promises[far] = np.where(fits, 1.0 + np.minimum(_extent(outer) - _extent(inner), 1e300), 0.0)
        return promises

    def _posted(self) -> dict[int, set[int]]:
        """Those of relations."""
        far = set(self._records.marked(_FAR).tolist())
        return {name: rest for name, handles in super()._posted().items() if (rest := handles - far)}

    def _check(self) -> None:
        super()._check()
        far = set(self._records.marked(_FAR).tolist())
        posted = {name: handles & far for name, handles in PlainType._posted(self).items() if handles & far}
        assert {name: set(reach.tree.ids.tolist()) for name, reach in self._reaches.items()} == posted
        for handle in far:
            _, op, value = self._records.get(handle)
            self._paths._check(handle, op, cast("Distance", distance_of(value, self._degrees)))
        for reach in self._reaches.values():
            reach.tree._check()


def _joined(one: tuple[Ints, Ints], other: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """What two searches of the same points found, and where each point's end."""
    (hits, ends), (more, others) = one, other
    places = [np.repeat(np.arange(len(each)), np.diff(each, prepend=0)) for each in (ends, others)]
    order = np.argsort(np.concatenate(places), kind="stable")
    return np.concatenate((hits[: ends[-1]], more))[order], ends + others


_AS_RELATION: Final = {Operator.WITHIN: Operator.INTERSECTS, Operator.BEYOND: Operator.DISJOINT}


def _pairs(numbers: Ints, handles: Ints) -> zip[tuple[int, int]]:
    return zip(numbers.tolist(), handles.tolist(), strict=True)


def _extent(boxes: Floats) -> Floats:
    extent: Floats = (boxes[:, 2] - boxes[:, 0]) + (boxes[:, 3] - boxes[:, 1])
    return extent
