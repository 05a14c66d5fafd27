"""Packed segments on executors: each Spark partition is one segment, built in its worker and written as files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from contrada.forwarding.gates import Anchor
from contrada.forwarding.index_directory import Packed, SegmentInfo, write_segment
from contrada.spark_jobs.collecting import no_collection
from contrada.spark_jobs.simplifying import filter_of_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

_COLUMNS: Final = ("segment", "family", "id", "interface", "filter", "name", "tokens", "x1", "y1", "x2", "y2")


def build_segments(assigned: DataFrame, kinds: Sequence[str], directory: str, geotext_index: str) -> list[SegmentInfo]:
    """Write the segments of rows with a `segment` into a directory that all executors see; what they are."""

    def build(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        rows: list[Packed] = []
        number = -1
        with no_collection():
            for batch in batches:
                for row in batch.to_pylist():
                    number = row["segment"]
                    rows.append(_packed(row))
            info = write_segment(directory, rows, kinds[number], geotext_index=geotext_index)
        if info is not None:
            yield pa.RecordBatch.from_pydict({"info": [json.dumps(info.to_plain())]})

    spread = assigned.select(*_COLUMNS).repartitionById(max(1, len(kinds)), F.col("segment"))
    written = spread.mapInArrow(build, "info string").collect()
    return [SegmentInfo.from_plain(json.loads(row["info"])) for row in written]


def _packed(row: dict[str, Any]) -> Packed:
    filters = filter_of_row(row).filters
    if row["filter"] is not None:
        return Packed(row["id"], row["interface"], filters, row["filter"], weigh=row["family"])
    name, words, box = row["name"], row["tokens"], (row["x1"], row["y1"], row["x2"], row["y2"])
    content = f"{name} {' '.join(words)} {box}".encode()
    return Packed(row["id"], row["interface"], filters, content, (Anchor(name, box),), row["family"])
