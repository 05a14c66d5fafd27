"""Rows of Parquet in the quarantine as they were given: read again, in the types that the file has.

A build keeps of a good row what it understood, and finds out later that an id is taken: then the row's own words are
asked for. To keep the words of all rows for the few that are refused would double what is staged.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from contrada.forwarding.stores.addresses import in_a_store, is_url
from contrada.spark_jobs.build.rows.sources import BESIDE, COLUMNS
from contrada.spark_jobs.common.geometries import geometry_column
from contrada.spark_jobs.stores.shared_files import parquet_at


def as_given(refused: pa.Table, *, unless_told: bool = False) -> pa.Table:
    """The same rows of the quarantine of Parquet files, each `raw` what stands in the file.

    With `unless_told` rows that have a `raw` keep it: those did not come from Parquet.
    """
    sources, rows, raw = (refused.column(name).to_pylist() for name in ("source", "row", "raw"))
    asked: dict[str, list[int]] = {}
    for place, (source, row, told) in enumerate(zip(sources, rows, raw, strict=True)):
        ours = source is not None and (in_a_store(source) or not is_url(source))  # not one that Spark has read
        if ours and row is not None and not (unless_told and told is not None):
            asked.setdefault(source, []).append(place)
    for source, places in asked.items():
        found = _rows(source, np.array([rows[place] for place in places], np.int64))
        for place, text in zip(places, found, strict=True):
            raw[place] = text or raw[place]
    at = refused.schema.get_field_index("raw")
    return refused.set_column(at, refused.schema.field(at), pa.array(raw, pa.string())) if asked else refused


def _rows(path: str, numbers: np.ndarray) -> list[str | None]:
    """Rows of a file as JSON, by number; None for one whose text is not UTF-8."""
    found: list[str | None] = [None] * len(numbers)
    with parquet_at(path) as file:
        shape = geometry_column(file.schema_arrow, file.metadata.metadata, path)
        asked = [*COLUMNS, *((*BESIDE, shape.name) if shape is not None else ())]
        names = [name for name in asked if name in file.schema_arrow.names]
        start = 0
        for group in range(file.metadata.num_row_groups):
            end = start + file.metadata.row_group(group).num_rows
            mine = np.flatnonzero((numbers >= start) & (numbers < end))
            if len(mine):
                table = file.read_row_group(group, columns=names).take(pa.array(numbers[mine] - start))
                for n, place in enumerate(mine.tolist()):
                    found[place] = _text(table.slice(n, 1))
            start = end
    return found


def _text(row: pa.Table) -> str | None:
    try:
        (plain,) = row.to_pylist()
    except UnicodeDecodeError:
        return None
    return json.dumps(plain, ensure_ascii=False, default=_shown)


def _shown(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
