"""Filters that seem to cover others of their interface (rule 3), found without comparing all with all.

Subscriptions are brought together by their interface's hash, and there in buckets (candidates.py). f is taken for a
coverer of g if it asked where g gave itself, both go to segments of one kind, its box contains g's, and if it is a box
match, its keywords are among g's. So box matches are decided, up to the collision of hashes; of others the table
decides that brings them together in the end: nothing is left out of the index, covered subscriptions are only sent to
the segment of their coverer, where the table keeps them aside (answers by subscription still need them, and the coverer
may be removed one day).

In each bucket a filter is compared with the `MOST_COMPARED` of those asking there whose boxes are the largest, and the
largest that may cover it is taken: of boxes inside one another all are found, however many. Buckets of one filter are
left out before anything is sorted. O(n + m log m + m MOST_COMPARED), with m filters that share a bucket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from contrada.spark_jobs.build.hashing import hash_texts, mix
from contrada.spark_jobs.build.staging import BOX_MATCH
from contrada.spark_jobs.common.arrow import columns, text_of
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.spark_jobs.build.rows.parsing import Parsed

MOST_COMPARED: Final = 256
"""How many a filter is compared with in each bucket, at most."""


def cover_records(parsed: Parsed, refs: Ints, groups: Ints) -> pa.Table:
    """What tells whether a filter covers another of its interface; `groups` is part of where it would be placed."""
    rows = parsed.rows
    return columns(
        interface=hash_texts(text_of(rows.column("interface"))),
        ref=refs,
        all=rows.column("shape").to_numpy() == BOX_MATCH,
        kind=rows.column("kind"),
        group=groups.astype(np.int16),
        **{name: rows.column(name) for name in ("x1", "y1", "x2", "y2")},
        asks=parsed.asks,
        gives=parsed.gives,
    )


def find_coverers(records: pa.Table) -> pa.Table:
    """(ref, coverer, kind, group, x, y) of filters that another seems to cover: where the coverer's centre lies."""
    records = records.combine_chunks()
    refs = records.column("ref").to_numpy()
    sides = [records.column(name).to_numpy() for name in ("x1", "y1", "x2", "y2")]
    boxes = np.stack(sides, axis=1)
    interfaces = records.column("interface").to_numpy()
    ask_keys, ask_ends = _keys(records.column("asks"))
    give_keys, give_ends = _keys(records.column("gives"))
    total = len(ask_keys) + len(give_keys)
    keys, members = np.empty(total, np.uint64), np.empty(total, np.int64)
    owners = np.zeros(1 << max(4, (2 * total).bit_length()), np.int32)
    used = _key(interfaces, ask_keys, ask_ends, give_keys, give_ends, owners, keys, members)
    keys, members = keys[:used], members[:used]
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    areas[np.isnan(areas)] = np.inf
    order = np.lexsort((refs[members >> 1], -areas[members >> 1], keys))
    best = np.full(len(refs), -1, np.int64)
    whole = records.column("all").to_numpy(zero_copy_only=False)
    kinds = records.column("kind").to_numpy()
    _cover(
        keys,
        members,
        order,
        areas,
        refs,
        kinds,
        boxes,
        whole,
        give_keys,
        give_ends,
        best,
        np.empty(MOST_COMPARED, np.int64),
    )
    covered = np.flatnonzero(best >= 0)
    by = best[covered]
    return columns(
        ref=refs[covered],
        coverer=refs[by],
        kind=kinds[by],
        group=records.column("group").to_numpy()[by],
        x=(boxes[by, 0] + boxes[by, 2]) / 2,
        y=(boxes[by, 1] + boxes[by, 3]) / 2,
    )


def _keys(lists: pa.ChunkedArray) -> tuple[np.ndarray, Ints]:
    chunks = [chunk for chunk in lists.chunks if len(chunk)] or [pa.array([], lists.type)]
    whole = pa.concat_arrays(chunks)
    values = whole.flatten().to_numpy()
    offsets = whole.offsets.to_numpy().astype(np.int64)
    return np.ascontiguousarray(values), offsets[1:] - offsets[0]


@kernel
def _key(
    interfaces: np.ndarray,
    asks: np.ndarray,
    ask_ends: Ints,
    gives: np.ndarray,
    give_ends: Ints,
    owners: np.ndarray,
    keys: np.ndarray,
    members: Ints,
) -> int:
    """The keys, within their interface, that several filters have, and who has each: twice, plus one if it asks.

    Most keys are one filter's alone, and need not be sorted: `owners`, by some bits of a key, tells the filter whose
    it is, counted from 1, or -1 if it is of several. Two keys may have these bits in common. Returns how many there
    are.
    """
    mask = np.uint64(owners.shape[0] - 1)
    used = 0
    for writes in (False, True):
        for i in range(interfaces.shape[0]):
            for side in range(2):
                ends, given = (ask_ends, asks) if side == 0 else (give_ends, gives)
                for k in range(ends[i - 1] if i > 0 else 0, ends[i]):
                    key = mix(interfaces[i], given[k])
                    at = key & mask
                    if not writes:
                        owners[at] = i + 1 if owners[at] == 0 or owners[at] == i + 1 else -1
                    elif owners[at] == -1:
                        keys[used] = key
                        members[used] = 2 * i + 1 - side
                        used += 1
    return used


@kernel
def _cover(
    keys: np.ndarray,
    members: Ints,
    order: Ints,
    areas: Floats,
    refs: Ints,
    kinds: np.ndarray,
    boxes: Floats,
    whole: np.ndarray,
    gives: np.ndarray,
    give_ends: Ints,
    best: Ints,
    askers: Ints,
) -> None:
    """For each filter, who of those in its buckets covers it: the largest, and the first by ref of these."""
    start = 0
    while start < order.shape[0]:
        end = start + 1
        while end < order.shape[0] and keys[order[end]] == keys[order[start]]:
            end += 1
        count = 0
        k = start
        while end - start > 1 and k < end and count < askers.shape[0]:
            member = members[order[k]]
            if member & 1 and (count == 0 or askers[count - 1] != member >> 1):
                askers[count] = member >> 1
                count += 1
            k += 1
        k = start
        while count > 0 and k < end:
            member = members[order[k]]
            k += 1
            if member & 1:
                continue
            g = member >> 1
            for n in range(count):
                f = askers[n]
                if areas[f] < areas[g]:
                    break  # and so are all that follow
                if f == g or kinds[f] != kinds[g]:
                    continue
                b = best[g]
                if b >= 0 and (areas[b] > areas[f] or (areas[b] == areas[f] and refs[b] <= refs[f])):
                    break
                if _fits(f, g, boxes, whole, gives, give_ends) and (
                    refs[f] < refs[g] or not _fits(g, f, boxes, whole, gives, give_ends)
                ):
                    best[g] = f
                    break
        start = end


@kernel
def _fits(f: int, g: int, boxes: Floats, whole: np.ndarray, gives: np.ndarray, ends: Ints) -> bool:
    """Whether f may cover g, which it has met."""
    if not np.isnan(boxes[f, 0]) and not (
        boxes[f, 0] <= boxes[g, 0]
        and boxes[f, 1] <= boxes[g, 1]
        and boxes[g, 2] <= boxes[f, 2]
        and boxes[g, 3] <= boxes[f, 3]
    ):
        return False
    if whole[f]:
        low = ends[g - 1] if g > 0 else 0
        for k in range(ends[f - 1] if f > 0 else 0, ends[f]):
            found = False
            for j in range(low, ends[g]):
                found = found or gives[j] == gives[k]
            if not found:
                return False
    return True
