"""Attributes in typed Arrow columns as the columns that a table matches (forwarding/batches/columns.py).

Booleans, integers, floats and decimals, strings and timestamps are what they seem; a list of strings or numbers is a
set value. Structs are told apart by their fields: {x, y} is a point, {x1, y1, x2, y2} a box, {wkt} a region, line or
point; with `keywords`, strings or one text, beside a point's or box's fields it is geotext. The fields of any other
struct are attributes with dotted names, as of nested notifications. Bytes are a region, line or point in WKB. Null
means that the event lacks the attribute.

Scalars, points and geotext cost a few operations on whole columns; regions, lines and sets are made one by one. A cell
that breaks a rule becomes a fault of its row, which the caller takes out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from contrada.errors import ContradaError, InvalidValue
from contrada.forwarding.batches.columns import Column, Columns
from contrada.forwarding.language.set_value import SetValue
from contrada.forwarding.language.values import INT_MAX, NESTED, Kind, check_name
from contrada.spark_jobs.common.arrow import mask_of, numbers_of, text_of
from contrada.spark_jobs.common.geometries import place_of_wkb
from contrada.spark_jobs.common.instants import instants
from contrada.spark_jobs.replaying.logs.posts import read_posts
from contrada.spatial.geometry.point import Point, check_coordinates
from contrada.spatial.lines.line import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
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
    names = list(_names_in(kind, "", timezone is not None, 1))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidValue(f"attribute {twice!r} is there twice: as a column, and in a struct")


def _names_in(kind: pa.DataType, prefix: str, zoned: bool, depth: int) -> Iterator[str]:
    """The names of all attributes in a struct of them."""
    if depth > NESTED:
        raise InvalidValue(f"structs are nested more than {NESTED} deep")
    for field in kind:
        name = check_name(f"{prefix}{field.name}")
        if _reader_of(name, field.type, zoned) is _read_nested:
            yield from _names_in(field.type, f"{name}.", zoned, depth + 1)
        else:
            yield name


def read_attributes(struct: pa.StructArray, zone: ZoneInfo | None, faults: dict[int, str]) -> Columns:
    """The columns of a struct of attributes."""
    whole = None if struct.null_count == 0 else mask_of(struct.is_valid())
    if whole is not None:
        for row in np.flatnonzero(~whole).tolist():
            faults.setdefault(row, "the event has no attributes")
    return Columns(len(struct), _read_fields(struct, "", whole, zone, faults))


def _read_fields(
    struct: pa.StructArray,
    prefix: str,
    whole: NDArray[np.bool_] | None,
    zone: ZoneInfo | None,
    faults: dict[int, str],
) -> list[Column]:
    """The columns of a struct's fields, where the struct itself counts."""
    columns: list[Column] = []
    for at, field in enumerate(struct.type):
        cells, name = struct.field(at), f"{prefix}{field.name}"
        read = _reader_of(name, field.type, zone is not None)
        if cells.null_count == len(cells) or read is None:
            continue
        mask = None if cells.null_count == 0 else mask_of(cells.is_valid())
        present = mask if whole is None else whole if mask is None else mask & whole
        columns += read(_Cells(name, cells, present, zone, faults))
    return columns


_Reader: TypeAlias = "Callable[[_Cells], Sequence[Column]]"


def _reader_of(name: str, kind: pa.DataType, zoned: bool) -> _Reader | None:
    """How to read an attribute of a type; None for one that is always null."""
    for is_kind, reader in _READERS:
        if is_kind(kind):
            return reader
    if pa.types.is_timestamp(kind):
        if kind.tz is None and not zoned:
            raise InvalidValue(f"attribute {name!r} is of times without a zone: say which with --timezone")
        return _read_time
    if pa.types.is_struct(kind) and kind.num_fields:
        return _struct_reader(kind)
    if pa.types.is_null(kind):
        return None
    raise InvalidValue(
        f"attribute {name!r} is of type {kind}, which is no value: give a boolean, number, string, timestamp, a list "
        "of strings or numbers, a struct {x, y}, {x1, y1, x2, y2}, {wkt}, keywords with a place, or of attributes, or "
        "a geometry in WKB"
    )


