"""`contrada warm`: compile what a broker needs, before it is needed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from contrada.client.cli.common import Quiet, teller

if TYPE_CHECKING:
    from collections.abc import Callable

    from contrada.forwarding.warm import Progress

EXAMPLES = (
    "contrada warm",
    "contrada warm --jobs",
)
_PERIOD = 5.0  # seconds between two lines


def warm(
    jobs: Annotated[bool, typer.Option("--jobs", help="The kernels of the Spark jobs too.")] = False,
    quiet: Quiet = False,
) -> None:
    """Compile the engine's kernels into this user's cache, on all cores: for images and administrators.

    What is there already is not compiled again. CONTRADA_KERNELS names another folder than the user's cache.
    """
    from contrada.forwarding.warm import compile_on_all_cores
    from contrada.spatial.storage.kernel_cache import user_folder

    tell = teller(quiet)
    began = time.monotonic()
    count = compile_on_all_cores(progress_lines(tell))
    if jobs:
        from contrada.spark_jobs.warm import compile_kernels

        compile_kernels()
    took = time.monotonic() - began
    tell(f"{count} kernels compiled in {took:.0f} s, kept in {user_folder()}" if count else "everything is compiled")


def progress_lines(tell: Callable[[str], None]) -> Callable[[Progress], None]:
    """Tell how far compiling is in a line every few seconds, the first at once."""
    told = -_PERIOD

    def hear(progress: Progress) -> None:
        nonlocal told
        if progress.seconds - told >= _PERIOD:
            told = progress.seconds
            tell(str(progress))

    return hear
