"""The subscriptions that a segment's filters belong to, as arrays beside its table.

Kind "subscription-ids" of arrays_file.py, memory-mapped. With n subscriptions, ascending by id, and m filters,
rows 1 to m of the table in the order of their subscriptions (a predicate's filters follow one another):

    text    uint8  (b,)      the ids in UTF-8, one after another
    ends    int64  (n,)      where each id ends
    owners  int32  (m + 1,)  the subscription of each filter's row; row 0 is nobody's
    starts  int64  (n + 1,)  the first row of each subscription

A subscription is found by bisection of the ids, which ascend by bytes (as code points do): O(log n), nothing is read
in when a file is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from contrada.errors import CorruptFile, InvalidValue
from contrada.forwarding.language.values import check_string
from contrada.spatial.storage.arrays_file import load_arrays, save_arrays
from contrada.spatial.storage.row_numbers import check_lengths, check_offsets, check_rows, check_shapes

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray

KIND: Final = "subscription-ids"
VERSION: Final = 1
MAX_ID: Final = 512
"""How many bytes of UTF-8 an id may have."""
SHAPES: Final = {"text": (np.uint8, ()), "ends": (np.int64, ()), "owners": (np.int32, ()), "starts": (np.int64, ())}


def check_id(id: object, what: str = "a subscription's id") -> str:
    """The id itself, if it is one: a string that is not empty, of at most `MAX_ID` bytes of UTF-8."""
    if type(id) is not str or not id:
        raise InvalidValue(f"{what} is a string that is not empty, not {id!r}")
    if len(check_string(id, what).encode()) > MAX_ID:
        raise InvalidValue(f"{what} has at most {MAX_ID} bytes of UTF-8; this one begins {id[:40]!r}")
    return id


class SubscriptionIds:
    """Which subscription each filter of a segment is of."""

    def __init__(
        self,
        text: NDArray[np.uint8],
        ends: NDArray[np.int64],
        owners: NDArray[np.int32],
        starts: NDArray[np.int64],
    ) -> None:
        self._text, self._ends, self._owners, self._starts = text, ends, owners, starts

    @classmethod
    def of(cls, ids: Sequence[str], counts: Sequence[int]) -> Self:
        """Of subscriptions in ascending order of ids, and how many filters each has."""
        encoded = [id.encode() for id in ids]
        text = np.frombuffer(b"".join(encoded), np.uint8)
        return cls.of_text(text, np.cumsum([len(each) for each in encoded], dtype=np.int64), np.array(counts, np.int64))

    @classmethod
    def of_text(cls, text: NDArray[np.uint8], ends: NDArray[np.int64], counts: NDArray[np.int64]) -> Self:
        """As `of`, of ids in UTF-8, one after another, and where each ends."""
        text = np.concatenate((text, np.zeros(1, np.uint8)))
        starts = np.concatenate(([1], np.cumsum(counts, dtype=np.int64) + 1)).astype(np.int64)
        owners = np.concatenate(([-1], np.repeat(np.arange(len(ends)), counts))).astype(np.int32)
        return cls(text, ends, owners, starts)

    def __len__(self) -> int:
        """How many subscriptions there were when the segment was written."""
        return len(self._ends)

    @property
    def filters(self) -> int:
        """How many filters the segment had when it was written."""
        return len(self._owners) - 1

    def id(self, number: int) -> str:
        """The id of the subscription of a number."""
        try:
            return self._bytes(number).decode()
        except UnicodeDecodeError as error:
            raise CorruptFile(f"the id of a subscription is no text: {error}") from None

    def ids_of(self, rows: Sequence[int]) -> list[str]:
        """The subscriptions of filters, by their rows."""
        return [self.id(number) for number in self._owners[rows].tolist()] if len(rows) else []

    def numbers_of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """The numbers of the subscriptions of filters, by their rows."""
        return self._owners[rows]

    @property
    def first_rows(self) -> NDArray[np.int64]:
        """The first filter of each subscription, by its row."""
        return self._starts[:-1]

    @property
    def text(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """All ids by number, as analytical formats have strings: n + 1 offsets into UTF-8 bytes."""
        return np.concatenate((np.zeros(1, np.int64), self._ends)), self._text

    def rows_of(self, id: str) -> range:
        """The rows of the filters of a subscription; empty when it is not here."""
        key = id.encode("utf-8", "surrogatepass")
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._bytes(middle) < key:
                low = middle + 1
            else:
                high = middle
        if low == len(self) or self._bytes(low) != key:
            return range(0)
        return range(int(self._starts[low]), int(self._starts[low + 1]))

    def _bytes(self, number: int) -> bytes:
        start = int(self._ends[number - 1]) if number else 0
        return self._text[start : int(self._ends[number])].tobytes()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one file."""
        arrays: dict[str, NDArray[Any]] = {
            "text": self._text,
            "ends": self._ends,
            "owners": self._owners,
            "starts": self._starts,
        }
        save_arrays(path, kind=KIND, version=VERSION, arrays=arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = False) -> Self:
        """Map what `save` wrote."""
        arrays, _ = load_arrays(path, kind=KIND, version=VERSION, verify=verify)
        try:
            made = cls(arrays["text"], arrays["ends"], arrays["owners"], arrays["starts"])
        except KeyError as error:
            raise CorruptFile(f"{path}: no array {error}") from None
        try:
            made._guard()
        except CorruptFile as error:
            raise CorruptFile(f"{path}: {error}") from None
        return made

    def _guard(self) -> None:
        """Refuse arrays whose numbers lead nowhere."""
        what = "subscriptions"
        arrays: dict[str, NDArray[Any]] = {
            "text": self._text,
            "ends": self._ends,
            "owners": self._owners,
            "starts": self._starts,
        }
        check_shapes(what, arrays, SHAPES)
        check_lengths(what, len(self._ends) + 1, self._starts)
        check_offsets(what, np.concatenate(([0], self._ends)), len(self._text) - 1)
        check_rows(what, self._starts[:1] - 1, 1)
        check_offsets(what, self._starts - 1, len(self._owners) - 1)
        check_rows(what, self._owners[:1], 0, -1)
        check_rows(what, self._owners[1:], len(self._ends))
