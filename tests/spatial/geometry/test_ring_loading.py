"""A bulk load in several threads stores what one thread stores, and refuses what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.errors import InvalidRegion
from contrada.spatial.cr_tree.tree import CRTree
from contrada.spatial.geometry import ring_arena, ring_loading
from contrada.spatial.geometry.region import Region

small = st.integers(0, 3)


@pytest.fixture(autouse=True)
def three_threads(monkeypatch):
    """Three parts, of however few vertices."""
    monkeypatch.setattr(ring_loading, "THREADS", 3)
    monkeypatch.setattr(ring_loading, "_LEAST", 1)


def flat(rings):
    coords = np.array([point for ring in rings for point in ring], float).reshape(-1, 2)
    return coords, np.cumsum([0, *map(len, rings)])


@given(st.lists(st.lists(st.tuples(small, small), max_size=7), min_size=1, max_size=25))
@settings(max_examples=200)
def test_rings_are_stored_once_whatever_part_they_come_in(rings):
    """Few distinct coordinates: equal rings, straight vertices and faults are common, in any part."""
    regions, fault = [], None
    for place, ring in enumerate(rings):
        try:
            regions.append(Region(ring))
        except InvalidRegion as error:
            fault = fault or f"ring {place} (id {place}): {error}"
    sound = flat([region.coords for region in regions for _ in range(3)])
    tree = CRTree.bulk(np.arange(3 * len(regions)), sound, np.ones(3 * len(regions), int))
    tree._check()
    assert [tree.region_of(id) for id in range(3 * len(regions))] == [r for r in regions for _ in range(3)]
    if fault is None:
        tree = CRTree.bulk(np.arange(len(rings)), flat(rings), np.ones(len(rings), int))
        tree._check()
        assert [tree.region_of(id) for id in range(len(rings))] == regions
    else:
        with pytest.raises(InvalidRegion) as refused:
            CRTree.bulk(np.arange(len(rings)), flat(rings), np.ones(len(rings), int))
        assert str(refused.value) == fault


@pytest.mark.parametrize("straight", [0, 1, 4, 40])
def test_what_a_part_leaves_of_its_share_is_blocks_like_any(straight):
    """Vertices on a straight side are dropped, so that the rings take less room than was kept for them."""
    side = [(k / (straight + 1), 0) for k in range(1, straight + 1)]
    rings = [[(x + a, b) for a, b in [(0, 0), *side, (1, 0), (1, 1), (0, 1)]] for x in range(30)]
    tree = CRTree.bulk(np.arange(30), flat(rings), np.ones(30, int))
    tree._check()
    block = ring_arena.class_size(ring_arena.size_class(ring_arena.ring_size(4)))
    assert len(tree.arrays()["heap"]) < 2 * 30 * block
    for id in range(30, 60):
        tree.insert(id, Region([(id, 5), (id + 1, 5), (id + 1, 6), (id, 6)]), 1)
    tree._check()


@given(st.integers(ring_arena.SMALLEST, 5000))
def test_any_room_that_holds_a_block_is_made_of_blocks(size):
    heap, state = np.zeros(size + 7), np.full(ring_arena.STATE_SIZE, -1, np.int64)
    ring_arena.give_back(heap, state, 7, size)
    blocks = []
    for which in range(ring_arena.CLASSES):
        block = int(state[1 + which])
        while block >= 0:
            blocks.append((block, ring_arena.class_size(which)))
            block = int(heap[block])
    end = 7
    for block, length in sorted(blocks):
        assert block == end
        end += length
    assert end == size + 7


def test_a_heap_of_equal_rings_is_small():
    rings = [[(0, 0), (1, 0), (1, 1), (0, 1)]] * 3000
    tree = CRTree.bulk(np.arange(3000), flat(rings), np.ones(3000, int))
    tree._check()
    assert len(tree.arrays()["heap"]) < 200
    assert len(tree.search(Region([(0, 0), (1, 0), (1, 1), (0, 1)]))) == 0  # equals is not disjoint


@pytest.mark.parametrize(("touching", "short"), [(100, 2900), (2900, 100)])
def test_the_first_fault_in_the_order_given_is_told(touching, short):
    """Whether it is seen while reading or while proving."""
    rings = [[(x, 0), (x + 1, 0), (x + 1, 1), (x, 1)] for x in range(3000)]
    rings[touching] = [(0, 0), (4, 4), (4, 0), (0, 4)]
    rings[short] = [(0, 0), (1, 1)]
    with pytest.raises(InvalidRegion, match=r"ring 100 \(id 100\)"):
        CRTree.bulk(np.arange(3000), flat(rings), np.ones(3000, int))
