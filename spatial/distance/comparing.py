"""Distances of points, and of points and segments, compared with a length: exactly.

Each comparison is made in doubles first, and believed where the two sides differ by more than the errors may be. What
is left, ties above all, is decided in whole numbers: the doubles, all multiples of one power of two, as digits of 24
bits in int64, of either sign:

    number = sum over i of digits[i] * 2**(24 * i)      times 2**low, which all numbers of one comparison share

Differences are taken digit by digit, products are convolutions, and carries are settled after each product, so that no
sum overflows: with coordinates that are 0 or from 1e-100 to 1e100 (`predicates`) there are at most 31 digits, and 124
in the products of four that are compared. Ordinary coordinates have 3 or 4, and a comparison takes a microsecond.

A point p is within d of the segment ab iff it is within d of a or of b where its foot on the line lies beyond that end,
and else iff |(b-a) x (p-a)| <= d |b-a|. No root is taken: both sides are squared.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Digits = NDArray[np.int64]

_BITS: Final = 24
_MANTISSA: Final = 53
_LOW_DIGIT: Final = (1 << _BITS) - 1
_ERROR: Final = 2.0**-49  # relative to the terms: above all the roundings of a sum of two products of differences


@kernel
def _carry(digits: Digits) -> None:
    """Make all digits but the last lie from 0 to 2**24 - 1; the last has the sign."""
    for i in range(digits.shape[0] - 1):
        carried = digits[i] >> _BITS
        digits[i] -= carried << _BITS
        digits[i + 1] += carried


@kernel
def _sign(digits: Digits) -> int:
    """The sign of a number, whose carries are settled here."""
    _carry(digits)
    for i in range(digits.shape[0] - 1, -1, -1):
        if digits[i] != 0:
            return 1 if digits[i] > 0 else -1
    return 0


@kernel
def _product(a: Digits, b: Digits) -> Digits:
    """The product of two numbers whose digits are of at most 25 bits, carried."""
    product = np.zeros(a.shape[0] + b.shape[0] + 1, np.int64)
    for i in range(a.shape[0]):
        if a[i] != 0:
            for j in range(b.shape[0]):
                product[i + j] += a[i] * b[j]
    _carry(product)
    return product


@kernel
def _difference(a: float, b: float, low: int, count: int) -> Digits:
    """The number a - b in units of 2**low, of which both are multiples."""
    digits = np.zeros(count, np.int64)
    for k in range(2):
        mantissa, exponent = math.frexp(a if k == 0 else -b)
        whole = np.int64(math.ldexp(mantissa, _MANTISSA))
        sign = 1 if whole >= 0 else -1
        whole = abs(whole)
        shift = exponent - _MANTISSA - low
        place = shift // _BITS
        while whole != 0:
            digit = (whole & _LOW_DIGIT) << (shift % _BITS)
            digits[place] += sign * (digit & _LOW_DIGIT)
            digits[place + 1] += sign * (digit >> _BITS)
            whole >>= _BITS
            place += 1
    _carry(digits)
    return digits


@kernel
def _reach(numbers: tuple[float, ...]) -> tuple[int, int]:
    """The power of two that all numbers are multiples of, and how many digits their differences have at most."""
    low = 2000
    high = -2000
    for number in numbers:
        if number != 0.0:
            exponent = math.frexp(number)[1]
            low = min(low, exponent - _MANTISSA)
            high = max(high, exponent)
    return low, max(high - low, 0) // _BITS + 4


@kernel
def _points_exactly(ax: float, ay: float, px: float, py: float, d: float) -> bool:
    low, count = _reach((ax, ay, px, py, d))
    x, y = _difference(px, ax, low, count), _difference(py, ay, low, count)
    length = _difference(d, 0.0, low, count)
    return _sign(_product(x, x) + _product(y, y) - _product(length, length)) <= 0


@kernel
def _segment_exactly(ax: float, ay: float, bx: float, by: float, px: float, py: float, d: float) -> bool:
    low, count = _reach((ax, ay, bx, by, px, py, d))
    x, y = _difference(bx, ax, low, count), _difference(by, ay, low, count)
    from_ax, from_ay = _difference(px, ax, low, count), _difference(py, ay, low, count)
    if _sign(_product(from_ax, x) + _product(from_ay, y)) <= 0:
        return _points_exactly(ax, ay, px, py, d)
    if _sign(_product(_difference(px, bx, low, count), x) + _product(_difference(py, by, low, count), y)) >= 0:
        return _points_exactly(bx, by, px, py, d)
    area = _product(x, from_ay) - _product(y, from_ax)
    _carry(area)
    length = _difference(d, 0.0, low, count)
    squares = _product(x, x) + _product(y, y)
    _carry(squares)
    left = _product(area, area)
    right = _product(_product(length, length), squares)
    total = np.zeros(max(left.shape[0], right.shape[0]) + 1, np.int64)
    total[: left.shape[0]] += left
    total[: right.shape[0]] -= right
    return _sign(total) <= 0


@kernel
def points_within(ax: float, ay: float, px: float, py: float, d: float) -> bool:
    """Whether two points are at most d apart. Exact."""
    x, y = px - ax, py - ay
    squares = x * x + y * y
    limit = d * d
    if squares < limit - limit * _ERROR:
        return True
    if squares > limit + limit * _ERROR:
        return False
    return _points_exactly(ax, ay, px, py, d)


@kernel
def segment_within(ax: float, ay: float, bx: float, by: float, px: float, py: float, d: float) -> bool:
    """Whether a point p is at most d away from the segment ab, whose ends may be the same. Exact."""
    x, y = bx - ax, by - ay
    from_ax, from_ay = px - ax, py - ay
    u, v = from_ax * x, from_ay * y
    if u + v <= -_ERROR * (abs(u) + abs(v)):
        return points_within(ax, ay, px, py, d)
    before = u + v > _ERROR * (abs(u) + abs(v))
    u, v = (px - bx) * x, (py - by) * y
    if u + v >= _ERROR * (abs(u) + abs(v)):
        return points_within(bx, by, px, py, d)
    if before and u + v < -_ERROR * (abs(u) + abs(v)):
        u, v = x * from_ay, y * from_ax
        area, error = abs(u - v), _ERROR * (abs(u) + abs(v))
        limit = d * math.sqrt(x * x + y * y)
        if area + error < limit - limit * _ERROR:
            return True
        if area - error > limit + limit * _ERROR:
            return False
    return _segment_exactly(ax, ay, bx, by, px, py, d)
