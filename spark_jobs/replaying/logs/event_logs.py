"""Event logs: Parquet, JSON lines, a broker's recording, or a DataFrame.

Parquet files of one log need not agree on a schema: attributes come and go and change their type over the years. Files
are grouped by schema, each group is read as it is, and whatever follows takes the union. A column that is not named
below is an attribute, unless there is a column `attributes` (a struct, a map, or JSON text) that holds them all.

A log is looked at before Spark is started (`find_log`): what is wrong with paths and columns is told at once.

    FoundLog    the files of a log, what they are, and those that are damaged
    Log         events that `decoding` can read, and how
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from contrada.errors import InvalidValue
from contrada.forwarding.recording.reader import recording_files
from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import address_of, is_url, name_of, shown
from contrada.spark_jobs.common.columns import check_once, check_table, quoted
from contrada.spark_jobs.common.errors import OutOfReach, is_damage
from contrada.spark_jobs.common.instants import zone_of
from contrada.spark_jobs.common.paths import check_readable
from contrada.spark_jobs.common.splits import Split, plain_schema, plain_type, split_parquet, split_text
from contrada.spark_jobs.common.text_lines import is_packed
from contrada.spark_jobs.replaying.logs.decoding import Form, Format
from contrada.spark_jobs.replaying.logs.reading import attribute_names
from contrada.spark_jobs.replaying.logs.typed import check_attributes
from contrada.spark_jobs.stores.listing import stored_files
from contrada.spark_jobs.stores.shared_files import SizedFile, parquet_at
from contrada.spatial.storage.regular_file import is_regular

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from contrada.spark_jobs.common.splits import Task

_LINES: Final = (".jsonl", ".ndjson", ".json")
_RECORDED: Final = ".rec"


@dataclass(frozen=True, slots=True)
class Layout:
    """What the user knows about a log."""

    id: str = "id"  # columns of Parquet
    time: str = "time"
    timezone: str | None = None  # of times that tell none


@dataclass(frozen=True)
class Log:
    """Events laid out in one way: as tasks read them, or as rows of a DataFrame."""

    format: Format
    tasks: tuple[Task, ...] = ()
    rows: DataFrame | None = None


class Kinds:
    """What a path holds."""

    PARQUET = "parquet"
    LINES = "lines"
    RECORDING = "recording"
    TABLE = "table"


def files_of(address: str, what: str = "EVENTS") -> tuple[str, list[SizedFile]]:
    """What a file or folder holds, one of `Kinds`, and its files, by name."""
    candidates = stored_files(address, what) if is_url(address) else _files_in(Path(address))
    recorded = [each for each in candidates if name_of(each.address).endswith(_RECORDED)]
    if recorded and is_recording(address):
        return Kinds.RECORDING, recorded
    parquet = [each for each in candidates if name_of(each.address).endswith(".parquet")]
    lines = [each for each in candidates if _is_lines(each.address)]
    if parquet and lines:
        raise InvalidValue(f"{shown(address)}: both Parquet and JSON lines; replay one after the other")
    if parquet or lines:
        return (Kinds.PARQUET, parquet) if parquet else (Kinds.LINES, lines)
    if not candidates:
        return Kinds.LINES, []
    raise InvalidValue(
        f"{shown(address)}: no events: expected files *.parquet, *.jsonl (or .gz of them), or a recording's *.rec"
    )


def _files_in(path: Path) -> list[SizedFile]:
    if not path.exists():
        raise InvalidValue(f"{path}: no such file or directory")
    if is_recording(str(path)):
        found = recording_files(path)
    else:
        found = [path] if is_regular(path) else sorted(each for each in path.rglob("*") if _is_data(each, path))
    return [SizedFile(str(each), each.stat().st_size) for each in found]


def is_recording(address: str) -> bool:
    """Whether an address is the folder of a recording."""
    if is_url(address):
        return any(name_of(each.address).endswith(_RECORDED) for each in object_store.entries(address))
    return Path(address).is_dir() and any(Path(address).glob(f"*{_RECORDED}"))


class FoundLog(NamedTuple):
    """A log that was looked at."""

    kind: str  # one of Kinds
    files: list[SizedFile]
    layout: Layout
    groups: list[list[_Parquet]]  # of Parquet: files of equal schemas together
    unread: list[tuple[str, str]]  # those that are damaged, each with the reason
    table: DataFrame | None = None


def find_log(path: str | os.PathLike[str], layout: Layout) -> FoundLog:
    """Look at a log; `InvalidValue` says what is wrong with its path, names, columns or time zone."""
    zone_of(layout.timezone)
    kind, files = files_of(address_of(path, "EVENTS"))
    if kind == Kinds.LINES:
        check_readable(files)
    groups, unread = _by_schema(files) if kind == Kinds.PARQUET else ([], [])
    for group in groups:
        parquet_format(group[0].path, group[0].types, layout)
    return FoundLog(kind, files, layout, groups, unread)


def find_table(events: DataFrame, layout: Layout) -> FoundLog:
    """Look at a table of events; `InvalidValue` says what is wrong with its columns."""
    dataframe_format(events, layout)
    return FoundLog(Kinds.TABLE, [], layout, [], [], events)


def read_log(spark: SparkSession, found: FoundLog) -> list[Log]:
    """The events of a log."""
    parallel = 4 * spark.sparkContext.defaultParallelism
    if found.table is not None:
        format = dataframe_format(found.table, found.layout)
        return [Log(format, rows=select_events(found.table, format))]
    if found.kind == Kinds.PARQUET:
        return [_parquet_log(group, found.layout, parallel) for group in found.groups]
    if found.kind == Kinds.RECORDING:  # a block of it can be read only after those before it
        tasks: list[Task] = [(Split(file.address),) for file in found.files]
        return [Log(Format(Form.BODIES), tuple(tasks))]
    tasks = split_text(found.files, parallel)
    return [Log(Format(Form.LINES, found.layout.timezone), tuple(tasks))] if tasks else []


def _is_data(file: Path, root: Path) -> bool:
    """Whether a file is neither hidden nor the mark of some job."""
    return not any(part[0] in "._" for part in file.relative_to(root).parts) and is_regular(file)


def _is_lines(address: str) -> bool:
    suffixes = PurePosixPath(name_of(address)).suffixes[-2 if is_packed(address) else -1 :]
    return bool(suffixes) and suffixes[0] in _LINES


# -- Parquet -----------------------------------------------------------------------------------------------


class _Parquet(NamedTuple):
    """A file: its columns and types, and the sizes of its row groups."""

    path: str
    types: dict[str, pa.DataType]
    sizes: list[int]


def _by_schema(files: Iterable[SizedFile]) -> tuple[list[list[_Parquet]], list[tuple[str, str]]]:
    """Files of equal schemas together; and those without a schema that can be read."""
    groups: dict[str, list[_Parquet]] = {}
    unread: list[tuple[str, str]] = []
    for path, _ in files:
        try:
            with parquet_at(path) as file:
                names = file.schema_arrow.names
                types = plain_schema(file)
                sizes = [file.metadata.row_group(n).num_rows for n in range(file.metadata.num_row_groups)]
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and not is_damage(error):
                raise OutOfReach(path, error) from error
            unread.append((path, f"not a Parquet file, or damaged: {error}"))
            continue
        check_once(names, path)
        key = "; ".join(sorted(f"{name}: {kind}" for name, kind in types.items()))
        groups.setdefault(key, []).append(_Parquet(path, types, sizes))
    return list(groups.values()), unread


def _parquet_log(files: Sequence[_Parquet], layout: Layout, parallel: int) -> Log:
    tasks = split_parquet(((each.path, each.sizes) for each in files), parallel)
    return Log(parquet_format(files[0].path, files[0].types, layout), tuple(tasks))


def parquet_format(path: str, types: Mapping[str, pa.DataType], layout: Layout) -> Format:
    """How to read a table of these columns; `InvalidValue` when it holds no events."""
    check_columns(list(types), layout, path)
    format = Format(Form.TYPED, layout.timezone, layout.id, layout.time)
    names = attribute_names(types, format)
    one = names == ["attributes"]
    attributes = types["attributes"] if one else pa.struct([(name, types[name]) for name in names])
    try:
        return replace(format, form=form_of(types[layout.time], attributes, layout))
    except InvalidValue as error:
        raise InvalidValue(f"{path}: {error}") from None


def dataframe_format(events: DataFrame, layout: Layout) -> Format:
    """How to read the rows of a DataFrame; `InvalidValue` when they are no events."""
    from pyspark.sql.pandas.types import to_arrow_schema

    zone_of(layout.timezone)
    check_table(events, "the DataFrame")
    types = {each.name: plain_type(each.type) for each in to_arrow_schema(events.schema, timezone="UTC")}
    return parquet_format("the DataFrame", types, layout)


def select_events(rows: DataFrame, format: Format) -> DataFrame:
    """The id, time and attributes of the rows of a table."""
    from pyspark.sql import functions as f

    names = attribute_names(rows.columns, format)
    one = names == ["attributes"]
    return rows.select(
        f.col(quoted(format.id)).cast("string").alias("event_id"),
        f.col(quoted(format.time)).alias("time"),
        (f.col("attributes") if one else f.struct(*(f.col(quoted(name)) for name in names))).alias("attributes"),
    )


def check_columns(names: Sequence[str], layout: Layout, file: str) -> None:
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
