"""Lines of text files, which tasks read by themselves, packed or not.

Spark reads such files too; but it passes over names that begin with _ or ., takes others for patterns, and fails a job
at a damaged packed file without saying which it was. A packed file is unpacked to its end before a line of it is given:
what was read of half a file is not mistaken for the whole. Of one that is not, several tasks may read a range of bytes
each: a line belongs to the range that it begins in.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from contrada.errors import CorruptFile
from contrada.forwarding.stores.addresses import name_of
from contrada.spark_jobs.common.errors import damage_as
from contrada.spark_jobs.stores.shared_files import open_binary, size_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_CODECS: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
PACKED: Final = tuple(_CODECS)
_BLOCK: Final = 1 << 20


def is_packed(address: str) -> bool:
    """Whether the name says that a file is packed."""
    return _suffix(address) in _CODECS


def _suffix(address: str) -> str:
    return PurePosixPath(name_of(address)).suffix


def read_lines(path: str, start: int = 0, stop: int = 0, *, whole: bool = False) -> Iterator[pa.Array]:
    """The lines of a file as arrays of bytes, or all of it as one; `CorruptFile` before any if it is damaged.

    With `stop`, of a file that is not packed, the lines that begin from byte `start` on and before it. Lines are as
    Spark has them: without their ends, which are CR, LF or both.
    """
    packed = is_packed(path)
    with damage_as(path, lambda error: CorruptFile(f"cut or damaged, not a whole {_suffix(path)} file: {error}")):
        if packed:
            for _ in _unpacked(path):
                pass
        if whole:
            yield pa.array([b"".join(_unpacked(path) if packed else _blocks(path))], pa.binary())
        elif packed:
            yield from _packed_lines(path)
        else:
            yield from _lines(path, start, stop or size_of(path))


def _lines(path: str, start: int, stop: int) -> Iterator[pa.Array]:
    with open_binary(path) as file:
        if start:
            file.seek(start - 1)
            file.readline()  # it began before
        while (at := file.tell()) < stop:
            limit = min(_BLOCK, stop - at)  # all lines that begin in so many bytes: until there are more than one less
            some = file.readlines(limit - 1) if limit > 1 else [file.readline()]
            if not some:
                return
            yield pa.array(b"".join(some).splitlines(), pa.binary())


def _blocks(path: str) -> Iterator[bytes]:
    with open_binary(path) as file:
        while block := file.read(_BLOCK):
            yield block


def _unpacked(path: str) -> Iterator[bytes]:
    if not size_of(path):
        return
    with open_binary(path) as packed, pa.input_stream(packed, compression=_CODECS[_suffix(path)]) as file:
        while block := file.read(_BLOCK):
            yield block


def _packed_lines(path: str) -> Iterator[pa.Array]:
    gathered: list[bytes] = []
    for block in _unpacked(path):
        end = block.rfind(b"\n") + 1
        gathered.append(block[:end] if end else block)
        if end:
            yield pa.array(b"".join(gathered).splitlines(), pa.binary())
            gathered = [block[end:]]
    if lines := b"".join(gathered).splitlines():
        yield pa.array(lines, pa.binary())
