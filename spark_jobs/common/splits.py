"""Input cut into tasks: parts of large files, and small files together.

A Python worker that reads Arrow batches straight from a file spares the JVM from making rows of them and Arrow batches
again of the rows, which costs more than what is done with them. Starting a task costs as much as reading thousands of
rows, so small files share one.

Columns of Parquet come as Spark would give them: without dictionaries, large or viewed strings, in microseconds.
Timestamps of the old type INT96 are instants, as for Spark, which writes them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from contrada.spark_jobs.common.geometries import geometry_column
from contrada.spark_jobs.common.instants import TIME_TYPE
from contrada.spark_jobs.common.text_lines import is_packed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow.parquet as pq

    from contrada.spark_jobs.stores.shared_files import SizedFile

_ROWS: Final = (1 << 16, 1 << 20)  # of a task, at least and at most, as far as row groups allow
_BYTES: Final = (1 << 20, 1 << 25)  # the same of text
_UNPACKED: Final = 4  # bytes of text in a byte of a packed file, about
_FILE_ROWS: Final = 256  # rows that could be read in the time that it takes to open a file
_FILE_BYTES: Final = 1 << 15


class Split(NamedTuple):
    """A file, and which of its row groups; of text, which bytes its lines begin in; all of it if both are 0."""

    path: str
    start: int = 0
    stop: int = 0


Task = tuple[Split, ...]


def split_parquet(files: Iterable[tuple[str, Sequence[int]]], tasks: int) -> list[Task]:
    """Tasks of about equal size for files that are given with the sizes of their row groups."""
    listed = list(files)
    enough = _between(_ROWS, sum(sum(sizes) for _, sizes in listed) // tasks)
    weighed: list[tuple[Split, int]] = []
    for path, sizes in listed:
        start = rows = 0
        for number, size in enumerate(sizes):
            rows += size
            if rows >= enough or number == len(sizes) - 1:
                weighed.append((Split(path, start, number + 1), rows + _FILE_ROWS))
                start, rows = number + 1, 0
    return _joined(weighed, enough)


def split_text(files: Iterable[SizedFile], tasks: int, *, whole: bool = False) -> list[Task]:
    """Tasks of about equal size for files of text; with `whole`, none is cut. One that is packed never is."""
    listed = [(file, size * (_UNPACKED if is_packed(file) else 1)) for file, size in files]
    enough = _between(_BYTES, sum(size for _, size in listed) // tasks)
    weighed: list[tuple[Split, int]] = []
    for path, size in listed:
        if whole or is_packed(path):
            weighed.append((Split(path), size + _FILE_BYTES))
        else:
            ranges = pairwise([*range(0, size, enough), size])
            weighed += [(Split(path, start, stop), stop - start + _FILE_BYTES) for start, stop in ranges]
    return _joined(weighed, enough)


def _between(bounds: tuple[int, int], size: int) -> int:
    return min(max(size, bounds[0]), bounds[1])


def _joined(weighed: Iterable[tuple[Split, int]], enough: int) -> list[Task]:
    """Small splits together, in their order; one that is enough is alone."""
    tasks: list[Task] = []
    some: list[Split] = []
    rows = 0
    for split, size in weighed:
        if size >= enough:
            tasks.append((split,))
            continue
        some.append(split)
        rows += size
        if rows >= enough:
            tasks.append(tuple(some))
            some, rows = [], 0
    return [*tasks, tuple(some)] if some else tasks


def plain_type(kind: pa.DataType, *, instants: bool = False) -> pa.DataType:
    """The type that Spark would make of one; with `instants`, of times that are in UTC without saying so."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if isinstance(kind, pa.ExtensionType):
        return plain_type(kind.storage_type, instants=instants)
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(plain_type(kind.value_type, instants=instants))
    if pa.types.is_timestamp(kind):
        return TIME_TYPE if kind.tz is not None or instants else pa.timestamp("us")
    if pa.types.is_struct(kind):
        return pa.struct([(each.name, plain_type(each.type, instants=instants)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type, instants=instants))
    return kind


def plain_schema(file: pq.ParquetFile) -> dict[str, pa.DataType]:
    """The columns of a Parquet file and their plain types, without boxes around what is in other columns."""
    leaves = [file.schema.column(n) for n in range(len(file.schema.names))]
    old = {leaf.path.split(".")[0] for leaf in leaves if leaf.physical_type == "INT96"}
    shape = geometry_column(file.schema_arrow, file.metadata.metadata, "the file")
    boxes = shape.boxes if shape is not None else ()
    kept = (each for each in file.schema_arrow if each.name not in boxes)
    return {each.name: plain_type(each.type, instants=each.name in old) for each in kept}
