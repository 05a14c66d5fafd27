"""The CR-tree: constraints on regions, indexed so that a region finds those it satisfies.

A constraint is a region and a set of relations, under an id. The query region A satisfies it when the relation of A to
the constraint's region is in the set. The tree is Guttman's R-tree over the distinct regions ([SIENA-2D], section 4.1),
whose nodes also list the constraints that hold when the query misses all that is below, or contains all of it; a search
costs what the query's boundary and the answer cost, whatever the query's area.

    cr_layout   the arrays
    cr_lists    the lists of the nodes
    cr_rows     rows taken and given back, and found by hash
    cr_nodes    Guttman's tree: choosing a leaf, splitting, condensing
    cr_change   insertion and removal
    cr_bulk     packing from many constraints at once
    cr_search   searching, by kernels that other kernels may call
    sifting     what MBRs leave possible, no relation evaluated
    cr_check    every invariant, for tests

With n constraints: `insert` and `remove` are O(log n) amortised; `search` is O(answer + nodes and entries that the
query's boundary touches); `bulk` is O(n log n). Searches may run at the same time as one another, not as a change.

>>> tree = CRTree()
>>> tree.insert(7, Box(0, 0, 4, 4), Relation.INSIDE)
>>> tree.insert(8, Box(0, 0, 4, 4), INTERSECTS)
>>> sorted(tree.search(Box(1, 1, 2, 2)).tolist()), tree.search(Point(4, 2)).tolist()
([7, 8], [8])
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Self, TypeGuard, cast

import numpy as np

from contrada.errors import CorruptFile, InvalidValue, NotFound, shown
from contrada.spatial import allowance
from contrada.spatial.cr_tree import bulk as cr_bulk
from contrada.spatial.cr_tree import change as cr_change
from contrada.spatial.cr_tree import check as cr_check
from contrada.spatial.cr_tree import guard as cr_guard
from contrada.spatial.cr_tree import layout as cr_layout
from contrada.spatial.cr_tree import rows as cr_rows
from contrada.spatial.cr_tree import search as cr_search
from contrada.spatial.cr_tree.layout import CHUNK, Tree
from contrada.spatial.cr_tree.sifting import sift_ring
from contrada.spatial.geometry import ring_arena
from contrada.spatial.geometry.compound.rows import MARK
from contrada.spatial.geometry.region import Point, Region, ring_of
from contrada.spatial.relations.relate import EXACT, Discretization, Uniform, check_discretization, only_regions
from contrada.spatial.relations.relation import ALL, Relation
from contrada.spatial.storage.arrays_file import load_arrays, save_arrays

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    Ids = NDArray[np.int64]
    Rings = tuple[NDArray[np.float64], NDArray[np.int64]]

_KIND: Final = "cr-tree"
_VERSION: Final = 2  # 1 has regions of one ring only
_OLDEST: Final = 1
_SIFTED: Final = 8  # nanoseconds, about, that an MBR takes at most
_ID_LIMIT: Final = 2**63
_STATUS: Final = (1 << cr_change.STATUS_BITS) - 1
_FOR_KERNELS: Final = ("C", "W", "E")  # kernels are compiled anew for read-only arrays, and not for subclasses


@dataclass(frozen=True)
class RegionCounters:
    """What searches have cost since the tree was made."""

    searches: int
    nodes_visited: int
    relations_evaluated: int
    immediate_accepts: int
    """Constraints that were found satisfied without evaluating a relation."""


class CRTree:
    """An index of constraints on regions; see the module's docstring. Ids are integers of 64 bits, each used once."""

    def __init__(self, discretization: Discretization = EXACT) -> None:
        self.discretization: Final = discretization
        self._mode, self._density = _mode_of(discretization)
        self._tree = cr_rows.empty_tree()
        self._tally = np.zeros(cr_search.TALLY_SIZE + 1, np.int64)
        self._one: Ids = np.empty((1, 4), np.int64)  # what `insert` hands over

    @classmethod
    def bulk(
        cls,
        ids: ArrayLike,
        regions: Sequence[Region] | Rings,
        masks: ArrayLike | Iterable[Relation],
        discretization: Discretization = EXACT,
    ) -> Self:
        """Build a packed tree from many constraints at once.

        `regions` are regions, or (coords, offsets): arrays of all vertices, (v, 2), and of where each ring starts and
        the last one ends. Such rings are validated and cleaned as by `Region`. `masks` are relations, or sets of them
        as bit masks.
        """
        id_array = _integers(ids, "ids")
        mask_array = _masks(masks)
        trusted = not (isinstance(regions, tuple) and len(regions) == 2 and isinstance(regions[0], np.ndarray))
        if not trusted:
            offsets = _integers(cast("Rings", regions)[1], "offsets")
            coords = _coordinates(cast("Rings", regions)[0], offsets)
        else:
            rings = [ring_of(region)[0] for region in only_regions(regions)]
            coords = np.concatenate(rings) if rings else np.empty((0, 2))
            offsets = np.zeros(len(rings) + 1, np.int64)
            np.cumsum([len(ring) for ring in rings], out=offsets[1:])
        count = len(offsets) - 1
        if not count == len(id_array) == len(mask_array):
            raise InvalidValue(
                f"{len(id_array)} ids, {count} regions and {len(mask_array)} masks: one of each is needed"
            )
        tree = cls(discretization)
        if count:
            tree._tree = cr_bulk.build(coords, offsets, id_array, mask_array, trusted=trusted)
        return tree

    def insert(self, id: int, region: Region, relations: Relation | int) -> None:
        """Add the constraint that a query has one of the relations to the region. The id must be new."""
        mask = relations.mask if isinstance(relations, Relation) else relations
        if not _is_integer(mask) or not 0 < mask <= ALL:
            raise InvalidValue(f"{shown(relations)} is not a set of relations: a bit mask from 1 to {ALL}")
        if not _is_integer(id) or not -_ID_LIMIT <= id < _ID_LIMIT:
            raise InvalidValue(f"id {shown(id)} is not an integer that fits 64 bits")
        id, mask = int(id), int(mask)  # kernels are compiled for each type of integer that they are called with
        xy = _ring(region)
        while (status := cr_change.insert(self._tree, id, mask, xy)) != 0:
            if status == cr_change.UNKNOWN:
                raise InvalidValue(f"id {id} is in the tree already")
            self._tree = cr_rows.grow(self._tree, cr_change.GROW - status, len(xy))

    def insert_stored(self, id: int, mask: int, block: int, edges: int, heap: NDArray[np.float64]) -> None:
        """As `insert` of a valid ring in a heap (`ring_arena`), nothing else being looked at."""
        self._one[0] = id, mask, block, edges
        self.insert_rows(self._one, heap)

    def insert_rows(self, rows: Ids, heap: NDArray[np.float64]) -> None:
        """As `insert_stored` of each row (id, mask, block, edges)."""
        done = 0
        while (answer := cr_change.insert_rows(self._tree, rows, heap, done)) & _STATUS:
            done, status = answer >> cr_change.STATUS_BITS, -(answer & _STATUS)
            if status == cr_change.UNKNOWN:
                raise InvalidValue(f"id {rows[done, 0]} is in the tree already")
            self._tree = cr_rows.grow(self._tree, cr_change.GROW - status, int(rows[done, 3]) + 1)

    def remove(self, id: int) -> None:
        """Take out the constraint with that id; NotFound when there is none."""
        self._slot(id)
        while (status := cr_change.remove(self._tree, int(id))) != 0:
            self._tree = cr_rows.grow(self._tree, cr_change.GROW - status, 0)

    def search(self, query: Region | Point) -> Ids:
        """Return the ids of the constraints that the query satisfies, in no particular order."""
        tree = self._tree
        # Kernels copy chunks whole, hence a little more room than constraints.
        out = np.empty(int(tree.state[cr_layout.CONSTRAINTS]) + CHUNK, np.int64)
        tally = np.zeros(cr_search.TALLY_SIZE + 1, np.int64)
        tally[-1] = 1
        left = allowance.left()
        if isinstance(query, Point):
            count = cr_search.search_point(tree, query.x, query.y, out, tally, left)
        elif not isinstance(query, Region):
            raise InvalidValue(f"a {type(query).__name__} is no query: make it a Region (Region.of) or a Point")
        else:
            xy, boxes = ring_of(query)
            count = cr_search.search_ring(tree, xy, boxes, self._mode, self._density, out, tally, left)
        self._tally += tally
        allowance.check(left)
        out.resize(count, refcheck=False)  # gives the rest back without a copy
        return out

    def sift(self, query: Region) -> Ids:
        """The ids of the constraints that a region may satisfy, by its MBR: those it does satisfy and others."""
        tree = self._tree
        xy, boxes = ring_of(query)
        out = np.empty(int(tree.state[cr_layout.CONSTRAINTS]) + CHUNK, np.int64)
        allowance.spend(_SIFTED * len(out))
        count = sift_ring(tree, boxes, bool(xy[0, 0] == MARK), out)
        out.resize(count, refcheck=False)
        return out

    def search_points(self, points: Sequence[Point]) -> list[Ids]:
        """As `search` of each point, cheaper for each."""
        places = np.array([xy for point in points for xy in (point.x, point.y)]).reshape(-1, 2)
        out, ends = self.search_places(places)
        return [out[start:end] for start, end in pairwise([0, *ends.tolist()])]

    def search_places(self, places: NDArray[np.float64]) -> tuple[Ids, Ids]:
        """As `search` of the points (n, 2): all ids, one answer behind another, and where each ends."""
        ends = np.zeros(len(places), np.int64)
        tally = np.zeros(cr_search.TALLY_SIZE + 1, np.int64)
        tally[-1] = len(places)
        left = allowance.left()
        out = np.empty(2 * int(self._tree.state[cr_layout.CONSTRAINTS]) + 8 * CHUNK, np.int64)
        done = 0
        while (done := cr_search.search_points(self._tree, places, done, out, ends, tally, left)) < len(places):
            out = np.concatenate((out, np.empty_like(out)))
        self._tally += tally
        allowance.check(left)
        return out[: ends[-1] if len(ends) else 0], ends

    @property
    def counters(self) -> RegionCounters:
        """What searches have cost since the tree was made."""
        visited, evaluated, accepted, searches = self._tally.tolist()
        return RegionCounters(searches, visited, evaluated, accepted)

    @property
    def tree(self) -> Tree:
        """The arrays, for kernels that walk them; not to be changed."""
        return self._tree

    @property
    def tally(self) -> Ids:
        """What `counters` counts, for kernels that search: TALLY_SIZE numbers of search.py, and the searches.

        Threads that search at once may lose some.
        """
        return self._tally

    @property
    def ids(self) -> Ids:
        """The ids of all constraints."""
        rows = self._tree.constraint[: int(self._tree.state[cr_layout.SLOTS])]
        found: Ids = rows[rows[:, cr_layout.ENTRY] >= 0, cr_layout.ID]
        return found

    def region_of(self, id: int) -> Region:
        """Return the region of the constraint with that id; NotFound when there is none."""
        tree = self._tree
        entry = tree.constraint[self._slot(id), cr_layout.ENTRY]
        block, edges = tree.entry[entry, cr_layout.BLOCK], tree.entry[entry, cr_layout.EDGES]
        return Region.trusted_rows(ring_arena.ring_xy(tree.heap, block, edges))

    def mask_of(self, id: int) -> int:
        """Return the set of relations of the constraint with that id; NotFound when there is none."""
        return int(self._tree.constraint[self._slot(id), cr_layout.MASK])

    def __len__(self) -> int:
        """How many constraints there are."""
        return int(self._tree.state[cr_layout.CONSTRAINTS])

    def __contains__(self, id: object) -> bool:
        """Whether there is a constraint with that id."""
        return _is_integer(id) and -_ID_LIMIT <= id < _ID_LIMIT and cr_rows.find_slot(self._tree, int(id)) >= 0

    def _slot(self, id: int) -> int:
        if id not in self:
            raise NotFound(f"no constraint has id {shown(id)}")
        return cr_rows.find_slot(self._tree, int(id))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the tree's arrays, without the room they keep for growth."""
        tree = self._tree
        rows = {
            "boxes": cr_layout.NODES,
            "node": cr_layout.NODES,
            "chunk": cr_layout.CHUNKS,
            "position": cr_layout.SLOTS,
            "entry": cr_layout.ENTRIES,
            "constraint": cr_layout.SLOTS,
            "heap": cr_layout.HEAP_STATE + ring_arena.USED,
        }
        return {
            name: array[: int(tree.state[rows[name]])] if name in rows else array
            for name, array in tree._asdict().items()
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], discretization: Discretization = EXACT) -> Self:
        """Make a tree of what `arrays` gave, mapped or not: they are copied where they change or grow.

        `CorruptFile` unless they are those of a tree (guard.py).
        """
        if missing := [name for name in Tree._fields if name not in arrays]:
            raise CorruptFile(f"CR-tree: the array {missing[0]!r} is missing")
        made = Tree(**{name: arrays[name] for name in Tree._fields})
        cr_guard.guard(made)
        tree = cls(discretization)
        tree._tree = made
        return tree

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree to one file."""
        meta: dict[str, object] = {}
        if isinstance(self.discretization, Uniform):
            meta = {"density": self.discretization.density, "halo": self.discretization.halo}
        save_arrays(path, kind=_KIND, version=_VERSION, arrays=self.arrays(), meta=meta)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Map a tree from a file that `save` wrote. It can be changed; changes stay in memory.

        Pages are read when first touched and copied when first written. An array that has to grow is copied whole.
        """
        arrays, meta = load_arrays(path, kind=_KIND, version=_VERSION, oldest=_OLDEST)
        try:
            return cls.from_arrays(arrays, Uniform(**meta) if meta else EXACT)
        except (CorruptFile, TypeError, InvalidValue) as error:
            raise CorruptFile(f"{path}: {error}") from None

    def _check(self) -> None:
        """Assert every invariant of the structure."""
        cr_check.check(self._tree)


