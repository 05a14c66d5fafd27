from __future__ import annotations

import math
import random
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from contrada.errors import CorruptFile, InvalidRegion, InvalidValue, NotFound
from contrada.spatial.cr_tree import change as cr_change
from contrada.spatial.cr_tree import rows as cr_rows
from contrada.spatial.cr_tree.edges import edge_touches_box
from contrada.spatial.cr_tree.tree import CRTree
from contrada.spatial.geometry import ring_reader
from contrada.spatial.geometry.region import MAX_VERTICES, Box, Point, Region
from contrada.spatial.relations.mbr import POSSIBLE_OF_PARTS, relate_boxes
from contrada.spatial.relations.relate import EXACT, Uniform, relate
from contrada.spatial.relations.relation import INTERSECTS, RELATIONS, Relation
from contrada.spatial.storage.arrays_file import save_arrays
from tests import strategies
from tests.naive.cr_tree import NaiveConstraints

if TYPE_CHECKING:
    from pathlib import Path

DISCRETIZATIONS = [EXACT, Uniform(0.7), Uniform(0.0), Uniform(1.3, halo=True)]

# Small whole coordinates: shared edges, corners on edges, equal and nested regions are common.
grid = st.integers(0, 8)
boxes = st.builds(lambda x, y, w, h: Box(x, y, x + w, y + h), grid, grid, st.integers(1, 5), st.integers(1, 5))


@st.composite
def polygons(draw: st.DrawFn) -> Region:
    points = draw(st.lists(st.tuples(grid, grid), min_size=3, max_size=9, unique=True))
    cx, cy = sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
    points.sort(key=lambda p: (math.atan2(p[1] - cy, p[0] - cx), math.dist(p, (cx, cy))))
    try:
        return Region(points)
    except InvalidRegion:
        x, y = points[0]
        return Box(x, y, x + 1, y + 1)


def star(rng: random.Random, x: float, y: float, radius: float, vertices: int) -> Region:
    """A star-shaped polygon: at most half a turn between neighbours, so it is simple."""
    step = 2 * math.pi / vertices
    angles = [(k + 0.9 * rng.random()) * step for k in range(vertices)]
    spokes = [radius * rng.uniform(0.3, 1.0) for _ in angles]
    return Region([(x + r * math.cos(a), y + r * math.sin(a)) for r, a in zip(spokes, angles, strict=True)])


stars = st.builds(
    lambda seed, vertices: star(random.Random(seed), *divmod(seed, 9), 1 + seed % 4, vertices),
    st.integers(0, 80),
    st.sampled_from([4, 17, 40, 300]),
)
regions = st.one_of(boxes, polygons(), stars, strategies.compound_regions())
masks = st.one_of(st.sampled_from([r.mask for r in RELATIONS]), st.just(INTERSECTS), st.integers(1, 255))
points = st.builds(Point, st.integers(0, 18).map(lambda v: v / 2), grid)


class Changes(RuleBasedStateMachine):
    """A tree and its twin through the same changes."""

    discretization = EXACT
    ids = Bundle("ids")
    used = Bundle("used")

    def __init__(self) -> None:
        super().__init__()
        self.tree = CRTree(self.discretization)
        self.twin = NaiveConstraints(self.discretization)
        self.count = 0

    @rule(target=used, region=regions)
    def region(self, region):
        return region

    @rule(target=ids, region=st.one_of(used, regions), mask=masks)
    def insert(self, region, mask):
        self.count += 1
        id = self.count * (-1) ** self.count << 40
        self.tree.insert(id, region, mask)
        self.twin.insert(id, region, mask)
        return id

    @rule(seed=st.integers(0, 10**6), count=st.integers(1, 60))
    def insert_many(self, seed, count):
        rng = random.Random(seed)
        for _ in range(count):
            self.count += 1
            box = Box(x := rng.randrange(9), y := rng.randrange(9), x + rng.randint(1, 3), y + rng.randint(1, 3))
            mask = rng.choice([*(r.mask for r in RELATIONS), INTERSECTS])
            self.tree.insert(self.count, box, mask)
            self.twin.insert(self.count, box, mask)

    @precondition(lambda self: self.twin.constraints)
    @rule(seed=st.integers(0, 10**6), share=st.floats(0, 1))
    def remove_many(self, seed, share):
        rng = random.Random(seed)
        for id in [id for id in self.twin.constraints if id > 0 and id < 1 << 40 and rng.random() < share]:
            self.tree.remove(id)
            self.twin.remove(id)

    @rule(id=consumes(ids))
    def remove(self, id):
        self.tree.remove(id)
        self.twin.remove(id)
        assert id not in self.tree

    @rule(query=st.one_of(regions, used, points))
    def search(self, query):
        assert sorted(self.tree.search(query).tolist()) == self.twin.search(query)

    @rule(query=st.one_of(regions, used))
    def sift(self, query):
        sifted = self.tree.sift(query).tolist()
        assert len(sifted) == len({*sifted})
        assert {*self.twin.search(query)} <= {*sifted}
        for id in sifted:
            region, mask = self.twin.constraints[id]
            assert POSSIBLE_OF_PARTS[relate_boxes(*query.bounds, *region.bounds)] & mask

    @rule(queries=st.lists(points, max_size=5))
    def search_points(self, queries):
        before = self.tree.counters.searches
        found = self.tree.search_points(queries)
        assert [sorted(each.tolist()) for each in found] == [self.twin.search(query) for query in queries]
        assert self.tree.counters.searches == before + len(queries)

    @invariant()
    def sound(self):
        assert len(self.tree) == len(self.twin.constraints)
        self.tree._check()


