"""Subscriptions as they come into checked ones: one pass through Python, Arrow in and Arrow out.

Each source row gives one row of `PARSED`. A good one has no `reason`, and everything that later steps ask of the filter
as columns, so that they need not read it again: its codec bytes, its anchor (forwarding/gates.py), its keywords, its
buckets for rule 3 (candidates.py). Filters of one `matches` within a box, the bulk of a geotext index, have no bytes
at all: `name`, `tokens` and the box say everything. A bad row has the reason, and the source row as text.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from contrada.errors import ContradaError, InvalidValue
from contrada.forwarding.codec import encode_filter
from contrada.forwarding.filter import Filter, as_filters
from contrada.forwarding.gates import anchor_of
from contrada.forwarding.index_directory import segment_kind
from contrada.forwarding.json_codec import filter_from_plain
from contrada.forwarding.operands import Similar, TextMatch
from contrada.forwarding.quick_language import parse_quickly, read_box_match
from contrada.forwarding.simplify import split_redundant
from contrada.forwarding.subscription_ids import check_id
from contrada.spark_jobs.candidates import asks, gives
from contrada.spark_jobs.collecting import no_collection
from contrada.spark_jobs.fields import filter_of_fields
from contrada.spark_jobs.geojson import filter_of_feature
from contrada.spatial.region import Box

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from contrada.forwarding.filter import Expression

PARSED: Final = (
    "source string, row long, raw string, reason string, id string, interface string, filter binary, filters int, "
    "kind string, name string, x1 double, y1 double, x2 double, y2 double, tokens array<string>, "
    "attributes array<string>, asks array<string>, gives array<string>, unsatisfiable boolean, redundant int"
)
_NAMES: Final = tuple(part.split()[0] for part in PARSED.split(", "))
_SHOWN: Final = 4096  # characters of a bad row that are kept


def parse_subscriptions(rows: DataFrame, form: str) -> DataFrame:
    """Rows as `sources.read_subscriptions` gives them into `PARSED`; `form` says what their `value` is."""
    read = READERS[form]

    def parse(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = _Columns()
            with no_collection():
                read(batch, columns)
            if len(columns):
                yield columns.batch()

    return rows.mapInArrow(parse, PARSED)


class _Columns:
    """Rows of `PARSED`, column by column."""

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def bad(self, source: str | None, row: int | None, raw: object, reason: object, id: object = None) -> None:
        """Add a row for the quarantine."""
        text = (
            raw if isinstance(raw, bytes) else json.dumps(raw, ensure_ascii=False, default=str).encode(errors="replace")
        )
        shown = text[: 4 * _SHOWN].decode(errors="replace")[:_SHOWN]
        known = id if isinstance(id, str) and id.isprintable() else None
        self._rows.append((source, row, shown, str(reason), known, *(None,) * (len(_NAMES) - 5)))

    def good(self, source: str | None, row: int | None, id: str, interface: str, expression: Expression | str) -> None:
        """Add a subscription; `ContradaError` says why not."""
        check_id(id, "id")
        check_id(interface, "interface")
        if isinstance(expression, str):
            quick = read_box_match(expression)
            if quick is not None:
                name, words, *box = quick
                self._rows.append((source, row, None, None, id, interface, *_box_match(name, words, box)))
                return
            expression = parse_quickly(expression)
        filters = as_filters(expression)
        self._rows.append((source, row, None, None, id, interface, *_described(filters)))

    def batch(self) -> pa.RecordBatch:
        """What there is."""
        import pyarrow as pa

        columns = zip(*self._rows, strict=True)
        arrays = [pa.array(column, type) for column, type in zip(columns, _types(), strict=True)]
        return pa.RecordBatch.from_arrays(arrays, _NAMES)


def _types() -> list[pa.DataType]:
    import pyarrow as pa

    kinds = {"string": pa.string(), "long": pa.int64(), "int": pa.int32(), "double": pa.float64()}
    kinds |= {"binary": pa.binary(), "boolean": pa.bool_(), "array<string>": pa.list_(pa.string())}
    return [kinds[part.split()[1]] for part in PARSED.split(", ")]


def _box_match(name: str, words: Sequence[str], box: Sequence[float]) -> tuple[Any, ...]:
    """The columns, from `filter` on, of one `matches` within a box."""
    return (None, 1, "geotext", name, *box, words, (f"matches {name}",), None, None, False, 0)


def _described(filters: Sequence[Filter]) -> tuple[Any, ...]:
    """The columns, from `filter` on, of any filters."""
    constraints = [constraint for each in filters for constraint in each.constraints]
    if any(isinstance(constraint.value, Similar) for constraint in constraints):
        raise InvalidValue("similar needs a road network, and an index is built without one: subscribe at a broker")
    first = constraints[0]
    if len(constraints) == 1 and isinstance(first.value, TextMatch) and type(first.value.within) is Box:
        return _box_match(first.name, sorted(first.value.keywords), first.value.within.bounds)
    anchor = anchor_of(filters[0])
    kind = segment_kind(filters)
    tokens = sorted({word for c in constraints if isinstance(c.value, TextMatch) for word in c.value.keywords})
    void, redundant = 0, 0
    for each in filters:
        if len(each.names) < len(each.constraints):
            _, left_out, unsatisfiable = split_redundant(each)
            void += unsatisfiable
            redundant += len(left_out)
    alone = len(filters) == 1
    return (
        encode_filter(filters[0] if alone else as_predicate(filters)),
        len(filters),
        kind,
        anchor.name,
        *(anchor.box if kind != "hash" and anchor.box else (None,) * 4),
        tokens,
        [f"{c.op} {c.name}" for c in constraints],
        asks(filters[0]) if alone else None,
        gives(filters[0]) if alone else None,
        void == len(filters),
        redundant,
    )


def as_predicate(filters: Sequence[Filter]) -> Expression:
    """Several filters as one expression."""
    from contrada.forwarding.filter import Predicate

    return Predicate(filters)


# -- forms of rows ---------------------------------------------------------------------------------------


def _read_columns(batch: pa.RecordBatch, columns: _Columns) -> None:
    """Columns id, interface and filter, the last as text or as fields."""
    import pyarrow as pa

    filters = batch.column("filter")
    textual = pa.types.is_string(filters.type) or pa.types.is_large_string(filters.type)
    names = ("source", "row", "id", "interface")
    for source, row, id, interface, value in zip(
        *(batch.column(name).to_pylist() for name in names), filters.to_pylist(), strict=True
    ):
        try:
            columns.good(source, row, id, interface, _given(value) if textual else filter_of_fields(value))
        except ContradaError as error:
            columns.bad(source, row, {"id": id, "interface": interface, "filter": value}, error, id)


def _given(text: str | None) -> str:
    if text is None:
        raise InvalidValue("no filter: null")
    return text


def _read_lines(batch: pa.RecordBatch, columns: _Columns) -> None:
    """A JSON object per row: {"id", "interface", "filter"}, the filter as text or as `json_codec` writes one."""
    for source, line in zip(batch.column("source").to_pylist(), batch.column("value").to_pylist(), strict=True):
        if not line.strip():
            continue
        id = None
        try:
            document = _json(line)
            if not isinstance(document, dict):
                raise InvalidValue("a subscription is a JSON object with id, interface and filter")
            id = document.get("id")
            value = document.get("filter")
            if value is None:
                raise InvalidValue("no filter")
            expression = value if isinstance(value, str) else filter_from_plain(value)
            columns.good(source, None, _text(id), _text(document.get("interface")), expression)
        except ContradaError as error:
            columns.bad(source, None, line, error, id)


def _read_features(batch: pa.RecordBatch, columns: _Columns) -> None:
    """A GeoJSON Feature or FeatureCollection per row."""
    for source, text in zip(batch.column("source").to_pylist(), batch.column("value").to_pylist(), strict=True):
        text = text.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r\n\x1e")  # RFC 8142 sets records off with 1E
        if not text:
            continue
        try:
            document = _json(text)
            many = isinstance(document, dict) and document.get("type") == "FeatureCollection"
            features = document.get("features") if many else [document]
            if not isinstance(features, list):
                raise InvalidValue("a FeatureCollection without an array of features")
        except ContradaError as error:
            columns.bad(source, None, text, error)
            continue
        for row, feature in enumerate(features):
            number = row if many else None
            id = None
            try:
                id, interface, expression = filter_of_feature(feature)
                columns.good(source, number, _text(id), _text(interface), expression)
            except ContradaError as error:
                columns.bad(source, number, feature, error, id)


def _json(text: bytes) -> Any:
    try:
        return json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"not JSON: {error}") from None


def _text(value: object) -> str:
    """An id or interface; integers are taken for their digits."""
    return str(value) if type(value) is int else value  # type: ignore[return-value]  # check_id judges it


READERS: Final[dict[str, Callable[[Any, _Columns], None]]] = {
    "columns": _read_columns,
    "lines": _read_lines,
    "features": _read_features,
}
"""What a row of a source is, by name."""
