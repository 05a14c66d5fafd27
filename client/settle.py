"""Small decisions that the async and the blocking client share."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from contrada.broker.messages import NotificationId
from contrada.broker.wire import Policy
from contrada.errors import ContradaError, Disconnected, InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from contrada.client.inbox import Inbox

    T = TypeVar("T")

CHUNK: Final = 256
"""Notifications that `publish_many` encodes before it looks for room again."""


def check_subscription(policy: Policy | str, window: int, queue: int) -> tuple[Policy, int, int]:
    """Check what a subscription asks of the broker."""
    try:
        checked = Policy(policy)
    except ValueError:
        raise InvalidValue(f"policy must be one of {', '.join(Policy)}, not {policy!r}") from None
    if type(window) is not int or window < 1:
        raise InvalidValue(f"window must be a whole number of at least 1, not {window!r}")
    if type(queue) is not int or queue < 0:
        raise InvalidValue(f"queue must be a whole number, 0 for the broker's default, not {queue!r}")
    return checked, window, queue


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Split into lists of `size`, the last one shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def as_id(notification: NotificationId | str) -> NotificationId:
    """Read a notification's id, if it is not one already."""
    if not isinstance(notification, str):
        return notification
    try:
        return NotificationId.parse(notification)
    except ValueError as error:
        raise InvalidValue(str(error)) from error


def subscription_failure(inbox: Inbox) -> ContradaError:
    """Why nothing more will come."""
    return inbox.error or Disconnected("the subscription is closed, and everything it received has been taken")