@pytest.mark.parametrize("discretization", DISCRETIZATIONS, ids=str)
def test_changes_and_searches_agree_with_the_linear_scan(discretization):
    machine = type("Changes", (Changes,), {"discretization": discretization})
    run_state_machine_as_test(machine, settings=settings(max_examples=25, stateful_step_count=30))


def populated(seed: int, count: int, discretization=EXACT) -> tuple[CRTree, NaiveConstraints]:
    rng = random.Random(seed)
    tree, twin = CRTree(discretization), NaiveConstraints(discretization)
    for id in range(count):
        region = star(rng, rng.uniform(0, 100), rng.uniform(0, 100), rng.uniform(0.5, 4), rng.choice([4, 8, 20, 300]))
        mask = rng.choice([*(r.mask for r in RELATIONS), INTERSECTS])
        tree.insert(id, region, mask)
        twin.insert(id, region, mask)
    return tree, twin


def bulk_of(twin: NaiveConstraints) -> CRTree:
    rings = [region for region, _ in twin.constraints.values()]
    return CRTree.bulk(list(twin.constraints), rings, [m for _, m in twin.constraints.values()], twin.discretization)


@given(st.lists(st.tuples(regions, masks), max_size=120), st.lists(st.one_of(regions, points), min_size=1, max_size=4))
@settings(max_examples=30)
def test_a_packed_tree_is_the_same_structure(constraints, queries):
    twin = NaiveConstraints()
    for id, (region, mask) in enumerate(constraints):
        twin.insert(id, region, mask)
    tree = bulk_of(twin)
    tree._check()
    for query in queries:
        assert sorted(tree.search(query).tolist()) == twin.search(query)
    for id in list(twin.constraints)[::2]:
        tree.remove(id)
        twin.remove(id)
    for id, (region, mask) in enumerate(constraints[:40], 1000):
        tree.insert(id, region, mask)
        twin.insert(id, region, mask)
    tree._check()
    for query in queries:
        assert sorted(tree.search(query).tolist()) == twin.search(query)


def test_flat_rings_need_not_be_canonical():
    given_rings = [
        [(0, 0), (0, 4), (4, 4), (4, 0)],  # clockwise
        [(4, 4), (0, 4), (0, 2), (0, 0), (2, 0), (4, 0), (4, 4)],  # closed, collinear, another start: the same square
        [(1, 1), (2, 1), (2, 1), (2, 2)],
    ]
    coords = np.array([p for ring in given_rings for p in ring], float)
    offsets = np.cumsum([0, *map(len, given_rings)])
    tree = CRTree.bulk([5, 6, 7], (coords, offsets), [Relation.EQUALS, Relation.COVERED_BY, Relation.INSIDE])
    tree._check()
    assert tree.region_of(5) == tree.region_of(6) == Box(0, 0, 4, 4)
    assert tree.region_of(7) == Region([(1, 1), (2, 1), (2, 2)])
    assert tree.mask_of(6) == Relation.COVERED_BY.mask
    assert tree.search(Box(0, 0, 4, 4)).tolist() == [5]
    assert tree.search(Box(0, 0, 4, 2)).tolist() == [6]


