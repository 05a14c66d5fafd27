"""Python's collector of cycles, out of the way of those who make many objects and no cycles."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def no_collection() -> Iterator[None]:
    """Do not look for cycles inside the block: with many objects that live on, looking takes as long as making them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def freeze() -> None:
    """Take what is alive now out of the collector's sight: modules, kernels, an open index.

    A worker process of Spark looks for cycles after every task, which takes as long as there are objects: with numba
    loaded, longer than all else that a short task does.
    """
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
