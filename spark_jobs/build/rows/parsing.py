"""Subscriptions as they come into checked ones: Arrow in and Arrow out, in one pass.

Each source row gives one row of staging.STAGED, or one for the quarantine, with the reason and the row as given: a line
or a feature of text as it stands, and of columns what is in them (as_given.py has them in their own types).
Filters of the commonest shapes are read from the column of texts by a kernel (column_language.py); all others, and all
that are wrong, go row by row through `parse` and the codecs. Beside each good row stand its buckets for rule 3
(build/cover/candidates.py): it asks for what it may cover and gives itself to what may cover it.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contrada.errors import ContradaError, InvalidValue
from contrada.forwarding.batches.packed_columns import RELATIONS
from contrada.forwarding.codec.json import filter_from_plain
from contrada.forwarding.codec.msgpack import encode_filter
from contrada.forwarding.covering.simplify import split_redundant
from contrada.forwarding.language.constraint import Operator
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.filter import Filter, Predicate, as_filters
from contrada.forwarding.language.lonlat import LONLAT, PLANE, filter_in_degrees
from contrada.forwarding.language.operands import TextMatch
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.segments.gate import anchor_of
from contrada.forwarding.segments.index_directory import segment_kind
from contrada.forwarding.segments.manifest import SEGMENT_KINDS
from contrada.forwarding.segments.subscription_ids import MAX_ID, check_id
from contrada.spark_jobs.build.cover.candidates import asks, gives
from contrada.spark_jobs.build.rows.fields import filter_of_fields
from contrada.spark_jobs.build.rows.geojson import filter_of_feature, filter_of_place
from contrada.spark_jobs.build.rows.quick_rows import read_quickly
from contrada.spark_jobs.build.rows.sources import BESIDE
from contrada.spark_jobs.build.staging import BOX, BOX_MATCH, OTHER, POLYGON, QUARANTINE, STAGED
from contrada.spark_jobs.common.geometries import GEOMETRY, place_of_wkb
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.storage.garbage import no_collection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contrada.forwarding.language.filter import Expression

_SHOWN: Final = 1 << 20  # characters of a bad row that are kept: a whole file that is not JSON is one row
_REMEMBERED: Final = 4096  # texts: subscribers often ask for the same
_NOWHERE: Final = (np.nan,) * 4
_KEYS: Final = pa.list_(pa.uint64())


class Parsed(NamedTuple):
    """The rows of a batch: good ones with their buckets, bad ones, and what rules 1 and 2 found."""

    rows: pa.RecordBatch  # STAGED
    asks: pa.Array  # of each row, lists of keys
    gives: pa.Array
    bad: pa.Table  # QUARANTINE
    unsatisfiable: int
    redundant: int


class _Rows:
    """Rows that are read one by one."""

    def __init__(self, roads: bool = False, crs: str = PLANE) -> None:
        self._roads = roads
        self._crs = crs
        self._good: list[tuple[Any, ...]] = []
        self._keys: list[tuple[list[int], list[int]]] = []
        self._bad: list[tuple[Any, ...]] = []
        self.unsatisfiable = self.redundant = 0

    def bad(self, source: str | None, row: int | None, raw: object, reason: object, id: object = None) -> None:
        """Add a row for the quarantine."""
        text = (
            raw if isinstance(raw, bytes) else json.dumps(raw, ensure_ascii=False, default=str).encode(errors="replace")
        )
        shown = text[: 4 * _SHOWN].decode(errors="replace")[:_SHOWN]
        known = id if isinstance(id, str) and id.isprintable() else None
        told = str(reason).encode(errors="replace").decode()  # it may quote a lone surrogate
        self._bad.append((source, row, known, told, shown))

    def good(
        self,
        source: str | None,
        row: int | None,
        id: str,
        interface: str,
        expression: Expression | str,
        raw: bytes | None = None,
    ) -> None:
        """Add a subscription; `ContradaError` says why not."""
        check_id(id, "id")
        check_id(interface, "interface")
        filters = as_filters(_parse_often(expression, self._crs) if isinstance(expression, str) else expression)
        if self._crs == LONLAT:
            filters = tuple(map(filter_in_degrees, filters))
        described = _described(filters, roads=self._roads, crs=self._crs)
        void = 0
        for each in filters:
            if len(each.names) < len(each.constraints):
                _, left_out, unsatisfiable = split_redundant(each)
                void += unsatisfiable
                self.redundant += len(left_out)
        meets = len(filters) == 1 and not void
        self.unsatisfiable += void == len(filters)
        self._good.append((source, row, id, interface, *described, raw))
        self._keys.append((asks(filters[0]), gives(filters[0])) if meets else ([], []))

    def parsed(self) -> Parsed:
        """What there is."""
        columns = list(zip(*self._good, strict=True)) if self._good else [()] * len(STAGED)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, STAGED, strict=True)]
        bad = list(zip(*self._bad, strict=True)) if self._bad else [()] * len(QUARANTINE)
        return Parsed(
            pa.RecordBatch.from_arrays(arrays, schema=STAGED),
            pa.array([asked for asked, _ in self._keys], _KEYS),
            pa.array([given for _, given in self._keys], _KEYS),
            pa.table([pa.array(c, f.type) for c, f in zip(bad, QUARANTINE, strict=True)], schema=QUARANTINE),
            self.unsatisfiable,
            self.redundant,
        )


@lru_cache(_REMEMBERED)
def _parse_often(text: str, crs: str) -> Filter | Predicate:
    return parse(text, crs)


def parse_batch(batch: pa.RecordBatch, form: str, *, roads: bool = False, crs: str = PLANE) -> Parsed:
    """Parse rows as `sources.read_rows` gives them; `form` says what they are, `roads` whether `similar` is taken."""
    with no_collection():
        return READERS[form](batch, roads, crs)


def join(parts: Sequence[Parsed]) -> Parsed:
    """Several as one."""
    return Parsed(
        pa.concat_batches([part.rows for part in parts]),
        pa.concat_arrays([part.asks for part in parts]),
        pa.concat_arrays([part.gives for part in parts]),
        pa.concat_tables([part.bad for part in parts]),
        sum(part.unsatisfiable for part in parts),
        sum(part.redundant for part in parts),
    )


def _described(filters: Sequence[Filter], *, roads: bool, crs: str) -> tuple[Any, ...]:
    """The columns of STAGED, from `shape` to `uses`, of any filters."""
    constraints = [constraint for each in filters for constraint in each.constraints]
    if not roads and any(each.op in (Operator.SIMILAR, Operator.NOT_SIMILAR) for each in constraints):
        raise InvalidValue("similar needs a road network: name one with --roads, and the index has it")
    if crs == PLANE and any(isinstance(each.value, Distance) and each.value.unit for each in constraints):
        raise InvalidValue("a distance in metres, and this index is one of the plane: build it with --crs lonlat")
    anchor = anchor_of(filters[0])
    kind = segment_kind(filters)
    box = anchor.box if kind != "hash" and anchor.box else _NOWHERE
    place = SEGMENT_KINDS.index(kind), anchor.name, *box
    if len(constraints) == 1:
        first = constraints[0]
        if isinstance(first.value, TextMatch) and type(first.value.within) is Box:
            return BOX_MATCH, *place, sorted(first.value.keywords), -1, None, None, 1, None
        # Neither a set of relations nor a region of several rings has a place there.
        if first.mask and first.op in RELATIONS and not (region := cast("Region", first.value)).is_compound:
            ring = region.coords.ravel()
            shape = BOX if isinstance(region, Box) else POLYGON
            return shape, *place, None, RELATIONS.index(first.op), ring, None, 1, None
    tokens = sorted({word for c in constraints if isinstance(c.value, TextMatch) for word in c.value.keywords})
    content = encode_filter(filters[0] if len(filters) == 1 else Predicate(filters))
    uses = sorted({f"{c.op}\t{c.name}" for c in constraints})
    return OTHER, *place, tokens, -1, None, content, len(filters), uses


# -- forms of rows ---------------------------------------------------------------------------------------


def _read_columns(batch: pa.RecordBatch, roads: bool, crs: str) -> Parsed:
    """Columns id, interface and filter, the last as text or as fields; or with a geometry."""
    if GEOMETRY in batch.schema.names:
        return _read_places(batch, roads, crs)
    filters = batch.column("filter")
    rows = _Rows(roads, crs)
    if not pa.types.is_string(filters.type):
        _read_rows(batch, rows, filter_of_fields)
        return rows.parsed()
    batch, unreadable = _readable(batch)
    _refuse(unreadable, rows)
    sound = _may_name(batch.column("id")) & _may_name(batch.column("interface"))
    known = pc.is_valid(batch.column("filter")).to_numpy(zero_copy_only=False)
    quick, left = read_quickly(batch, sound & known)
    if crs == LONLAT and _beyond_degrees(quick[0]):
        quick, left = read_quickly(batch, np.zeros(batch.num_rows, np.bool_))
    if len(left):
        _read_rows(batch.take(pa.array(left)), rows, _given)
    rest = rows.parsed()
    return join([Parsed(*quick, rest.bad.slice(0, 0), 0, 0), rest])


def _beyond_degrees(rows: pa.RecordBatch) -> bool:
    """Whether a place is not among longitudes from -180 to 180 and latitudes from -90 to 90: moved, or refused."""
    sides = (("x1", 180.0), ("x2", 180.0), ("y1", 90.0), ("y2", 90.0))
    return any(bool((np.abs(rows.column(name).to_numpy()) > most).any()) for name, most in sides)


def _read_places(batch: pa.RecordBatch, roads: bool, crs: str) -> Parsed:
    """Rows with a geometry, and what stands beside it: as features of GeoJSON."""
    rows = _Rows(roads, crs)
    known = [name if name in batch.schema.names else None for name in BESIDE]
    empty = [None] * batch.num_rows
    columns = (batch.column(name).to_pylist() for name in ("source", "row", "id", "interface", "filter", GEOMETRY))
    beside = (empty if name is None else batch.column(name).to_pylist() for name in known)
    for source, row, id, interface, text, shape, attribute, relation, keywords, raw in zip(
        *columns, *beside, _raws(batch), strict=True
    ):
        try:
            region = None if shape is None else place_of_wkb(shape)
            if region is not None and not isinstance(region, Region):
                raise InvalidValue(f"a {type(region).__name__.lower()}, and a subscription's place is a region")
            rows.good(source, row, id, interface, filter_of_place(region, attribute, relation, keywords, text), raw)
        except ContradaError as error:
            told = {"id": id, "interface": interface, "filter": text, GEOMETRY: shape and shape.hex()}
            rows.bad(source, row, raw or told, error, id)
    return rows.parsed()


def _may_name(texts: pa.Array) -> np.ndarray:
    """Which texts `check_id` takes."""
    sizes = pc.fill_null(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False)
    named: np.ndarray = (sizes > 0) & (sizes <= MAX_ID)
    return named


def _readable(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The rows whose texts are UTF-8, and those where one is not."""
    try:
        batch.validate(full=True)
        return batch, batch.slice(0, 0)
    except pa.ArrowInvalid:
        names = ("id", "interface", "filter")
        columns = [batch.column(name).cast(pa.binary()).to_pylist() for name in names]
        sound = np.array([all(map(_is_utf8, row)) for row in zip(*columns, strict=True)], np.bool_)
        return batch.filter(pa.array(sound)), batch.filter(pa.array(~sound))


