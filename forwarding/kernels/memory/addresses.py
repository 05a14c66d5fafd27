"""Arrays by their addresses: so that dozens of them cross into compiled code as one.

An array costs a tenth of a microsecond to hand over, and a notification on a small table not much more to match. A
kernel that is entered once per notification is therefore given one array, in which others are rows: the address of
the first element and how many there are along the first axis. Whoever writes such rows sees to it that the arrays are
there, and are where they were, whenever a kernel runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import types
from numba.extending import intrinsic
from numba.np.numpy_support import carray as _carray

from contrada.spatial.storage.jit import inline_kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contrada.forwarding.kernels.memory.layout import Bytes, Floats, Ints


def _pointer_to(element: Any) -> Any:
    def pointer(_typing: Any, address: Any) -> Any:
        """An address as a pointer."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(element)(types.int64), generate  # type: ignore[no-untyped-call]  # numba has no types

    return intrinsic(pointer)


carray: Any = _carray
_to_int: Any = _pointer_to(types.int64)
_to_float: Any = _pointer_to(types.float64)
_to_single: Any = _pointer_to(types.float32)
_to_byte: Any = _pointer_to(types.uint8)


@inline_kernel
def ints_at(where: Ints, row: int) -> Ints:
    """The integers of a row."""
    return carray(_to_int(where[row, 0]), (where[row, 1],))


@inline_kernel
def int_rows_at(where: Ints, row: int, columns: int) -> Ints:
    """The rows of integers, so many in each, of a row."""
    return carray(_to_int(where[row, 0]), (where[row, 1], columns))


@inline_kernel
def int_blocks_at(where: Ints, row: int, rows: int, columns: int) -> Ints:
    """The blocks of so many rows of integers, so many in each, of a row."""
    return carray(_to_int(where[row, 0]), (where[row, 1], rows, columns))


@inline_kernel
def floats_at(where: Ints, row: int) -> Floats:
    """The numbers of a row."""
    return carray(_to_float(where[row, 0]), (where[row, 1],))


@inline_kernel
def float_rows_at(where: Ints, row: int, columns: int) -> Floats:
    """The rows of numbers, so many in each, of a row."""
    return carray(_to_float(where[row, 0]), (where[row, 1], columns))


@inline_kernel
def single_rows_at(where: Ints, row: int, columns: int) -> NDArray[np.float32]:
    """The rows of numbers of single precision, so many in each, of a row."""
    return carray(_to_single(where[row, 0]), (where[row, 1], columns))


@inline_kernel
def box_rows_at(where: Ints, row: int, boxes: int) -> Floats:
    """The rows of boxes, so many in each, of a row."""
    return carray(_to_float(where[row, 0]), (where[row, 1], boxes, 4))


@inline_kernel
def bytes_at(where: Ints, row: int) -> Bytes:
    """The bytes of a row."""
    return carray(_to_byte(where[row, 0]), (where[row, 1],))


def address_of(array: NDArray[Any]) -> tuple[int, int]:
    """What the row of an array says."""
    return array.__array_interface__["data"][0], array.shape[0]
