"""Names by their bytes: what a kernel that reads encoded notifications asks for an attribute's number.

    slots  (2**k,)  open addressing by the hash of a name: its number, or 0
    rows   (n, 4)   by number: hash, place in `text`, length in bytes; a length of 0 is nobody's; and the number of the
                    attribute's folded twin, or 0 (batches/indexed.py)
    text   bytes    the names in UTF-8

A number that is given up only loses its length, and its slot stays: a probe passes over it. `NameIndex` (Python's
side) files everything anew when the slots, most of which may be stale by then, are half full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contrada.forwarding.batches.indexed import twins_of
from contrada.forwarding.kernels.memory.keys import text_hash
from contrada.spatial.storage.jit import bare_kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contrada.forwarding.kernels.memory.layout import Bytes, Ints

R_HASH: Final = 0
R_START: Final = 1
R_LENGTH: Final = 2
R_TWIN: Final = 3


class Names(NamedTuple):
    """The arrays; see the module."""

    slots: Ints
    rows: Ints
    text: Bytes


@bare_kernel
def find_name(names: Names, text: Bytes, start: int, length: int, hashed: int) -> int:
    """The number of the name that is `text[start : start + length]` and has that hash, or 0."""
    last = names.slots.shape[0] - 1
    at = hashed & last
    while names.slots[at] != 0:
        row = names.rows[names.slots[at]]
        if row[R_HASH] == hashed and row[R_LENGTH] == length:
            same = True
            for i in range(length):
                if names.text[row[R_START] + i] != text[start + i]:
                    same = False
                    break
            if same:
                return names.slots[at]
        at = (at + 1) & last
    return 0


@bare_kernel
def file_names(names: Names, first: int, last: int) -> None:
    """Hash the names of these numbers and give them slots. There must be room."""
    for number in range(first, last):
        row = names.rows[number]
        if row[R_LENGTH] == 0:
            continue
        row[R_HASH] = text_hash(names.text, row[R_START], row[R_LENGTH])
        at = row[R_HASH] & (names.slots.shape[0] - 1)
        while names.slots[at] != 0:
            at = (at + 1) & (names.slots.shape[0] - 1)
        names.slots[at] = number


class NameIndex:
    """The arrays over a register's names, by number. Finding is O(1), a change O(1) on average."""

    def __init__(self, objects: Sequence[str | None]) -> None:
        self._objects = objects
        self._file_all()

    def _file_all(self) -> None:
        encoded = [b"" if name is None else name.encode() for name in self._objects]
        lengths = np.array([len(each) for each in encoded], np.int64)
        self._filled = int(np.count_nonzero(lengths))
        self._used = int(lengths.sum())
        rows = np.zeros((2 * len(encoded) + 16, 4), np.int64)
        rows[: len(encoded), R_LENGTH] = lengths
        rows[: len(encoded), R_START] = np.cumsum(lengths) - lengths
        text = np.zeros(2 * self._used + 1024, np.uint8)
        text[: self._used] = np.frombuffer(b"".join(encoded), np.uint8)
        self.names = Names(np.zeros(1 << (4 * self._filled + 64).bit_length(), np.int64), rows, text)
        file_names(self.names, 0, len(encoded))
        known = {name: number for number, name in enumerate(self._objects) if name is not None}
        for own, twin in twins_of(known).items():
            if own in known:
                rows[known[own], R_TWIN] = known[twin]

    def add(self, number: int, name: str) -> None:
        """File the name of a number that has none."""
        slots, rows, text = self.names
        encoded = name.encode()
        end = self._used + len(encoded)
        if 2 * self._filled >= len(slots) or number >= len(rows) or end > len(text):
            self._file_all()  # the register has it already
            return
        text[self._used : end] = np.frombuffer(encoded, np.uint8)
        rows[number] = 0, self._used, len(encoded), 0
        self._used = end
        self._filled += 1
        file_names(self.names, number, number + 1)

    def pair(self, number: int, twin: int) -> None:
        """Say which number the folded twin of an attribute has, or 0."""
        self.names.rows[number, R_TWIN] = twin

    def discard(self, number: int) -> None:
        """Forget the name of a number."""
        self.names.rows[number, R_LENGTH] = self.names.rows[number, R_TWIN] = 0

    def _check(self) -> None:
        slots, rows, text = self.names
        assert 2 * np.count_nonzero(slots) <= len(slots)
        for number, row in enumerate(rows.tolist()):
            name = self._objects[number] if number < len(self._objects) else None
            start, length = row[R_START], row[R_LENGTH]
            assert text[start : start + length].tobytes().decode() == (name or "")
            assert not length or number in slots
