"""Notifications as JSON text for whoever is on the other side of the gateway.

A notification goes to many: it is written once, and what was written is kept while it is likely to be asked for again.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Final

from contrada.client.gateway.forms.flat import attributes_of, dump_flat
from contrada.forwarding.codec.json import notification_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contrada.broker.protocol.messages import NotificationId
    from contrada.client.notification import Notification

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_KEPT: Final = 2048  # notifications,
_KEPT_CHARACTERS: Final = 1 << 23  # and characters of them


def attributes_text(values: Mapping[str, object]) -> str:
    """Attributes as one line of JSON."""
    return attributes_bytes(values).decode()


def attributes_bytes(values: Mapping[str, object]) -> bytes:
    """Attributes as one line of JSON, in UTF-8."""
    flat = dump_flat(values)
    return notification_to_json(values).encode() if flat is None else flat


class Renderer:
    """Writes notifications, each once."""

    def __init__(self) -> None:
        self._kept: dict[NotificationId, str] = {}
        self._size = 0

    def text(self, notification: Notification) -> str:
        """`"id":…,"publisher":…,"notification":{…}`: the members of the object that a subscriber gets."""
        text = self._kept.get(notification.id)
        if text is None:
            if len(self._kept) >= _KEPT or self._size >= _KEPT_CHARACTERS:
                self._kept.clear()
                self._size = 0
            publisher = _encode(notification.publisher)
            flat = attributes_of(notification.encoded)
            values = attributes_text(notification.values_by_name if flat is None else flat)
            payload = payload_text(notification.payload if flat is None else None)
            text = f'"id":"{notification.id}","publisher":{publisher},"notification":{values}{payload}'
            self._kept[notification.id] = text
            self._size += len(text)
        return text


def payload_text(payload: object) -> str:
    """The member `payload`, behind others: the JSON that it is, or an object with its bytes in base64."""
    if payload is None:
        return ""
    if isinstance(payload, bytes):
        payload = {"base64": b64encode(payload).decode()}
    return f',"payload":{_encode(payload)}'


def event(name: str, document: object, id: str = "") -> bytes:
    """One Server-Sent Event."""
    head = f"id: {id}\n" if id else ""
    return f"{head}event: {name}\ndata: {_encode(document)}\n\n".encode()


def notification_event(renderer: Renderer, notification: Notification) -> str:
    """A notification as a Server-Sent Event of the default type, `message`."""
    return f"id: {notification.id}\ndata: {{{renderer.text(notification)}}}\n\n"
