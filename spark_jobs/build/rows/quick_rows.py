"""Rows whose filter a kernel has read (column_language.py) as columns of staging.STAGED, with their buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contrada.forwarding.batches.packed_columns import RELATIONS
from contrada.forwarding.segments.manifest import SEGMENT_KINDS
from contrada.spark_jobs.build.cover.candidates import (
    LEVELS,
    asks_of_places,
    gives_of_places,
    keyword_keys,
    keyword_roots,
    name_key,
    place_roots,
)
from contrada.spark_jobs.build.hashing import hash_texts
from contrada.spark_jobs.build.rows.column_language import read_texts
from contrada.spark_jobs.build.staging import BOX, BOX_MATCH, POLYGON, STAGED
from contrada.spark_jobs.common.arrow import text_of
from contrada.spatial.relations import relation
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.forwarding.batches.columns import Text
    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.spark_jobs.build.rows.column_language import Read

_CORNERS = np.array([0, 1, 2, 1, 2, 3, 0, 3])  # of a box, counter-clockwise from the smallest
_DISJOINT = np.array([bool(op.mask & 1 << relation.DISJOINT) for op in RELATIONS])


def read_quickly(batch: pa.RecordBatch, sound: np.ndarray) -> tuple[tuple[pa.RecordBatch, pa.Array, pa.Array], Ints]:
    """Of the rows that are `sound`, those that could be read, with what they ask and give; and which are left."""
    read = read_texts(text_of(batch.column("filter")))
    if not sound[read.rows].all():
        read = _some(read, sound[read.rows])
    left = np.ones(batch.num_rows, np.bool_)
    left[read.rows] = False
    count = len(read.rows)
    shapes = read.shapes[read.rows]
    names = _array(read.names)
    coded = names.dictionary_encode()
    known, which = coded.dictionary.to_pylist(), coded.indices.to_numpy()
    tokens, asks, gives = _keywords(read, keyword_roots(known)[which])
    boxes = read.boxes.copy()
    related = np.flatnonzero(shapes != BOX_MATCH)
    apart = related[_DISJOINT[read.ops[related]]]
    _meet(related, apart, boxes, place_roots(known)[which], known, which, asks, gives)
    boxes[apart] = np.nan
    kinds = np.where(shapes == BOX_MATCH, SEGMENT_KINDS.index("geotext"), SEGMENT_KINDS.index("region"))
    kinds[apart] = SEGMENT_KINDS.index("hash")
    given = batch.select(["source", "row", "id", "interface", *(["raw"] if "raw" in batch.schema.names else [])])
    if count < batch.num_rows:
        given = given.take(pa.array(read.rows))
    columns = [
        *given.columns[:4],
        pa.array(shapes),
        pa.array(kinds.astype(np.int8)),
        names,
        *(pa.array(boxes[:, side]) for side in range(4)),
        tokens,
        pa.array(read.ops.astype(np.int8)),
        _rings(read, shapes),
        pa.nulls(count, pa.binary()),
        pa.array(np.ones(count, np.int32)),
        pa.nulls(count, pa.list_(pa.string())),
        given.column("raw") if "raw" in given.schema.names else pa.nulls(count, pa.binary()),
    ]
    rows = pa.RecordBatch.from_arrays(columns, schema=STAGED)
    return (rows, _lists(asks), _lists(gives)), np.flatnonzero(left)


def _some(read: Read, chosen: np.ndarray) -> Read:
    """Some of what was read."""
    of_words = np.repeat(chosen, np.diff(read.word_ends, prepend=0))
    of_rings = np.repeat(chosen, np.diff(read.ring_ends, prepend=0))
    return read._replace(
        rows=read.rows[chosen],
        names=text_of(_array(read.names).filter(pa.array(chosen))),
        ops=read.ops[chosen],
        boxes=read.boxes[chosen],
        words=text_of(_array(read.words).filter(pa.array(of_words))),
        word_ends=np.cumsum(np.diff(read.word_ends, prepend=0)[chosen]),
        rings=read.rings[of_rings],
        ring_ends=np.cumsum(np.diff(read.ring_ends, prepend=0)[chosen]),
    )


def _array(text: Text) -> pa.StringArray:
    buffers = [None, pa.py_buffer(text.offsets.astype(np.int32)), pa.py_buffer(text.data)]
    return pa.Array.from_buffers(pa.string(), len(text.offsets) - 1, buffers)


def _keywords(read: Read, roots: np.ndarray) -> tuple[pa.Array, list[np.ndarray], list[np.ndarray]]:
    """The keywords of each row, ascending and each once; what box matches ask and give, as (keys, counts)."""
    coded = _array(read.words).dictionary_encode()
    order = pc.sort_indices(coded.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    words = ranks[coded.indices.to_numpy()]
    ends = read.word_ends.copy()
    used = _sort_rows(words, ends)
    words = words[:used]
    vocabulary = coded.dictionary.take(pa.array(order))
    frequencies = np.bincount(words, minlength=len(order))
    counts = np.diff(ends, prepend=0)
    keys = keyword_keys(np.repeat(roots, counts), hash_texts(text_of(vocabulary))[words])
    rarest = np.zeros(len(counts), np.int64)
    _rarest(words, ends, frequencies, rarest)
    matched = np.flatnonzero(counts)
    offsets = pa.array(np.concatenate(([0], ends)).astype(np.int32))
    tokens = pa.ListArray.from_arrays(offsets, vocabulary.take(pa.array(words)))
    return tokens, [keys[rarest[matched]], (counts > 0).astype(np.int64)], [keys, counts]


def _meet(
    related: Ints,
    apart: Ints,
    boxes: Floats,
    roots: np.ndarray,
    known: list[str],
    which: Ints,
    asks: list[np.ndarray],
    gives: list[np.ndarray],
) -> None:
    """Add what relations ask and give: cells of the map, or if they hold on what is far apart their name."""
    if not len(related):
        return
    placed = np.setdiff1d(related, apart)
    names = np.array([name_key(name) for name in known], np.uint64)[which]
    asking, giving = asks_of_places(roots[placed], boxes[placed]), gives_of_places(roots[placed], boxes[placed])
    counts = np.zeros(len(which), np.int64)
    counts[placed], counts[apart] = 4, 1
    asks[:] = _merged(asks, counts, [(placed, asking), (apart, names[apart, None])])
    counts = np.zeros(len(which), np.int64)
    counts[placed], counts[apart] = LEVELS + 1, 1
    both = np.concatenate((names[placed, None], giving), axis=1)
    gives[:] = _merged(gives, counts, [(placed, both), (apart, names[apart, None])])


def _merged(
    keys: list[np.ndarray], more: np.ndarray, parts: list[tuple[Ints, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Lists of keys, and others for rows that have none yet."""
    counts = keys[1] + more
    ends = np.cumsum(counts)
    merged = np.empty(int(ends[-1]), np.uint64)
    merged[np.repeat(keys[1] > 0, counts)] = keys[0]
    for rows, values in parts:
        merged[(ends[rows] - counts[rows])[:, None] + np.arange(values.shape[1])] = values
    return merged, counts


