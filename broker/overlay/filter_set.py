"""A set of encoded filters under content-derived keys, with a digest by which two brokers compare it cheaply.

The key of a filter is a hash of its encoding, so both ends of a link name it alike. A set falls into 64 buckets by the
first byte of the key; the digest has one number per bucket, the exclusive or of its keys. Two sets whose digests
agree in a bucket hold the same filters there (up to a collision of 128-bit hashes), so after a lost link only the
filters of the buckets that differ travel again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.broker.protocol.peer_messages import BUCKETS, bucket_of, filter_key

if TYPE_CHECKING:
    from collections.abc import Container, Iterator


class FilterSet:
    """Keys and encodings of the filters that one broker has told another. Every operation but `within` is O(1)."""

    def __init__(self) -> None:
        self._filters: dict[bytes, bytes] = {}
        self._buckets = [0] * BUCKETS

    def add(self, key: bytes, encoded: bytes) -> bool:
        """Add a filter; False when it is there."""
        if key in self._filters:
            return False
        self._filters[key] = encoded
        self._buckets[bucket_of(key)] ^= int.from_bytes(key)
        return True

    def discard(self, key: bytes) -> bool:
        """Take a filter out; False when it is not there."""
        if self._filters.pop(key, None) is None:
            return False
        self._buckets[bucket_of(key)] ^= int.from_bytes(key)
        return True

    @property
    def digest(self) -> tuple[int, ...]:
        """One number per bucket."""
        return tuple(self._buckets)

    def within(self, buckets: Container[int]) -> dict[bytes, bytes]:
        """The filters in the given buckets."""
        return {key: encoded for key, encoded in self._filters.items() if bucket_of(key) in buckets}

    def __contains__(self, key: bytes) -> bool:
        return key in self._filters

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._filters)

    def __getitem__(self, key: bytes) -> bytes:
        return self._filters[key]

    def __len__(self) -> int:
        return len(self._filters)

    def _check(self) -> None:
        buckets = [0] * BUCKETS
        for key, encoded in self._filters.items():
            assert key == filter_key(encoded)
            buckets[bucket_of(key)] ^= int.from_bytes(key)
        assert buckets == self._buckets
