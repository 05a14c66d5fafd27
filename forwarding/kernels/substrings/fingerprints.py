"""Fingerprints of strings: the polynomial of their bytes, modulo a prime, at a point that nobody outside knows.

    fingerprint(s) = (s[0] + 1) + (s[1] + 1) * base + (s[2] + 1) * base**2 + …   modulo 2**61 - 1

With h[i] the fingerprint of a text's first i bytes, that of any window [i, j) is (h[j] - h[i]) / base**i: a subtraction
and a multiplication, however long the window. Two different strings of up to n bytes have the same fingerprint for at
most n of the 2**61 - 2 bases. Each table draws its own base (`Memory`), so who chooses patterns and texts cannot aim
at a collision, nor at a bucket of the hash; it is saved with the table, whose rows hold fingerprints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from contrada.spatial.storage.jit import bare_inline_kernel, bare_kernel

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Bytes, Ints

PRIME: Final = (1 << 61) - 1


def _times(_typing: Any, _a: Any, _b: Any) -> Any:
    """The product of two numbers below PRIME, modulo PRIME."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        word, wide = ir.IntType(64), ir.IntType(128)
        a, b = (builder.zext(each, wide) for each in arguments)
        product = builder.mul(a, b)
        low = builder.and_(builder.trunc(product, word), ir.Constant(word, PRIME))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 61)), word)
        total = builder.add(low, high)
        less = builder.sub(total, ir.Constant(word, PRIME))
        return builder.select(builder.icmp_signed("<", less, ir.Constant(word, 0)), total, less)

    return types.int64(types.int64, types.int64), generate


def _high_bit(_typing: Any, _value: Any) -> Any:
    """The place of the highest bit of a number that is not 0."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        zeros = builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return builder.sub(ir.Constant(ir.IntType(64), 63), zeros)

    return types.int64(types.int64), generate


times: Any = intrinsic(_times)
high_bit: Any = intrinsic(_high_bit)


@bare_inline_kernel
def window(hashes: Ints, first: int, last: int, unshift: int) -> int:
    """The fingerprint of a window, `unshift` being 1 / base**first."""
    difference = hashes[last] - hashes[first]
    return times(difference + (PRIME & (difference >> 63)), unshift)


@bare_inline_kernel
def plus(a: int, b: int) -> int:
    """The sum of two numbers below PRIME, modulo PRIME."""
    less = a + b - PRIME
    return less + PRIME if less < 0 else less


@bare_kernel
def fill_hashes(hashes: Ints, text: Bytes, first: int, step: int, length: int, base: int) -> None:
    """The fingerprints of what is read from `text[first]` on, byte by byte in steps of 1 or -1, into `hashes`."""
    h = 0
    # Two powers in turn: each waits for its own last product only.
    even, odd = 1, base
    square = times(base, base)
    hashes[0] = 0
    for i in range(0, length, 2):
        h = plus(h, times(np.int64(text[first + i * step]) + 1, even))
        hashes[i + 1] = h
        even = times(even, square)
        if i + 1 < length:
            h = plus(h, times(np.int64(text[first + (i + 1) * step]) + 1, odd))
            hashes[i + 2] = h
            odd = times(odd, square)


@bare_kernel
def fingerprint(text: Bytes, first: int, step: int, length: int, base: int) -> int:
    """The fingerprint of `length` bytes from `text[first]` on, in steps of 1 or -1."""
    h = 0
    power = 1
    for i in range(length):
        h = plus(h, times(np.int64(text[first + i * step]) + 1, power))
        power = times(power, base)
    return h
