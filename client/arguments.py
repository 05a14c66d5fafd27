"""What the application gives, checked and encoded. The spatial modules are loaded when the first shape turns up."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final, TypedDict

from contrada.broker.protocol.messages import Keep, NotificationId
from contrada.broker.protocol.wire import (
    INDEX_NAME_BYTES,
    LIST_LENGTH,
    MAX_INTEGER,
    MAX_SUBSCRIPTION,
    NAME_BYTES,
    Full,
    Policy,
)
from contrada.client.notification import Draft, Encoded, Notification, codec
from contrada.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from contrada.broker.protocol.messages import Since
    from contrada.forwarding.language.filter import Expression

SinceArgument = NotificationId | str | datetime | float | None
"""Where a new durable subscription begins: behind an id, at a time, at "all", or now."""


class Storing(TypedDict, total=False):
    """How a notification is to be kept by the broker."""

    durable: bool
    key: str
    retain: str


VOLATILE: Final[Storing] = {}
CHUNK: Final = 256
"""Notifications that `publish_many` encodes before it looks for room again."""
_LARGEST: Final = 2**53  # window or queue
_FILTER_BYTES: Final = 4 << 20  # of one request: with its head it fits into a message


def encode_notification(notification: Mapping[str, object], payload: object = None) -> bytes:
    """Check a notification and encode it, with its payload; `InvalidValue` names the attribute at fault.

    One that was received has its payload with it, as a `Draft` has.
    """
    if payload is None and isinstance(notification, (Notification, Draft)):
        payload = notification.payload
    encoded: bytes = codec().encode_notification(notification, payload)
    return encoded


def encode_filters(expression: Expression | str) -> tuple[bytes, ...]:
    """Encode the filters of a predicate one by one."""
    from contrada.forwarding.codec.msgpack import encode_filter
    from contrada.forwarding.language.filter import as_filters

    filters = as_filters(expression)
    if len(filters) > LIST_LENGTH:
        raise InvalidValue(f"{len(filters)} filters in one predicate; a broker takes {LIST_LENGTH}: make several of it")
    encoded = tuple(map(encode_filter, filters))
    if (size := sum(map(len, encoded))) > _FILTER_BYTES:
        raise InvalidValue(f"a predicate of {size} bytes; a broker takes {_FILTER_BYTES}: make several of it")
    return encoded


def encode_predicate(expression: Expression | str) -> bytes:
    """Encode all filters of a predicate as one."""
    from contrada.forwarding.codec.msgpack import encode_filter
    from contrada.forwarding.language.filter import Predicate, as_filters

    return encode_filter(Predicate(as_filters(expression)))


def encode_chunks(
    notifications: Iterable[Mapping[str, object] | Encoded],
) -> Iterator[tuple[list[bytes], Exception | None]]:
    """Encode in lists of `CHUNK`. Behind the notifications before it comes what was wrong with one, and nothing more.

    The fault may be a notification's or the iterable's own.
    """
    bodies: list[bytes] = []
    fault: Exception | None = None
    iterator = enumerate(notifications)
    while fault is None:
        number = -1
        try:
            number, notification = next(iterator)
            bodies.append(notification if isinstance(notification, Encoded) else encode_notification(notification))
        except StopIteration:
            break
        except InvalidValue as error:
            fault = InvalidValue(f"notification {number}: {error}") if number >= 0 else error
        except Exception as error:
            fault = error
        if len(bodies) == CHUNK:
            yield bodies, None
            bodies = []
    if bodies or fault is not None:
        yield bodies, fault


def check_subscription(policy: Policy | str, window: int, queue: int) -> tuple[Policy, int, int]:
    """Check what a subscription asks of the broker."""
    try:
        checked = Policy(policy)
    except ValueError:
        raise InvalidValue(f"policy must be one of {', '.join(Policy)}, not {policy!r}") from None
    if type(window) is not int or not 1 <= window <= _LARGEST:
        raise InvalidValue(f"window must be a whole number of at least 1, not {window!r}")
    if type(queue) is not int or not 0 <= queue <= _LARGEST:
        raise InvalidValue(f"queue must be a whole number, 0 for the broker's default, not {queue!r}")
    return checked, window, queue


def check_name(what: str, name: object) -> str:
    """Check the name of a subscription or interface of an index."""
    if type(name) is not str or not 1 <= len(name.encode(errors="replace")) <= INDEX_NAME_BYTES:
        raise InvalidValue(f"{what} must be a string of 1 to {INDEX_NAME_BYTES} bytes, not {name!r:.60}")
    return name


def check_id(notification: NotificationId | str) -> NotificationId:
    """Check the id of a notification, or read it from text. What no broker gave out would be an offence to one."""
    try:
        id = NotificationId.parse(notification) if isinstance(notification, str) else notification
    except ValueError as error:
        raise InvalidValue(f"{error!s:.200}") from error
    if id.sequence < 1 or len(id.broker.encode(errors="replace")) > NAME_BYTES or not id.broker.isprintable():
        raise InvalidValue(f"{str(id)!r:.100} is not the id of a notification")
    return id


def check_numbers(subscription: int, session: int) -> tuple[int, int]:
    """Check the number of a subscription, and that of its session."""
    if type(subscription) is not int or not 0 <= subscription <= MAX_SUBSCRIPTION:
        raise InvalidValue(f"{subscription!r:.40} is not the number of a subscription")
    if type(session) is not int or not 0 <= session <= MAX_INTEGER:
        raise InvalidValue(f"{session!r:.40} is not the number of a session; 0 is one's own")
    return subscription, session


def check_storing(durable: bool, id: str, retain: str) -> Storing:
    """Check how a notification is to be kept."""
    if not durable and not retain:
        if id:
            raise InvalidValue("an id makes a durable publish safe to repeat: publish with durable=True")
        return VOLATILE
    for what, key in (("id", id), ("retain", retain)):
        if key != "":
            check_name(what, key)
    return {"durable": True, "key": id, "retain": retain}


def check_durable(durable: str, since: SinceArgument, ack: str, keep: Keep) -> tuple[str, Since, bool]:
    """Check what a durable subscription asks for: its name, where it begins, whether it acknowledges by itself."""
    if ack not in ("auto", "manual"):
        raise InvalidValue(f'ack must be "auto" or "manual", not {ack!r}')
    if not isinstance(keep, Keep):
        raise InvalidValue(f"keep must be a contrada.Keep, not {keep!r:.60}")
    for name in ("notifications", "bytes", "age", "attempts"):
        value = getattr(keep, name)
        if type(value) is not int or not 0 <= value <= _LARGEST:
            raise InvalidValue(f"keep.{name} must be a whole number, 0 for the broker's default, not {value!r}")
    for name in ("when_notifications", "when_bytes", "when_age"):
        if getattr(keep, name) not in tuple(Full):
            raise InvalidValue(f"keep.{name} must be one of {', '.join(Full)}, not {getattr(keep, name)!r}")
    if keep.when_age == Full.REFUSE:
        raise InvalidValue("nothing can be refused for its age: keep.when_age is drop-oldest or dead-letter")
    return check_name("durable", durable), _since(since), ack == "auto"


def _since(since: SinceArgument) -> Since:
    if since is None or since == "all":
        return since if since is None else "all"
    if isinstance(since, (str, NotificationId)):
        return check_id(since)
    if isinstance(since, datetime):
        if since.tzinfo is None:
            raise InvalidValue(f"since must have a time zone: {since} is at different times in different places")
        since = since.timestamp()
    if isinstance(since, bool) or not isinstance(since, (int, float)) or not 0 <= since * 1e6 <= MAX_INTEGER:
        raise InvalidValue(
            f'since must be "all", a notification\'s id, a datetime or seconds since 1970, not {since!r}'
        )
    return int(since * 1e6)
