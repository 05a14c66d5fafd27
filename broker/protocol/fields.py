"""Checks of the fields of a message, shared by everything that reads frames.

Arrays are bounded before they are allocated, and types are exact: a boolean is no integer, an integer no float.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgpack  # type: ignore[import-untyped]  # it ships no types

from contrada.broker.protocol.wire import INDEX_NAME_BYTES, INLINE_BYTES, LIST_LENGTH, MAX_INTEGER, NAME_BYTES
from contrada.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from enum import StrEnum

    from contrada.broker.protocol.messages import Limits

    E = TypeVar("E", bound=StrEnum)


def unpack(head: bytes, longest: int = 1 + 2 * LIST_LENGTH) -> Any:
    """Unpack a head; no array in it is longer than `longest`."""
    try:
        return msgpack.unpackb(
            head, use_list=False, max_array_len=longest, max_map_len=longest, max_ext_len=0, strict_map_key=True
        )
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException) as error:
        raise ProtocolError(f"the head is not msgpack: {error or type(error).__name__}") from error


def bad(reason: str) -> NoReturn:
    """Refuse what was read."""
    raise ProtocolError(reason)


def arity(name: str, fields: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """Check the number of fields."""
    if len(fields) != count:
        bad(f"{name} has {count} fields, not {len(fields)}")
    return fields


def integer(name: str, value: Any, low: int = 0, high: int = MAX_INTEGER) -> int:
    """Check a bounded integer; booleans are none."""
    if type(value) is not int or not low <= value <= high:
        bad(f"{name} must be an integer from {low} to {high}")
    return value


def text(name: str, value: Any, longest: int = NAME_BYTES) -> str:
    """Check a string by its length in UTF-8."""
    if type(value) is not str or len(value.encode()) > longest:
        bad(f"{name} must be a string of at most {longest} bytes")
    return value


def seconds(name: str, value: Any) -> float:
    """Check a positive number of seconds."""
    if type(value) is not float or not 0 < value < 1e9:
        bad(f"{name} must be a positive number of seconds")
    return value


def member(name: str, kind: type[E], value: Any) -> E:
    """Check that a string is one of an enumeration's values."""
    if type(value) is str:
        try:
            return kind(value)
        except ValueError:
            pass
    bad(f"{name} must be one of {', '.join(kind)}")


def array(name: str, value: Any, longest: int, shortest: int = 1) -> tuple[Any, ...]:
    """Check an array by its length."""
    if type(value) is not tuple or not shortest <= len(value) <= longest:
        bad(f"{name} must be an array of {shortest} to {longest}")
    return value


def detach(bodies: Sequence[bytes]) -> tuple[Sequence[bytes | None], list[bytes]]:
    """Bodies as a head has them, nil in place of each that is too long for it; and those, the attachments."""
    if max(map(len, bodies), default=0) <= INLINE_BYTES:  # the usual case, without a loop
        return bodies, []
    inline = [body if len(body) <= INLINE_BYTES else None for body in bodies]
    return inline, [body for body in bodies if len(body) > INLINE_BYTES]


def read_bodies(values: Iterable[Any], attachments: Sequence[bytes], limits: Limits) -> tuple[bytes, ...]:
    """Inline bodies as they are, each nil replaced by the next attachment; none left over on either side."""
    if not attachments:  # the usual case, without a loop
        values = tuple(values)
        longest = min(INLINE_BYTES, limits.notification_bytes)
        if {*map(type, values)} == {bytes} and max(map(len, values)) <= longest:
            return values
    bodies = []
    waiting = iter(attachments)
    for value in values:
        body = value
        if body is None:
            body = next(waiting, None)
            if body is None:
                bad("more nil bodies than attachments")
            if len(body) <= INLINE_BYTES:
                bad(f"an attachment of {len(body)} bytes: up to {INLINE_BYTES} travel inside the head")
        elif type(body) is not bytes or len(body) > INLINE_BYTES:
            bad(f"a notification must be binary of at most {INLINE_BYTES} bytes, or nil for an attachment")
        if len(body) > limits.notification_bytes:
            bad(f"a notification of {len(body)} bytes; the limit is {limits.notification_bytes}")
        bodies.append(body)
    if next(waiting, None) is not None:
        bad("more attachments than nil bodies")
    return tuple(bodies)


def integer_rows(name: str, value: Any, *bounds: tuple[str, int, int]) -> Iterable[list[int]]:
    """Read the rows of an array of equally long arrays of bounded integers."""
    for row in array(name, value, LIST_LENGTH):
        if type(row) is not tuple or len(row) != len(bounds):
            bad(f"{name} must be an array of arrays of {len(bounds)}")
        yield [integer(field, cell, low, high) for (field, low, high), cell in zip(bounds, row, strict=True)]


def encoded_filters(filters: Any) -> tuple[bytes, ...]:
    """Check an array of encoded filters."""
    for encoded in array("filters", filters, LIST_LENGTH):
        if type(encoded) is not bytes:
            bad("a filter must be binary")
    checked: tuple[bytes, ...] = filters
    return checked


def index_name(what: str, value: Any) -> str:
    """Check the name of something that needs one."""
    name = text(what, value, INDEX_NAME_BYTES)
    if not name:
        bad(f"{what} must not be empty")
    return name
