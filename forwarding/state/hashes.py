"""Finding texts of a loaded file by hash, without a dictionary that would have to be filled first.

    hashes  (n,) uint64   ascending
    owners  (n,) int64    whose text each is the hash of

Two texts may have one hash: callers compare. A search is O(log n) on mapped pages, about three microseconds.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from contrada.errors import CorruptFile
from contrada.spatial.storage.row_numbers import check_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray


def hash_of(text: bytes, salt: int = 0) -> int:
    """64 bits that depend on the text and the salt alone, in every process."""
    return int.from_bytes(blake2b(text, digest_size=8, salt=salt.to_bytes(8, "little")).digest(), "little")


def hashes_of(text: NDArray[np.uint8], ends: NDArray[np.int64], salts: NDArray[np.int64]) -> NDArray[np.uint64]:
    """As `hash_of` each of many texts, one after another, and its salt."""
    raw = text.tobytes()
    salted = {salt: salt.to_bytes(8, "little") for salt in np.unique(salts).tolist()}
    stops = ends.tolist()
    digests = b"".join(
        blake2b(raw[start:end], digest_size=8, salt=salted[salt]).digest()
        for start, end, salt in zip([0, *stops][: len(stops)], stops, salts.tolist(), strict=True)
    )
    return np.frombuffer(digests, "<u8").astype(np.uint64)


class Hashes:
    """Owners by the hash of their text."""

    def __init__(self, hashes: NDArray[np.uint64], owners: NDArray[np.int64]) -> None:
        self._hashes = hashes
        self._owners = owners

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> Self:
        """From (hash, owner) pairs in any order."""
        rows = np.array([*pairs], np.uint64).reshape(-1, 2)
        return cls.sorted(rows[:, 0], rows[:, 1].astype(np.int64))

    @classmethod
    def sorted(cls, hashes: NDArray[np.uint64], owners: NDArray[np.int64]) -> Self:
        """From the hash of each owner, in any order."""
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], owners[order])

    def joined(self, pairs: Sequence[tuple[int, int]]) -> Self:
        """These and more (hash, owner) pairs."""
        if not pairs:
            return self
        more = self.of(pairs)
        both = np.concatenate((self._hashes, more._hashes)), np.concatenate((self._owners, more._owners))
        return self.sorted(*both)

    def owners(self, hashed: int) -> Iterator[int]:
        """Whoever may have the text of that hash."""
        at = int(np.searchsorted(self._hashes, np.uint64(hashed)))
        while at < len(self._hashes) and self._hashes[at] == hashed:
            yield int(self._owners[at])
            at += 1

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What to save."""
        return {"hashes": self._hashes, "owners": self._owners}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], rows: int) -> Self:
        """Invert `arrays`, whose owners are numbered below `rows`."""
        hashes, owners = arrays["hashes"], arrays["owners"]
        one = hashes.ndim == 1 and hashes.dtype == np.uint64 and owners.dtype == np.int64
        if not one or hashes.shape != owners.shape:
            raise CorruptFile("hashes and their owners do not fit together")
        check_rows("hashes: owners", owners, rows)
        return cls(hashes, owners)
