"""Event logs as DataFrames: Parquet, JSON lines, or a broker's recording.

Parquet files of one log need not agree on a schema: attributes come and go and change their type over the years. Files
are grouped by schema, each group is read as it is, and whatever follows takes the union. A column that is not named
below is an attribute, unless there is a column `attributes` (a struct, a map, or JSON text) that holds them all.

    Log     rows that `decoding` can read, and how
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from contrada.errors import InvalidValue
from contrada.forwarding.recording import Accepted, Recording, recording_files
from contrada.spark_jobs.decoding import Form, Format
from contrada.spark_jobs.instants import TIME_TYPE, zone_of
from contrada.spark_jobs.typed import check_attributes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_LINES: Final = (".jsonl", ".ndjson", ".json")
_PACKED: Final = (".gz", ".bz2", ".zst")
_BATCH: Final = 4096


@dataclass(frozen=True, slots=True)
class Layout:
    """What the user knows about a log."""

    id: str = "id"  # columns of Parquet
    time: str = "time"
    timezone: str | None = None  # of times that tell none


@dataclass(frozen=True)
class Log:
    """Events laid out in one way."""

    rows: DataFrame
    format: Format


class Kinds:
    """What a path holds."""

    PARQUET = "parquet"
    LINES = "lines"
    RECORDING = "recording"


def files_of(path: Path) -> tuple[str, list[Path]]:
    """What a file or directory holds, one of `Kinds`, and its files, by name."""
    if not path.exists():
        raise InvalidValue(f"{path}: no such file or directory")
    if is_recording(path):
        return Kinds.RECORDING, recording_files(path)
    candidates = [path] if path.is_file() else sorted(each for each in path.rglob("*") if _is_data(each, path))
    parquet = [each for each in candidates if each.suffix == ".parquet"]
    lines = [each for each in candidates if _is_lines(each)]
    if parquet and lines:
        raise InvalidValue(f"{path}: both Parquet and JSON lines; replay one after the other")
    if parquet or lines:
        return (Kinds.PARQUET, parquet) if parquet else (Kinds.LINES, lines)
    if path.is_dir() and not candidates:
        return Kinds.LINES, []
    raise InvalidValue(f"{path}: no events: expected files *.parquet, *.jsonl (or .gz of them), or a recording's *.rec")


def is_recording(path: Path) -> bool:
    """Whether a path is the directory of a recording."""
    return path.is_dir() and any(path.glob("*.rec"))


def read_log(spark: SparkSession, path: Path, layout: Layout) -> tuple[list[Log], list[tuple[Path, str]]]:
    """The events of a log; and the files that cannot be read, each with the reason."""
    zone_of(layout.timezone)
    kind, files = files_of(path)
    if not files:
        return [], []
    if kind == Kinds.RECORDING:
        return [Log(recorded_events(spark, files), Format(Form.BODIES))], []
    if kind == Kinds.LINES:
        rows = spark.read.text([str(each) for each in files]).selectExpr("cast(value as binary) as line")
        return [Log(rows, Format(Form.LINES, layout.timezone))], []
    groups, unread = _by_schema(files)
    return [_read_parquet(spark, group, layout) for group in groups], unread


def _is_data(file: Path, root: Path) -> bool:
    """Whether a file is neither hidden nor the mark of some job."""
    return file.is_file() and not any(part[0] in "._" for part in file.relative_to(root).parts)


def _is_lines(file: Path) -> bool:
    suffixes = file.suffixes[-2:] if file.suffix in _PACKED else file.suffixes[-1:]
    return bool(suffixes) and suffixes[0] in _LINES


# -- Parquet -----------------------------------------------------------------------------------------------


def _by_schema(files: Iterable[Path]) -> tuple[list[list[Path]], list[tuple[Path, str]]]:
    """Files of equal schemas together; and those without a schema that can be read."""
    groups: dict[str, list[Path]] = {}
    unread: list[tuple[Path, str]] = []
    for file in files:
        try:
            schema = pq.read_schema(file)
        except (pa.ArrowInvalid, OSError) as error:
            unread.append((file, f"not a Parquet file, or damaged: {error}"))
            continue
        key = "; ".join(sorted(f"{field.name}: {field.type}" for field in schema))
        groups.setdefault(key, []).append(file)
    return list(groups.values()), unread


def _read_parquet(spark: SparkSession, files: Sequence[Path], layout: Layout) -> Log:
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        rows = spark.read.parquet(*map(str, files))
    except AnalysisException as error:
        raise InvalidValue(f"{files[0]}: Spark cannot read its schema: {error.getMessage()}") from None
    check_columns(rows.columns, layout, files[0])
    if "attributes" in rows.columns:
        attributes = f.col("attributes")
    else:
        others = [name for name in rows.columns if name not in (layout.id, layout.time)]
        attributes = f.struct(*(f.col(f"`{name}`") for name in others))
    chosen = rows.select(
        f.col(f"`{layout.id}`").cast("string").alias("event_id"),
        f.col(f"`{layout.time}`").alias("time"),
        attributes.alias("attributes"),
    )
    types = {field.name: to_arrow_type(field.dataType, timezone="UTC") for field in chosen.schema.fields}
    try:
        form = form_of(types["time"], types["attributes"], layout)
    except InvalidValue as error:
        raise InvalidValue(f"{files[0]}: {error}") from None
    return Log(chosen, Format(form, layout.timezone))


def check_columns(names: Sequence[str], layout: Layout, file: Path) -> None:
    """Refuse a file without an id, a time and something else."""
    for name, what in ((layout.id, "id"), (layout.time, "time")):
        if name not in names:
            raise InvalidValue(
                f"{file}: no column {name!r} for the events' {what}; it has {', '.join(names)}. "
                f"Name another with --{what}-column"
            )
    if len(names) == 2:
        raise InvalidValue(f"{file}: an id and a time, but no column of attributes")


def form_of(time: pa.DataType, attributes: pa.DataType, layout: Layout) -> Form:
    """The layout of events whose time and attributes are of these types; `InvalidValue` for what is none."""
    if pa.types.is_timestamp(time) and time.tz is None and layout.timezone is None:
        raise InvalidValue(f"the column {layout.time!r} has times without a zone: say which with --timezone")
    if not pa.types.is_timestamp(time) and not pa.types.is_string(time):
        raise InvalidValue(f"the column {layout.time!r} is of type {time}, not timestamps or text in ISO 8601")
    if pa.types.is_struct(attributes):
        check_attributes(attributes, layout.timezone)
        return Form.TYPED
    if pa.types.is_map(attributes) and pa.types.is_string(attributes.key_type):
        check_attributes(pa.struct([("a value", attributes.item_type)]), layout.timezone)
        if not pa.types.is_struct(attributes.item_type):
            return Form.MAP
    if pa.types.is_string(attributes):
        return Form.TEXT
    raise InvalidValue(f"attributes are a struct, a map of strings to scalars, or JSON text, not {attributes}")


# -- recordings --------------------------------------------------------------------------------------------

_EVENTS: Final = "event_id string, time timestamp, sequence long, body binary"
_RECORDED: Final = "event_id string, time timestamp, interface long"


def recorded_events(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    """Every notification that a broker accepted, file by file."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for piece in _pieces(_accepted(batches), _BATCH):
            yield pa.RecordBatch.from_pydict(
                {
                    "event_id": [each.id for each in piece],
                    "time": pa.array([each.time for each in piece], pa.int64()).cast(TIME_TYPE),
                    "sequence": pa.array([each.sequence for each in piece], pa.int64()),
                    "body": pa.array([each.body for each in piece], pa.binary()),
                }
            )

    return _paths(spark, files).mapInArrow(read, _EVENTS)


