"""Where subscriptions come from: Parquet, JSON lines and GeoJSON, told by their names or by the user.

    parquet    columns id, interface, filter (text, or fields: see fields.py)                     form "columns"
    jsonl      a JSON object per line: {"id", "interface", "filter"}                              form "lines"
    geojson    a FeatureCollection per file (geojson.py)                                          form "features"
    geojsonl   a Feature per line                                                                 form "features"

Spark reads text, and whatever a URL names. Parquet files are read by the tasks themselves, a few row groups each, which
spares the JVM from making rows of columns and columns of rows (pieces.py).

What is wrong with a row is for the quarantine. What is wrong with a whole source is told here: files of Parquet whose
footer cannot be read are set aside, each with the reason; files that disagree about the schema stop the job, since no
row of theirs could be trusted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from contrada.errors import CorruptFile, InvalidValue
from contrada.spark_jobs.fields import MEMBERS
from contrada.spark_jobs.pieces import Piece, cut, plain_type
from contrada.spark_jobs.text_files import read_text_files
from contrada.spatial.regular_file import check_regular, is_regular

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

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
_PACKED: Final = (".gz", ".bz2", ".zst")
_TASKS: Final = 4  # pieces to a core
_BATCH: Final = 1 << 16


class Source(NamedTuple):
    """Rows to parse, or pieces of Parquet files to read them from; what they are; files that could not be read, why."""

    rows: DataFrame
    form: str
    unread: tuple[tuple[str, str], ...] = ()
    pieces: tuple[Piece, ...] = ()


class DamagedPiece(CorruptFile):
    """Row groups of a Parquet file that cannot be read."""

    def __init__(self, piece: Piece, error: Exception) -> None:
        super().__init__(f"row groups {piece.start} to {piece.stop - 1} cannot be read: {error}")
        self.path = piece.path


def read_subscriptions(session: SparkSession, path: str, format: str | None = None) -> Source:
    """The rows of a file, a directory of files, or what a pattern or URL names; `InvalidValue` says what is wrong."""
    remote = "://" in path
    files = [] if remote else _files(path)
    chosen = format or _format_of(path, files)
    if chosen not in FORMATS:
        raise InvalidValue(f"no format is called {chosen!r}; choose one of: {', '.join(FORMATS)}")
    if chosen == "parquet":
        return _read_parquet(session, [path] if remote else [str(file) for file in files], remote)
    if not remote and not any(file.stat().st_size for file in files):
        return Source(session.createDataFrame([], "source string, value binary"), "lines")
    whole = chosen == "geojson"
    text = session.read.text(path, wholetext=whole) if remote else read_text_files(session, files, whole=whole)
    rows = text.selectExpr("_metadata.file_path as source", "cast(value as binary) as value")
    return Source(rows, "lines" if chosen == "jsonl" else "features")


def _files(path: str) -> list[Path]:
    """The files of a path: itself, those in it (as Spark has it, without hidden ones), or those that match it."""
    given = Path(path)
    if given.is_dir():
        found = [f for f in given.rglob("*") if not any(_hidden(p) for p in f.relative_to(given).parts)]
        found = [f for f in found if is_regular(f)]
    elif given.exists():
        check_regular(given)
        found = [given]
    else:
        found = [f for f in sorted(given.parent.glob(given.name)) if is_regular(f)] if given.name else []
        if not found:
            raise InvalidValue(f"{path}: no such file, directory or pattern")
    return sorted(found)


def _hidden(part: str) -> bool:
    return part.startswith(("_", ".")) and "=" not in part


def _format_of(path: str, files: Sequence[Path]) -> str:
    names = [file.name for file in files] or [path]
    found = set()
    for name in names:
        suffixes = [s for s in Path(name.rstrip("/")).suffixes if s not in _PACKED]
        found.add(_SUFFIXES.get(suffixes[-1]) if suffixes else None)
    if len(found) == 1 and (only := found.pop()) is not None:
        return only
    if not files and not found - {None}:
        return "jsonl" if Path(path).is_dir() else _untold(path)
    return _untold(path)


def _untold(path: str) -> str:
    raise InvalidValue(f"{path}: the names do not tell the format; say --format {' or '.join(FORMATS)}")


# -- Parquet ---------------------------------------------------------------------------------------------


def _read_parquet(session: SparkSession, files: list[str], remote: bool) -> Source:
    if not remote:
        sizes, unread, first = _readable(files)
        if first is not None:
            _check_columns(first.names, next(iter(sizes)))
            _check_schema(first, next(iter(sizes)))
        empty = session.createDataFrame([], "source string, row long, id string, interface string, filter string")
        tasks = _TASKS * session.sparkContext.defaultParallelism
        return Source(empty, "columns", tuple(unread), tuple(cut(sizes.items(), tasks)))
    table = session.read.parquet(*files)
    _check_columns(table.columns, files[0])
    rows = table.selectExpr(
        "_metadata.file_path as source",
        "_metadata.row_index as row",
        "cast(id as string) as id",
        "cast(interface as string) as interface",
        "filter",
    )
    return Source(rows, "columns")


def read_rows(batches: Iterable[pa.RecordBatch], pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
    """The rows of pieces whose numbers are given: source, row, id, interface, filter."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from _read_piece(pieces[number])


