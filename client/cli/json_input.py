"""Reading notifications for `contrada pub`: lines of JSON, JSON documents over several lines, and GeoJSON.

Standard input is read as it comes: a batch is let go as soon as nothing more is there, so that `pub` can stand at the
end of a pipe that never closes. What comes before a mistake is not lost: its batch comes first, then the error, which
names the line. Lines end with a line feed and nothing else, since JSON strings may hold Unicode's other separators.
"""

from __future__ import annotations

import json
import os
import re
import select
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NoReturn

from contrada.errors import CodecError, ContradaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BATCH: Final = 256
_READ_BYTES: Final = 1 << 20
_SMALL: Final = 4096  # characters; a longer document is parsed when its brackets are closed, not at every line
_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]')


class Lines:
    """Lines of a text that is all there."""

    def __init__(self, where: str, text: bytes = b"") -> None:
        self.where = where
        self._lines = deque(text.split(b"\n"))
        self._taken = 0

    @property
    def idle(self) -> bool:
        """Whether the next line would have to be waited for."""
        return False

    def line(self) -> str | None:
        """Take the next line; None at the end."""
        if not self._lines and not self._fill():
            return None
        self._taken += 1
        line = self._lines.popleft()
        try:
            return line.decode("utf-8-sig" if self._taken == 1 else "utf-8") + "\n"
        except UnicodeDecodeError as error:
            raise CodecError(f"{self.where}, line {self._taken}: not UTF-8: {error}") from error

    def _fill(self) -> bool:
        return False


class DescriptorLines(Lines):
    """Lines of a pipe, a terminal or an open file."""

    def __init__(self, where: str, descriptor: int) -> None:
        super().__init__(where)
        self._lines.clear()
        self._descriptor = descriptor
        self._begun = b""  # of the next line

    @property
    def idle(self) -> bool:
        """Whether the next line would have to be waited for."""
        return not self._lines and not select.select([self._descriptor], [], [], 0)[0]

    def _fill(self) -> bool:
        while not self._lines:
            block = os.read(self._descriptor, _READ_BYTES)
            if not block:
                if self._begun:
                    self._lines.append(self._begun)
                    self._begun = b""
                break
            *lines, self._begun = (self._begun + block).split(b"\n")
            self._lines.extend(lines)
        return bool(self._lines)


def batches(sources: Iterable[Lines], geometry: str = "area") -> Iterator[list[dict[str, Any]]]:
    """Read everything in batches of at most `BATCH`; a mistake is raised behind the batch of what came before it."""
    batch: list[dict[str, Any]] = []
    try:
        for source in sources:
            for document, where in _documents(source):
                for notification in _notifications(document, where, geometry):
                    batch.append(notification)
                    if len(batch) == BATCH:
                        yield batch
                        batch = []
                if batch and source.idle:
                    yield batch
                    batch = []
    except ContradaError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _documents(source: Lines) -> Iterator[tuple[Any, str]]:
    """Parse the JSON documents of a source, each with the place where it begins."""
    text = ""
    parts: list[str] = []
    number = begun = depth = size = 0
    while (line := source.line()) is not None:
        number += 1
        if not parts:
            if not line.strip():
                continue
            begun = number
        parts.append(line)
        size += len(line)
        depth += sum({"[": 1, "{": 1, "]": -1, "}": -1}.get(token, 0) for token in _TOKENS.findall(line))
        if depth > 0 and size > _SMALL:
            continue
        text = "".join(parts)
        try:
            document = json.loads(text, object_pairs_hook=_unrepeated, parse_constant=_refuse)
        except RecursionError:
            raise CodecError(f"{source.where}, line {begun}: nested too deeply") from None
        except ValueError as error:
            if depth > 0 and isinstance(error, json.JSONDecodeError) and error.pos >= len(text.rstrip()):
                continue  # a document over several lines
            fault, at = str(error), number
            if isinstance(error, json.JSONDecodeError):
                fault, at = f"{error.msg}, column {error.colno}", begun + error.lineno - 1
            raise CodecError(f"{source.where}, line {at}: not JSON: {fault}") from error
        yield document, f"{source.where}, line {begun}"
        parts = []
        depth = size = 0
    if parts:
        raise CodecError(f"{source.where}: ends inside the JSON document that begins in line {begun}")


def _unrepeated(members: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(members)
    if len(document) < len(members):
        names = [name for name, _ in members]
        raise ValueError(f"{next(n for n in names if names.count(n) > 1)!r} is there twice")
    return document


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number in JSON")


def _notifications(document: Any, where: str, geometry: str) -> Iterator[dict[str, Any]]:
    from contrada.forwarding.codec.json import notification_from_json

    if isinstance(document, list):
        for index, item in enumerate(document):
            yield from _notifications(item, f"{where}, item {index}", geometry)
        return
    if isinstance(document, dict) and document.get("type") == "FeatureCollection":
        if not isinstance(document.get("features"), list):
            raise CodecError(f"{where}: a FeatureCollection without an array of features")
        yield from _notifications(document["features"], where, geometry)
        return
    try:
        if isinstance(document, dict) and document.get("type") == "Feature":
            document = _flat(document, geometry)
        yield notification_from_json(json.dumps(document))
    except CodecError as error:
        raise CodecError(f"{where}: {error}") from error


def _flat(feature: dict[str, Any], geometry: str) -> dict[str, Any]:
    """Make attributes of a feature: properties that are not null, and the geometry under its name."""
    properties, shape = feature.get("properties"), feature.get("geometry")
    for name, member in (("properties", properties), ("geometry", shape)):
        if member is not None and not isinstance(member, dict):
            raise CodecError(f"the {name} of a Feature are an object or null, not {member!r:.80}")
    flat = {name: value for name, value in (properties or {}).items() if value is not None}
    if shape is not None:
        if geometry in flat:
            raise CodecError(f"the geometry cannot be {geometry!r}, which is a property: name it with --geometry")
        flat[geometry] = {name: shape.get(name) for name in ("type", "coordinates")}
    return flat
