"""What a build is asked to do, looked at from all sides before Spark is started."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from contrada.errors import InvalidValue
from contrada.forwarding.stores.addresses import address_of, is_url
from contrada.forwarding.table.options import DEFAULT_OPTIONS, TableOptions
from contrada.spark_jobs.build.rows.sources import find_subscriptions
from contrada.spark_jobs.build.staging import QUARANTINE
from contrada.spark_jobs.common.paths import check_apart, check_table_place, local_path
from contrada.spark_jobs.stores.places import check_place
from contrada.spatial.road.network import RoadNetwork

if TYPE_CHECKING:
    from contrada.spark_jobs.build.rows.sources import Found

MOST_QUARANTINED: Final = 0.1
"""The share of the input that may go to the quarantine, unless told otherwise."""


@dataclass(frozen=True, slots=True)
class Build:
    """A build that can begin."""

    found: Found
    out: str
    quarantine: Path | None
    segments: int | None
    options: TableOptions
    max_quarantined: float
    allow_empty: bool
    roads: RoadNetwork | None = None

    def refusal(self, rows: int, accepted: int, quarantined: int, lost: int) -> str | None:
        """Why what was read is not to be committed; None when it is. `lost` are bytes that could not be read at all."""
        if accepted == 0:
            return None if self.allow_empty else f"no subscription was accepted, of {rows:,} rows (see --allow-empty)"
        share = max(quarantined / max(rows, 1), lost / max(self.found.bytes, 1))
        if share > self.max_quarantined:
            what = f"{quarantined:,} of {rows:,} rows" if lost == 0 else f"{share:.0%} of the input"
            return f"{what} went to the quarantine, above the {self.max_quarantined:.0%} of --max-quarantined"
        return None


def plan_build(
    subscriptions: str | None,
    out: str | PathLike[str],
    options: TableOptions = DEFAULT_OPTIONS,
    *,
    format: str | None = None,
    segments: int | None = None,
    quarantine: str | PathLike[str] | None = None,
    max_quarantined: float = MOST_QUARANTINED,
    allow_empty: bool = False,
    roads: str | PathLike[str] | RoadNetwork | None = None,
    d_max: float | None = None,
) -> Build:
    """Look at the paths and options of a build; `InvalidValue` says what is wrong, and nothing was begun.

    `None` as subscriptions stands for a DataFrame.
    """
    place = address_of(out, "OUT")
    rejected = None if quarantine is None else local_path(quarantine, "--quarantine")
    if segments is not None and segments < 1:
        raise InvalidValue(f"--segments {segments}: an index has at least one")
    if not 0 <= max_quarantined <= 1:
        raise InvalidValue(f"--max-quarantined {100 * max_quarantined:g}: give a percentage from 0 to 100")
    check_place(place, "OUT")
    network = RoadNetwork.open(roads, d_max=d_max) if isinstance(roads, str | PathLike) else roads
    if d_max is not None and not isinstance(roads, str | PathLike):
        raise InvalidValue(f"--d-max {d_max:g}: of no road network; name its file with --roads")
    found = find_subscriptions(subscriptions, format)
    written = {"OUT": place}
    if rejected is not None:
        check_table_place(rejected, "--quarantine")
        _check_is_quarantine(rejected)
        check_apart({"--quarantine": str(rejected)}, written)
        written["--quarantine"] = str(rejected)
    if found.files and subscriptions is not None:
        given = address_of(subscriptions, "SUBSCRIPTIONS")
        whole = not is_url(given) and Path(given).exists()
        for each in [given] if whole else [file.address for file in found.files]:
            check_apart({"SUBSCRIPTIONS": each}, written)
    return Build(found, place, rejected, segments, options, max_quarantined, allow_empty, network)


def _check_is_quarantine(place: Path) -> None:
    """Refuse to replace a table that is not an earlier quarantine."""
    for file in sorted(place.rglob("*.parquet")):
        try:
            names = pq.read_schema(file).names
        except (pa.ArrowException, OSError):
            names = []
        if names != QUARANTINE.names:
            raise InvalidValue(
                f"--quarantine {place}: there is something other than an earlier quarantine ({file.name}); "
                "choose another place"
            )