def _read_piece(piece: Piece) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(piece.path) as file:
            row = sum(file.metadata.row_group(group).num_rows for group in range(piece.start))
            groups = range(piece.start, piece.stop)
            for batch in file.iter_batches(_BATCH, row_groups=groups, columns=["id", "interface", "filter"]):
                filters = batch.column("filter")
                columns = [
                    pa.array([piece.path] * len(batch), pa.string()),
                    pa.array(range(row, row + len(batch)), pa.int64()),
                    *(batch.column(name).cast(pa.string()) for name in ("id", "interface")),
                    filters.cast(plain_type(filters.type)),
                ]
                yield pa.RecordBatch.from_arrays(columns, ["source", "row", "id", "interface", "filter"])
                row += len(batch)
    except (pa.ArrowException, OSError) as error:
        raise DamagedPiece(piece, error) from error


def _check_columns(names: Sequence[str], file: str) -> None:
    missing = {"id", "interface", "filter"} - set(names)
    if missing:
        raise InvalidValue(
            f"{file}: no column {' nor '.join(sorted(missing))}; there are {', '.join(names)}, "
            "and a subscription has id, interface and filter"
        )


def _readable(files: list[str]) -> tuple[dict[str, list[int]], list[tuple[str, str]], pa.Schema | None]:
    """The files whose footer can be read, with the sizes of their row groups; those that cannot; and the schema."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    good: dict[str, list[int]] = {}
    bad: list[tuple[str, str]] = []
    first: pa.Schema | None = None
    for file in files:
        try:
            metadata = pq.read_metadata(file)
            schema = _plain(metadata.schema.to_arrow_schema())
        except (pa.ArrowException, OSError) as error:
            bad.append((file, f"not a whole Parquet file: {error}"))
            continue
        if first is None:
            first = schema
        _check_same(first, next(iter(good), file), schema, file)
        good[file] = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    return good, bad, first


def _plain(schema: pa.Schema) -> pa.Schema:
    """What a file holds, however its writer had it in memory: categories of strings are strings."""
    import pyarrow as pa

    return pa.schema([(field.name, plain_type(field.type)) for field in schema])


def _check_same(first: pa.Schema, one: str, schema: pa.Schema, other: str) -> None:
    for name in ("id", "interface", "filter"):
        a, b = (s.field(name).type if name in s.names else None for s in (first, schema))
        if a != b:
            raise InvalidValue(
                f"{other}: column {name} is {b or 'not there'}, and in {one} it is {a or 'not there'}; "
                "files of one table have one schema: convert it, or build from one of them at a time"
            )


def _check_schema(schema: pa.Schema, file: str) -> None:
    """Refuse types that no id, interface or filter could be."""
    import pyarrow as pa

    for name in ("id", "interface"):
        if name in schema.names:
            kind = schema.field(name).type
            if not (pa.types.is_string(kind) or pa.types.is_integer(kind)):
                raise InvalidValue(f"{file}: column {name} is {kind}; it must be a string or an integer")
    if "filter" in schema.names:
        _check_filter_type(schema.field("filter").type, file)


def _check_filter_type(kind: pa.DataType, file: str) -> None:
    import pyarrow as pa

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