@pytest.mark.parametrize(
    ("ids", "rings", "masks", "fault"),
    [
        ([1, 1], [Box(0, 0, 1, 1), Box(0, 0, 2, 1)], [1, 1], "id 1 is given twice"),
        ([1], [Box(0, 0, 1, 1)], [1, 2], "one of each"),
        ([1], [Box(0, 0, 1, 1)], [256], "256 is not a set of relations"),
        ([9], (np.array([[0.0, 0], [1, 1], [2, 2]]), np.array([0, 3])), [1], "ring 0 .id 9.: zero area"),
        ([9], (np.zeros((3, 3)), np.array([0, 3])), [1], r"coords \(v, 2\)"),
        ([9], (np.zeros((3, 2)), np.array([0, 4])), [1], "offsets must rise"),
        ([9], (np.zeros((3, 2)), np.array([0.0, 3.0])), [1], "offsets are float64"),
        ([9], (np.zeros((3, 2), complex), np.array([0, 3])), [1], "expected real numbers"),
        ([9], (np.ma.zeros((3, 2)), np.array([0, 3])), [1], "expected real numbers"),
        ([1.5], [Box(0, 0, 1, 1)], [1], "ids are float64"),
        ([1 << 70], [Box(0, 0, 1, 1)], [1], "ids are object"),
        (np.array([2**63], np.uint64), [Box(0, 0, 1, 1)], [1], "does not fit 64 bits"),
        ([[1]], [Box(0, 0, 1, 1)], [1], "shape .1, 1."),
        ([[1], [2, 3]], [Box(0, 0, 1, 1)], [1], "not one list"),
        ([1], [Box(0, 0, 1, 1)], [True], "masks are bool"),
        ([1], ["POINT(1 2)"], [1], "0 is a str and no Region"),
        ([1], None, [1], "a NoneType is no list of regions"),
        ([1], [Box(0, 0, 1, 1)], 1, "masks are a int"),
        ([1], [Box(0, 0, 1, 1)], memoryview(np.ones((1, 1))), "masks are a memoryview"),
    ],
)
def test_bulk_refuses_what_is_no_set_of_constraints(ids, rings, masks, fault):
    with pytest.raises(InvalidValue, match=fault):
        CRTree.bulk(ids, rings, masks)


BOW_TIE = [(0, 0), (2, 2), (2, 0), (0, 2)]
SPIKE = [(0, 0), (4, 0), (4, 4), (4, 8), (4, 4), (0, 4)]


@pytest.mark.parametrize(
    ("ring", "fault"),
    [
        (BOW_TIE, "self-intersection"),
        (SPIKE, "spike"),
        ([(0, 0), (1, 0)], "2 distinct vertices"),
        ([], "0 distinct vertices"),
        ([(0, 0), (1, 0), (math.nan, 1)], "vertex 2 .* not finite"),
        ([(0, 0), (math.inf, 0), (1, 1)], "vertex 1 .* not finite"),
        ([(0, 0), (1e120, 0), (1, 1)], "range"),
        ([(0, 0), (1, 0), (1, 1e-120)], "range"),
    ],
)
def test_bulk_validates_rings_as_a_region_does(ring, fault):
    rings = [[(10, 0), (11, 0), (10, 1)], ring, [(20, 0), (21, 0), (20, 1)]]
    coords = np.array([p for points in rings for p in points], float)
    with pytest.raises(InvalidRegion, match=rf"ring 1 \(id 51\): .*{fault}"):
        CRTree.bulk([50, 51, 52], (coords, np.cumsum([0, *map(len, rings)])), [1, 1, 1])


def test_bulk_keeps_to_the_limit_of_vertices():
    angles = np.arange(MAX_VERTICES + 1) * (2 * math.pi / (MAX_VERTICES + 1))
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    with pytest.raises(InvalidRegion, match=r"ring 0 \(id 1\): 100001 vertices"):
        CRTree.bulk([1], (circle, np.array([0, len(circle)])), [1])


