"""A broker's recording as the gateway shows it: how far it goes, and what was accepted when (`--recording DIR`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contrada.client.gateway.forms.rendering import attributes_text
from contrada.client.gateway.streaming.views import touches
from contrada.errors import CorruptFile
from contrada.forwarding.codec.msgpack import decode_notification
from contrada.forwarding.recording.timeline import Timeline

if TYPE_CHECKING:
    from pathlib import Path

    from contrada.client.gateway.streaming.views import Bounds

MOST: Final = 5000  # notifications in one answer
_READ: Final = 20 * MOST  # and looked at for it


class Recordings:
    """A recording that may still be written. Its methods read files: call them in a thread, one at a time."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._timeline: Timeline | None = None

    def span(self) -> dict[str, Any]:
        """The times of its beginning and end, µs since 1970; both 0 while nothing is there."""
        timeline = self._read()
        return {"from": timeline.first if timeline else 0, "to": timeline.last if timeline else 0}

    def between(self, start: int, end: int, limit: int, bounds: Bounds | None) -> str:
        """The notifications from `start` on and before `end` as JSON text.

        `items`; `next`, where to go on, or 0; `skipped`, how many of the last moment were more than the limit.
        """
        timeline = self._read()
        items: list[str] = []
        skipped = following = before = 0
        for number, record in enumerate(timeline.between(start, end) if timeline else ()):
            full = len(items) >= limit or number > _READ
            if full and record.time > before:
                following = record.time
                break
            before = record.time
            values = decode_notification(record.body)
            if bounds is not None and not touches(values, bounds):
                continue
            if full:
                skipped += 1
                continue
            items.append(
                f'{{"id":"{record.id}","time":{record.time},"receivers":{len(record.interfaces)},'
                f'"notification":{attributes_text(values)}}}'
            )
        return f'{{"items":[{",".join(items)}],"skipped":{skipped},"next":{following}}}'

    def _read(self) -> Timeline | None:
        try:
            if self._timeline is None:
                self._timeline = Timeline(self._path)
            else:
                self._timeline.refresh()
        except CorruptFile:
            if self._timeline is not None:
                raise
        return self._timeline
