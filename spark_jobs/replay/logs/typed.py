"""Attributes in typed Arrow columns as the columns that a table matches (forwarding/batches/columns.py).

Booleans, integers, floats and decimals, strings and timestamps are what they seem. Structs are told apart by their
fields: {x, y} is a point, {x1, y1, x2, y2} a box, {wkt} a region or point; with `keywords`, strings or one text, beside
a point's or box's fields it is geotext. Bytes are a region or point in WKB. Null means that the event lacks the
attribute.

Scalars cost a few operations on whole columns; places are made one by one. A cell that breaks a rule becomes a fault of
its row, which the caller takes out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from contrada.errors import ContradaError, InvalidValue
from contrada.forwarding.batches.columns import Column, Columns
from contrada.forwarding.language.values import INT_MAX, Kind, check_name
from contrada.spark_jobs.common.arrow import mask_of, numbers_of, text_of
from contrada.spark_jobs.common.geometries import place_of_wkb
from contrada.spark_jobs.common.instants import instants
from contrada.spatial.geometry.point import Point, check_coordinates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from zoneinfo import ZoneInfo

    from numpy.typing import NDArray

_POINT: Final = frozenset(("x", "y"))
_BOX: Final = frozenset(("x1", "y1", "x2", "y2"))
_WORDS: Final = frozenset(("keywords",))
_WKT: Final = frozenset(("wkt",))


class _Cells(NamedTuple):
    """A field of the attributes: its cells, and where they count."""

    name: str
    cells: pa.Array
    present: NDArray[np.bool_] | None
    zone: ZoneInfo | None
    faults: dict[int, str]  # by row


def check_attributes(kind: pa.DataType, timezone: str | None) -> None:
    """Refuse a struct of attributes that has a field which is no value, before anything is read."""
    for field in kind:
        check_name(field.name)
        _reader_of(field, timezone is not None)


def read_attributes(struct: pa.StructArray, zone: ZoneInfo | None, faults: dict[int, str]) -> Columns:
    """The columns of a struct of attributes."""
    columns: list[Column] = []
    whole = None if struct.null_count == 0 else mask_of(struct.is_valid())
    if whole is not None:
        for row in np.flatnonzero(~whole).tolist():
            faults.setdefault(row, "the event has no attributes")
    for at, field in enumerate(struct.type):
        cells = struct.field(at)
        read = _reader_of(field, zone is not None)
        if cells.null_count == len(cells) or read is None:
            continue
        mask = None if cells.null_count == 0 else mask_of(cells.is_valid())
        present = mask if whole is None else whole if mask is None else mask & whole
        columns += read(_Cells(field.name, cells, present, zone, faults))
    return Columns(len(struct), columns)


_Reader: TypeAlias = "Callable[[_Cells], Sequence[Column]]"


def _reader_of(field: pa.Field, zoned: bool) -> _Reader | None:
    """How to read a field of the attributes; None for one that is always null."""
    kind = field.type
    for is_kind, reader in _SCALARS:
        if is_kind(kind):
            return reader
    if pa.types.is_timestamp(kind):
        if kind.tz is None and not zoned:
            raise InvalidValue(f"attribute {field.name!r} is of times without a zone: say which with --timezone")
        return _read_time
    if pa.types.is_struct(kind):
        names = frozenset(each.name for each in kind)
        if names == _POINT and all(pa.types.is_floating(each.type) or pa.types.is_integer(each.type) for each in kind):
            return _read_points
        if names in (_BOX, _WKT, _WORDS | _POINT, _WORDS | _BOX):
            return _read_place
    if pa.types.is_binary(kind):
        return _read_wkb
    if pa.types.is_null(kind):
        return None
    raise InvalidValue(
        f"attribute {field.name!r} is of type {kind}, which is no value: give a boolean, number, string, timestamp, "
        "a struct {x, y}, {x1, y1, x2, y2}, {wkt}, or keywords with a place, or a geometry in WKB"
    )


def _read_bool(given: _Cells) -> Sequence[Column]:
    return [Column(given.name, Kind.BOOL, numbers_of(given.cells.cast(pa.int8()).cast(pa.int64())), given.present)]


def _read_int(given: _Cells) -> Sequence[Column]:
    if pa.types.is_uint64(given.cells.type):
        numbers = numbers_of(given.cells)
        for row in np.flatnonzero(numbers > INT_MAX).tolist():
            given.faults.setdefault(
                row, f"attribute {given.name!r}: {numbers[row]} does not fit in 64 bits with a sign"
            )
        return [Column(given.name, Kind.NUMBER, numbers.astype(np.int64), given.present)]
    return [Column(given.name, Kind.NUMBER, numbers_of(given.cells.cast(pa.int64())), given.present)]


def _read_float(given: _Cells) -> Sequence[Column]:
    numbers = numbers_of(given.cells.cast(pa.float64()))
    present = given.present
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        wrong = wrong if present is None else wrong & present
        for row in np.flatnonzero(wrong).tolist():
            given.faults.setdefault(row, f"attribute {given.name!r}: a number must be finite, not {numbers[row]}")
        present = ~wrong if present is None else present & ~wrong
    return [Column(given.name, Kind.NUMBER, numbers, present)]


def _read_decimal(given: _Cells) -> Sequence[Column]:
    whole = given.cells.type.scale == 0 and given.cells.type.precision <= 18  # what surely fits in 64 bits
    return (_read_int if whole else _read_float)(given)


def _read_string(given: _Cells) -> Sequence[Column]:
    text = text_of(given.cells)
    try:
        given.cells.validate(full=True)
    except pa.ArrowInvalid:
        for row in range(len(given.cells)):
            raw = text.data[text.offsets[row] : text.offsets[row + 1]].tobytes()
            if raw.decode(errors="ignore").encode() != raw:
                given.faults.setdefault(row, f"attribute {given.name!r}: not UTF-8")
    return [Column(given.name, Kind.STRING, text, given.present)]


def _read_time(given: _Cells) -> Sequence[Column]:
    what = f"attribute {given.name!r}"
    return [Column(given.name, Kind.TIME, instants(given.cells, given.zone, what, given.faults), given.present)]


def _read_points(given: _Cells) -> Sequence[Column]:
    xy = np.stack([_coordinates(given.cells.field(axis)) for axis in ("x", "y")], axis=1) + 0.0  # no -0.0, as in Point
    there: NDArray[np.bool_] = np.logical_and(*check_coordinates(xy).T)
    wrong = ~there if given.present is None else ~there & given.present
    for row in np.flatnonzero(wrong).tolist():
        x, y = given.cells[row].as_py().values()
        given.faults.setdefault(row, f"attribute {given.name!r}: no point has the coordinates {x}, {y}")
    there = there if given.present is None else there & given.present
    return [Column(given.name, Kind.POINT, xy, None if there.all() else there)]


def _coordinates(cells: pa.Array) -> NDArray[Any]:
    numbers: NDArray[Any] = cells.cast(pa.float64()).to_numpy(zero_copy_only=False)  # null is NaN
    return numbers


def _read_place(given: _Cells) -> Sequence[Column]:
    """Boxes, regions and geotext: objects, made one by one, and their boxes."""
    make, kind = _maker_of(given.cells.type)
    fields = sorted(field.name for field in given.cells.type)
    values, there = _made(given, make, [given.cells.field(each).to_pylist() for each in fields])
    if kind is None:
        return _points_and_regions(given.name, values)
    column = Column(given.name, kind, values, None if there.all() else there)
    return [column._replace(boxes=column.bounds())]


def _read_wkb(given: _Cells) -> Sequence[Column]:
    """Geometries: points and regions, made one by one."""
    return _points_and_regions(given.name, _made(given, place_of_wkb, [given.cells.to_pylist()])[0])


def _made(given: _Cells, make: Callable[..., Any], parts: list[list[Any]]) -> tuple[list[Any], NDArray[np.bool_]]:
    """The objects of cells that count, and where there is one; what is wrong with the others is a fault."""
    values: list[Any] = [None] * len(given.cells)
    there = np.zeros(len(values), np.bool_)
    wanted = [True] * len(values) if given.present is None else given.present.tolist()
    for row, (want, *arguments) in enumerate(zip(wanted, *parts, strict=True)):
        if want:
            try:
                values[row] = make(*arguments)
                there[row] = True
            except ContradaError as error:
                given.faults.setdefault(row, f"attribute {given.name!r}: {error}")
    return values, there


def _points_and_regions(name: str, values: list[Any]) -> Sequence[Column]:
    """Values of both kinds, which may stand in one column of WKT, as two columns."""
    points = [value if type(value) is Point else None for value in values]
    regions = [None if type(value) is Point else value for value in values]
    xy = np.array([(0.0, 0.0) if point is None else tuple(point) for point in points]).reshape(-1, 2)
    column = Column(name, Kind.REGION, regions, np.array([region is not None for region in regions], np.bool_))
    there = np.array([point is not None for point in points], np.bool_)
    return [Column(name, Kind.POINT, xy, there), column._replace(boxes=column.bounds())]


def _maker_of(kind: pa.StructType) -> tuple[Callable[..., Any], Kind | None]:
    """What makes a value of a struct's fields, given in alphabetical order, and its kind if that is always the same."""
    from contrada.spatial.geometry.region import Box
    from contrada.spatial.textual.geotext import GeoText

    names = frozenset(each.name for each in kind)
    if names == _BOX:
        return (lambda x1, x2, y1, y2: Box(x1, y1, x2, y2)), Kind.REGION
    if names == _WKT:
        return _from_wkt, None
    if "x" in names:
        return (lambda words, x, y: GeoText(words, at=(x, y))), Kind.GEOTEXT
    return (lambda words, x1, x2, y1, y2: GeoText(words, within=Box(x1, y1, x2, y2))), Kind.GEOTEXT


def _from_wkt(wkt: str | None) -> Any:
    from contrada.spatial.geometry.region import Region

    if wkt is None:
        raise InvalidValue("a place without its WKT")
    return Point.of(wkt) if wkt.lstrip()[:5].upper() == "POINT" else Region.of(wkt)


_SCALARS: Final[tuple[tuple[Callable[[pa.DataType], bool], _Reader], ...]] = (
    (pa.types.is_boolean, _read_bool),
    (pa.types.is_integer, _read_int),
    (pa.types.is_floating, _read_float),
    (pa.types.is_decimal, _read_decimal),
    (pa.types.is_string, _read_string),
)
