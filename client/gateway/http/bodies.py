"""The body of `POST /v1/notifications` as notifications: whole documents, or lines as they come."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from contrada.client.gateway.forms.attributes import (
    is_json,
    notification_of,
    notification_of_event,
    notification_of_headers,
    notifications_of,
    parse_document,
)
from contrada.client.gateway.forms.flat import load_flat
from contrada.client.gateway.problems import Problem, problem_of
from contrada.client.notification import Draft
from contrada.errors import CodecError, InvalidValue
from contrada.forwarding.codec.json import load_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from contrada.client.gateway.forms.attributes import Attributes

NOTIFICATION: Final = "Contrada-Notification"
"""The header that has the attributes, where the body is the payload."""
_TOGETHER: Final = 256  # lines that are read before others get a turn


class Form(Enum):
    """How notifications are written in a body."""

    DOCUMENT = "JSON or GeoJSON"
    LINES = "JSON lines"
    EVENT = "CloudEvent"
    EVENTS = "CloudEvents"
    BINARY_EVENT = "CloudEvent in headers"
    PAYLOAD = "a payload, with the notification in a header"


MEDIA_TYPES: Final[Mapping[str, Form]] = {
    "application/json": Form.DOCUMENT,
    "application/geo+json": Form.DOCUMENT,
    "application/x-ndjson": Form.LINES,
    "application/jsonl": Form.LINES,
    "application/geo+json-seq": Form.LINES,
    "application/cloudevents+json": Form.EVENT,
    "application/cloudevents-batch+json": Form.EVENTS,
}


def form_of(media_type: str, headers: Mapping[str, str]) -> Form:
    """Which form a request's headers announce."""
    if (coding := headers.get("Content-Encoding", "identity").strip().lower()) not in ("", "identity"):
        raise Problem("media-type", f"Content-Encoding {coding!r:.80}: bodies are not unpacked here, send it plain")
    form = MEDIA_TYPES.get(media_type.lower())
    if NOTIFICATION in headers:
        return Form.PAYLOAD
    if form is not Form.LINES and "ce-specversion" in headers:
        return Form.BINARY_EVENT
    if form is None:
        kinds = ", ".join(MEDIA_TYPES)
        raise Problem("media-type", f"Content-Type {media_type!r:.80} is none of {kinds}")
    return form


def read_body(
    form: Form, body: bytes, headers: Mapping[str, str], geometry: str, *, envelope: bool = False
) -> Iterator[Attributes]:
    """Yield the notifications of a whole body; a `Problem` names the item at fault."""
    try:
        if form is Form.PAYLOAD:
            notification = notification_of(load_json(headers[NOTIFICATION]), geometry)
            json = is_json(headers.get("Content-Type", ""))
            yield Draft(notification, load_json(body) if json else body) if body else notification
        elif form is Form.BINARY_EVENT:
            yield notification_of_headers(headers, body, geometry)
        elif form is Form.EVENT:
            yield notification_of_event(load_json(body), geometry)
        elif form is Form.EVENTS:
            events = load_json(body)
            if type(events) is not list:
                raise CodecError("a batch of CloudEvents is a JSON array")
            for number, each in enumerate(events):
                try:
                    yield notification_of_event(each, geometry)
                except CodecError as error:
                    raise CodecError(f"item {number}: {error}") from None
        else:
            yield from notifications_of(load_json(body), geometry, envelope=envelope)
    except (CodecError, InvalidValue) as error:
        raise problem_of(error) from None


class LineReader:
    """Bytes as they come → notifications. Lines end with a line feed; empty ones are passed over."""

    def __init__(self, geometry: str, line_bytes: int, *, envelope: bool = False) -> None:
        self._geometry = geometry
        self._envelope = envelope
        self._limit = line_bytes
        self._begun: list[bytes] = []  # of the line that has not ended
        self._size = 0
        self.line = 0  # the number of the last line read, counted from 1

    def feed(self, data: bytes) -> Iterator[list[bytes]]:
        """Take in the next bytes; yield the lines that are whole, some at a time, to be `read` at once."""
        first, *others = data.split(b"\n")
        self._begun.append(first)
        self._size += len(first)
        if others:
            line, begun = b"".join(self._begun), others.pop()
            self._begun, self._size = [begun], len(begun)
            yield [line]  # alone: it may have begun long ago, and be long
            for at in range(0, len(others), _TOGETHER):
                yield others[at : at + _TOGETHER]
        if self._size > self._limit:
            raise Problem("too-large", f"a line of more than {self._limit} bytes", {"line": self.line + 1})

    def end(self) -> list[bytes]:
        """The last line, if it does not end with a line feed."""
        line, self._begun = b"".join(self._begun), []
        return [line]

    def read(self, lines: Iterable[bytes]) -> Iterator[Attributes]:
        """Yield the notifications of lines that `feed` gave. A `Problem` names the line."""
        for line in lines:
            yield from self._read(line)

    def _read(self, line: bytes) -> Iterator[Attributes]:
        self.line += 1
        if len(line) > self._limit:
            raise Problem("too-large", f"a line of more than {self._limit} bytes", {"line": self.line})
        line = line.strip(b" \t\r\x1e")
        if not line:
            return
        if not self._envelope and (flat := load_flat(line)) is not None:
            yield flat
            return
        try:
            yield from parse_document(line, self._geometry, envelope=self._envelope)
        except (CodecError, InvalidValue) as error:
            raise problem_of(error, line=self.line) from None