def _is_utf8(text: bytes | None) -> bool:
    try:
        return text is None or text.decode() is not None
    except UnicodeDecodeError:
        return False


def _refuse(batch: pa.RecordBatch, rows: _Rows) -> None:
    names = ("id", "interface", "filter")
    columns = (batch.column(name).cast(pa.binary()).to_pylist() for name in names)
    where = (batch.column(name).to_pylist() for name in ("source", "row"))
    for source, row, raw, *texts in zip(*where, _raws(batch), *columns, strict=True):
        told = dict(zip(names, (text and text.decode(errors="replace") for text in texts), strict=True))
        rows.bad(source, row, raw or told, "a text that is not UTF-8")


def _read_rows(batch: pa.RecordBatch, rows: _Rows, read: Callable[[Any], Expression | str]) -> None:
    names = ("source", "row", "id", "interface", "filter")
    columns = (batch.column(name).to_pylist() for name in names)
    for source, row, id, interface, value, raw in zip(*columns, _raws(batch), strict=True):
        try:
            rows.good(source, row, id, interface, read(value), raw)
        except ContradaError as error:
            rows.bad(source, row, raw or {"id": id, "interface": interface, "filter": value}, error, id)


def _raws(batch: pa.RecordBatch) -> list[bytes | None]:
    """The rows as given, where they came with them."""
    return batch.column("raw").to_pylist() if "raw" in batch.schema.names else [None] * batch.num_rows


