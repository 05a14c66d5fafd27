"""Opens indexes beside the broker's loop: mapping millions of filters takes a second that nobody should wait."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from contrada.broker.core.standing_index import Index, Loaded
from contrada.broker.node.settings import parse_shard
from contrada.broker.protocol.wire import PLANE
from contrada.errors import ContradaError, CorruptFile, InvalidValue
from contrada.forwarding.stores.addresses import address_of, in_a_store, shown

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from contrada.broker.node.worker import Worker
    from contrada.spatial.road.network import RoadNetwork

    Done = Callable[[Loaded | ContradaError], None]


def open_index(
    path: str | os.PathLike[str], shard: str = "", *, roads: RoadNetwork | None = None, verify: bool = False
) -> Loaded:
    """Map an index, by path or URL; a `ContradaError` says what is wrong with it. With `verify`, every byte is checked.

    What a URL names is fetched into this machine's cache first.
    """
    part = parse_shard(shard)
    segments = import_module(
        "contrada.forwarding.segments.segmented_table"
    )  # with all of the engine: not for who has no index
    manifest = import_module("contrada.forwarding.segments.manifest")
    stored = in_a_store(path)
    where: str | Path = address_of(path, "the index") if stored else Path(path).resolve()

    def digest() -> str:
        try:
            told: str = manifest.manifest_digest(where)
        except (OSError, CorruptFile):
            return ""  # which opening complains of
        return told

    before = digest()
    try:
        table: Index = segments.SegmentedTable.open(where, part, road_network=roads, verify=verify)
        table.strict = False  # what is damaged must not keep notifications from everybody else
        subscriptions = sum(each.info.subscriptions for each in table.segments)  # type: ignore[attr-defined]  # the protocol has none
    except OSError as error:
        raise CorruptFile(f"{shown(where)}: cannot be opened: {error.strerror or error}") from error
    if digest() != before:
        # It was built anew meanwhile, and which of the two was mapped is not certain.
        return open_index(path, shard, roads=roads, verify=verify)
    told = shown(where).encode(errors="backslashreplace").decode()  # a path may hold what is no text
    return Loaded(table, told, shard, before, subscriptions)


def check_relations(loaded: Loaded, relations: str) -> None:
    """Refuse an index whose regions are related in another way than the broker's."""
    describe = import_module("contrada.spatial.relations.discretization").describe_discretization
    its = describe(getattr(loaded.table, "discretization", None))
    if its != relations:
        raise InvalidValue(
            f"{loaded.path}: the index relates regions {its}, and this broker {relations}: build it with the same "
            "discretization, density and halo"
        )


def check_crs(loaded: Loaded, crs: str) -> None:
    """Refuse an index whose coordinates are not what the broker's are."""
    its = getattr(loaded.table, "crs", PLANE)
    if its != crs:
        raise InvalidValue(f"{loaded.path}: the crs of the index is {its}, and this broker's is {crs}: build it anew")


class IndexLoader:
    """Opens and verifies indexes on a worker's thread, in order."""

    def __init__(
        self, worker: Worker, roads: RoadNetwork | None = None, crs: str = PLANE, relations: str = "exact"
    ) -> None:
        self._worker = worker
        self._roads = roads
        self._crs = crs
        self._relations = relations

    def open(self, path: str, shard: str, done: Done) -> None:
        """Have an index opened; `done` will be called with it, or with what was wrong."""
        results: list[Loaded | ContradaError] = []
        self._worker.ask(lambda: results.append(self._open(path, shard)), lambda: done(results[0]))

    def verify(self, loaded: Loaded, done: Callable[[list[CorruptFile]], None]) -> None:
        """Have an index checked that was opened without; `done` will be called with what is wrong."""
        damaged: list[CorruptFile] = []
        self._worker.ask(lambda: damaged.extend(loaded.table.verify()), lambda: done(damaged))

    def _open(self, path: str, shard: str) -> Loaded | ContradaError:
        try:
            loaded = open_index(path, shard, roads=self._roads, verify=True)  # nobody waits for it
            check_relations(loaded, self._relations)
            check_crs(loaded, self._crs)
            return loaded
        except ContradaError as error:
            return error
        except Exception as error:  # of a file that is not what it seems: the broker must not die of it
            return CorruptFile(f"{path}: not an index that this broker can open: {error!r}")