@given(st.lists(st.lists(st.tuples(grid, grid), min_size=3, max_size=7), min_size=1, max_size=12))
@settings(max_examples=150)
def test_bulk_takes_the_rings_that_regions_take_and_stores_them_alike(rings):
    """Few distinct coordinates: repeats, straight vertices, spikes and contacts are common."""
    regions = []
    for ring in rings:
        coords = np.array(ring, float)
        coords[coords == 0] = -0.0
        flat = (coords, np.array([0, len(coords)]))
        fault = None
        try:
            regions.append(Region(ring))
        except InvalidRegion as error:
            fault = str(error)
        if fault is None:
            tree = CRTree.bulk([7], flat, [1])
            tree._check()
            assert tree.region_of(7) == regions[-1]
        else:
            with pytest.raises(InvalidRegion) as refused:
                CRTree.bulk([7], flat, [1])
            assert str(refused.value) == f"ring 0 (id 7): {fault}"
    tree = CRTree.bulk(np.arange(len(regions)), regions, np.ones(len(regions), int))
    tree._check()
    assert [tree.region_of(id) for id in range(len(regions))] == regions


def test_no_kernel_is_compiled_again_for_other_integers_or_for_read_only_arrays():
    """Compiling takes seconds, in the middle of a program."""
    kernels = (cr_change.insert, cr_change.remove, cr_rows.find_slot, ring_reader.read_rings)
    coords, offsets, ids = np.array([(0.0, 0), (1, 0), (1, 1)]), np.array([0, 3]), np.array([1])

    def use(integer):
        tree = CRTree.bulk(ids, (coords, offsets), ids)
        tree.insert(integer(2), Box(0, 0, 1, 1), integer(3))
        assert integer(2) in tree
        tree.remove(integer(2))

    use(int)
    compiled = [len(kernel.signatures) for kernel in kernels]
    for array in (coords, offsets, ids):
        array.flags.writeable = False
    for integer in (np.int64, np.int16, np.uint8):
        use(integer)
    coords = coords.view(np.recarray)
    use(int)
    assert [len(kernel.signatures) for kernel in kernels] == compiled


def test_wrong_changes_are_refused_and_change_nothing():
    tree = CRTree()
    tree.insert(3, Box(0, 0, 1, 1), Relation.INSIDE)
    with pytest.raises(InvalidValue, match="id 3 is in the tree already"):
        tree.insert(3, Box(0, 0, 2, 1), Relation.INSIDE)
    with pytest.raises(InvalidValue, match="not a set of relations"):
        tree.insert(4, Box(0, 0, 2, 1), 0)
    for id in (1 << 63, 4.0, "4", True, None):
        with pytest.raises(InvalidValue, match="64 bits"):
            tree.insert(id, Box(0, 0, 2, 1), 1)
    for mask in (1.0, "inside", True, 256):
        with pytest.raises(InvalidValue, match="not a set of relations"):
            tree.insert(4, Box(0, 0, 2, 1), mask)
    for shape in (Point(0, 0), "BOX(0 0, 1 1)", None):
        with pytest.raises(InvalidValue, match="no Region"):
            tree.insert(4, shape, 1)
    for query in ((0, 0), "BOX(0 0, 1 1)", None):
        with pytest.raises(InvalidValue, match="no query"):
            tree.search(query)
    for how in ("exact", np.zeros(3)):
        with pytest.raises(InvalidValue, match="not a discretization"):
            CRTree(how)
    for call in (tree.remove, tree.region_of, tree.mask_of):
        for id in (4, 1 << 70, 10**5000, "4", np.zeros(2)):
            with pytest.raises(NotFound, match="no constraint has id"):
                call(id)
    tree._check()
    assert len(tree) == 1
    assert 3 in tree
    assert "3" not in tree


def test_covers_in_a_notch_has_a_strictly_containing_mbr():
    """Table 2 as printed would reject this pair by MBR."""
    notched = Region([(0, 0), (10, 0), (10, 10), (6, 10), (5, 5), (4, 10), (0, 10)])
    inner = Region([(4, 2), (6, 2), (5, 5)])
    assert relate(notched, inner) is Relation.COVERS
    tree = CRTree()
    tree.insert(1, inner, Relation.COVERS)
    tree.insert(2, inner, Relation.CONTAINS)
    tree.insert(3, notched, Relation.COVERED_BY)
    assert tree.search(notched).tolist() == [1]
    assert tree.search(inner).tolist() == [3]


