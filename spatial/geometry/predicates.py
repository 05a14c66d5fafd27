"""Orientation of three points, decided exactly.

`orient` is the only arithmetic that exact relations rest on: everything else compares coordinates. It is Shewchuk's
scheme (Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric Predicates, 1997) in three steps:

1. the determinant in plain doubles, accepted when it exceeds its own error bound;
2. if the coordinate differences are exact (always so on grids and for points close together), the two products
   are compared exactly, which settles the common degenerate cases without an expansion;
3. otherwise all six products, each as a sum of two doubles, are added into an expansion whose largest
   component carries the sign.

Steps 2 and 3 need every product of two coordinates to be free of overflow and underflow, which holds for
coordinates that are 0 or between `MIN_MAGNITUDE` and `MAX_MAGNITUDE`; `Region` and `Point` refuse any other.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from contrada.spatial.storage.jit import kernel

MIN_MAGNITUDE: Final = 1e-100
MAX_MAGNITUDE: Final = 1e100

_EPSILON: Final = 2.0**-53
_ERROR_BOUND: Final = (3.0 + 16.0 * _EPSILON) * _EPSILON
_SPLITTER: Final = 2.0**27 + 1.0


@kernel
def _product_error(a: float, b: float, product: float) -> float:
    """Return a·b - product, exactly (Dekker), where product is a·b rounded."""
    c = _SPLITTER * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = _SPLITTER * b
    b_high = c - (c - b)
    b_low = b - b_high
    return a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


@kernel
def _difference_error(a: float, b: float, difference: float) -> float:
    """Return a - b - difference, exactly (Knuth), where difference is a - b rounded."""
    b_virtual = a - difference
    a_virtual = difference + b_virtual
    return (a - a_virtual) + (b_virtual - b)


@kernel
def _orient_by_expansion(ax: float, ay: float, bx: float, by: float, cx: float, cy: float) -> int:
    """Sign of ax·by - ay·bx + bx·cy - by·cx + cx·ay - cy·ax, from the exact sum of the six products."""
    left = (ax, -ay, bx, -by, cx, -cy)
    right = (by, bx, cy, cx, ay, ax)
    expansion = np.zeros(12)
    size = 0
    for k in range(6):
        product = left[k] * right[k]
        for term in (_product_error(left[k], right[k], product), product):
            total = term
            for i in range(size):
                old = expansion[i]
                rounded = total + old
                virtual = rounded - total
                expansion[i] = (total - (rounded - virtual)) + (old - virtual)
                total = rounded
            expansion[size] = total
            size += 1
    for i in range(size - 1, -1, -1):
        if expansion[i] > 0.0:
            return 1
        if expansion[i] < 0.0:
            return -1
    return 0


@kernel
def orient(ax: float, ay: float, bx: float, by: float, cx: float, cy: float) -> int:
    """Return +1 when a, b, c turn left, -1 when they turn right, 0 when they lie on one line. Exact."""
    acx = ax - cx
    acy = ay - cy
    bcx = bx - cx
    bcy = by - cy
    left = acx * bcy
    right = acy * bcx
    determinant = left - right
    bound = _ERROR_BOUND * (abs(left) + abs(right))
    if determinant > bound:
        return 1
    if -determinant > bound:
        return -1
    if (
        _difference_error(ax, cx, acx) != 0.0
        or _difference_error(ay, cy, acy) != 0.0
        or _difference_error(bx, cx, bcx) != 0.0
        or _difference_error(by, cy, bcy) != 0.0
    ):
        return _orient_by_expansion(ax, ay, bx, by, cx, cy)
    if left != right:  # rounding is monotonic: unequal rounded products are in the order of the exact ones
        return 1 if left > right else -1
    left_error = _product_error(acx, bcy, left)
    right_error = _product_error(acy, bcx, right)
    if left_error == right_error:
        return 0
    return 1 if left_error > right_error else -1
