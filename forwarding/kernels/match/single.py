"""One notification in one entry: read, looked up in the trees of points, matched, and what is left over decided.

`match_single` is what `read_bodies`, a search for each point and `match_batch` do for a batch, for the body of one
notification, without Python in between. All that it reads and writes comes as one array of addresses (`addresses.py`),
whose rows are numbered here; `forwarding/table/single.py` fills them in.

    rows of `where`    INDEX, SCRATCH, NAMES, READING: the arrays of these tuples, in their order
                       BODY, HITS, HIT_ENDS, ENDS: the body, operands that points hit, and where those of each end
                       POSTED: the operand of each handle (state/posted.py)
                       RINGS: heap, rows and marks of region constraints (types/region.py, types/records.py)
                       PATHS: heap and rows of distance constraints (types/paths.py)
                       TREES: of the attributes that have one: name and what there is, TREE_HERE, REACH_HERE or
                       CELLS_HERE; the arrays of the CR-tree of relations and its tally; those of that of distances; the
                       arrays of a grid beside it (spatial/distance/cells.py)
                       and single numbers: HOW_MANY trees, the marks of constraints of distances (FAR) and of those that
                       are NOT_HERE but left to others, how many POINTS_LEFT there are, and notifications with something
                       pending (PENDING_LEFT), until the caller should learn from them

What it does not know it leaves, and so leaves all of it: the caller goes the long way. So it does with what takes long,
for which the caller may be allowed so much and no more (spatial/allowance.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.forwarding.kernels.match.batch import Batch
from contrada.forwarding.kernels.match.matching import begin, decode, match_decoded
from contrada.forwarding.kernels.match.reading import (
    PADDING,
    T_FLOATS,
    T_POINTS,
    T_READ,
    T_ROWS,
    T_TEXT,
    Reading,
    read_bodies,
)
from contrada.forwarding.kernels.match.refusing import search_near_wanted, search_wanted
from contrada.forwarding.kernels.match.verifying import (
    A_COLUMNS,
    C_FOUND,
    C_GENERATION,
    C_PAIRS,
    C_PENDING,
    C_SPARE,
    C_SUSPECTS,
    Message,
    Scratch,
)
from contrada.forwarding.kernels.memory.addresses import (
    box_rows_at,
    bytes_at,
    float_rows_at,
    floats_at,
    int_blocks_at,
    int_rows_at,
    ints_at,
    single_rows_at,
)
from contrada.forwarding.kernels.memory.layout import F_INTERFACE, REGION, Index
from contrada.forwarding.kernels.memory.names import Names
from contrada.spatial.cr_tree import layout as c
from contrada.spatial.cr_tree.layout import Tree
from contrada.spatial.cr_tree.search import EVALUATED, PER_PAIR, TALLY_SIZE
from contrada.spatial.distance.cells import Cells, search_cell
from contrada.spatial.distance.searching import BEYOND, EDGES, FLAGS, is_near_place
from contrada.spatial.geometry.compound.rows import MARK, locate_in
from contrada.spatial.geometry.ring_arena import ring_boxes, ring_size, ring_xy
from contrada.spatial.geometry.rings import IN, ON, locate
from contrada.spatial.relations.relation import DISJOINT, INSIDE, MEETS
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Ints

MOST_TREES: Final = 8
LEFT: Final = -1  # it has something that is not known here
FULL: Final = -2  # an output ran out of room

# What is behind the number of interfaces found, in the answer.
HAS_SUSPECTS: Final = 1
HAS_POINTS: Final = 2  # to learn from: those that were searched for
HAS_PENDING: Final = 4  # likewise: filters that were decided late
FLAG_BITS: Final = 3
_MOST: Final = 2_000_000  # of an allowance, that is spent here
_MANY: Final = 64  # regions that a point is related to, from which on the caller hears of all of them

# What an attribute has that a point is searched for in, and where its arrays are behind the row of its name.
TREE_HERE: Final = 1
REACH_HERE: Final = 2
CELLS_HERE: Final = 4
TREE: Final = 1
TALLY: Final = TREE + len(Tree._fields)
REACH: Final = TALLY + 1
REACH_TALLY: Final = REACH + len(Tree._fields)
CELLS: Final = REACH_TALLY + 1
TREE_ROWS: Final = CELLS + len(Cells._fields)

# Rows of `where`.
INDEX: Final = 0
SCRATCH: Final = INDEX + len(Index._fields)
NAMES: Final = SCRATCH + len(Scratch._fields)
READING: Final = NAMES + len(Names._fields)
BODY: Final = READING + len(Reading._fields)
HITS: Final = BODY + 1
HIT_ENDS: Final = HITS + 1
ENDS: Final = HIT_ENDS + 1
POSTED: Final = ENDS + 1
RINGS: Final = POSTED + 1
PATHS: Final = RINGS + 3
HOW_MANY: Final = PATHS + 2
FAR: Final = HOW_MANY + 1
NOT_HERE: Final = FAR + 1
POINTS_LEFT: Final = NOT_HERE + 1
PENDING_LEFT: Final = POINTS_LEFT + 1
DECIDED: Final = PENDING_LEFT + 1  # written: how many regions the points were related to
TREES: Final = DECIDED + 1
ROWS: Final = TREES + MOST_TREES * TREE_ROWS


@kernel
def _index_at(where: Ints) -> Index:
    return Index(
        int_rows_at(where, INDEX, 8),
        int_rows_at(where, INDEX + 1, 16),
        int_rows_at(where, INDEX + 2, 8),
        int_rows_at(where, INDEX + 3, 2),
        int_rows_at(where, INDEX + 4, 4),
        ints_at(where, INDEX + 5),
        ints_at(where, INDEX + 6),
        bytes_at(where, INDEX + 7),
        ints_at(where, INDEX + 8),
    )


@kernel
def _scratch_at(where: Ints) -> Scratch:
    return Scratch(
        ints_at(where, SCRATCH),
        ints_at(where, SCRATCH + 1),
        ints_at(where, SCRATCH + 2),
        ints_at(where, SCRATCH + 3),
        int_rows_at(where, SCRATCH + 4, A_COLUMNS),
        ints_at(where, SCRATCH + 5),
        int_rows_at(where, SCRATCH + 6, 3),
        int_rows_at(where, SCRATCH + 7, 3),
        ints_at(where, SCRATCH + 8),
        ints_at(where, SCRATCH + 9),
        ints_at(where, SCRATCH + 10),
        ints_at(where, SCRATCH + 11),
    )


@kernel
def _reading_at(where: Ints) -> Reading:
    return Reading(
        int_rows_at(where, READING, 2),
        ints_at(where, READING + 1),
        ints_at(where, READING + 2),
        bytes_at(where, READING + 3),
        int_rows_at(where, READING + 4, 2),
        ints_at(where, READING + 5),
        ints_at(where, READING + 6),
        ints_at(where, READING + 7),
    )


@kernel
def _tree_at(where: Ints, row: int) -> Tree:
    return Tree(
        ints_at(where, row),
        box_rows_at(where, row + 1, c.CAPACITY),
        int_rows_at(where, row + 2, c.NODE_SIZE),
        int_rows_at(where, row + 3, c.CHUNK_SIZE),
        int_blocks_at(where, row + 4, 1, 2),  # searches read neither this nor the last
        int_rows_at(where, row + 5, c.ENTRY_SIZE),
        int_rows_at(where, row + 6, c.CONSTRAINT_SIZE),
        floats_at(where, row + 7),
        int_rows_at(where, row + 8, 1),
    )


@kernel
def _cells_at(where: Ints, row: int) -> Cells:
    return Cells(
        floats_at(where, row),
        ints_at(where, row + 1),
        ints_at(where, row + 2),
        single_rows_at(where, row + 3, 4),
        float_rows_at(where, row + 4, 3),
        ints_at(where, row + 5),
    )


@kernel
def _search_reach(
    where: Ints, row: int, x: float, y: float, out: Ints, index: Index, scratch: Scratch, missing: int
) -> int:
    """The distance constraints of an attribute that a point satisfies, but for some that no filter may want."""
    if where[row, 1] & CELLS_HERE != 0:
        return search_cell(_cells_at(where, row + CELLS), x, y, out)
    heap, rows = floats_at(where, PATHS), int_rows_at(where, PATHS + 1, 4)
    operands, left = ints_at(where, POSTED), scratch.cursor[C_SPARE : C_SPARE + 1]
    t, tally = _tree_at(where, row + REACH), ints_at(where, row + REACH_TALLY)
    return search_near_wanted(t, rows, heap, x, y, out, operands, index, missing, scratch, tally, left)


@kernel
def _search_points(where: Ints, reading: Reading, index: Index, scratch: Scratch, missing: int) -> int:
    """Search what each point's attribute has for what may match without `missing`; how many regions were related."""
    operands, left = ints_at(where, POSTED), scratch.cursor[C_SPARE : C_SPARE + 1]
    hits, hit_ends, floats = ints_at(where, HITS), ints_at(where, HIT_ENDS), floats_at(where, READING + 2)
    count = decided = 0
    for point in range(reading.cursor[T_POINTS]):
        for tree in range(where[HOW_MANY, 0]):
            row = TREES + tree * TREE_ROWS
            if where[row, 0] == reading.points[point, 0]:
                at = reading.points[point, 1]
                x, y = floats[at], floats[at + 1]
                if where[row, 1] & TREE_HERE != 0:
                    tally = ints_at(where, row + TALLY)
                    before = tally[EVALUATED]
                    out, t = hits[count:], _tree_at(where, row + TREE)
                    count += search_wanted(t, x, y, out, operands, index, missing, scratch, tally, left)
                    tally[TALLY_SIZE] += 1
                    decided += tally[EVALUATED] - before
                if where[row, 1] & REACH_HERE != 0:
                    count += _search_reach(where, row, x, y, hits[count:], index, scratch, missing)
        hit_ends[point] = count
    for i in range(count):
        hits[i] = operands[hits[i]]
    return decided


