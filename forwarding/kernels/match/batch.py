"""Batches of attributes or constraints as they cross into kernels, and how a kernel reads them.

    rows    (n, 2)  (name << 8 | operator << 4 | kind, value); the operator is 0 in a notification
    floats  (n,)    values of kind FLOAT point here
    text    bytes   strings, one after another; the value of a STRING row is its length in bytes

An integer, a bool (0 or 1) and a datetime (microseconds) are their own values. A plugged-in value is its number in
the batch, a plugged-in operand `share << 32 | handle` (SHARES of layout.py). A point is `number << 32 | place of x in
floats`, y following. `in` is a row (name, IN, ANY; count) followed by its members as EQ rows.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from contrada.forwarding.kernels.memory.keys import float_key, int_low
from contrada.forwarding.kernels.memory.layout import NUMBER, POINT, Bytes, Floats, Ints
from contrada.spatial.storage.jit import bare_kernel

FLOAT: Final = 15  # of a row only: a number given as a float
_LOW_HALF = (1 << 32) - 1


class Batch(NamedTuple):
    """What a batch is made of; see the module."""

    rows: Ints
    ends: Ints  # rows up to which each notification goes
    floats: Floats
    text: Bytes


@bare_kernel
def read_scalar(kind: int, value: int, floats: Floats) -> tuple[int, int]:
    """Key and low of the value in a row; those of a string and of a plugged-in value are not read here."""
    if kind == NUMBER:
        return float_key(float(value)), int_low(value)
    if kind == FLOAT:
        return float_key(floats[value]), 0
    if kind == POINT:
        at = value & _LOW_HALF
        return float_key(floats[at]), float_key(floats[at + 1])
    return value, 0