def recorded_deliveries(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    """Every (notification, interface) that it was delivered to, whether or not it was dropped on the way."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for piece in _pieces(_accepted(batches), _BATCH):
            pairs = [(each.id, each.time, to) for each in piece for to in each.interfaces]
            yield pa.RecordBatch.from_pydict(
                {
                    "event_id": pa.array([id for id, _, _ in pairs], pa.string()),
                    "time": pa.array([time for _, time, _ in pairs], pa.int64()).cast(TIME_TYPE),
                    "interface": pa.array([to for _, _, to in pairs], pa.int64()),
                }
            )

    return _paths(spark, files).mapInArrow(read, _RECORDED)


def _paths(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    """One row and one partition per file."""
    rows = [(str(each.resolve()),) for each in files]
    return spark.createDataFrame(rows, "path string").repartitionByRange(max(1, len(rows)), "path")


def _accepted(batches: Iterable[pa.RecordBatch]) -> Iterator[Accepted]:
    for batch in batches:
        for path in batch.column(0).to_pylist():
            for record in Recording(path, strict=False):
                if type(record) is Accepted:
                    yield record


def _pieces(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    piece: list[Any] = []
    for item in items:
        piece.append(item)
        if len(piece) == size:
            yield piece
            piece = []
    if piece:
        yield piece
