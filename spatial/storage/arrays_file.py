"""One file of named arrays, memory-mapped on load: what every index is saved as.

Layout, little-endian, arrays aligned to 64 bytes, from 64 KiB on to pages of 4 KiB:

    0   8 bytes   magic  b"CONTRADA"
    8   uint32    format version of this container
    12  uint32    length of the header in bytes
    16  uint32    CRC-32 of the header
    20  uint32    zero
    24  header    JSON: {"kind", "version", "size", "meta", "arrays": {name: [dtype, shape, offset, crc32]}}
    ... padding, then each array's bytes at its offset

`kind` names what the arrays are ("cr-tree", "forwarding-table", ...) and `version` its layout, so that a file
of another kind or a later version is told apart from a damaged one. `size` is the size of the whole file: a
truncated copy is refused before anything is mapped. A file is written beside its target and moved into place,
so a reader never sees half of one.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
import zlib
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from contrada.errors import CorruptFile, InvalidValue, UnwritableFile, shown
from contrada.spatial.storage.regular_file import open_regular
from contrada.spatial.storage.roomy_map import map_with_room

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[Any]]

MAGIC = b"CONTRADA"
FORMAT = 1
_PREFIX = 24
_ALIGN = 64
_PAGE = 4096
_LARGE = 1 << 16  # bytes from which on an array has pages of its own, so that it can be mapped by itself
_MAX_HEADER = 64 << 20
_MOST_AXES = 4
_PART = 4 << 20  # bytes that are verified at a time
_CRC_DIGITS = len(str(2**32 - 1))
_NUMBERS = "biufcmM"  # kinds of arrays without references
_ROOM = 256 << 20  # bytes of address space that a growing array is given besides four times its size


def _align(offset: int, to: int = _ALIGN) -> int:
    return (offset + to - 1) // to * to


def _crc(array: NDArray[Any]) -> int:
    return zlib.crc32(array.reshape(-1).view(np.uint8).data) if array.size else 0


def save_arrays(
    path: str | os.PathLike[str],
    *,
    kind: str,
    version: int,
    arrays: Mapping[str, NDArray[Any]],
    meta: Mapping[str, Any] | None = None,
) -> None:
    """Write `arrays` and JSON-able `meta` to `path`, atomically. Object arrays are refused."""
    path = as_path(path)
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"array {name!r} holds Python objects; only plain numbers can be stored")
    packed = {name: np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C") for name, array in arrays.items()}
    # Offsets are part of the header and depend on its length, so they are relative to the first array.
    directory: dict[str, list[Any]] = {}
    end = 0
    for name, array in packed.items():
        alignment = _PAGE if array.nbytes >= _LARGE else _ALIGN
        start = _align(end, alignment)
        directory[name] = [array.dtype.str, list(array.shape), start, _crc(array)]
        end = _align(start + array.nbytes, alignment)
    header = json.dumps(
        {"kind": kind, "version": version, "size": end, "meta": dict(meta or {}), "arrays": directory}
    ).encode()
    # As long as it would be with the longest checksums: files of one shape have one size, whatever they hold.
    header += b" " * sum(_CRC_DIGITS - len(str(entry[3])) for entry in directory.values())
    if any(array.nbytes >= _LARGE for array in packed.values()):
        header += b" " * (-(_PREFIX + len(header)) % _PAGE)  # which JSON does not mind
    first = _align(_PREFIX + len(header))
    prefix = MAGIC + np.array([FORMAT, len(header), zlib.crc32(header), 0], dtype="<u4").tobytes()
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(prefix + header)
                for name, array in packed.items():
                    file.seek(first + directory[name][2])
                    file.write(array.reshape(-1).view(np.uint8).data)
                file.truncate(first + end)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)  # noqa: PTH101  # mkstemp made it private; indexes are shared between users
            os.replace(temporary, path)  # noqa: PTH105  # mkstemp gave a name, not a Path
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:  # the system would name the temporary file, which nobody has heard of
        raise UnwritableFile(f"{path}: cannot be written: {error.strerror or error}") from error


def as_path(path: str | os.PathLike[str]) -> Path:
    """Return the path; `InvalidValue` for what is none."""
    try:
        given = os.fspath(path)
    except TypeError:
        raise InvalidValue(f"a path is a string or a Path, not {type(path).__name__}") from None
    try:
        if given and b"\0" not in os.fsencode(given):
            return Path(os.fsdecode(given))
    except UnicodeEncodeError:
        pass
    raise InvalidValue(f"{given!r} is not a path")


def load_arrays(
    path: str | os.PathLike[str],
    *,
    kind: str,
    version: int,
    oldest: int | None = None,
    verify: bool = True,
    growing: Collection[str] = (),
) -> tuple[Arrays, dict[str, Any]]:
    """Map the arrays of `path` copy-on-write and return them with the metadata.

    Layouts from `oldest` to `version` are taken, by default that one alone.

    Arrays named in `growing` may come with more rows than were saved, all zero: room for as many again and more, which
    takes no memory until it is used (roomy_map.py).

    With `verify` every byte is checked against its CRC-32, at about a gigabyte per second; without it, only the
    header and the file's size are. Raises `CorruptFile` for anything that `save_arrays` did not write whole.
    """
    path = as_path(path)
    try:
        # One opening for all of it: the file may be replaced meanwhile.
        with open_regular(path) as file:
            header, first = _read_header(file, path)
            if header["kind"] != kind:
                raise CorruptFile(f"{path}: holds a {header['kind']}, not a {kind}")
            if not (version if oldest is None else oldest) <= header["version"] <= version:
                taken = f"{version}" if oldest is None else f"{oldest} to {version}"
                raise CorruptFile(f"{path}: {kind} layout {header['version']}, this version reads {taken}")
            whole = _map(file, first + header["size"])
            arrays: Arrays = {}
            for name, (kind_of, shape, offset, crc) in _directory(header, path).items():
                count = prod(shape)
                size = count * kind_of.itemsize
                start = first + offset
                roomy = None
                if name in growing and size >= _LARGE:
                    roomy = map_with_room(file.fileno(), start, size, 4 * size + _ROOM)
                raw = whole[start : start + size] if roomy is None else roomy[:size]
                if verify and count and zlib.crc32(raw.data) != crc:
                    raise CorruptFile(f"{path}: array {name!r} is damaged (checksum)")
                if roomy is not None:
                    rows = roomy.size // (size // shape[0])
                    arrays[name] = roomy[: rows * (size // shape[0])].view(kind_of).reshape((rows, *shape[1:]))
                else:
                    arrays[name] = raw.view(kind_of).reshape(shape) if count else np.empty(shape, kind_of)
    except OSError as error:
        raise CorruptFile(f"{path}: cannot be read: {error.strerror or error}") from error
    return arrays, header["meta"]


def verify_arrays(path: str | os.PathLike[str]) -> None:
    """Check every byte of a file's arrays against its CRC-32, as they are on disk; `CorruptFile` for the first wrong.

    For what was loaded without, beside the work: reading and checking leave the interpreter to others. A file that is
    no longer there is a FileNotFoundError.
    """
    path = as_path(path)
    try:
        with open_regular(path) as file:
            header, first = _read_header(file, path)
            for name, (dtype, shape, offset, crc) in _directory(header, path).items():
                file.seek(first + offset)
                left, found = prod(shape) * dtype.itemsize, 0
                while left:
                    part = file.read(min(left, _PART))
                    if not part:
                        raise CorruptFile(f"{path}: array {name!r} is cut short")
                    found = zlib.crc32(part, found)
                    left -= len(part)
                if prod(shape) and found != crc:
                    raise CorruptFile(f"{path}: array {name!r} is damaged (checksum)")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CorruptFile(f"{path}: cannot be read: {error.strerror or error}") from error


def _read_header(file: BinaryIO, path: Path) -> tuple[dict[str, Any], int]:
    """Return the header, checked, and where the first array begins."""
    prefix = file.read(_PREFIX)
    if prefix[:8] != MAGIC or len(prefix) < _PREFIX:
        raise CorruptFile(f"{path}: not a Contrada file (no magic number)")
    form, length, checksum, _ = (int(v) for v in np.frombuffer(prefix, dtype="<u4", offset=8))
    if form != FORMAT:
        raise CorruptFile(f"{path}: container format {form}, this version reads {FORMAT}")
    header_bytes = file.read(min(length, _MAX_HEADER))
    if len(header_bytes) != length or zlib.crc32(header_bytes) != checksum:
        raise CorruptFile(f"{path}: truncated or damaged header")
    try:
        header = json.loads(header_bytes)
    except (ValueError, RecursionError):
        raise CorruptFile(f"{path}: a header that is not JSON") from None
    expected = {"kind": str, "version": int, "size": int, "meta": dict, "arrays": dict}
    if not isinstance(header, dict) or any(type(header.get(name)) is not kind for name, kind in expected.items()):
        raise CorruptFile(f"{path}: a header without what every file says of itself")
    first = _align(_PREFIX + length)
    total = os.fstat(file.fileno()).st_size
    if total != first + header["size"]:
        raise CorruptFile(f"{path}: {total} bytes where {first + header['size']} were written: truncated or damaged")
    return header, first


def _directory(header: dict[str, Any], path: Path) -> dict[str, tuple[np.dtype[Any], tuple[int, ...], int, int]]:
    """Type, shape, offset and checksum of each array; every one of plain numbers, and within the file."""
    found: dict[str, tuple[np.dtype[Any], tuple[int, ...], int, int]] = {}
    for name, said in header["arrays"].items():
        try:
            given, sizes, offset, crc = said
            dtype = np.dtype(given) if isinstance(given, str) else None
            shape = tuple(sizes)
            whole = all(type(each) is int and each >= 0 for each in (*shape, offset, crc)) and len(shape) <= _MOST_AXES
        except (TypeError, ValueError):
            dtype, whole = None, False
        if (
            dtype is None
            or dtype.kind not in _NUMBERS
            or not whole
            or offset + prod(shape) * dtype.itemsize > header["size"]
        ):
            raise CorruptFile(f"{path}: array {name!r} cannot be as the header says: {shown(said)}")
        if offset % _ALIGN:  # compiled code counts on it
            raise CorruptFile(f"{path}: array {name!r} begins at byte {offset}, not at a multiple of {_ALIGN}")
        found[name] = dtype, shape, offset, crc
    return found


def _map(file: BinaryIO, size: int) -> NDArray[np.uint8]:
    if not size:
        return np.empty(0, np.uint8)
    return np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY), np.uint8)
