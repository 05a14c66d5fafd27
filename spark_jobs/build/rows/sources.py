"""Where subscriptions come from: Parquet, JSON lines and GeoJSON, told by their names or by the user.

    parquet    columns id, interface, filter (text, or fields: see fields.py)                     form "columns"
    jsonl      a JSON object per line: {"id", "interface", "filter"}                              form "lines"
    geojson    a FeatureCollection per file (geojson.py)                                          form "features"
    geojsonl   a Feature per line                                                                 form "features"

`find_subscriptions` looks at a source before Spark is started: which files there are, what they are, and whether they
can be what they say. `read_subscriptions` then makes rows of them. Spark reads plain text, and whatever a URL names.
Parquet files and packed text are read by the tasks themselves: a few row groups each (pieces.py), which spares the JVM
from making rows of columns and columns of rows; a packed file each (packed_text.py), set aside whole if it is damaged.

What is wrong with a row is for the quarantine. What is wrong with a whole source is told here: files of Parquet whose
footer cannot be read are set aside, each with the reason; files that disagree about the schema stop the job, since no
row of theirs could be trusted.
"""

from __future__ import annotations

import glob
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from contrada.errors import CorruptFile, InvalidValue
from contrada.spark_jobs.build.rows.fields import MEMBERS
from contrada.spark_jobs.build.rows.packed_text import PACKED, is_packed, read_packed
from contrada.spark_jobs.common.failing import OutOfReach, is_damage
from contrada.spark_jobs.common.paths import absolute, is_url
from contrada.spark_jobs.common.text_files import check_text_files, read_text_files
from contrada.spark_jobs.replay.logs.pieces import Piece, cut, plain_type
from contrada.spatial.storage.regular_file import check_regular, is_regular

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
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")
_TASKS: Final = 4  # pieces to a core
_BATCH: Final = 1 << 16
COLUMNS: Final = ("id", "interface", "filter")


class Found(NamedTuple):
    """A source that was looked at: files by absolute path, or a URL; of Parquet the sizes of row groups."""

    path: str
    format: str
    files: tuple[Path, ...]  # none of a URL
    sizes: dict[str, list[int]]
    unread: tuple[tuple[str, str], ...]  # files that are damaged, and how

    @property
    def bytes(self) -> int:
        """How large all files are."""
        return sum(file.stat().st_size for file in self.files)

    @property
    def unread_bytes(self) -> int:
        """How large those are that cannot be read."""
        return sum(Path(file).stat().st_size for file, _ in self.unread)


class Source(NamedTuple):
    """Rows to parse, pieces of files that tasks read rows from, or both; and what the rows are."""

    form: str
    rows: DataFrame | None = None
    pieces: tuple[Piece, ...] = ()
    whole: bool = False  # whether a file of text is one row


class DamagedPiece(CorruptFile):
    """Part of a file that cannot be read; what it said would be a guess."""

    def __init__(self, path: str, why: str, share: float = 1.0) -> None:
        super().__init__(why)
        self.path = path
        self.bytes = int(Path(path).stat().st_size * share)


def find_subscriptions(path: str, format: str | None = None) -> Found:
    """Look at a file, a directory of files, a pattern or a URL; `InvalidValue` says what is wrong with it."""
    remote = is_url(path) and not path.startswith("file:")
    files = () if remote else tuple(_files(str(absolute(path, "SUBSCRIPTIONS"))))
    chosen = format or _format_of(path, files)
    if chosen not in FORMATS:
        raise InvalidValue(f"no format is called {chosen!r}; choose one of: {', '.join(FORMATS)}")
    if remote:
        return Found(path, chosen, (), {}, ())
    sizes: dict[str, list[int]] = {}
    unread: list[tuple[str, str]] = []
    if chosen == "parquet":
        sizes, unread, first = _readable([str(file) for file in files])
        if first is not None:
            _check_columns(first.names, next(iter(sizes)))
            _check_schema(first, next(iter(sizes)))
    else:
        check_text_files([file for file in files if not is_packed(file)])
    return Found(path, chosen, files, sizes, tuple(unread))


def read_subscriptions(session: SparkSession, found: Found) -> Source:
    """The rows of a source."""
    if found.format == "parquet":
        if is_url(found.path) and not found.files:
            return Source("columns", _read_parquet(session, found.path))
        return Source(
            "columns", None, tuple(cut(found.sizes.items(), _TASKS * session.sparkContext.defaultParallelism))
        )
    whole = found.format == "geojson"
    form = "lines" if found.format == "jsonl" else "features"
    if not found.files:
        text = session.read.text(found.path, wholetext=whole) if is_url(found.path) else None
        return Source(form, None if text is None else _with_source(text))
    plain = [file for file in found.files if not is_packed(file) and file.stat().st_size]
    pieces = tuple(Piece(str(file)) for file in found.files if is_packed(file))
    rows = _with_source(read_text_files(session, plain, whole=whole)) if plain else None
    return Source(form, rows, pieces, whole)