def _given(text: str | None) -> str:
    if text is None:
        raise InvalidValue("no filter: null")
    return text


def _read_lines(batch: pa.RecordBatch, roads: bool, crs: str) -> Parsed:
    """A JSON object per row: {"id", "interface", "filter"}, the filter as text or as `codec/json.py` writes."""
    rows = _Rows(roads, crs)
    texts: list[tuple[str, str, str, str, bytes]] = []
    for source, line in zip(batch.column("source").to_pylist(), batch.column("value").to_pylist(), strict=True):
        if not line.strip():
            continue
        id = None
        try:
            document = _json(line)
            if not isinstance(document, dict):
                raise InvalidValue("a subscription is a JSON object with id, interface and filter")
            id, interface, value = (document.get(name) for name in ("id", "interface", "filter"))
            if value is None:
                raise InvalidValue("no filter")
            id, interface = check_id(_text(id), "id"), check_id(_text(interface), "interface")
            if isinstance(value, str):
                texts.append((source, id, interface, value, line) if _encodable(value) else _unencodable())
            else:
                rows.good(source, None, id, interface, filter_from_plain(value), line)
        except ContradaError as error:
            rows.bad(source, None, line, error, id)
    rest = rows.parsed()
    if not texts:
        return rest
    *told, lines = zip(*texts, strict=True)
    sources, ids, interfaces, filters = (pa.array(column, pa.string()) for column in told)
    numbers, raw = pa.nulls(len(texts), pa.int64()), pa.array(lines, pa.binary())
    names = ("source", "row", "id", "interface", "filter", "raw")
    columns = pa.RecordBatch.from_arrays([sources, numbers, ids, interfaces, filters, raw], names)
    return join([_read_columns(columns, roads, crs), rest])


