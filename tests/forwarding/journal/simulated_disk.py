"""A disk that forgets what was not synced, tears what it writes, fails and lies; a seed tells when and how.

    visible      what programs read: every write, create and remove so far
    pending      what was done since the last sync of a file, or of a directory
    on disk      what a power cut leaves: what was synced, and of what is pending any part of it

Killing the process loses nothing; a power cut leaves, of each pending write, nothing, all of it, or some of its
sectors, in any combination, and of each pending name the state before or after. After a failed sync what was pending
is neither on disk nor pending any more, though it can still be read: the next sync says that all is well.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from random import Random

SECTOR = 64  # small as the tests' files are


class Crash(BaseException):
    """The process is no more. Not an `Exception`: nobody catches it."""


@dataclass
class Inode:
    """A file: what is seen of it, what is on disk of it, and the writes in between."""

    seen: bytearray = field(default_factory=bytearray)
    stored: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)  # offset and data; no data: cut there
    last_write: int = 0  # where the latest began


@dataclass
class Folder:
    """A directory: names as they are seen, as they are on disk, and the changes in between."""

    seen: dict[str, Inode | Folder] = field(default_factory=dict)
    stored: dict[str, Inode | Folder] = field(default_factory=dict)
    pending: list[tuple[str, Inode | Folder | None]] = field(default_factory=list)

    def change(self, name: str, node: Inode | Folder | None) -> None:
        """A name comes, or goes."""
        if node is None:
            del self.seen[name]
        else:
            self.seen[name] = node
        self.pending.append((name, node))


def apply(content: bytearray, offset: int, data: bytes | None) -> None:
    """Write into a file, or cut it."""
    if data is None:
        del content[offset:]
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


class SimulatedDisk:
    """Implements `Disk`. `crash_in` operations from now the process ends; `fault` may make an operation fail."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.root = Folder()
        self.crash_in: int | None = None
        self.operations = 0
        self.syncs = 0
        self.write_error = 0  # an errno, for each write until it is taken back
        self.sync_error = 0
        self.unreadable: set[tuple[int, int]] = set()  # (id of the inode, page) that give EIO
        self.during_sync: Callable[[], None] | None = None
        self._dead = False
        self._files: dict[int, Inode] = {}
        self._locked: dict[int, Path] = {}
        self._number = 2

    # -- the protocol ---------------------------------------------------------------------------------------

    def exists(self, path: Path) -> bool:
        try:
            return isinstance(self._node(path), Folder)
        except FileNotFoundError:
            return False

    def make_directory(self, path: Path) -> None:
        self._step()
        self._folder(path.parent).change(path.name, Folder())

    def names(self, path: Path) -> Sequence[str]:
        self._step()
        return list(self._folder(path).seen)

    def lock(self, path: Path) -> int:
        self._step()
        if path in self._locked.values():
            raise BlockingIOError(errno.EWOULDBLOCK, "locked")
        number = self._open(Inode())
        self._locked[number] = path
        return number

    def create(self, path: Path) -> int:
        self._step()
        folder = self._folder(path.parent)
        if path.name in folder.seen:
            raise FileExistsError(errno.EEXIST, "exists", str(path))
        if self.write_error and self.random.random() < 0.3:
            raise OSError(self.write_error, os.strerror(self.write_error))
        node = Inode()
        folder.change(path.name, node)
        self._step()
        return self._open(node)

    def open(self, path: Path) -> int:
        self._step()
        node = self._node(path)
        assert isinstance(node, Inode)
        return self._open(node)

    def size(self, file: int) -> int:
        return len(self._files[file].seen)

    def read(self, file: int, offset: int, length: int) -> bytes:
        self._alive()
        node = self._files[file]
        pages = range(offset // 4096, (offset + max(length, 1) - 1) // 4096 + 1)
        if any((id(node), page) in self.unreadable for page in pages):
            raise OSError(errno.EIO, "Input/output error")
        return bytes(node.seen[offset : offset + length])

    def write(self, file: int, offset: int, data: bytes) -> None:
        node = self._files[file]
        node.last_write = offset
        if self._crashes():
            self._write(node, offset, data[: self.random.randrange(len(data) + 1)])
            self._die()
        if self.write_error:
            self._write(node, offset, data[: self.random.choice((0, len(data), self.random.randrange(len(data) + 1)))])
            raise OSError(self.write_error, os.strerror(self.write_error))
        self._write(node, offset, data)
        self._step()

    def truncate(self, path: Path, size: int) -> None:
        self._step()
        node = self._node(path)
        assert isinstance(node, Inode)
        self._write(node, size, None)

    def sync(self, file: int) -> None:
        self._step()
        self.syncs += 1
        node = self._files[file]
        during, self.during_sync = self.during_sync, None
        if during is not None:
            during()
        if self.sync_error:
            self._store_some(node)
            raise OSError(self.sync_error, os.strerror(self.sync_error))
        node.stored[:] = node.seen if not node.pending else self._stored(node)
        node.pending.clear()
        self._step()

    def sync_directory(self, path: Path) -> None:
        self._step()
        self.syncs += 1
        folder = self._folder(path)
        if self.sync_error:
            raise OSError(self.sync_error, os.strerror(self.sync_error))
        folder.stored = dict(folder.seen)
        folder.pending.clear()
        self._step()

    def remove(self, path: Path) -> None:
        self._step()
        self._folder(path.parent).change(path.name, None)
        self._step()

    def close(self, file: int) -> None:
        self._files.pop(file)
        self._locked.pop(file, None)

    # -- what happens to it ---------------------------------------------------------------------------------

    def kill(self) -> None:
        """End the process; the system goes on."""
        self.heal()
        self._dead = False
        self._files.clear()
        self._locked.clear()
        self.during_sync = None

    def heal(self) -> None:
        """Let nothing more go wrong by itself."""
        self.crash_in = None
        self.write_error = self.sync_error = 0

    def cut_power(self) -> None:
        """End everything; then start again from what the disk has."""
        self.kill()
        self._forget(self.root)

    def files(self, path: Path) -> dict[str, Inode]:
        """The files of a directory, by name."""
        found = sorted(self._folder(path).seen.items())
        return {name: node for name, node in found if isinstance(node, Inode)}

    # -- inside ---------------------------------------------------------------------------------------------

    def _node(self, path: Path) -> Inode | Folder:
        self._alive()
        node: Inode | Folder = self.root
        for part in path.parts[1:]:
            if not isinstance(node, Folder) or part not in node.seen:
                raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
            node = node.seen[part]
        return node

    def _folder(self, path: Path) -> Folder:
        node = self._node(path)
        if not isinstance(node, Folder):
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", str(path))
        return node

    def _open(self, node: Inode) -> int:
        self._number += 1
        self._files[self._number] = node
        return self._number

    def _alive(self) -> None:
        if self._dead:
            raise Crash

    def _crashes(self) -> bool:
        self._alive()
        self.operations += 1
        if self.crash_in is None:
            return False
        self.crash_in -= 1
        return self.crash_in < 0

    def _die(self) -> None:
        self._dead = True
        raise Crash

    def _step(self) -> None:
        if self._crashes():
            self._die()

    def _write(self, node: Inode, offset: int, data: bytes | None) -> None:
        apply(node.seen, offset, data)
        node.pending.append((offset, data))

    def _stored(self, node: Inode) -> bytearray:
        """What a sync leaves on disk: all that is pending, on what is there."""
        content = bytearray(node.stored)
        for offset, data in node.pending:
            apply(content, offset, data)
        return content

    def _store_some(self, node: Inode) -> None:
        """Have some of what is pending on disk, and forget the rest."""
        for offset, data in node.pending:
            fate = self.random.random()
            if data is None:
                if fate < 0.5:
                    apply(node.stored, offset, None)
            elif fate < 0.35:
                apply(node.stored, offset, data)
            elif fate < 0.65:
                continue
            elif fate < 0.8:
                apply(node.stored, offset, data[: self.random.randrange(len(data) + 1)])
            else:
                end = offset + len(data)
                for start in range(offset - offset % SECTOR, end, SECTOR):
                    if self.random.random() < 0.5:
                        low, high = max(start, offset), min(start + SECTOR, end)
                        apply(node.stored, low, data[low - offset : high - offset])
        node.pending.clear()

    def _forget(self, folder: Folder) -> None:
        latest: dict[str, list[Inode | Folder | None]] = {}
        for name, node in folder.pending:
            latest.setdefault(name, [folder.stored.get(name)]).append(node)
        for name, states in latest.items():
            state = self.random.choice(states)
            if state is None:
                folder.stored.pop(name, None)
            else:
                folder.stored[name] = state
        folder.pending.clear()
        folder.seen = dict(folder.stored)
        for node in folder.seen.values():
            if isinstance(node, Folder):
                self._forget(node)
            else:
                self._store_some(node)
                node.seen = bytearray(node.stored)
