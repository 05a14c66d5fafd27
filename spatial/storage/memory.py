"""Memory that a process has and does not need: given back to the system once its kernels are loaded.

A process that has loaded its kernels has most of LLVM in memory, tens of megabytes of code that was read once, and
holes in the heap from what loading needed. Pages of code are dropped, not lost: they are the library's file, and come
back by themselves if something is compiled later. Only pages that nobody can have written to are touched, those that
are mapped as code. Where the system is not Linux with glibc, nothing is done.
"""

from __future__ import annotations

import ctypes
import gc
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

_MAPPED: Final = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) r-xp \S+ \S+ \S+ +\S*/libllvmlite[^/]*$", re.MULTILINE)
_DONTNEED: Final = 4  # MADV_DONTNEED


def give_back() -> None:
    """Give back what loading kernels has left behind."""
    gc.collect()
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):  # another C library, or no /proc
        libc = ctypes.CDLL(None)
        libc.malloc_trim(0)
        libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for start, end in code_of_llvm():
            libc.madvise(start, end - start, _DONTNEED)


def code_of_llvm() -> list[tuple[int, int]]:
    """Where LLVM's code is mapped in this process."""
    maps = Path("/proc/self/maps").read_text()
    return [(int(start, 16), int(end, 16)) for start, end in _MAPPED.findall(maps)]