def _with_source(text: DataFrame) -> DataFrame:
    return text.selectExpr("_metadata.file_path as source", "cast(value as binary) as value")


def _files(path: str) -> list[Path]:
    """The files of a path: itself, those in it (as Spark has it, without hidden ones), or those that match it."""
    given = Path(path)
    if given.exists():
        found = _files_in(given)
    else:
        matches = {match for each in _unbraced(path) for match in glob.glob(each, recursive=True)}  # noqa: PTH207  # Path.glob takes no absolute patterns
        found = [file for match in matches for file in _files_in(Path(match))]
        if not found:
            raise InvalidValue(f"{path}: no such file, directory or pattern")
    return sorted(set(found))


def _files_in(given: Path) -> list[Path]:
    if not given.is_dir():
        check_regular(given)
        return [given]
    found = [file for file in given.rglob("*") if not any(_hidden(p) for p in file.relative_to(given).parts)]
    return [file for file in found if is_regular(file)]


def _unbraced(pattern: str) -> list[str]:
    """The patterns that one with {alternatives} stands for."""
    braces = _BRACES.search(pattern)
    if braces is None:
        return [pattern]
    ways = (pattern[: braces.start()] + each + pattern[braces.end() :] for each in braces[1].split(","))
    return [pattern for way in ways for pattern in _unbraced(way)]


def _hidden(part: str) -> bool:
    return part.startswith(("_", ".")) and "=" not in part


def _format_of(path: str, files: Sequence[Path]) -> str:
    names = [file.name for file in files] or [path]
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


def _read_parquet(session: SparkSession, url: str) -> DataFrame:
    """The rows of Parquet files that Spark finds at a URL, with the row as given beside what is read of it."""
    table = session.read.parquet(url)
    _check_columns(table.columns, url)
    return table.selectExpr(
        "_metadata.file_path as source",
        "_metadata.row_index as row",
        "cast(id as string) as id",
        "cast(interface as string) as interface",
        "filter",
        "cast(to_json(struct(id, interface, filter), map('ignoreNullFields', 'false')) as binary) as raw",
    )


def read_rows(batches: Iterable[pa.RecordBatch], source: Source) -> Iterator[pa.RecordBatch]:
    """The rows of pieces whose numbers are given: source, row, id, interface, filter; or source, value of text."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            piece = source.pieces[number]
            yield from _read_piece(piece) if source.form == "columns" else _read_text(piece.path, source.whole)


def _read_text(path: str, whole: bool) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    try:
        for lines in read_packed(path, whole=whole):
            columns = [pa.array([path] * len(lines), pa.string()), lines]
            yield pa.RecordBatch.from_arrays(columns, ["source", "value"])
    except CorruptFile as error:
        raise DamagedPiece(path, str(error)) from error


def _read_piece(piece: Piece) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    groups = range(piece.start, piece.stop)
    share = 1.0
    try:
        with pq.ParquetFile(piece.path) as file:
            share = len(groups) / max(1, file.metadata.num_row_groups)
            row = sum(file.metadata.row_group(group).num_rows for group in range(piece.start))
            for batch in file.iter_batches(_BATCH, row_groups=groups, columns=list(COLUMNS)):
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
        if isinstance(error, OSError) and not is_damage(error):
            raise OutOfReach(piece.path, error) from error
        why = f"row groups {piece.start} to {piece.stop - 1} cannot be read: {error}"
        raise DamagedPiece(piece.path, why, share) from error


def _check_columns(names: Sequence[str], file: str) -> None:
    missing = set(COLUMNS) - set(names)
    if missing:
        raise InvalidValue(
            f"{file}: no column {' nor '.join(sorted(missing))}; there are {', '.join(names)}, "
            "and a subscription has id, interface and filter"
        )


def _check_once(names: Sequence[str], file: str) -> None:
    twice = sorted({name for name in COLUMNS if list(names).count(name) > 1})
    if twice:
        raise InvalidValue(f"{file}: two columns are called {' and '.join(twice)}; which is meant? Leave one of them")


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
            if isinstance(error, OSError) and not is_damage(error):
                raise OutOfReach(file, error) from error
            bad.append((file, f"not a whole Parquet file: {error}"))
            continue
        if first is None:
            first = schema
        _check_once(schema.names, file)
        _check_same(first, next(iter(good), file), schema, file)
        good[file] = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    return good, bad, first


def _plain(schema: pa.Schema) -> pa.Schema:
    """What a file holds, however its writer had it in memory: categories of strings are strings."""
    import pyarrow as pa

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