def _struct_reader(kind: pa.StructType) -> _Reader:
    names = frozenset(each.name for each in kind)
    if names == _POINT and all(_is_number(each.type) for each in kind):
        return _read_points
    if names in (_BOX, _WKT):
        return _read_place
    if names in (_WORDS | _POINT, _WORDS | _BOX) and _are_words(kind.field("keywords").type):
        return _read_geotext
    return _read_nested


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _is_list(kind: pa.DataType) -> bool:
    """Whether a type is that of set values."""
    if not pa.types.is_list(kind):
        return False
    member = kind.value_type
    return _is_number(member) or bool(pa.types.is_string(member) or pa.types.is_decimal(member))


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


def _read_nested(given: _Cells) -> Sequence[Column]:
    return _read_fields(given.cells, f"{given.name}.", given.present, given.zone, given.faults)


def _read_sets(given: _Cells) -> Sequence[Column]:
    decimals = pa.types.is_decimal(given.cells.type.value_type)
    cells = given.cells.cast(pa.list_(pa.float64())) if decimals else given.cells
    values, there = _made(given, SetValue, [cells.to_pylist()])
    return [Column(given.name, Kind.SET, values, None if there.all() else there)]


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
    """Boxes and regions: objects, made one by one, and their boxes."""
    make, kind = _maker_of(given.cells.type)
    fields = sorted(field.name for field in given.cells.type)
    values, there = _made(given, make, [given.cells.field(each).to_pylist() for each in fields])
    if kind is None:
        return _by_kind(given.name, values)
    column = Column(given.name, kind, values, None if there.all() else there)
    return [column._replace(boxes=column.bounds())]


def _read_geotext(given: _Cells) -> Sequence[Column]:
    def refuse(row: int, error: ContradaError) -> None:
        given.faults.setdefault(row, f"attribute {given.name!r}: {error}")

    texts, there = read_posts(given.cells, given.present, _maker_of(given.cells.type)[0], refuse)
    return [Column(given.name, Kind.GEOTEXT, texts, None if there.all() else there)]


def _are_words(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or (pa.types.is_list(kind) and pa.types.is_string(kind.value_type)))


def _read_wkb(given: _Cells) -> Sequence[Column]:
    """Geometries: points, lines and regions, made one by one."""
    return _by_kind(given.name, _made(given, place_of_wkb, [given.cells.to_pylist()])[0])


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


def _by_kind(name: str, values: list[Any]) -> Sequence[Column]:
    """Places of several kinds, which may stand in one column, as a column of each."""
    kinds = np.array([_kind_of(value) for value in values], object)
    columns: list[Column] = []
    for kind in (each for each in (Kind.POINT, Kind.REGION, Kind.LINE) if (kinds == each).any()):
        there = kinds == kind
        if kind is Kind.POINT:
            found = ((0.0, 0.0) if not so else tuple(value) for value, so in zip(values, there.tolist(), strict=True))
            columns.append(Column(name, kind, np.array(list(found)).reshape(-1, 2), there))
        else:
            objects = [value if so else None for value, so in zip(values, there.tolist(), strict=True)]
            column = Column(name, kind, objects, there)
            columns.append(column._replace(boxes=column.bounds()))
    return columns


def _kind_of(value: Any) -> Kind | None:
    if value is None:
        return None
    return Kind.POINT if type(value) is Point else Kind.LINE if type(value) is Line else Kind.REGION


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
    kind = wkt.lstrip().upper()
    if kind.startswith(("LINESTRING", "MULTILINESTRING")):
        return Line.of(wkt)
    return Point.of(wkt) if kind.startswith("POINT") else Region.of(wkt)


_READERS: Final[tuple[tuple[Callable[[pa.DataType], bool], _Reader], ...]] = (
    (pa.types.is_boolean, _read_bool),
    (pa.types.is_integer, _read_int),
    (pa.types.is_floating, _read_float),
    (pa.types.is_decimal, _read_decimal),
    (pa.types.is_string, _read_string),
    (pa.types.is_binary, _read_wkb),
    (_is_list, _read_sets),
)