def _mode_of(discretization: Discretization) -> tuple[int, float]:
    check_discretization(discretization)
    if isinstance(discretization, Uniform):
        return cr_search.UNIFORM_HALO if discretization.halo else cr_search.UNIFORM, discretization.density
    return cr_search.EXACTLY, 0.0


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _ring(region: object) -> NDArray[np.float64]:
    if not isinstance(region, Region):
        raise InvalidValue(f"a {type(region).__name__} is no Region; make it one (Region.of)")
    return ring_of(region)[0]


def _integers(values: ArrayLike, name: str) -> Ids:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidValue(f"{name} are not one list of integers") from None
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidValue(f"{name} are {array.dtype} of shape {array.shape}; expected a list of 64-bit integers")
    if array.dtype == np.uint64 and array.size and array.max() >= _ID_LIMIT:
        raise InvalidValue(f"{name}: {array.max()} does not fit 64 bits")
    return np.require(array, np.int64, _FOR_KERNELS)


def _masks(masks: ArrayLike | Iterable[Relation]) -> Ids:
    if not isinstance(masks, np.ndarray):
        if not isinstance(masks, Iterable) or getattr(masks, "ndim", 1) != 1:
            raise InvalidValue(f"masks are a {type(masks).__name__}; expected one for each region")
        masks = [mask.mask if isinstance(mask, Relation) else mask for mask in cast("Iterable[Any]", masks)]
    array = _integers(masks, "masks")
    wrong = array[(array <= 0) | (array > ALL)]
    if len(wrong):
        raise InvalidValue(f"{wrong[0]} is not a set of relations: a bit mask from 1 to {ALL}")
    return array


def _coordinates(coords: NDArray[Any], offsets: Ids) -> NDArray[np.float64]:
    if coords.ndim != 2 or coords.shape[1] != 2 or not len(offsets):
        raise InvalidValue(f"rings are coords (v, 2) and offsets (n+1,), not {coords.shape} and {offsets.shape}")
    if coords.dtype.kind not in "fiu" or isinstance(coords, np.ma.MaskedArray):
        raise InvalidValue(f"coordinates are {type(coords).__name__}s of {coords.dtype}; expected real numbers")
    if offsets[0] < 0 or offsets[-1] > len(coords) or (np.diff(offsets) < 0).any():
        raise InvalidValue(f"offsets must rise from 0 to at most {len(coords)}, the number of vertices")
    with np.errstate(over="ignore"):  # what is too large for a double becomes infinite, and is refused as that
        return np.require(coords, np.float64, _FOR_KERNELS)
