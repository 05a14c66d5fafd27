"""Order-preserving integers for numbers and strings, and the hashes that operands are interned by.

A number becomes a pair (key, low) whose lexicographic order is the exact order of the numbers, int64 and float64
mixed: `key` is the bits of the nearest float, mapped so that integers compare as the floats do, and `low` is what
rounding an integer to that float took away (between -1024 and 1024, zero for floats and for integers up to 2**53).
Rounding is monotone, so a smaller number never has a larger key, and equal keys are told apart by `low`.

A string's key is its first eight bytes, big-endian; equal keys are told apart by comparing bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from contrada.spatial.storage.hashing import GOLDEN, HALF, SECOND
from contrada.spatial.storage.jit import bare_kernel

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Bytes

FNV_SEED: Final = -3750763034362895579
FNV_PRIME: Final = 1099511628211
_TOO_BIG: Final = 9223372036854775808.0
_MAX: Final = 9223372036854775807


def _float_bits(_typing: Any, _value: Any) -> Any:
    """The 64 bits of a float as an integer."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


float_bits: Any = intrinsic(_float_bits)


@bare_kernel
def float_key(value: float) -> int:
    """An integer that compares with others of its kind as the floats do. The two zeros are one."""
    bits: int = float_bits(value + 0.0)
    return bits if bits >= 0 else bits ^ _MAX


@bare_kernel
def int_low(value: int) -> int:
    """What rounding `value` to the nearest float takes away."""
    nearest = float(value)
    if nearest >= _TOO_BIG:  # 2**63 itself is no int64
        return value - _MAX - 1
    return value - int(nearest)


@bare_kernel
def mix(a: int, b: int) -> int:
    """A well-spread hash of two integers."""
    x = np.uint64(a) * GOLDEN ^ np.uint64(b)
    x = (x ^ (x >> HALF)) * SECOND
    x = (x ^ (x >> HALF)) * GOLDEN
    return np.int64(x ^ (x >> HALF))  # type: ignore[return-value]  # an int in kernels


@bare_kernel
def text_key(text: Bytes, start: int, length: int) -> int:
    """The first eight bytes as an integer that compares as the bytes do."""
    key = 0
    for i in range(8):
        byte = np.int64(text[start + i]) if i < length else np.int64(0)
        if i == 0:
            byte -= 128
        key = key * 256 + byte
    return key


@bare_kernel
def text_hash(text: Bytes, start: int, length: int) -> int:
    """FNV-1a, whose state after n bytes is the hash of the prefix of n bytes."""
    h = FNV_SEED
    for i in range(start, start + length):
        h = (h ^ np.int64(text[i])) * FNV_PRIME
    return h


@bare_kernel
def reversed_hash(text: Bytes, start: int, length: int) -> int:
    """The same from the last byte to the first, for suffixes."""
    h = FNV_SEED
    for i in range(start + length - 1, start - 1, -1):
        h = (h ^ np.int64(text[i])) * FNV_PRIME
    return h
