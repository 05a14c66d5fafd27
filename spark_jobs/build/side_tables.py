"""Tables that lie beside the segments of an index: its statistics, and the quarantine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contrada.forwarding.segments.manifest import SEGMENT_KINDS
from contrada.spark_jobs.build.staging import QUARANTINE
from contrada.spark_jobs.build.statistics import bucket_parts
from contrada.spark_jobs.stores.shared_files import take

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def gather_quarantine(unread: Sequence[tuple[str, str]], files: Sequence[str], path: Path) -> int:
    """Put the quarantine together, a table also when it is empty; how many rows it has."""
    whole = [(file, None, None, reason, None) for file, reason in unread]
    columns = list(zip(*whole, strict=True)) if whole else [()] * len(QUARANTINE)
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, QUARANTINE, strict=True)], schema=QUARANTINE)
    path.mkdir()
    if whole or not files:
        pq.write_table(table, path / "part-unread.parquet")
    _take_all(files, path)
    rows: int = sum(pq.read_metadata(file).num_rows for file in path.glob("*.parquet"))
    return rows


def write_statistics(tokens: Sequence[str], attributes: pa.Table, places: Mapping[int, int], path: Path) -> None:
    """Write what was counted: keywords, of which tasks have files, attributes, and places by their buckets."""
    _take_all(tokens, path / "tokens")
    _write_table(attributes, path / "attributes")
    _write_places(places, path / "places")


def _take_all(files: Sequence[str], path: Path) -> None:
    """Have the Parquet files of tasks in a directory of the driver."""
    path.mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(files):
        take(file, path / f"part-{number:05}.parquet")


def attribute_shares(uses: Counter[tuple[str, str]], subscriptions: int) -> pa.Table:
    """(attribute, operator, subscriptions, share of all), the most frequent first."""
    rows = sorted(uses.items(), key=lambda item: (-item[1], item[0]))
    return pa.table(
        {
            "attribute": pa.array([name for (name, _), _ in rows], pa.string()),
            "operator": pa.array([operator for (_, operator), _ in rows], pa.string()),
            "subscriptions": pa.array([n for _, n in rows], pa.int64()),
            "share": pa.array([n / max(1, subscriptions) for _, n in rows], pa.float64()),
        }
    )


def _write_places(counted: Mapping[int, int], path: Path) -> None:
    """Write the spatial histogram: how many places, or their coverers, have their centre in each cell of the grid."""
    codes = np.array(sorted(counted), np.int64)
    kinds, _, x, y = bucket_parts(codes)
    placed = kinds != SEGMENT_KINDS.index("hash")
    columns = {
        "kind": pa.array(np.array(SEGMENT_KINDS, object)[kinds[placed]], pa.string()),
        "x": pa.array(x[placed].astype(np.int32)),
        "y": pa.array(y[placed].astype(np.int32)),
        "subscriptions": pa.array([counted[code] for code in codes[placed].tolist()], pa.int64()),
    }
    _write_table(pa.table(columns), path)


def _write_table(table: pa.Table, path: Path) -> None:
    path.mkdir()
    pq.write_table(table, path / "part-0.parquet")
