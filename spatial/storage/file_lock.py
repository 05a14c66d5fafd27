"""A file that one process holds at a time, until it ends or closes it: advisory, as `flock` has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.errors import ContradaError

if TYPE_CHECKING:
    from typing import IO


def take_lock(file: int | IO[str], *, shared: bool = False, wait: bool = False) -> None:
    """Take the lock of an open file, alone or shared with others; `BlockingIOError` when it is taken, unless one waits.

    Whoever has opened a file by itself is another holder, also in this process.
    """
    try:
        import fcntl  # not everywhere: only who writes where others may write needs it
    except ImportError:
        raise ContradaError(
            "this system has no file locks (flock), so that two processes could write the same files: "
            "recording and building indexes work on Linux and other Unix systems"
        ) from None
    fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
