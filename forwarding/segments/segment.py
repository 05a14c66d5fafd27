"""One segment of an index directory, open: a table mapped from a file and the ids of its subscriptions beside it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from contrada.errors import CorruptFile
from contrada.forwarding.segments.manifest import read_manifest
from contrada.forwarding.segments.stored_index import check_room, holding
from contrada.forwarding.segments.subscription_ids import SubscriptionIds
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.storage.arrays_file import verify_arrays

if TYPE_CHECKING:
    import os

    from contrada.forwarding.kernels.memory.layout import Ints
    from contrada.forwarding.segments.manifest import SegmentInfo
    from contrada.forwarding.segments.shared_batch import TableNames
    from contrada.spatial.road.network import RoadNetwork


_ROW: Final = (1 << 32) - 1
_TOGETHER: Final = 4  # segments that are opened at a time
_Rows = TypeVar("_Rows", int, "Ints")


def filter_id(segment: int, row: _Rows) -> _Rows:
    """The id of a filter of a segment: negative, -(segment << 32 | row)."""
    return -(segment << 32 | row)


def segment_of(id: int) -> int:
    """The number of the segment that a filter of a negative id is in."""
    return -id >> 32


def row_of(id: int) -> int:
    """The row of a filter in its segment."""
    return -id & _ROW


def open_segments(
    path: str | os.PathLike[str], shard: tuple[int, int] | None, *, road_network: RoadNetwork | None, verify: bool
) -> list[Segment]:
    """Map the segments of an index, by path or URL, or those of one shard."""

    def open_one(info: SegmentInfo) -> Segment:
        with holding(path, info) as directory:
            return Segment.open(directory, info, road_network=road_network, verify=verify)

    for attempt in (1, 2):
        manifest = read_manifest(path)
        chosen = manifest.segments if shard is None else manifest.shard(*shard)
        check_room(path, chosen)
        try:
            # What takes the time, looking at arrays and reading checksums, leaves the interpreter to others.
            with ThreadPoolExecutor(_TOGETHER) as pool:
                return list(pool.map(open_one, chosen))
        except CorruptFile:
            # A build that was committed meanwhile may have swept up what this manifest speaks of.
            if attempt == 2 or read_manifest(path) == manifest:
                raise
    raise AssertionError("the second attempt returns or raises")


class Segment:
    """One packed table of an index, open. `damage` is what `verify` found wrong with it: it is not asked any more."""

    __slots__ = ("damage", "directory", "ids", "info", "names", "table", "verified")

    def __init__(
        self, info: SegmentInfo, table: ForwardingTable[Any], ids: SubscriptionIds, directory: Path, verified: bool
    ) -> None:
        self.info = info
        self.table = table
        self.ids = ids
        self.directory = directory
        self.verified = verified
        self.damage: CorruptFile | None = None
        self.names: TableNames | None = None  # in the numbers of the SegmentedTable it is in

    def verify(self) -> CorruptFile | None:
        """Check every byte on disk, at about a gigabyte per second; what is wrong, if something is.

        A file that is gone, since a later index was committed, was checked as far as it could be.
        """
        if not self.verified and self.damage is None:
            try:
                for name in self.info.files:
                    verify_arrays(self.directory / name)
                self.verified = True
            except FileNotFoundError:  # replaced by a later build: what is mapped stays, and cannot be read again
                pass
            except CorruptFile as error:
                self.damage = error
        return self.damage

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        info: SegmentInfo,
        *,
        road_network: RoadNetwork | None = None,
        verify: bool = False,
    ) -> Segment:
        """Map a segment of an index directory."""
        table = ForwardingTable.load(Path(directory) / info.file, road_network=road_network, verify=verify)
        ids = SubscriptionIds.load(Path(directory) / info.ids_file, verify=verify)
        if len(table) != info.filters or len(ids) != info.subscriptions:
            raise CorruptFile(f"{Path(directory) / info.file}: not the segment that the manifest describes")
        if ids.filters != info.filters:
            raise CorruptFile(f"{Path(directory) / info.ids_file}: of {ids.filters} filters, not of {info.filters}")
        return cls(info, table, ids, Path(directory), verify)