@kernel
def _decide(where: Ints, reading: Reading, index: Index, scratch: Scratch) -> int:
    """Decide what is pending, and add the interfaces of those that hold to what was found; or LEFT or FULL.

    Of each pair the kind is overwritten by whether it holds, and of a pending filter its notification.
    """
    heap, rows, marks = floats_at(where, RINGS), int_rows_at(where, RINGS + 1, 3), ints_at(where, RINGS + 2)
    paths, lengths = floats_at(where, PATHS), int_rows_at(where, PATHS + 1, 4)
    floats = floats_at(where, READING + 2)
    cursor, pairs, pending = scratch.cursor, scratch.pairs, scratch.pending
    for i in range(cursor[C_PAIRS]):
        if pairs[i, 1] != REGION or marks[pairs[i, 2]] & where[NOT_HERE, 0] != 0:
            return LEFT
    first = 0
    for n in range(cursor[C_PENDING]):
        holds = 1
        for i in range(first, pending[n, 2]):
            at, handle = reading.points[pairs[i, 0], 1], pairs[i, 2]
            x, y, row = floats[at], floats[at + 1], rows[handle]
            cursor[C_SPARE] -= PER_PAIR + (row[1] >> 2)
            if cursor[C_SPARE] < 0:
                return LEFT
            if marks[handle] & where[FAR, 0] != 0:
                cursor[C_SPARE] -= lengths[handle, EDGES] >> 2
                beyond = lengths[handle, FLAGS] & BEYOND != 0
                pairs[i, 1] = 1 if is_near_place(lengths, paths, handle, x, y) != beyond else 0
                holds &= pairs[i, 1]
                continue
            around = row[0] + ring_size(row[1]) - 4  # the last of its boxes is the MBR
            relation = DISJOINT
            if heap[around] <= x <= heap[around + 2] and heap[around + 1] <= y <= heap[around + 3]:
                xy, boxes = ring_xy(heap, row[0], row[1]), ring_boxes(heap, row[0], row[1])
                place = locate(x, y, xy, boxes) if xy[0, 0] != MARK else locate_in(x, y, xy, boxes)
                relation = INSIDE if place == IN else MEETS if place == ON else DISJOINT
            pairs[i, 1] = row[2] >> relation & 1
            holds &= pairs[i, 1]
        first = pending[n, 2]
        pending[n, 0] = holds
        interface = index.filters[pending[n, 1], F_INTERFACE]
        if holds and scratch.stamps[interface] != cursor[C_GENERATION]:
            if cursor[C_FOUND] == scratch.found.shape[0]:
                return FULL
            scratch.stamps[interface] = cursor[C_GENERATION]
            scratch.found[cursor[C_FOUND]] = interface
            cursor[C_FOUND] += 1
    return 0