def test_touching_a_node_is_not_lying_inside_it():
    """A node whose MBR touches the query's boundary from within must not be taken as contained."""
    tree = CRTree()
    for x in range(10):
        for y in range(10):
            tree.insert(10 * x + y, Box(x, y, x + 1, y + 1), Relation.CONTAINS)
    whole = tree.search(Box(0, 0, 10, 10)).tolist()
    assert sorted(whole) == [10 * x + y for x in range(1, 9) for y in range(1, 9)]
    diamond = Region([(5, 0), (10, 5), (5, 10), (0, 5)])  # passes through corners of cells
    twin = NaiveConstraints()
    for id in range(100):
        twin.insert(id, tree.region_of(id), tree.mask_of(id))
    assert sorted(tree.search(diamond).tolist()) == twin.search(diamond)


def test_points_inside_on_edges_and_corners():
    tree = CRTree()
    for id, mask in enumerate([Relation.INSIDE, Relation.MEETS, Relation.DISJOINT, INTERSECTS, Relation.OVERLAPS]):
        tree.insert(id, Box(0, 0, 4, 4), mask)
        tree.insert(10 + id, Region([(10, 0), (14, 0), (10, 4)]), mask)
    assert sorted(tree.search(Point(2, 2)).tolist()) == [0, 3, 12]
    assert sorted(tree.search(Point(4, 1)).tolist()) == [1, 3, 12]
    assert sorted(tree.search(Point(4, 4)).tolist()) == [1, 3, 12]
    assert sorted(tree.search(Point(13, 3)).tolist()) == [2, 12]
    assert sorted(tree.search(Point(12, 2)).tolist()) == [2, 11, 13]


def test_constraints_on_one_region_share_one_evaluation():
    tree = CRTree()
    triangle = Region([(0, 0), (8, 0), (0, 8)])
    for id, relation in enumerate(RELATIONS):
        tree.insert(id, triangle, relation)
    query = Region([(1, -1), (3, 3), (5, 1)])
    assert tree.search(query).tolist() == [Relation.OVERLAPS.code]
    assert tree.counters.relations_evaluated == 1
    assert tree.counters.immediate_accepts == 0


def test_missed_and_contained_nodes_are_decided_without_evaluation():
    tree, twin = populated(1, 1500)
    packed = bulk_of(twin)
    far = Box(1000, 1000, 1001, 1001)
    assert sorted(packed.search(far).tolist()) == twin.search(far)
    assert packed.counters.relations_evaluated == 0
    assert packed.counters.nodes_visited == 1
    everything = Box(-10, -10, 110, 110)
    assert sorted(packed.search(everything).tolist()) == twin.search(everything)
    assert packed.counters.relations_evaluated == 0
    assert packed.counters.nodes_visited == 2
    assert packed.counters.searches == 2
    # The cost follows the boundary: a query of four times the area evaluates about twice as much, far from four times.
    for index in (tree, packed):
        small, large = Box(30, 30, 50, 50), Box(20, 20, 60, 60)
        evaluated = []
        for query in (small, large):
            before = index.counters
            assert sorted(index.search(query).tolist()) == twin.search(query)
            evaluated.append(index.counters.relations_evaluated - before.relations_evaluated)
        assert 0 < evaluated[1] < 3 * evaluated[0]


def test_a_large_stored_ring():
    teeth = 3000
    comb = [(0.0, 0.0), (teeth, 0.0), *((x + (x % 2) * 0.5, 2.0 + x % 2) for x in range(teeth, -1, -1))]
    tree, twin = CRTree(), NaiveConstraints()
    for id, relation in enumerate(RELATIONS):
        tree.insert(id, Region(comb), relation)
        twin.insert(id, Region(comb), relation.mask)
    queries = [Box(10, 0.5, 11, 1), Box(10, 2.5, 2000, 4), Box(5, -1, 6, 0), Box(-1, -1, teeth + 1, 5), Region(comb)]
    for query in [*queries, Box(0, 0, 1, 1), Region([(9.5, 3.0), (9.4, 5), (9.6, 5)])]:
        assert tree.search(query).tolist() == twin.search(query)


def test_searches_at_the_same_time():
    _, twin = populated(2, 800)
    tree = bulk_of(twin)
    rng = random.Random(3)
    queries = [star(rng, rng.uniform(0, 100), rng.uniform(0, 100), 20, 12) for _ in range(40)]
    expected = [sorted(tree.search(query).tolist()) for query in queries]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda query: sorted(tree.search(query).tolist()), queries * 5))
    assert found == expected * 5
    assert tree.counters.searches == 6 * len(queries)


