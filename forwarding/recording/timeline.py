"""A recording by time: what a broker accepted between two moments, without reading all that was before.

    marks    for each file, (time, offset) of a block about every `_EVERY` bytes, in order: where reading may begin

Times in a recording never fall while the machine's clock does not; where it was set back, what lies in between is found
as far as the marks go. A recording that is still being written may be read: `refresh` goes on where it ended. Looking
for marks reads the heads of blocks only, and checks nothing: `between` does.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from contrada.forwarding.journal.blocks import HEAD, HEADER_BYTES, file_number, head_of_block
from contrada.forwarding.recording.reader import recording_files, records_at
from contrada.forwarding.recording.records import Accepted
from contrada.spatial.storage.regular_file import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_EVERY: Final = 1 << 20


class Timeline:
    """A recording's directory, read by time. Times are µs since 1970, UTC."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = directory
        self._marks: dict[Path, list[tuple[int, int]]] = {}
        self._ends: dict[Path, int] = {}  # how far each file was looked at
        self.first = self.last = 0  # times of the first and the last block; 0: there is none
        self.refresh()

    def refresh(self) -> None:
        """Look at what was written, and deleted, since."""
        files = recording_files(self._directory)
        for gone in set(self._marks) - set(files):
            del self._marks[gone], self._ends[gone]
        for path in files:
            self._look(path)
        marks = [self._marks[path][0][0] for path in files if self._marks[path]]
        self.first = min(marks, default=0)

    def _look(self, path: Path) -> None:
        marks = self._marks.setdefault(path, [])
        offset = self._ends.get(path, HEADER_BYTES)
        with open_regular(path, 1 << 16) as file:
            size = os.fstat(file.fileno()).st_size
            while offset < size:
                file.seek(offset)
                head = head_of_block(file.read(HEAD.size), size - offset)
                if head is None:
                    break  # not whole yet, or damaged
                length, time = head
                if not marks or offset - marks[-1][1] >= _EVERY:
                    marks.append((time, offset))
                self.last = max(self.last, time)
                offset += length
        self._ends[path] = offset

    def between(self, start: int, end: int) -> Iterator[Accepted]:
        """Yield the notifications that were accepted from `start` on and before `end`, in order."""
        for path in sorted(self._marks, key=file_number):
            marks = self._marks[path]
            if not marks or marks[0][0] >= end:
                continue
            at = max(0, bisect_right([time for time, _ in marks], start - 1) - 1)
            for record in records_at(path, marks[at][1]):
                if record.time >= end:
                    break
                if record.time >= start and isinstance(record, Accepted):
                    yield record