def _lists(keys: list[np.ndarray]) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum(keys[1]))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(keys[0]))


def _rings(read: Read, shapes: np.ndarray) -> pa.Array:
    """Vertices of polygons and boxes."""
    counts = np.where(shapes == BOX, 8, 2 * np.diff(read.ring_ends, prepend=0))
    offsets = np.concatenate(([0], np.cumsum(counts)))
    numbers = np.empty(int(offsets[-1]))
    boxed = np.flatnonzero(shapes == BOX)
    numbers[np.repeat(shapes == POLYGON, counts)] = read.rings.ravel()
    numbers[offsets[boxed][:, None] + np.arange(8)] = read.boxes[boxed][:, _CORNERS]
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(numbers))


@kernel
def _sort_rows(words: Ints, ends: Ints) -> int:
    """Sort the words of each row and leave out repeats, in place; how many there are in all."""
    start = to = 0
    for i in range(ends.shape[0]):
        first = to
        for k in range(start, ends[i]):
            word = words[k]
            at = to
            while at > first and words[at - 1] > word:
                at -= 1
            if at > first and words[at - 1] == word:
                continue
            for j in range(to, at, -1):
                words[j] = words[j - 1]
            words[at] = word
            to += 1
        start = ends[i]
        ends[i] = to
    return to


@kernel
def _rarest(words: Ints, ends: Ints, frequencies: Ints, rarest: Ints) -> None:
    """The place of the least frequent word of each row that has any."""
    start = 0
    for i in range(ends.shape[0]):
        best = start
        for k in range(start, ends[i]):
            if frequencies[words[k]] < frequencies[words[best]]:
                best = k
        rarest[i] = best
        start = ends[i]
