"""Opens indexes beside the broker's loop: mapping millions of filters takes a second that nobody should wait."""

from __future__ import annotations

import hashlib
import queue
import threading
from collections import deque
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contrada.broker.indexing import Index, Loaded
from contrada.broker.settings import parse_shard
from contrada.errors import ContradaError, CorruptFile
from contrada.spatial.regular_file import read_regular

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from contrada.spatial.road.network import RoadNetwork

    Done = Callable[[Loaded | ContradaError], None]


def open_index(
    path: str | os.PathLike[str], shard: str = "", *, roads: RoadNetwork | None = None, verify: bool = False
) -> Loaded:
    """Map an index directory; a `ContradaError` says what is wrong with it. With `verify`, every byte is checked."""
    part = parse_shard(shard)
    segments = import_module("contrada.forwarding.segments")  # with all of the engine: not for who has no index
    where = Path(path).resolve()
    before = _digest(where)
    try:
        table: Index = segments.SegmentedTable.open(where, part, road_network=roads, verify=verify)
        subscriptions = sum(each.info.subscriptions for each in table.segments)  # type: ignore[attr-defined]  # the protocol has none
    except OSError as error:
        raise CorruptFile(f"{where}: cannot be opened: {error.strerror or error}") from error
    if _digest(where) != before:
        # It was built anew meanwhile, and which of the two was mapped is not certain.
        return open_index(path, shard, roads=roads, verify=verify)
    told = str(where).encode(errors="backslashreplace").decode()  # a path may hold what is no text
    return Loaded(table, told, shard, before, subscriptions)


def _digest(path: Path) -> str:
    """Of the manifest, which names every file by its contents; empty without one, which opening complains of."""
    try:
        return hashlib.blake2b(read_regular(path / "manifest.json", _MOST_BYTES), digest_size=12).hexdigest()
    except (OSError, CorruptFile):
        return ""


_MOST_BYTES: Final = 1 << 30  # of a manifest
_GRACE: Final = 0.2  # seconds for the thread to end, if it is idle


class IndexLoader:
    """One thread that opens what it is asked to, in order. What is opened waits until the loop collects it."""

    def __init__(self, wake: Callable[[], None], roads: RoadNetwork | None = None) -> None:
        self._wake = wake
        self._roads = roads
        self._wanted: queue.SimpleQueue[tuple[str, str, Done] | None] = queue.SimpleQueue()
        self._opened: deque[tuple[Done, Loaded | ContradaError]] = deque()
        self._thread: threading.Thread | None = None

    def open(self, path: str, shard: str, done: Done) -> None:
        """Have an index opened; `collect` will call `done` with it, or with what was wrong."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="contrada-index", daemon=True)
            self._thread.start()
        self._wanted.put((path, shard, done))

    def collect(self) -> None:
        """Hand over what was opened; on the broker's thread."""
        while self._opened:
            done, result = self._opened.popleft()
            done(result)

    def close(self) -> None:
        """Open nothing more. What is being opened comes too late, and is not waited for."""
        if self._thread is not None:
            self._wanted.put(None)
            self._thread.join(_GRACE)
            self._thread = None

    def _work(self) -> None:
        while (wanted := self._wanted.get()) is not None:
            path, shard, done = wanted
            result: Loaded | ContradaError
            try:
                result = open_index(path, shard, roads=self._roads, verify=True)  # nobody waits for it
            except ContradaError as error:
                result = error
            except Exception as error:  # of a file that is not what it seems: the broker must not die of it
                result = CorruptFile(f"{path}: not an index that this broker can open: {error!r}")
            self._opened.append((done, result))
            self._wake()
