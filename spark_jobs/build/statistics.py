"""What a set of subscriptions looks like: frequencies of keywords and of attributes, and where the places are.

Frequencies of keywords are document frequencies: in how many subscriptions each occurs. In descending order they are
the global order of tokens. Counts of (attribute, operator) are the attributes' selectivities: the share of
subscriptions that a notification with the attribute may concern. The spatial histogram counts the centres of places on
a grid, for partitioning.py.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa

from contrada.forwarding.batches.packed_columns import RELATIONS
from contrada.spark_jobs.build.staging import BOX_MATCH, OTHER

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Floats, Ints

GRID: Final = 256
"""Cells of the histogram along each axis."""

NAMES: Final = 16
"""Groups of attributes in the histogram, so that places of different attributes part."""

_TAIL: Final = 0.001  # of centres, on each side, that may lie outside the grid and fall into its border cells
_SAMPLE: Final = 1024  # centres of a batch


class Grid(NamedTuple):
    """The rectangle that the histogram's grid covers."""

    x1: float
    y1: float
    x2: float
    y2: float

    @classmethod
    def of(cls, sample: Floats) -> Grid | None:
        """The rectangle that nearly all of a sample of centres lie in."""
        if not len(sample):
            return None
        low, high = np.quantile(sample, [_TAIL, 1 - _TAIL], axis=0, method="nearest").tolist()
        return cls(*low, *high)


def centres(rows: pa.RecordBatch | pa.Table) -> Floats:
    """The centres of places; NaN where there is none."""
    x1, y1, x2, y2 = (rows.column(name).to_numpy() for name in ("x1", "y1", "x2", "y2"))
    return np.stack(((x1 + x2) / 2, (y1 + y2) / 2), axis=1)


def sample_of(rows: pa.RecordBatch) -> Floats:
    """Some of the centres."""
    found = centres(rows)
    found = found[~np.isnan(found[:, 0])]
    return found[:: -(-len(found) // _SAMPLE) or 1]


def groups_of(names: pa.Array | pa.ChunkedArray) -> Ints:
    """The group of each attribute."""
    whole = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    coded = whole.dictionary_encode()
    known = np.array([crc32(name.encode()) % NAMES for name in coded.dictionary.to_pylist()], np.int64)
    groups: Ints = known[coded.indices.to_numpy()]
    return groups


def buckets_of(kinds: Ints, groups: Ints, places: Floats, grid: Grid | None) -> Ints:
    """What partitioning counts and moves: kind, group of attributes and cell of the grid, as one number."""
    cells = np.zeros(len(kinds), np.int64)
    if grid is not None:
        for axis, (low, high) in enumerate(((grid.x1, grid.x2), (grid.y1, grid.y2))):
            cell = np.floor((places[:, axis] - low) / ((high - low) or 1.0) * GRID)
            cells = cells * GRID + np.clip(np.nan_to_num(cell), 0, GRID - 1).astype(np.int64)
    return (kinds.astype(np.int64) * NAMES + groups) * GRID * GRID + cells


def bucket_parts(buckets: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """The kind, the group and the cell's x and y that each number stands for."""
    rest, y = np.divmod(buckets, GRID)
    rest, x = np.divmod(rest, GRID)
    kind, group = np.divmod(rest, NAMES)
    return kind, group, x, y


def token_counts(rows: pa.Table) -> pa.Table:
    """(token, documents) of some subscriptions."""
    words = pa.concat_arrays([chunk.flatten() for chunk in rows.column("tokens").chunks] or [pa.array([], pa.string())])
    counted = words.value_counts()
    return pa.table({"token": counted.field(0), "documents": counted.field(1)})


def merge_counts(parts: list[pa.Table]) -> pa.Table:
    """(token, documents) of several parts together, the most frequent first."""
    merged = pa.concat_tables(parts).group_by("token").aggregate([("documents", "sum")])
    table = pa.table({"token": merged["token"], "documents": merged["documents_sum"]})
    return table.sort_by([("documents", "descending"), ("token", "ascending")])


def attribute_counts(rows: pa.Table) -> Counter[tuple[str, str]]:
    """How many of some subscriptions use each (attribute, operator)."""
    shapes = rows.column("shape").to_numpy()
    uses: Counter[tuple[str, str]] = Counter()
    for text in pa.concat_arrays(
        [chunk.flatten() for chunk in rows.column("uses").filter(pa.array(shapes == OTHER)).chunks]
        or [pa.array([], pa.string())]
    ).to_pylist():
        operator, _, name = text.partition("\t")
        uses[name, operator] += 1
    counted = rows.select(["name", "op", "shape"]).filter(pa.array(shapes != OTHER))
    for row in counted.group_by(["name", "op", "shape"]).aggregate([([], "count_all")]).to_pylist():
        operator = "matches" if row["shape"] == BOX_MATCH else RELATIONS[row["op"]].value
        uses[row["name"], operator] += row["count_all"]
    return uses