@kernel
def match_single(where: Ints, size: int) -> int:
    """Match the body of `size` bytes; the interfaces are in the scratch's `found`.

    Returns how many there are, above FLAG_BITS that say what else is to be looked at; or LEFT or FULL.
    """
    reading = _reading_at(where)
    scratch = _scratch_at(where)
    names = Names(ints_at(where, NAMES), int_rows_at(where, NAMES + 1, 4), bytes_at(where, NAMES + 2))
    hits, hit_ends, ends = ints_at(where, HITS), ints_at(where, HIT_ENDS), ints_at(where, ENDS)
    cursor = reading.cursor
    ends[0] = size
    read_bodies(bytes_at(where, BODY), ends, names, reading)
    if cursor[T_READ] == 0 or (cursor[T_POINTS] != 0 and where[HOW_MANY, 0] < 0):
        return LEFT
    answer = 0
    scratch.cursor[C_SPARE] = _MOST
    begin(scratch)
    index = _index_at(where)
    batch = Batch(
        reading.rows[: cursor[T_ROWS]],
        reading.ends[:1],
        floats_at(where, READING + 2)[: cursor[T_FLOATS]],
        reading.text[: cursor[T_TEXT] + PADDING],
    )
    message = Message(scratch.attributes, scratch.slots, batch.text)
    count = cursor[T_ROWS]
    bits, _ = decode(index, batch, 0, count, 0, message)
    if cursor[T_POINTS] != 0:
        where[POINTS_LEFT, 0] -= cursor[T_POINTS]
        is_looked_at = where[POINTS_LEFT, 0] < 0
        where[DECIDED, 0] = _search_points(where, reading, index, scratch, 0 if is_looked_at else ~bits)
        if is_looked_at or where[DECIDED, 0] > _MANY:
            answer = HAS_POINTS
        hits = hits[: hit_ends[cursor[T_POINTS] - 1]]
    if not match_decoded(index, message, count, bits, hits, hit_ends, ends[:0], scratch, 0, False):
        return FULL
    if scratch.cursor[C_SPARE] < 0:
        return LEFT
    if scratch.cursor[C_PENDING] != 0:
        status = _decide(where, reading, index, scratch)
        if status != 0:
            return status
        where[PENDING_LEFT, 0] -= 1
        if where[PENDING_LEFT, 0] < 0:
            answer |= HAS_PENDING
    if scratch.cursor[C_SUSPECTS] != 0:
        answer |= HAS_SUSPECTS
    return scratch.cursor[C_FOUND] << FLAG_BITS | answer
