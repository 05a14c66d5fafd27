"""Hashes of many values at once: 64 bits that depend on the bytes and a seed alone, in every process.

They bring equal things together; nothing relies on different things having different hashes, unless two seeds agree.
Eight bytes a step, multiplied and folded as in MurmurHash64A.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.storage.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from contrada.forwarding.batches.columns import Text
    from contrada.forwarding.kernels.memory.layout import Bytes, Ints

_MULTIPLY: Final = np.uint64(0xC6A4A7935BD1E995)
_START: Final = np.uint64(0x9E3779B97F4A7C15)
_47: Final = np.uint64(47)
_8: Final = np.uint64(8)


@inline_kernel
def mix(hashed: np.uint64, value: np.uint64) -> np.uint64:
    """A hash and one more word."""
    value *= _MULTIPLY
    value ^= value >> _47
    hashed ^= value * _MULTIPLY
    hashed *= _MULTIPLY
    return hashed ^ (hashed >> _47)


@kernel
def fold_spans(data: Bytes, offsets: Ints, hashes: np.ndarray) -> None:
    """Fold the i-th span of the bytes, and its length, into the i-th hash."""
    for i in range(hashes.shape[0]):
        at, end = offsets[i], offsets[i + 1]
        hashed = mix(hashes[i], np.uint64(end - at))
        while at < end:
            word = np.uint64(0)
            for k in range(min(8, end - at)):
                word |= np.uint64(data[at + k]) << (_8 * np.uint64(k))
            hashed = mix(hashed, word)
            at += 8
        hashes[i] = hashed


@kernel
def mix_all(hashes: np.ndarray, values: np.ndarray) -> None:
    """Fold a word into each hash."""
    for i in range(hashes.shape[0]):
        hashes[i] = mix(hashes[i], values[i])


def hash_texts(texts: Text, seed: int = 0) -> np.ndarray:
    """The hash of each text."""
    hashes = np.full(len(texts.offsets) - 1, _START ^ np.uint64(seed))
    fold_spans(texts.data, texts.offsets, hashes)
    return hashes


def hash_text(text: str, seed: int = 0) -> int:
    """The hash of one text."""
    data = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    hashes = np.full(1, _START ^ np.uint64(seed))
    fold_spans(data, np.array([0, len(data)]), hashes)
    return int(hashes[0])
