"""Arrays that grow without being copied, so that growing an index never stops whoever uses it.

    longer(array, rows) ─▶ the same rows and zeros behind them, in another place

A large array lies in an anonymous private mapping of its own. To grow it, its pages are moved to a larger mapping
(`mremap`): page tables change, and no data. That takes a millisecond where copying a hundred megabytes takes a hundred.
New memory is zero and costs nothing until it is touched, so room can be generous. The array that was there is to be
used no more: it reads as zeros then (`MREMAP_DONTUNMAP`), which is better than a fault. Small arrays, those mapped from
files (which have room behind them: `roomy_map.py`), and all where the system does not offer this, are copied.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import weakref
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGE: Final = 1 << 20
"""Bytes from which an array has a mapping of its own."""
_MAY_MOVE: Final = 1
_DONT_UNMAP: Final = 4
FAILED: Final = ctypes.c_void_p(-1).value  # what mmap returns instead of an address


class _Memory:
    """An anonymous mapping, which ends with the last array over it."""

    def __init__(self, base: int, size: int) -> None:
        self.base = base
        self.size = size
        self.__array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (base, False), "version": 3}
        # Not at exit: a thread may still be reading, and the system will unmap it.
        weakref.finalize(self, system_library().munmap, base, size).atexit = False


def longer(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """An array of more rows: those of `array`, which is used no more, and zeros."""
    shape = (rows, *array.shape[1:])
    size = int(np.prod(shape)) * array.itemsize
    if size < LARGE or sys.platform != "linux":
        return _copied(array, np.zeros(shape, array.dtype))
    size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = _moved(array, size)
    if memory is not None:
        return _view(memory, array.dtype, shape)
    base = system_library().mmap(
        None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0
    )
    if base in (None, FAILED):
        raise MemoryError(f"no memory for an array of {size} bytes")
    return _copied(array, _view(_Memory(base, size), array.dtype, shape))


def _moved(array: NDArray[Any], size: int) -> _Memory | None:
    """The pages of an array that begins a mapping of ours, in a larger one."""
    memory: Any = array
    while isinstance(memory, np.ndarray):
        memory = memory.base
    if not isinstance(memory, _Memory) or array.ctypes.data != memory.base:
        return None
    # Pages can only be moved as they are, so first as many, then the room behind them.
    moved = system_library().mremap(memory.base, memory.size, memory.size, _MAY_MOVE | _DONT_UNMAP, None)
    if moved in (None, FAILED):
        return None
    base = system_library().mremap(moved, memory.size, size, _MAY_MOVE, None)
    if base in (None, FAILED):
        raise MemoryError(f"no memory for an array of {size} bytes")
    return _Memory(base, size)


def _view(memory: _Memory, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    count = int(np.prod(shape))
    return np.asarray(memory)[: count * dtype.itemsize].view(dtype).reshape(shape)


def _copied(array: NDArray[Any], into: NDArray[Any]) -> NDArray[Any]:
    into[: len(array)] = array
    return into


@cache
def system_library() -> Any:
    """The C library, with the types of what maps memory."""
    libc = ctypes.CDLL(None, use_errno=True)
    address, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    libc.mmap.restype = libc.mremap.restype = address
    libc.mmap.argtypes = (address, size, number, number, number, ctypes.c_long)
    libc.mremap.argtypes = (address, size, size, number, address)
    libc.munmap.argtypes = (address, size)
    return libc
