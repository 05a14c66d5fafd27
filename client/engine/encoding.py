"""What the application hands over, as bytes. The engine's spatial modules are loaded when the first shape turns up."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contrada.forwarding.language.filter import Expression


def encode_notification(notification: Mapping[str, object]) -> bytes:
    """Check a notification and encode it; `InvalidValue` names the attribute at fault."""
    from contrada.forwarding.codec.msgpack import encode_notification

    return encode_notification(notification)


def encode_filters(expression: Expression | str) -> tuple[bytes, ...]:
    """Encode the filters of a predicate one by one."""
    from contrada.forwarding.codec.msgpack import encode_filter
    from contrada.forwarding.language.filter import as_filters

    return tuple(map(encode_filter, as_filters(expression)))


def encode_predicate(expression: Expression | str) -> bytes:
    """Encode all filters of a predicate as one."""
    from contrada.forwarding.codec.msgpack import encode_filter
    from contrada.forwarding.language.filter import Predicate, as_filters

    return encode_filter(Predicate(as_filters(expression)))
