"""Where subscriptions come from: Parquet, JSON lines and GeoJSON, told by their names or by the user.

    parquet    columns id, interface, filter (text, or fields: see fields.py); or geometry,
               as GeoParquet or WKB, with attribute, relation, keywords and filter beside it      form "columns"
    jsonl      a JSON object per line: {"id", "interface", "filter"}                              form "lines"
    geojson    a FeatureCollection per file (geojson.py)                                          form "features"
    geojsonl   a Feature per line                                                                 form "features"

`find_subscriptions` looks at a source before anything is begun: which files there are, what they are, and whether they
can be what they say. Files are read by the tasks themselves (`read_rows`), parts of large ones and small ones together
(common/splits.py), on a disk or in an object store. Spark reads what any other URL names (`read_url`), and DataFrames
are taken as they are.

What is wrong with a row is for the quarantine. What is wrong with a whole source is told here: files of Parquet whose
footer cannot be read are set aside, each with the reason; files that disagree about the schema stop the job, since no
row of theirs could be trusted.
"""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from contrada.errors import CorruptFile, InvalidValue
from contrada.forwarding.stores.addresses import address_of, in_a_store, is_url, name_of
from contrada.spark_jobs.build.rows.fields import MEMBERS
from contrada.spark_jobs.common.columns import check_once, check_table
from contrada.spark_jobs.common.errors import DamagedSplit, OutOfReach, damage_as, is_damage
from contrada.spark_jobs.common.geometries import GEOMETRY, GeometryColumn, as_wkb, geometry_column
from contrada.spark_jobs.common.paths import check_readable
from contrada.spark_jobs.common.splits import plain_type, split_parquet, split_text
from contrada.spark_jobs.common.text_lines import PACKED, read_lines
from contrada.spark_jobs.stores.listing import hidden, stored_files, unbraced
from contrada.spark_jobs.stores.shared_files import SizedFile, parquet_at
from contrada.spatial.storage.regular_file import check_regular, is_regular

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from contrada.spark_jobs.common.splits import Split, Task

FORMATS: Final = ("parquet", "jsonl", "geojson", "geojsonl")
_SUFFIXES: Final = {
    ".parquet": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".geojson": "geojson",
    ".geojsonl": "geojsonl",
    ".geojsons": "geojsonl",
}
_TASKS: Final = 4  # for each that runs at once
_BATCH: Final = 1 << 16
COLUMNS: Final = ("id", "interface", "filter")
BESIDE: Final = ("attribute", "relation", "keywords")
"""What may stand beside a geometry, as properties do in GeoJSON."""
SELECTED: Final = (
    "cast(id as string) as id",
    "cast(interface as string) as interface",
    "filter",
    "cast(to_json(struct(id, interface, filter), map('ignoreNullFields', 'false')) as binary) as raw",
)
"""What Spark reads of a table of subscriptions."""


class Found(NamedTuple):
    """A source that was looked at: files by address, or a URL; of Parquet the sizes of row groups."""

    path: str
    format: str
    files: tuple[SizedFile, ...]  # none of a URL that Spark reads
    sizes: dict[str, list[int]]
    unread: tuple[tuple[str, str], ...]  # files that are damaged, and how

    @property
    def remote(self) -> bool:
        """Whether it is a URL that Spark reads."""
        return not self.files and is_url(self.path)

    @property
    def form(self) -> str:
        """What its rows are."""
        return {"parquet": "columns", "jsonl": "lines"}.get(self.format, "features")

    @property
    def whole(self) -> bool:
        """Whether a file of text is one row."""
        return self.format == "geojson"

    def tasks(self, parallelism: int) -> list[Task]:
        """What tasks read, if so many of them run at once."""
        if self.format == "parquet":
            return split_parquet(self.sizes.items(), _TASKS * parallelism)
        return split_text(self.files, _TASKS * parallelism, whole=self.whole)

    @property
    def bytes(self) -> int:
        """How large all files are."""
        return sum(file.size for file in self.files)

    @property
    def unread_bytes(self) -> int:
        """How large those are that cannot be read."""
        unread = {file for file, _ in self.unread}
        return sum(file.size for file in self.files if file.address in unread)


_TABLE: Final = Found("the DataFrame", "parquet", (), {}, ())


def find_subscriptions(path: str | None, format: str | None = None) -> Found:
    """Look at a file, a directory of files, a pattern or a URL; `InvalidValue` says what is wrong with it.

    `None` as a path stands for a DataFrame, which `read_table` looks at.
    """
    if path is None:
        return _TABLE
    remote = is_url(path) and not in_a_store(path)
    files = () if remote else tuple(_files(address_of(path, "SUBSCRIPTIONS")))
    chosen = format or _format_of(path, files)
    if chosen not in FORMATS:
        raise InvalidValue(f"no format is called {chosen!r}; choose one of: {', '.join(FORMATS)}")
    if remote:
        return Found(path, chosen, (), {}, ())
    sizes: dict[str, list[int]] = {}
    unread: list[tuple[str, str]] = []
    if chosen == "parquet":
        sizes, unread, first, shape = _readable([file.address for file in files])
        if first is not None:
            check_columns(first.names, next(iter(sizes)), geometry=shape is not None)
            _check_schema(first, next(iter(sizes)))
    else:
        check_readable(files)
    return Found(path, chosen, files, sizes, tuple(unread))


