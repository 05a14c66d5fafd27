"""What callers give to tables: refused here, with what was expected, if it is of the wrong shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from contrada.errors import InvalidValue
from contrada.forwarding.batches.columns import Columns, columns_in_degrees
from contrada.forwarding.language.lonlat import notification_in_degrees

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from contrada.forwarding.language.filter import Expression

_T = TypeVar("_T")


def interface_filter_pairs(pairs: Iterable[tuple[_T, Expression | str]]) -> Iterator[tuple[_T, Expression | str]]:
    """The pairs, one after another; `InvalidValue` for what is none. Filters are not looked at."""
    for pair in _iterated(pairs, "(interface, filter) pairs"):
        if (type(pair) is not tuple and (not isinstance(pair, Sequence) or isinstance(pair, str))) or len(pair) != 2:
            raise InvalidValue(f"expected an (interface, filter) pair, not {type(pair).__name__}")
        if type(pair[0]) is not str:
            hashed(pair[0])
        yield pair


def hashed(interface: _T) -> _T:
    """The interface itself, if it can be one."""
    try:
        hash(interface)
    except TypeError:
        raise InvalidValue(f"an interface must be hashable, and {type(interface).__name__} is not") from None
    return interface


def listed(notifications: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Notifications as a list; `InvalidValue` for what holds none."""
    if isinstance(notifications, list):
        return notifications
    return list(_iterated(notifications, "a list of notifications"))


def given_in_degrees(
    notifications: Columns | Sequence[Mapping[str, object]],
) -> Columns | list[dict[str, object]]:
    """Notifications as a table of longitudes and latitudes takes them."""
    if isinstance(notifications, Columns):
        return columns_in_degrees(notifications)
    return [notification_in_degrees(each) for each in notifications]


def _iterated(things: Iterable[_T], what: str) -> Iterator[_T]:
    try:
        if not isinstance(things, str | Mapping):
            return iter(things)
    except TypeError:
        pass
    raise InvalidValue(f"expected {what}, not a {type(things).__name__}")
