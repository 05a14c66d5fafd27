"""Compile the kernels of the jobs before they are needed, as `contrada.forwarding.warm` does for the engine.

`contrada warm --jobs`; otherwise the first build on a machine does it, in every worker at once.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from contrada.forwarding.table.table import ForwardingTable
from contrada.spark_jobs.build.building import filters_of
from contrada.spark_jobs.build.cover.coverers import cover_records, find_coverers
from contrada.spark_jobs.build.cover.repeated_ids import find_repeated, id_records
from contrada.spark_jobs.build.rows.parsing import parse_batch
from contrada.spark_jobs.build.statistics import groups_of

_FILTERS: Final = (
    'post matches {"ipad"} within BOX(0 0, 5 5)',
    'post matches {"ipad", "sale"} within BOX(1 1, 2 2)',
    "area overlaps POLYGON((0 0, 10 0, 10 10, 0 10))",
    "area inside BOX(2 2, 3 3)",
    "price > 3",
)


def compile_kernels() -> None:
    """Put a few subscriptions through what a build does with millions."""
    count = len(_FILTERS)
    columns = {"source": [""] * count, "row": list(range(count)), "id": [f"s{n}" for n in range(count)]}
    batch = pa.RecordBatch.from_pydict({**columns, "interface": ["i"] * count, "filter": list(_FILTERS)})
    parsed = parse_batch(batch, "columns")
    refs = np.arange(count)
    find_repeated(id_records(parsed.rows, refs, 1))
    find_coverers(cover_records(parsed, refs, groups_of(parsed.rows.column("name"))))
    rows = pa.Table.from_batches([parsed.rows]).append_column("weigh", pa.array([True] * count))
    ForwardingTable.packed_columns(filters_of(rows))