@pytest.mark.parametrize("discretization", [EXACT, Uniform(2.5, halo=True)], ids=str)
def test_a_saved_tree_is_the_tree(tmp_path: Path, discretization):
    tree, twin = populated(4, 200, discretization)
    for id in range(0, 200, 3):
        tree.remove(id)
        twin.remove(id)
    tree.save(tmp_path / "tree")
    loaded = CRTree.load(tmp_path / "tree")
    loaded._check()
    assert loaded.discretization == discretization
    for id in range(1, 200, 3):
        loaded.remove(id)
        twin.remove(id)
    for id in range(500, 700):
        region = Box(id % 10, id % 7, id % 10 + 2, id % 7 + 9)
        loaded.insert(id, region, Relation.OVERLAPS)
        twin.insert(id, region, Relation.OVERLAPS.mask)
    loaded._check()
    query = Box(0, 0, 30, 30)
    assert sorted(loaded.search(query).tolist()) == twin.search(query)
    CRTree.load(tmp_path / "tree")._check()  # the file did not change


def test_an_empty_tree_can_be_saved(tmp_path: Path):
    CRTree().save(tmp_path / "tree")
    loaded = CRTree.load(tmp_path / "tree")
    loaded.insert(1, Box(0, 0, 1, 1), Relation.DISJOINT)
    loaded._check()
    assert loaded.search(Point(5, 5)).tolist() == [1]
    assert CRTree.bulk([], [], []).search(Box(0, 0, 1, 1)).tolist() == []


def test_truncated_and_foreign_files_are_refused(tmp_path: Path):
    path = tmp_path / "tree"
    populated(5, 50)[0].save(path)
    whole = path.read_bytes()
    for size in (0, 10, 200, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptFile):
            CRTree.load(path)
    path.write_bytes(whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:])
    with pytest.raises(CorruptFile, match="checksum"):
        CRTree.load(path)
    save_arrays(path, kind="road-network", version=1, arrays={"state": np.zeros(3)})
    with pytest.raises(CorruptFile, match="holds a road-network"):
        CRTree.load(path)
    save_arrays(path, kind="cr-tree", version=1, arrays={"state": np.zeros(3)})
    with pytest.raises(CorruptFile, match="is missing"):
        CRTree.load(path)


def test_older_files_are_read(tmp_path: Path):
    """Layout 1 differs in that no region had several rings."""
    tree, _ = populated(5, 50)
    save_arrays(tmp_path / "tree", kind="cr-tree", version=1, arrays=tree.arrays())
    query = Box(0, 0, 40, 40)
    assert sorted(CRTree.load(tmp_path / "tree").search(query)) == sorted(tree.search(query))


def test_room_is_given_back():
    """Regions that come and go do not make the arrays grow."""
    rng = random.Random(6)
    rings = [star(rng, rng.uniform(0, 100), rng.uniform(0, 100), 2, rng.choice([4, 20, 100])) for _ in range(150)]
    tree = CRTree()
    sizes = set()
    for cycle in range(6):
        for id, region in enumerate(rings):
            tree.insert(id, region, Relation.DISJOINT)
        if cycle > 0:
            sizes.add(tuple(len(array) for array in tree._tree))
        for id in range(len(rings)):
            tree.remove(id)
    tree._check()
    assert len(sizes) == 1


coordinate = st.one_of(st.integers(-4, 4).map(float), st.floats(-1e3, 1e3).filter(lambda v: v == 0 or abs(v) > 1e-6))


@given(st.tuples(*[coordinate] * 8))
def test_an_edge_that_touches_a_box_is_never_missed(numbers):
    ax, ay, bx, by, x1, y1, x2, y2 = numbers
    x1, x2, y1, y2 = min(x1, x2), max(x1, x2), min(y1, y2), max(y1, y2)
    if x1 == x2 or y1 == y2:
        return
    # Clip the segment to the box (Liang-Barsky) in fractions.
    ends = [tuple(map(Fraction, axis)) for axis in ((ax, bx, x1, x2), (ay, by, y1, y2))]
    low, high = Fraction(0), Fraction(1)
    for start, end, least, most in ends:
        step = end - start
        if step == 0:
            if not least <= start <= most:
                low, high = Fraction(1), Fraction(0)
        else:
            first, second = sorted(((least - start) / step, (most - start) / step))
            low, high = max(low, first), min(high, second)
    if low <= high:
        assert edge_touches_box(*numbers[:4], x1, y1, x2, y2)
