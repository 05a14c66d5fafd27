"""Packed segments on executors: subscriptions travel to their segment, and are built and written there."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from contrada.forwarding.batches.packed_columns import Filters, Matches, Relations
from contrada.forwarding.codec.limits import NO_LIMITS
from contrada.forwarding.codec.msgpack import decode_filter
from contrada.forwarding.segments.gate import Anchor, Gate, anchor_of
from contrada.forwarding.segments.index_directory import write_columns
from contrada.forwarding.segments.subscription_ids import SubscriptionIds
from contrada.spark_jobs.build.messages import SegmentRows, SegmentWritten
from contrada.spark_jobs.build.partitioning import segments_of
from contrada.spark_jobs.build.staging import BOX, BOX_MATCH, OTHER
from contrada.spark_jobs.common.arrow import text_of
from contrada.spark_jobs.common.engine import scattered, stream_of
from contrada.spark_jobs.stores.shared_files import reading, writing_into
from contrada.spatial.storage.garbage import no_collection

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from contrada.forwarding.kernels.memory.layout import Ints
    from contrada.forwarding.language.filter import Filter
    from contrada.forwarding.segments.manifest import SegmentInfo
    from contrada.forwarding.table.options import TableOptions
    from contrada.spark_jobs.build.messages import PartParsed
    from contrada.spark_jobs.build.partitioning import Plan
    from contrada.spark_jobs.build.second_pass import Placing
    from contrada.spark_jobs.common.engine import Engine
    from contrada.spatial.road.network import RoadNetwork

_COLUMNS: Final = (
    *("id", "interface", "shape", "name", "x1", "y1", "x2", "y2", "tokens", "op", "ring", "filter", "filters"),
    *("weigh", "ref", "root"),
)
_PLACING: Final = ["weigh", "ref", "root"]  # what depends on how the input was cut


def build_segments(
    engine: Engine,
    placing: Placing,
    plan: Plan,
    directory: str,
    options: TableOptions,
    roads: str | None = None,
) -> list[SegmentWritten]:
    """Write the segments of a plan into a directory that all executors see; `roads` is where the road network is."""
    kinds = plan.kinds
    if not kinds:
        return []

    def send(number: int, _: PartParsed) -> Iterator[tuple[int, SegmentRows]]:
        rows, refs, _ = placing.read(number)
        buckets, owners, weigh, roots = placing.place(rows, refs)
        for name, column in zip(_PLACING, (weigh, refs, roots), strict=True):
            rows = rows.append_column(name, pa.array(column))
        rows = rows.select(_COLUMNS)
        for segment, table in scattered(rows, segments_of(buckets, owners, plan)):
            yield segment, SegmentRows(segment, table)

    def build(messages: Iterable[SegmentRows]) -> Iterator[SegmentWritten]:
        tables: list[pa.Table] = []
        for message in messages:
            tables.append(message.rows)
            kind = kinds[message.segment]
        if tables:
            with no_collection():
                rows, network = pa.concat_tables(tables), None if roads is None else _network(roads)
                yield SegmentWritten(*_write(rows, kind, directory, options, network))

    return engine.run(placing.parts, send, len(kinds), build)


@lru_cache(1)
def _network(address: str) -> RoadNetwork:
    """The road network of a build, mapped once in each process."""
    from contrada.spatial.road.network import RoadNetwork

    with reading(address) as file:
        return RoadNetwork.load(file)


def _write(
    rows: pa.Table, kind: str, directory: str, options: TableOptions, network: RoadNetwork | None
) -> tuple[SegmentInfo, int]:
    rows = rows.sort_by("id").combine_chunks()
    counts = rows.column("filters").to_numpy()
    ids = text_of(_whole(rows, "id"))
    first = int(ids.offsets[0])
    text = ids.data[first : int(ids.offsets[-1])]
    filters = filters_of(rows)
    with writing_into(directory) as place:
        return write_columns(
            place,
            SubscriptionIds.of_text(text, ids.offsets[1:] - first, counts),
            filters,
            [stream_of(rows.drop_columns(_PLACING))],
            _gate(rows, filters),
            kind,
            options,
            road_network=network,
        )


def _whole(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def filters_of(rows: pa.Table) -> Filters:
    """The filters of staged subscriptions, column by column, in their order."""
    shapes, counts = rows.column("shape").to_numpy(), rows.column("filters").to_numpy().astype(np.int64)
    starts = np.cumsum(counts) - counts
    interfaces = _whole(rows, "interface").dictionary_encode()
    names = _whole(rows, "name").dictionary_encode()
    numbers = names.indices.to_numpy().astype(np.int64)
    matched, related = np.flatnonzero(shapes == BOX_MATCH), np.flatnonzero((shapes != BOX_MATCH) & (shapes != OTHER))
    tokens = _whole(rows, "tokens").take(pa.array(matched))
    words = tokens.flatten().dictionary_encode()
    boxes = np.stack([rows.column(name).to_numpy()[matched] for name in ("x1", "y1", "x2", "y2")], axis=1)
    rings = _whole(rows, "ring").take(pa.array(related))
    others: list[tuple[int, Filter]] = []
    rest = np.flatnonzero(shapes == OTHER)
    for start, content in zip(
        starts[rest].tolist(), _whole(rows, "filter").take(pa.array(rest)).to_pylist(), strict=True
    ):
        others += enumerate(decode_filter(content, NO_LIMITS).filters, start)
    return Filters(
        names.dictionary.to_pylist(),
        interfaces.dictionary.to_pylist(),
        np.repeat(interfaces.indices.to_numpy().astype(np.int64), counts),
        Matches(
            starts[matched],
            numbers[matched],
            words.indices.to_numpy().astype(np.int64),
            np.cumsum(_lengths(tokens)),
            words.dictionary.to_pylist(),
            boxes,
        ),
        Relations(
            starts[related],
            numbers[related],
            rows.column("op").to_numpy()[related].astype(np.int64),
            shapes[related] == BOX,
            rings.flatten().to_numpy().reshape(-1, 2),
            np.cumsum(_lengths(rings)) // 2,
        ),
        others,
        np.repeat(rows.column("weigh").to_numpy(zero_copy_only=False), counts),
        np.repeat(_coverers(rows, starts), counts) if "root" in rows.column_names else None,
    )


def _coverers(rows: pa.Table, starts: Ints) -> Ints:
    """For each subscription, the first filter of the one that seems to cover it, where that is in this segment."""
    refs, roots = (rows.column(name).to_numpy() for name in ("ref", "root"))
    order = np.argsort(refs)
    at = order[np.minimum(np.searchsorted(refs, roots, sorter=order), len(order) - 1)] if len(order) else order
    found: Ints = np.where((refs[at] == roots) & (roots != refs), starts[at], -1)
    return found


def _lengths(lists: pa.ListArray) -> np.ndarray:
    lengths: np.ndarray = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return lengths


def _gate(rows: pa.Table, filters: Filters) -> Gate:
    """The gate of a segment."""
    anchors = [anchor_of(each) for _, each in filters.others]
    whole = rows.filter(pa.array(rows.column("shape").to_numpy() != OTHER)).select(["name", "x1", "y1", "x2", "y2"])
    sides = [("x1", "min"), ("y1", "min"), ("x2", "max"), ("y2", "max")]
    placed = whole.filter(~np.isnan(whole.column("x1").to_numpy()))
    for each in placed.group_by("name").aggregate(sides).to_pylist():
        x1, y1, x2, y2 = (each[f"{side}_{how}"] for side, how in sides)
        anchors.append(Anchor(each["name"], (x1, y1, x2, y2)))
    anywhere = whole.filter(np.isnan(whole.column("x1").to_numpy())).column("name").unique().to_pylist()
    return Gate.around([*anchors, *map(Anchor, anywhere)])
