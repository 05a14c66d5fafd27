"""The one way kernels are compiled here: kept on disk (`kernel_cache.py`), without the GIL, typed as what they wrap.

Kernels take flat arrays and NamedTuples of arrays, never Python objects. Call a compiled function once
per batch or per notification: entering one with a dozen arrays costs microseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from numba.core import config as _config

from contrada.spatial.storage.compiler import KernelDispatcher
from contrada.spatial.storage.processor import choose_processor

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., object]")

choose_processor()  # before a kernel is made

config: Any = _config  # numba's stubs know no settings

# Options that numba's stubs do not know. Without `_nrt` nothing can be allocated and no references are counted.
_BARE: Final[dict[str, Any]] = {"_nrt": False}


def _compile(function: _F, **options: Any) -> _F:
    if config.DISABLE_JIT:  # kernels run as Python, in a debugger or on an interpreter to be tried
        return function
    return cast("_F", KernelDispatcher(function, {"nogil": True, **options}))


def kernel(function: _F) -> _F:
    """Compile lazily, keep the machine code in the kernel cache, and release the GIL while running."""
    return _compile(function)


def inline_kernel(function: _F) -> _F:
    """As `kernel`, for small helpers that must be inlined into the loops that call them."""
    return _compile(function, forceinline=True)


def bare_kernel(function: _F) -> _F:
    """As `kernel`, without reference counts: for code that allocates nothing and is called many times per entry.

    Taking an array out of a tuple, or a row out of an array, counts references up and down, atomically; in loops over
    records that is most of the time.
    """
    return _compile(function, **_BARE)


def bare_inline_kernel(function: _F) -> _F:
    """As `bare_kernel`, for small helpers that must be inlined into the loops that call them."""
    return _compile(function, forceinline=True, **_BARE)