def _encodable(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text) if not text.isascii() else True


def _unencodable() -> Any:
    raise InvalidValue("a filter with a lone surrogate, which UTF-8 cannot encode")


def _read_features(batch: pa.RecordBatch, roads: bool, crs: str) -> Parsed:
    """A GeoJSON Feature or FeatureCollection per row."""
    rows = _Rows(roads, crs)
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
            rows.bad(source, None, text, error)
            continue
        for row, feature in enumerate(features):
            number = row if many else None
            raw = json.dumps(feature, ensure_ascii=False).encode(errors="replace") if many else text
            id = None
            try:
                id, interface, expression = filter_of_feature(feature)
                rows.good(source, number, _text(id), _text(interface), expression, raw)
            except ContradaError as error:
                rows.bad(source, number, raw, error, id)
    return rows.parsed()


def _json(text: bytes) -> Any:
    try:
        return json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"not JSON: {error}") from None


def _text(value: object) -> str:
    """An id or interface; integers are taken for their digits."""
    return str(value) if type(value) is int else value  # type: ignore[return-value]  # check_id judges it


READERS: Final[dict[str, Callable[[pa.RecordBatch, bool, str], Parsed]]] = {
    "columns": _read_columns,
    "lines": _read_lines,
    "features": _read_features,
}
"""What a row of a source is, by name."""
