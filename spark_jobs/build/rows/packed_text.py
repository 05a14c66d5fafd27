"""Packed files of text, which tasks read by themselves: one that is cut or damaged is then set aside by its name.

Spark reads such files too, each in one task since none can be read from the middle; but it fails the job at a damaged
one without saying which it was. A file is unpacked to its end before a line of it is given: what was read of half a
file is not mistaken for the whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from contrada.errors import CorruptFile
from contrada.spark_jobs.common.failing import OutOfReach, is_damage

if TYPE_CHECKING:
    from collections.abc import Iterator

_CODECS: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
PACKED: Final = tuple(_CODECS)
_BLOCK: Final = 1 << 20


def is_packed(file: Path) -> bool:
    """Whether the name says that a file is packed."""
    return file.suffix in _CODECS


def read_packed(path: str, *, whole: bool = False) -> Iterator[pa.Array]:
    """The lines of a file as arrays of bytes, or all of it as one; `CorruptFile` before any if it is damaged."""
    try:
        for _ in _blocks(path):
            pass
        yield from _whole(path) if whole else _lines(path)
    except (pa.ArrowException, OSError, EOFError) as error:
        if isinstance(error, OSError) and not is_damage(error):
            raise OutOfReach(path, error) from error
        raise CorruptFile(f"cut or damaged, not a whole {Path(path).suffix} file: {error}") from error


def _blocks(path: str) -> Iterator[bytes]:
    if not Path(path).stat().st_size:
        return
    with pa.input_stream(path, compression=_CODECS[Path(path).suffix]) as file:
        while block := file.read(_BLOCK):
            yield block


def _whole(path: str) -> Iterator[pa.Array]:
    yield pa.array([b"".join(_blocks(path))], pa.binary())


def _lines(path: str) -> Iterator[pa.Array]:
    """Lines as Spark has them: without their ends, which are CR, LF or both."""
    held: list[bytes] = []
    for block in _blocks(path):
        end = block.rfind(b"\n") + 1
        held.append(block[:end] if end else block)
        if end:
            yield pa.array(b"".join(held).splitlines(), pa.binary())
            held = [block[end:]]
    if lines := b"".join(held).splitlines():
        yield pa.array(lines, pa.binary())
