"""A set of encoded filters under content-derived keys, with a digest by which two brokers compare it cheaply.

The key of a filter is a hash of its encoding, so both ends of a link name it alike. A set falls into 64 buckets by the
first byte of the key; the digest has one number per bucket, the exclusive or of its keys. Two sets whose digests
agree in a bucket hold the same filters there (up to a collision of 128-bit hashes), so after a lost link only the
filters of the buckets that differ travel again.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from contrada.broker.protocol.peer_messages import BUCKETS, bucket_of, filter_key

if TYPE_CHECKING:
    from collections.abc import Iterator


class FilterSet:
    """Keys and encodings of the filters that one broker has told another. A change is O(1)."""

    def __init__(self) -> None:
        self._buckets: list[dict[bytes, bytes]] = [{} for _ in range(BUCKETS)]
        self._digest = [0] * BUCKETS

    def add(self, key: bytes, encoded: bytes) -> bool:
        """Add a filter; False when it is there."""
        number = bucket_of(key)
        bucket = self._buckets[number]
        if key in bucket:
            return False
        bucket[key] = encoded
        self._digest[number] ^= int.from_bytes(key)
        return True

    def discard(self, key: bytes) -> bool:
        """Take a filter out; False when it is not there."""
        number = bucket_of(key)
        if self._buckets[number].pop(key, None) is None:
            return False
        self._digest[number] ^= int.from_bytes(key)
        return True

    @property
    def digest(self) -> tuple[int, ...]:
        """One number per bucket."""
        return tuple(self._digest)

    def within(self, bucket: int) -> dict[bytes, bytes]:
        """The filters in a bucket."""
        return self._buckets[bucket]

    def __contains__(self, key: bytes) -> bool:
        return key in self._buckets[bucket_of(key)]

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(self._buckets)

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    def _check(self) -> None:
        for number, bucket in enumerate(self._buckets):
            digest = 0
            for key, encoded in bucket.items():
                assert key == filter_key(encoded)
                assert bucket_of(key) == number
                digest ^= int.from_bytes(key)
            assert digest == self._digest[number]
