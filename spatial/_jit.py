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
