"""The one way kernels are compiled here: cached on disk, without the GIL, typed as what they wrap.

Kernels take flat arrays and NamedTuples of arrays, never Python objects. Call a compiled function once
per batch or per notification: entering one with a dozen arrays costs microseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable

_F = TypeVar("_F", bound="Callable[..., object]")


def kernel(function: _F) -> _F:
    """Compile lazily, cache the machine code beside the source, and release the GIL while running."""
    return cast("_F", njit(cache=True, nogil=True)(function))


def inline_kernel(function: _F) -> _F:
    """As `kernel`, for small helpers that must be inlined into the loops that call them."""
    return cast("_F", njit(cache=True, nogil=True, inline="always")(function))


def bare_kernel(function: _F) -> _F:
    """As `kernel`, without reference counts: for code that allocates nothing and is called many times per entry.

    Taking an array out of a tuple, or a row out of an array, counts references up and down, atomically; in loops over
    records that is most of the time.
    """
    return cast("_F", njit(cache=True, nogil=True, _nrt=False)(function))


def inner_kernel(function: _F) -> _F:
    """As `bare_kernel`, for what only kernels call: without the entry from Python, which takes long to compile."""
    bare = njit(cache=True, nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    return cast("_F", bare(function))


def inlined_kernel(function: _F) -> _F:
    """As `inner_kernel`, for small helpers that must be inlined into the loops that call them."""
    bare = njit(cache=True, nogil=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True, inline="always")
    return cast("_F", bare(function))