def read_url(session: SparkSession, found: Found) -> DataFrame:
    """The rows of what Spark finds at a URL, with the row as given beside what is read of it."""
    if found.format != "parquet":
        text = session.read.text(found.path, wholetext=found.whole)
        return text.selectExpr("_metadata.file_path as source", "cast(value as binary) as value")
    table = session.read.parquet(found.path)
    check_columns(table.columns, found.path)
    return table.selectExpr("_metadata.file_path as source", "_metadata.row_index as row", *SELECTED)


def read_table(table: DataFrame) -> DataFrame:
    """The rows of a table of subscriptions; `InvalidValue` says what is wrong with its columns."""
    from pyspark.sql.pandas.types import to_arrow_schema

    where = ("cast(null as string) as source", "cast(null as bigint) as row")
    check_table(table, _TABLE.path, among=(*COLUMNS, GEOMETRY, *BESIDE))
    schema = to_arrow_schema(table.schema, timezone="UTC")
    if geometry_column(schema, None, _TABLE.path) is None:
        check_columns(table.columns, _TABLE.path)
        _check_schema(pa.schema([schema.field(name) for name in COLUMNS]), _TABLE.path)
        return table.selectExpr(*where, *SELECTED)
    check_columns(table.columns, _TABLE.path, geometry=True)
    _check_schema(schema, _TABLE.path)
    told = ["id", "interface", *(name for name in ("filter", *BESIDE) if name in table.columns)]
    filled = "filter" if "filter" in table.columns else "cast(null as string) as filter"
    return table.selectExpr(
        *(*where, *SELECTED[:2], filled, GEOMETRY, *(name for name in BESIDE if name in table.columns)),
        f"cast(to_json(struct({', '.join((*told, GEOMETRY))}), map('ignoreNullFields', 'false')) as binary) as raw",
    )


def _files(path: str) -> list[SizedFile]:
    """The files of an address: itself, those in it (as Spark has it, without hidden ones), or those that match it."""
    if is_url(path):
        return stored_files(path, "SUBSCRIPTIONS")
    given = Path(path)
    if given.exists():
        found = _files_in(given)
    else:
        matches = {match for each in unbraced(path) for match in glob.glob(each, recursive=True)}  # noqa: PTH207  # Path.glob takes no absolute patterns
        found = [file for match in matches for file in _files_in(Path(match))]
        if not found:
            raise InvalidValue(f"{path}: no such file, directory or pattern")
    return [SizedFile(str(file), file.stat().st_size) for file in sorted(set(found))]


def _files_in(given: Path) -> list[Path]:
    if not given.is_dir():
        check_regular(given)
        return [given]
    found = [file for file in given.rglob("*") if not any(hidden(p) for p in file.relative_to(given).parts)]
    return [file for file in found if is_regular(file)]


def _format_of(path: str, files: Sequence[SizedFile]) -> str:
    names = [name_of(file.address) for file in files] or [path]
    found = set()
    for name in names:
        suffixes = [s for s in Path(name.rstrip("/")).suffixes if s not in PACKED]
        found.add(_SUFFIXES.get(suffixes[-1]) if suffixes else None)
    if len(found) == 1 and (only := found.pop()) is not None:
        return only
    if not files and not found - {None}:
        return "jsonl" if Path(path).is_dir() else _untold(path)
    return _untold(path)


def _untold(path: str) -> str:
    raise InvalidValue(f"{path}: the names do not tell the format; say --format {' or '.join(FORMATS)}")


# -- Parquet ---------------------------------------------------------------------------------------------


def read_rows(
    task: Sequence[Split], form: str, damaged: list[DamagedSplit], *, whole: bool = False
) -> Iterator[pa.RecordBatch]:
    """The rows of some splits: source, row, id, interface, filter; or source, value of text.

    Splits that are damaged are added to a list, and none of their rows are given. Only the damage of a split that is
    the only one of its task may be found after some of its rows were given: that is raised.
    """
    for split in task:
        rows = _read_parquet(split) if form == "columns" else _read_text(split, whole)
        try:
            yield from rows if len(task) == 1 or form != "columns" else list(rows)
        except DamagedSplit as error:
            if len(task) == 1:
                raise
            damaged.append(error)


def _read_text(split: Split, whole: bool) -> Iterator[pa.RecordBatch]:
    try:
        for lines in read_lines(*split, whole=whole):
            columns = [pa.array([split.path] * len(lines), pa.string()), lines]
            yield pa.RecordBatch.from_arrays(columns, ["source", "value"])
    except CorruptFile as error:
        raise DamagedSplit(split.path, str(error)) from error


