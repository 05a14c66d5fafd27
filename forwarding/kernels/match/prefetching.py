"""Asking for memory before it is needed: rows that a loop is about to visit, in an order that no processor foresees."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

_READ, _KEEP, _DATA = 0, 3, 1  # what llvm.prefetch is told


def _prefetch(_typing: Any, array: Any, _row: Any) -> Any:
    """Begin to load the first words of a row of an array. A row that is not there does no harm."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = make_array(signature.args[0])(context, builder, arguments[0])  # type: ignore[no-untyped-call]  # numba has no types
        byte, whole = ir.IntType(8), ir.IntType(32)
        offset = builder.mul(builder.extract_value(rows.strides, 0), arguments[1])
        place = builder.gep(builder.bitcast(rows.data, byte.as_pointer()), [offset])
        kind = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), whole, whole, whole])
        instruction = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]  # nor here
        builder.call(instruction, [place, whole(_READ), whole(_KEEP), whole(_DATA)])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


prefetch: Any = intrinsic(_prefetch)
