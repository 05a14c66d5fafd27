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

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray


def hash_of(text: bytes, salt: int = 0) -> int:
    """64 bits that depend on the text and the salt alone, in every process."""
    return int.from_bytes(blake2b(text, digest_size=8, salt=salt.to_bytes(8, "little")).digest(), "little")


class Hashes:
    """Owners by the hash of their text."""

    def __init__(self, hashes: NDArray[np.uint64], owners: NDArray[np.int64]) -> None:
        self._hashes = hashes
        self._owners = owners

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> Self:
        """From (hash, owner) pairs in any order."""
        rows = np.array([*pairs], np.uint64).reshape(-1, 2)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        return cls(rows[:, 0].copy(), rows[:, 1].astype(np.int64))

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
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Invert `arrays`."""
        hashes, owners = arrays["hashes"], arrays["owners"]
        if hashes.shape != owners.shape or hashes.dtype != np.uint64 or owners.dtype != np.int64:
            raise CorruptFile("hashes and their owners do not fit together")
        return cls(hashes, owners)
