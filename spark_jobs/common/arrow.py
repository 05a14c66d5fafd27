"""Arrow columns as numpy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contrada.forwarding.batches.columns import Text

if TYPE_CHECKING:
    from numpy.typing import NDArray


def numbers_of(cells: pa.Array) -> NDArray[Any]:
    """The values of a column of numbers, whatever stands where there is none."""
    if cells.null_count:
        cells = pc.fill_null(cells, 0)
    numbers: NDArray[Any] = cells.to_numpy(zero_copy_only=False)
    return numbers


def mask_of(cells: pa.Array) -> NDArray[np.bool_]:
    """A column of booleans; null is false."""
    mask: NDArray[np.bool_] = pc.fill_null(cells, False).to_numpy(zero_copy_only=False)
    return mask


def text_of(cells: pa.StringArray) -> Text:
    """The bytes of a column of strings, without copying them."""
    _, offsets, data = cells.buffers()
    ends = np.frombuffer(offsets, np.int32)[cells.offset : cells.offset + len(cells) + 1].astype(np.int64)
    return Text(ends, np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8))


def columns(**arrays: Any) -> pa.Table:
    """Arrays of equal length as a table."""
    return pa.table({name: pa.array(array) for name, array in arrays.items()})
