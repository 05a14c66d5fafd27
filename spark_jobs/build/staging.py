"""Subscriptions between the steps of a build: checked, column by column, in Arrow files under the index's own place.

    source, row, id, interface      where a subscription came from, and whose it is
    shape                           what its filter is: one of the four below
    kind                            which kind of segment it goes to: a place in SEGMENT_KINDS
    name, x1, y1, x2, y2            its anchor (forwarding/segments/gate.py); NaN where that has no box
    tokens                          its keywords, ascending, each once
    op, ring                        of a relation: place in RELATIONS, and vertices x y x y …, canonical, not closed
    filter                          of OTHER: what the codec writes
    filters                         how many filters it is
    uses                            of OTHER: "operator attribute" of its constraints
    raw                             the row as given, of text; a row of Parquet is read again if it is asked for

A part is what one task has read, and is named by a number; a subscription is known by its *ref*, part << 32 | row in
the part. A task that is run twice writes two files, and the driver reads the one that it is told of.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from contrada.forwarding.stores.addresses import join
from contrada.spark_jobs.stores.shared_files import reading, writing

if TYPE_CHECKING:
    from collections.abc import Sequence

OTHER: Final = 0
BOX_MATCH: Final = 1
POLYGON: Final = 2
BOX: Final = 3

STAGED: Final = pa.schema(
    [
        ("source", pa.string()),
        ("row", pa.int64()),
        ("id", pa.string()),
        ("interface", pa.string()),
        ("shape", pa.int8()),
        ("kind", pa.int8()),
        ("name", pa.string()),
        ("x1", pa.float64()),
        ("y1", pa.float64()),
        ("x2", pa.float64()),
        ("y2", pa.float64()),
        ("tokens", pa.list_(pa.string())),
        ("op", pa.int8()),
        ("ring", pa.list_(pa.float64())),
        ("filter", pa.binary()),
        ("filters", pa.int32()),
        ("uses", pa.list_(pa.string())),
        ("raw", pa.binary()),
    ]
)
QUARANTINE: Final = pa.schema(
    [
        ("source", pa.string()),
        ("row", pa.int64()),
        ("id", pa.string()),
        ("reason", pa.string()),
        ("raw", pa.string()),
    ]
)


def write_part(directory: str, batches: Sequence[pa.RecordBatch]) -> str:
    """Write the subscriptions of a part; the file's address."""
    path = join(directory, f"part-{uuid.uuid4().hex}.arrow")
    with writing(path) as place, pa.OSFile(str(place), "wb") as file, pa.ipc.new_file(file, STAGED) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return path


def read_part(path: str) -> pa.Table:
    """The subscriptions of a part, mapped into memory."""
    with reading(path) as place, pa.memory_map(str(place)) as file:
        return pa.ipc.open_file(file).read_all()
