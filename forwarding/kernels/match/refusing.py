"""Regions that a point need not be related to: of whose filters each needs a name or a value that is not there.

Most filters with a region ask for something else as well, which a notification tells at once (masks.py). So between the
boxes of a CR-tree and the regions in them (cr_tree/search.py) the masks of what is posted under each region are looked
at: three loads, where locating a point takes as long as thirty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.forwarding.kernels.match.matching import begin, decode, forget, suspect
from contrada.forwarding.kernels.match.verifying import C_NEXT, C_REFUSED, C_VERIFIED, Message, Scratch
from contrada.forwarding.kernels.memory.bits import payload_filter
from contrada.forwarding.kernels.memory.layout import O_POSTED, POINT, Index
from contrada.forwarding.kernels.memory.postings import COUNT
from contrada.spatial.cr_tree import layout as c
from contrada.spatial.cr_tree.search import look_at_boxes, relate_opened
from contrada.spatial.distance.searching import near_opened
from contrada.spatial.storage.jit import bare_kernel, kernel

if TYPE_CHECKING:
    from contrada.forwarding.kernels.match.batch import Batch
    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.spatial.cr_tree.layout import Tree


@bare_kernel
def _refuses(index: Index, head: int, missing: int) -> bool:
    """Whether all filters of a list of postings need what is missing."""
    postings = index.postings
    while head != 0:
        for at in range(head + 1, head + 1 + (postings[head, 1] & COUNT)):
            if postings[at, 0] & missing == 0:
                return False
        head = postings[head, 0]
    return True


@bare_kernel
def _drop_refused(t: Tree, out: Ints, opened: int, posted: Ints, index: Index, missing: int, scratch: Scratch) -> int:
    """Of the entries that `look_at_boxes` left open keep those that some filter may want: how many."""
    cursor = scratch.cursor
    last = out.shape[0] - 1
    kept = 0
    for i in range(opened):
        entry = out[last - i]
        slot = t.entry[entry, c.FIRST]
        head, refused = 0, True
        while slot >= 0 and refused:
            head = index.operands[posted[t.constraint[slot, c.ID]], O_POSTED]
            refused = _refuses(index, head, missing)
            slot = t.constraint[slot, c.NEXT]
        if not refused:
            out[last - kept] = entry
            kept += 1
            continue
        cursor[C_REFUSED] += 1
        if cursor[C_VERIFIED] + cursor[C_REFUSED] >= cursor[C_NEXT] and head != 0:
            suspect(scratch, payload_filter(index.postings[head + 1, 1]))
    return kept


@kernel
def search_wanted(
    t: Tree,
    x: float,
    y: float,
    out: Ints,
    posted: Ints,
    index: Index,
    missing: int,
    scratch: Scratch,
    tally: Ints,
    left: Ints,
) -> int:
    """As `search_point`, but for constraints all of whose filters need some of the bits `missing`."""
    count, opened = look_at_boxes(t, x, y, out, tally)
    if missing != 0:
        opened = _drop_refused(t, out, opened, posted, index, missing, scratch)
    return relate_opened(t, x, y, out, count, opened, tally, left)


@kernel
def search_near_wanted(
    t: Tree,
    rows: Ints,
    heap: Floats,
    x: float,
    y: float,
    out: Ints,
    posted: Ints,
    index: Index,
    missing: int,
    scratch: Scratch,
    tally: Ints,
    left: Ints,
) -> int:
    """As `search_wanted`, for distance constraints, of `rows` and `heap` (spatial/distance/searching.py)."""
    count, opened = look_at_boxes(t, x, y, out, tally)
    if missing != 0:
        opened = _drop_refused(t, out, opened, posted, index, missing, scratch)
    return near_opened(t, rows, heap, x, y, out, count, opened, left)


@kernel
def missing_bits(index: Index, batch: Batch, scratch: Scratch, missing: Ints) -> None:
    """For each point of a batch, by its number: the bits that its notification lacks."""
    begin(scratch)
    message = Message(scratch.attributes, scratch.slots, batch.text)
    row = start = 0
    for n in range(batch.ends.shape[0]):
        bits, start = decode(index, batch, row, batch.ends[n], start, message)
        forget(message, batch.ends[n] - row)
        for r in range(row, batch.ends[n]):
            if batch.rows[r, 0] & 15 == POINT:
                missing[batch.rows[r, 1] >> 32] = ~bits
        row = batch.ends[n]


@kernel
def search_all_wanted(
    t: Tree,
    places: Floats,
    first: int,
    out: Ints,
    ends: Ints,
    posted: Ints,
    index: Index,
    missing: Ints,
    scratch: Scratch,
    tally: Ints,
    left: Ints,
) -> int:
    """As `search_points`, by `search_wanted` of each place, which has its own missing bits."""
    count = ends[first - 1] if first > 0 else 0
    most = t.state[c.CONSTRAINTS] + c.CHUNK
    for n in range(first, places.shape[0]):
        if out.shape[0] - count < most:
            return n
        x, y = places[n, 0], places[n, 1]
        count += search_wanted(t, x, y, out[count:], posted, index, missing[n], scratch, tally, left)
        ends[n] = count
    return len(places)
