"""Packed segments on executors: each Spark partition is one segment, built in its worker and written as files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from contrada.forwarding.filter import as_filters
from contrada.forwarding.index_directory import SegmentInfo, write_segment
from contrada.spark_jobs.simplifying import filter_of_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from contrada.forwarding.filter import Filter

_COLUMNS: Final = ("segment", "id", "interface", "filter", "name", "tokens", "x1", "y1", "x2", "y2")


def build_segments(assigned: DataFrame, kinds: Sequence[str], directory: str, geotext_index: str) -> list[SegmentInfo]:
    """Write the segments of rows with a `segment` into a directory that all executors see; what they are."""

    def build(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        rows: list[tuple[str, str, Sequence[Filter]]] = []
        number = -1
        for batch in batches:
            for row in batch.to_pylist():
                number = row["segment"]
                rows.append((row["id"], row["interface"], as_filters(filter_of_row(row))))
        info = write_segment(directory, rows, kinds[number], geotext_index=geotext_index)
        if info is not None:
            yield pa.RecordBatch.from_pydict({"info": [json.dumps(info.to_plain())]})

    spread = assigned.select(*_COLUMNS).repartitionById(max(1, len(kinds)), F.col("segment"))
    written = spread.mapInArrow(build, "info string").collect()
    return [SegmentInfo.from_plain(json.loads(row["info"])) for row in written]