def _read_parquet(split: Split) -> Iterator[pa.RecordBatch]:
    path, groups = split.path, range(split.start, split.stop)
    share = 1.0

    def damaged(error: Exception) -> Exception:
        return DamagedSplit(path, f"row groups {split.start} to {split.stop - 1} cannot be read: {error}", share)

    with damage_as(path, damaged), parquet_at(path) as file:
        share = len(groups) / max(1, file.metadata.num_row_groups)
        row = sum(file.metadata.row_group(group).num_rows for group in range(split.start))
        shape = geometry_column(file.schema_arrow, file.metadata.metadata, path)
        wanted = [*COLUMNS, *((shape.name, *BESIDE) if shape is not None else ())]
        there = [name for name in dict.fromkeys(wanted) if name in file.schema_arrow.names]
        for batch in file.iter_batches(_BATCH, row_groups=groups, columns=there):
            columns = {
                "source": pa.array([path] * len(batch), pa.string()),
                "row": pa.array(range(row, row + len(batch)), pa.int64()),
            }
            for name in there:
                cells = batch.column(name)
                kind = pa.string() if name in ("id", "interface") else plain_type(cells.type)
                columns[name] = cells.storage if isinstance(cells.type, pa.ExtensionType) else cells.cast(kind)
            if shape is not None:
                columns.setdefault("filter", pa.nulls(len(batch), pa.string()))
                columns[GEOMETRY] = as_wkb(columns.pop(shape.name), shape.encoding)
            yield pa.RecordBatch.from_pydict(columns)
            row += len(batch)


def check_columns(names: Sequence[str], file: str, *, geometry: bool = False) -> None:
    """Refuse what has no id, interface or filter; instead of a filter there may be a geometry."""
    missing = set(COLUMNS) - set(names) - ({"filter"} if geometry else set())
    if missing:
        raise InvalidValue(
            f"{file}: no column {' nor '.join(sorted(missing))}; there are {', '.join(names)}, "
            "and a subscription has id, interface and filter (or geometry)"
        )


def _readable(
    files: list[str],
) -> tuple[dict[str, list[int]], list[tuple[str, str]], pa.Schema | None, GeometryColumn | None]:
    """The files whose footer can be read, with the sizes of their row groups; those that cannot; and the schema."""
    good: dict[str, list[int]] = {}
    bad: list[tuple[str, str]] = []
    first: pa.Schema | None = None
    shape: GeometryColumn | None = None
    for file in files:
        try:
            with parquet_at(file) as opened:
                metadata = opened.metadata
            schema = _plain(metadata.schema.to_arrow_schema())
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and not is_damage(error):
                raise OutOfReach(file, error) from error
            bad.append((file, f"not a whole Parquet file: {error}"))
            continue
        found = geometry_column(schema, metadata.metadata, file)
        if first is None:
            first, shape = schema, found
        elif (shape is None) != (found is None):
            raise InvalidValue(f"{file}: geometries in some files and none in others; build from one kind at a time")
        check_once((name for name in schema.names if name in COLUMNS), file)
        _check_same(first, next(iter(good), file), schema, file)
        good[file] = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    return good, bad, first, shape


def _plain(schema: pa.Schema) -> pa.Schema:
    """What a file holds, however its writer had it in memory: categories of strings are strings."""
    return pa.schema([(field.name, plain_type(field.type)) for field in schema])


def _check_same(first: pa.Schema, one: str, schema: pa.Schema, other: str) -> None:
    for name in COLUMNS:
        a, b = (s.field(name).type if name in s.names else None for s in (first, schema))
        if a != b:
            raise InvalidValue(
                f"{other}: column {name} is {b or 'not there'}, and in {one} it is {a or 'not there'}; "
                "files of one table have one schema: convert it, or build from one of them at a time"
            )


def _check_schema(schema: pa.Schema, file: str) -> None:
    """Refuse types that no id, interface or filter could be."""
    for name in ("id", "interface"):
        if name in schema.names:
            kind = schema.field(name).type
            if not (pa.types.is_string(kind) or pa.types.is_integer(kind)):
                raise InvalidValue(f"{file}: column {name} is {kind}; it must be a string or an integer")
    if "filter" in schema.names:
        _check_filter_type(schema.field("filter").type, file)


def _check_filter_type(kind: pa.DataType, file: str) -> None:
    if pa.types.is_string(kind):
        return
    inner = kind
    while pa.types.is_list(inner):
        inner = inner.value_type
    if inner is kind or not pa.types.is_struct(inner):
        raise InvalidValue(f"{file}: column filter is {kind}; it must be text, or an array of constraints (structs)")
    members = {inner.field(i).name for i in range(inner.num_fields)}
    if not {"name", "op"} <= members or not members <= MEMBERS:
        raise InvalidValue(
            f"{file}: a constraint has the members {', '.join(sorted(members))}; "
            f"it needs name and op, and may have {', '.join(sorted(MEMBERS - {'name', 'op'}))}"
        )
