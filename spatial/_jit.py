"""The one way kernels are compiled here: cached on disk, without the GIL, typed as what they wrap.

Kernels take flat arrays and NamedTuples of arrays, never Python objects. Call a compiled function once
per batch or per notification: entering one with a dozen arrays costs microseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., object]")


# Options that numba's stubs do not know. Without `_nrt` nothing can be allocated and no references are counted; the
# others leave out the entries from C and from Python, which take longer to compile than most of what is entered.
_PLAIN: Final[dict[str, Any]] = {"no_cfunc_wrapper": True}
_BARE: Final[dict[str, Any]] = {"_nrt": False, **_PLAIN}
_INNER: Final[dict[str, Any]] = {"no_cpython_wrapper": True, **_BARE}


def kernel(function: _F) -> _F:
    """Compile lazily, cache the machine code beside the source, and release the GIL while running."""
    return cast("_F", njit(cache=True, nogil=True, **_PLAIN)(function))


def inline_kernel(function: _F) -> _F:
    """As `kernel`, for small helpers that must be inlined into the loops that call them."""
    return cast("_F", njit(cache=True, nogil=True, inline="always", **_PLAIN)(function))


def bare_kernel(function: _F) -> _F:
    """As `kernel`, without reference counts: for code that allocates nothing and is called many times per entry.

    Taking an array out of a tuple, or a row out of an array, counts references up and down, atomically; in loops over
    records that is most of the time.
    """
    return cast("_F", njit(cache=True, nogil=True, **_BARE)(function))


def inner_kernel(function: _F) -> _F:
    """As `bare_kernel`, for what only such kernels call; calling it from Python crashes."""
    return cast("_F", njit(cache=True, nogil=True, **_INNER)(function))


def inlined_kernel(function: _F) -> _F:
    """As `inner_kernel`, for small helpers that must be inlined into the loops that call them."""
    return cast("_F", njit(cache=True, nogil=True, inline="always", **_INNER)(function))
