"""Every invariant of a CR-tree, asserted: what `CRTree._check` does. Slow, and independent of the kernels."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from contrada.spatial.cr_tree import layout as c
from contrada.spatial.geometry import ring_arena
from contrada.spatial.geometry.compound.rows import closed_rings, is_compound, sound_rows
from contrada.spatial.geometry.rings import box_rows

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from contrada.spatial.cr_tree.layout import Tree


def check(t: Tree) -> None:
    """Assert that the arrays are a CR-tree."""
    root = int(t.state[c.ROOT])
    assert t.node[root, c.PARENT] == -1
    nodes: list[int] = []
    entries: list[int] = []
    below = _check_node(t, root, nodes, entries)
    _check_free(t, nodes, entries, below)
    _check_tables(t, entries, below)
    _check_chunks(t, nodes)
    _check_heap(t, entries)


def _check_node(t: Tree, node: int, nodes: list[int], entries: list[int]) -> set[int]:
    """Check a subtree; return the constraints below."""
    nodes.append(node)
    level, count = int(t.node[node, c.LEVEL]), int(t.node[node, c.COUNT])
    least = c.MINIMUM if t.node[node, c.PARENT] >= 0 else 2 if level > 0 else 0
    assert least <= count <= c.CAPACITY, f"node {node} has {count} children"
    below: set[int] = set()
    for place in range(count):
        child = int(t.node[node, c.CHILDREN + place])
        box = t.boxes[node, place]
        if level == 0:
            below |= _check_entry(t, child, box)
            entries.append(child)
            assert (t.entry[child, c.LEAF], t.entry[child, c.PLACE_IN_LEAF]) == (node, place)
        else:
            assert (t.node[child, c.PARENT], t.node[child, c.PLACE]) == (node, place)
            assert t.node[child, c.LEVEL] == level - 1, "leaves on different levels"
            below |= _check_node(t, child, nodes, entries)
            own = t.boxes[child, : t.node[child, c.COUNT]]
            assert (box == [*own[:, :2].min(axis=0), *own[:, 2:].max(axis=0)]).all(), "MBR is not tight"
    for which in range(2):
        wanted = {slot for slot in below if t.constraint[slot, c.MASK] & c.LIST_BITS[which]}
        listed = _listed(t, node, which)
        slots = [int(t.chunk[p // c.CHUNK, c.SLOTS_AT + p % c.CHUNK]) for p in listed]
        assert sorted(slots) == sorted(wanted), f"list {which} of node {node}"
        for p, slot in zip(listed, slots, strict=True):
            assert t.position[slot, level, which] == p
            assert t.chunk[p // c.CHUNK, c.IDS + p % c.CHUNK] == t.constraint[slot, c.ID]
    return below


def _listed(t: Tree, node: int, which: int) -> list[int]:
    """Return the positions that a list occupies, checking its chain."""
    head, tail, size = (int(v) for v in t.node[node, c.HEAD + c.LIST * which : c.HEAD + c.LIST * (which + 1)])
    positions: list[int] = []
    before, chunk = -1, head
    while chunk >= 0:
        assert t.chunk[chunk, c.BEFORE] == before
        positions += range(chunk * c.CHUNK, chunk * c.CHUNK + c.CHUNK)
        before, chunk = chunk, int(t.chunk[chunk, c.AFTER])
    assert before == tail
    assert len(positions) == -(-size // c.CHUNK) * c.CHUNK
    return positions[:size]


def _check_entry(t: Tree, entry: int, box: NDArray[Any]) -> set[int]:
    xy = ring_arena.ring_xy(t.heap, int(t.entry[entry, c.BLOCK]), int(t.entry[entry, c.EDGES]))
    vertices, offsets = closed_rings(xy)
    for start, end in pairwise(offsets.tolist()):
        assert (vertices[start] == vertices[end - 1]).all()
    assert (box == [*vertices.min(axis=0), *vertices.max(axis=0)]).all()
    assert not is_compound(xy) or sound_rows(xy)
    assert t.entry[entry, c.HASH] == ring_arena.ring_hash(xy.reshape(-1), 0, len(xy) - 1)
    slots: set[int] = set()
    union, before, slot = 0, -1, int(t.entry[entry, c.FIRST])
    while slot >= 0:
        assert (t.constraint[slot, c.PREVIOUS], t.constraint[slot, c.ENTRY]) == (before, entry)
        union |= int(t.constraint[slot, c.MASK])
        slots.add(slot)
        before, slot = slot, int(t.constraint[slot, c.NEXT])
    assert slots, "an entry without constraints"
    assert union == t.entry[entry, c.UNION]
    return slots


def _check_free(t: Tree, nodes: list[int], entries: list[int], slots: set[int]) -> None:
    """Every row is in the tree or in its free list, and not in both."""
    for used, first, links, total in (
        (nodes, c.FREE_NODE, t.node[:, c.PARENT], c.NODES),
        (entries, c.FREE_ENTRY, t.entry[:, c.ENTRY_CHAIN], c.ENTRIES),
        (sorted(slots), c.FREE_SLOT, t.constraint[:, c.CHAIN], c.SLOTS),
    ):
        free = _chain(links, int(t.state[first]))
        assert sorted([*used, *free]) == list(range(int(t.state[total])))
    assert len(entries) == t.state[c.REGIONS]
    assert len(slots) == t.state[c.CONSTRAINTS]


def _chain(links: NDArray[Any], first: int) -> list[int]:
    found: list[int] = []
    while first >= 0:
        found.append(first)
        assert len(found) <= len(links), "a chain without end"
        first = int(links[first])
    return found


def _check_tables(t: Tree, entries: list[int], slots: set[int]) -> None:
    """Every entry and constraint is in the chain of its hash, and nothing else is."""
    chained = [e for head in t.table[c.BY_RING].tolist() for e in _chain(t.entry[:, c.ENTRY_CHAIN], head)]
    assert sorted(chained) == sorted(entries)
    rings = {ring_arena.ring_xy(t.heap, int(t.entry[e, c.BLOCK]), int(t.entry[e, c.EDGES])).tobytes() for e in entries}
    assert len(rings) == len(entries), "one region in two entries"
    chained = [s for head in t.table[c.BY_ID].tolist() for s in _chain(t.constraint[:, c.CHAIN], head)]
    assert sorted(chained) == sorted(slots)
    assert len({int(t.constraint[s, c.ID]) for s in slots}) == len(slots), "one id twice"


def _check_chunks(t: Tree, nodes: list[int]) -> None:
    used = [
        chunk
        for node in nodes
        for which in range(2)
        for chunk in _chain(t.chunk[:, c.AFTER], int(t.node[node, c.HEAD + c.LIST * which]))
    ]
    free = _chain(t.chunk[:, c.AFTER], int(t.state[c.FREE_CHUNK]))
    assert sorted([*used, *free]) == list(range(int(t.state[c.CHUNKS])))


def _check_heap(t: Tree, entries: list[int]) -> None:
    """Blocks in use and free ones fill the heap without gap or overlap."""
    blocks: list[tuple[int, int]] = []
    for e in entries:
        edges = int(t.entry[e, c.EDGES])
        size = ring_arena.class_size(ring_arena.size_class(ring_arena.ring_size(edges)))
        assert 2 * (edges + 1) + 4 * box_rows(edges) <= size
        blocks.append((int(t.entry[e, c.BLOCK]), size))
    for which in range(ring_arena.CLASSES):
        block = int(t.state[c.HEAP_STATE + 1 + which])
        while block >= 0:
            blocks.append((block, ring_arena.class_size(which)))
            block = int(t.heap[block])
    end = 0
    for block, size in sorted(blocks):
        assert block == end
        end = block + size
    assert end == t.state[c.HEAP_STATE + ring_arena.USED]
