"""The one way kernels are compiled here: kept on disk (`kernel_cache.py`), without the GIL, typed as what they wrap.

Kernels take flat arrays and NamedTuples of arrays, never Python objects. Call a compiled function once
per batch or per notification: entering one with a dozen arrays costs microseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from numba import njit

from contrada.spatial.storage.kernel_cache import KernelCache

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., object]")


# Options that numba's stubs do not know. Without `_nrt` nothing can be allocated and no references are counted; the
# others leave out the entries from C and from Python, which take longer to compile than most of what is entered.
_PLAIN: Final[dict[str, Any]] = {"no_cfunc_wrapper": True}
_BARE: Final[dict[str, Any]] = {"_nrt": False, **_PLAIN}
_INNER: Final[dict[str, Any]] = {"no_cpython_wrapper": True, **_BARE}


def _compile(function: _F, **options: Any) -> _F:
    dispatcher = njit(nogil=True, **options)(function)
    if (
        dispatcher is function
    ):  # NUMBA_DISABLE_JIT: kernels run as Python, in a debugger or on an interpreter to be tried
        return function
    dispatcher._cache = KernelCache(dispatcher.py_func)
    return cast("_F", dispatcher)


def kernel(function: _F) -> _F:
    """Compile lazily, keep the machine code in the kernel cache, and release the GIL while running."""
    return _compile(function, **_PLAIN)


def inline_kernel(function: _F) -> _F:
    """As `kernel`, for small helpers that must be inlined into the loops that call them."""
    return _compile(function, inline="always", **_PLAIN)


def bare_kernel(function: _F) -> _F:
    """As `kernel`, without reference counts: for code that allocates nothing and is called many times per entry.

    Taking an array out of a tuple, or a row out of an array, counts references up and down, atomically; in loops over
    records that is most of the time.
    """
    return _compile(function, **_BARE)


def inner_kernel(function: _F) -> _F:
    """As `bare_kernel`, for what only such kernels call; calling it from Python crashes."""
    return _compile(function, **_INNER)


def inlined_kernel(function: _F) -> _F:
    """As `inner_kernel`, for small helpers that must be inlined into the loops that call them."""
    return _compile(function, inline="always", **_INNER)
