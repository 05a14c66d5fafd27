"""Ids that come twice: subscriptions are brought together by their id's hash, and compared by three hashes.

Two are of the id, by different seeds, and one is of the content:

    REPEATED   the same subscription again: the first stands
    CLASHING   an id that is given to different subscriptions is nobody's: which one was meant cannot be told
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spark_jobs.build.hashing import fold_spans, hash_texts, mix_all
from contrada.spark_jobs.build.messages import RepeatedIds
from contrada.spark_jobs.common.arrow import columns, text_of

if TYPE_CHECKING:
    import pyarrow as pa

    from contrada.forwarding.kernels.memory.layout import Ints

REPEATED: Final = 0
CLASHING: Final = 1


def id_records(rows: pa.RecordBatch, refs: Ints, seed: int) -> pa.Table:
    """What tells whether an id comes twice, and for the same subscription."""
    ids = text_of(rows.column("id"))
    return columns(id=hash_texts(ids), again=hash_texts(ids, seed), content=_contents(rows, seed), ref=refs)


def _contents(rows: pa.RecordBatch, seed: int) -> np.ndarray:
    """A hash of everything about each subscription but its id."""
    hashes = hash_texts(text_of(rows.column("interface")), seed)
    fold_spans(*_bytes(text_of(rows.column("name"))), hashes)
    tokens, rings = rows.column("tokens"), rows.column("ring")
    words = text_of(tokens.values)
    marked = hash_texts(words, seed)  # or "ab", "c" and "a", "bc" would be alike
    fold_spans(marked.view(np.uint8), 8 * tokens.offsets.to_numpy().astype(np.int64), hashes)
    numbers = np.ascontiguousarray(rings.values.to_numpy()).view(np.uint8)
    fold_spans(numbers, 8 * rings.offsets.to_numpy().astype(np.int64), hashes)
    filters = rows.column("filter").fill_null(b"")
    fold_spans(*_bytes(text_of(filters)), hashes)
    for name in ("x1", "y1", "x2", "y2"):
        mix_all(hashes, rows.column(name).to_numpy().view(np.uint64))
    for name in ("shape", "op"):
        mix_all(hashes, rows.column(name).to_numpy().astype(np.int64).view(np.uint64))
    return hashes


def _bytes(text: tuple[Ints, np.ndarray]) -> tuple[np.ndarray, Ints]:
    return text[1], text[0]


def find_repeated(records: pa.Table) -> RepeatedIds:
    """Who comes again, among records that have all of each id."""
    first, again, content, refs = (records.column(name).to_numpy() for name in ("id", "again", "content", "ref"))
    order = np.argsort(first, kind="stable")
    same = first[order[1:]] == first[order[:-1]]
    suspects = order[np.append(same, False) | np.insert(same, 0, False)] if len(order) else order
    if not len(suspects):
        return RepeatedIds(np.zeros(0, np.int64), np.zeros(0, np.int64))
    suspects = suspects[np.lexsort((refs[suspects], again[suspects], first[suspects]))]
    one, two = first[suspects], again[suspects]
    starts = np.flatnonzero(np.insert((one[1:] != one[:-1]) | (two[1:] != two[:-1]), 0, True))
    sizes = np.diff(np.append(starts, len(suspects)))
    held = content[suspects]
    clash = np.repeat(np.maximum.reduceat(held, starts) != np.minimum.reduceat(held, starts), sizes)
    leading = np.zeros(len(suspects), np.bool_)
    leading[starts] = True
    dead = clash | ~leading
    found, faults = refs[suspects][dead], np.where(clash, CLASHING, REPEATED)[dead]
    order = np.argsort(found)
    return RepeatedIds(found[order], faults[order])
