"""`contrada warm`: compile what a broker needs, before it is needed."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contrada.client.cli.common import Quiet, teller
from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from contrada.forwarding.warm import Progress

EXAMPLES = (
    "contrada warm",
    "contrada warm --jobs",
    "contrada warm --copy-to kernels",
)
_PERIOD = 5.0  # seconds between two lines


def warm(
    jobs: Annotated[bool, typer.Option("--jobs", help="The kernels of the Spark jobs too.")] = False,
    copy_to: Annotated[Path | None, typer.Option(help="Then copy what a broker needs into this folder.")] = None,
    quiet: Quiet = False,
) -> None:
    """Compile the engine's kernels into this user's cache, on all cores: for images and administrators.

    What is there already is not compiled again. CONTRADA_KERNELS names another folder than the user's cache.
    """
    from contrada.forwarding.warm import compile_on_all_cores
    from contrada.spatial.storage.jit import config
    from contrada.spatial.storage.kernel_cache import is_ours, user_folder

    if config.DISABLE_JIT:
        raise ContradaError("NUMBA_DISABLE_JIT is set: nothing is compiled")
    tell = teller(quiet)
    began = time.monotonic()
    others = []
    if jobs:
        from contrada.spark_jobs.common.session import require_arrow

        require_arrow()
        from contrada.spark_jobs.warm import compile_kernels as compile_for_jobs

        others.append(compile_for_jobs)
    count = compile_on_all_cores(progress_lines(tell), *others)
    if copy_to is not None:
        tell(f"{copy_kernels(copy_to)} kernels copied to {copy_to}")
    took = time.monotonic() - began
    if count and not is_ours(user_folder()):
        raise ContradaError(
            f"{count} kernels compiled, and not kept: {user_folder()} has to be a folder that nobody else can write to"
        )
    tell(f"{count} kernels compiled in {took:.0f} s, kept in {user_folder()}" if count else "everything is compiled")


def copy_kernels(folder: Path) -> int:
    """Copy the kernels that a broker needs into a folder, from wherever they are kept; how many."""
    from contrada.forwarding.warm import compile_kernels
    from contrada.spatial.storage import kernel_cache

    compile_kernels()
    if not all(path.is_file() for path in kernel_cache.used):
        raise ContradaError(f"nothing can be copied: {kernel_cache.user_folder()} cannot be written to")
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    for path in kernel_cache.used:
        if path.parent.resolve() != folder.resolve():
            shutil.copyfile(path, folder / path.name)
    return len(kernel_cache.used)


def progress_lines(tell: Callable[[str], None]) -> Callable[[Progress], None]:
    """Tell how far compiling is in a line every few seconds, the first at once."""
    told = -_PERIOD

    def hear(progress: Progress) -> None:
        nonlocal told
        if progress.seconds - told >= _PERIOD:
            told = progress.seconds
            tell(str(progress))

    return hear
