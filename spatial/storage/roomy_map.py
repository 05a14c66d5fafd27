"""A private mapping of part of a file with zeroed room behind it, so that a loaded array grows without being copied.

    reservation  | pages of the file, copied when written | anonymous pages, zero until touched |
    bytes        0                                        size, rounded up to a page            size + room

Address space is reserved first, unbacked, and the file is then mapped over its beginning (`MAP_FIXED`). Python's own
`mmap` cannot say where a mapping goes, hence `ctypes`. Only on Linux; elsewhere, and wherever the system refuses, the
caller is told to do without.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import weakref
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contrada.spatial.storage.growing import FAILED, system_library

if TYPE_CHECKING:
    from numpy.typing import NDArray

PAGE: Final = mmap.PAGESIZE
_FIXED: Final = 0x10  # of Linux, on every architecture that Python runs on
_NORESERVE: Final = 0x4000


def map_with_room(descriptor: int, offset: int, size: int, room: int) -> NDArray[np.uint8] | None:
    """Map `size` bytes of a file from a page on, and at least `room` zero bytes after their last page.

    What the file holds between `size` and the end of its page should be zero: it is part of what is returned.
    """
    if sys.platform != "linux" or offset % PAGE or size <= 0:
        return None
    libc: Any = system_library()
    kept = -(-size // PAGE) * PAGE
    whole = kept + -(-room // PAGE) * PAGE
    access = mmap.PROT_READ | mmap.PROT_WRITE
    base = libc.mmap(None, whole, access, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE, -1, 0)
    if base in (None, FAILED):
        return None
    if libc.mmap(base, kept, access, mmap.MAP_PRIVATE | _FIXED, descriptor, offset) != base:
        libc.munmap(base, whole)
        return None
    buffer: Any = (ctypes.c_uint8 * whole).from_address(base)
    # When the last array over it is gone. Not at exit: a thread may still be reading, and the system will unmap it.
    weakref.finalize(buffer, libc.munmap, base, whole).atexit = False
    return np.frombuffer(buffer, np.uint8)
