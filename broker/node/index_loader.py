"""Opens indexes beside the broker's loop: mapping millions of filters takes a second that nobody should wait."""

from __future__ import annotations

import hashlib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contrada.broker.core.standing_index import Index, Loaded
from contrada.broker.node.settings import parse_shard
from contrada.broker.protocol.wire import PLANE
from contrada.errors import ContradaError, CorruptFile, InvalidValue
from contrada.spatial.storage.regular_file import read_regular

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from contrada.broker.node.worker import Worker
    from contrada.spatial.road.network import RoadNetwork

    Done = Callable[[Loaded | ContradaError], None]


def open_index(
    path: str | os.PathLike[str], shard: str = "", *, roads: RoadNetwork | None = None, verify: bool = False
) -> Loaded:
    """Map an index directory; a `ContradaError` says what is wrong with it. With `verify`, every byte is checked."""
    part = parse_shard(shard)
    segments = import_module(
        "contrada.forwarding.segments.segmented_table"
    )  # with all of the engine: not for who has no index
    where = Path(path).resolve()
    before = _digest(where)
    try:
        table: Index = segments.SegmentedTable.open(where, part, road_network=roads, verify=verify)
        table.strict = False  # what is damaged must not keep notifications from everybody else
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


class IndexLoader:
    """Opens and verifies indexes on a worker's thread, in order."""

    def __init__(self, worker: Worker, roads: RoadNetwork | None = None, crs: str = PLANE) -> None:
        self._worker = worker
        self._roads = roads
        self._crs = crs

    def open(self, path: str, shard: str, done: Done) -> None:
        """Have an index opened; `done` will be called with it, or with what was wrong."""
        results: list[Loaded | ContradaError] = []
        self._worker.ask(lambda: results.append(self._open(path, shard)), lambda: done(results[0]))

    def verify(self, loaded: Loaded, done: Callable[[list[CorruptFile]], None]) -> None:
        """Have an index checked that was opened without; `done` will be called with what is wrong."""
        damaged: list[CorruptFile] = []
        self._worker.ask(lambda: damaged.extend(loaded.table.verify()), lambda: done(damaged))

    def _open(self, path: str, shard: str) -> Loaded | ContradaError:
        if self._crs != PLANE:
            return InvalidValue(f"{path}: indexes are built for the plane, and this broker's crs is {self._crs}")
        try:
            return open_index(path, shard, roads=self._roads, verify=True)  # nobody waits for it
        except ContradaError as error:
            return error
        except Exception as error:  # of a file that is not what it seems: the broker must not die of it
            return CorruptFile(f"{path}: not an index that this broker can open: {error!r}")
