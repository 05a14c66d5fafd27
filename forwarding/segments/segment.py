"""One segment of an index directory, open: a table mapped from a file and the ids of its subscriptions beside it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from contrada.errors import CorruptFile
from contrada.forwarding.segments.subscription_ids import SubscriptionIds
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.storage.arrays_file import verify_arrays

if TYPE_CHECKING:
    import os

    from contrada.forwarding.segments.index_directory import SegmentInfo
    from contrada.forwarding.segments.shared_batch import TableNames
    from contrada.spatial.road.network import RoadNetwork


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
