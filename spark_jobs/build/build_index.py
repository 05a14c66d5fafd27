"""The job behind `contrada build-index`: subscriptions in, an index directory out.

    read      build/rows/sources.py         rows of Parquet, JSON lines or GeoJSON
    parse     first_pass.py      once, into staged parts; bad rows to the quarantine, with the reason; which ids come
                                 twice, and who is covered by whom
    count     second_pass.py     keywords, attributes, places
    plan      partitioning.py    segments of equal size, compact on the map
    build     building.py        segments, each by one executor
    commit    forwarding/segments/index_directory.py: the manifest, last, and statistics and quarantine with it

Paths and options are looked at before Spark is asked for anything (plan.py). A build that would commit nothing,
or has set aside more than it may, changes nothing but the directory of the rows that it refused.

Everything is staged in a hidden directory inside OUT and moved into place at the end, so a job that is killed leaves
the index as it was. A lock keeps two builds of one index apart and ends with the process that holds it; whoever has
it sweeps away what killed jobs left. OUT must be a directory that the driver and all executors see.
"""

from __future__ import annotations

import json
import secrets
import shutil
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contrada.errors import InvalidValue
from contrada.forwarding.segments.index_directory import FOLDERS, KINDS, commit_index
from contrada.spark_jobs.build.building import build_segments
from contrada.spark_jobs.build.cover.families import COVERERS, Families
from contrada.spark_jobs.build.first_pass import Part, first_pass
from contrada.spark_jobs.build.packets import collected
from contrada.spark_jobs.build.partitioning import plan_segments, share_of
from contrada.spark_jobs.build.plan import MOST_QUARANTINED, Build, NotCommitted, plan_build
from contrada.spark_jobs.build.rows.sources import read_subscriptions
from contrada.spark_jobs.build.second_pass import Placing, second_pass
from contrada.spark_jobs.build.staging import QUARANTINE
from contrada.spark_jobs.build.statistics import Grid, bucket_parts
from contrada.spark_jobs.common.commit import replace_directory
from contrada.spatial.storage.file_lock import take_lock
from contrada.spatial.textual.registry import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from contrada.spark_jobs.build.packets import Packet

_STAGING: Final = ".staging-"
_LOCK: Final = ".lock"
_REFUSED: Final = "refused"  # the quarantine of a build that was not committed
_SHOWN: Final = 100  # most frequent keywords and attributes that the manifest names


@dataclass(frozen=True, slots=True)
class Built:
    """What a build did: the summary that `contrada build-index --json` prints."""

    index: str
    rows: int
    subscriptions: int
    filters: int
    quarantined: int
    duplicates: int  # rows that repeat another word for word; one of them stands
    unsatisfiable: int  # subscriptions that nothing matches (rule 1)
    redundant_constraints: int  # (rule 2)
    covered: int  # filters that another of their interface covers (rule 3)
    interfaces: int  # about
    segments: int
    bytes: int
    quarantine: str
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def build_index(
    session: SparkSession,
    source: str,
    out: str,
    *,
    format: str | None = None,
    segments: int | None = None,
    quarantine: str | None = None,
    geotext_index: str = DEFAULT,
    max_quarantined: float = MOST_QUARANTINED,
    allow_empty: bool = False,
    tell: Callable[[str], None] = lambda step: None,
) -> Built:
    """Build an index of the subscriptions in `source`; bad rows go to the index's quarantine, and to `quarantine`.

    `NotCommitted` when nothing was accepted, unless `allow_empty`, or more than `max_quarantined`, a share, refused.
    """
    plan = plan_build(
        source,
        out,
        format=format,
        segments=segments,
        quarantine=quarantine,
        geotext_index=geotext_index,
        max_quarantined=max_quarantined,
        allow_empty=allow_empty,
    )
    return run_build(session, plan, tell)


def run_build(session: SparkSession, build: Build, tell: Callable[[str], None] = lambda step: None) -> Built:
    """Do what was planned."""
    began = time.monotonic()
    place, segments, geotext_index = build.out, build.segments, build.geotext_index
    place.mkdir(parents=True, exist_ok=True)
    with _alone(place) as staging:
        tell(f"reading {build.source.path}")
        given = read_subscriptions(session, build.source)
        parts = staging / "parts"
        parts.mkdir()
        first = _First.of(collected(session, first_pass(session, given, str(parts), secrets.randbits(63))))
        tell(f"{first.rows:,} rows; looking for subscriptions that others cover")
        dead = first.doubles.column("ref").to_numpy()
        families = Families.of(first.coverers, dead, share_of(first.good, segments) // 2)
        doubles = staging / "doubles.npz"
        np.savez(doubles, **{f"{name}s": first.doubles.column(name).to_numpy() for name in ("ref", "fault")})
        placing = Placing(first.parts, str(doubles), families.save(staging / "families.npz"), Grid.of(first.sample))
        (staging / "statistics" / "tokens").mkdir(parents=True)
        tell("counting keywords, attributes and places")
        packets = second_pass(session, placing, str(parts), str(staging / "statistics" / "tokens"))
        counts = _Counts.of(collected(session, packets))
        unread = build.source.unread
        quarantined = _write_quarantine(unread, [*first.refused, *counts.refused], staging / "quarantine")
        subscriptions = sum(counts.places.values())
        refusal = build.refusal(
            first.rows + len(unread), subscriptions, quarantined, first.lost + build.source.unread_bytes
        )
        if refusal is not None:
            rejected = build.quarantine or place / _REFUSED
            replace_directory(staging / "quarantine", rejected)
            raise NotCommitted(refusal, rejected)
        plan = plan_segments(counts.places, segments)
        attributes = _attributes(counts.uses, subscriptions)
        _write_table(attributes, staging / "statistics" / "attributes")
        _write_places(counts.places, staging / "statistics" / "places")
        tell(f"building {len(plan.kinds)} segments of {subscriptions:,} subscriptions, {quarantined:,} rows refused")
        (staging / "segments").mkdir()
        directory = str((staging / "segments").resolve())
        infos, covered = build_segments(session, placing, plan, directory, geotext_index)
        statistics = {
            "subscriptions": subscriptions,
            "quarantined": quarantined,
            "covered": covered,
            "unsatisfiable": first.unsatisfiable,
            "grid": placing.grid,
            "tokens": counts.tokens[:_SHOWN],
            "attributes": attributes.slice(0, _SHOWN).to_pylist(),
        }
        if build.quarantine is not None:
            shutil.copytree(staging / "quarantine", staging / "copy")
        manifest = commit_index(
            place,
            infos,
            staged=staging / "segments",
            geotext_index=geotext_index,
            statistics=statistics,
            folders={name: staging / name for name in FOLDERS},
        )
        rejected = place / manifest.folders["quarantine"]
        if build.quarantine is not None:
            rejected = build.quarantine
            replace_directory(staging / "copy", rejected)
        shutil.rmtree(place / _REFUSED, ignore_errors=True)
    tell(f"committed {place}")
    return Built(
        index=str(place),
        rows=first.rows,
        subscriptions=manifest.subscriptions,
        filters=manifest.filters,
        quarantined=quarantined,
        duplicates=first.rows + len(unread) - quarantined - subscriptions,
        unsatisfiable=first.unsatisfiable,
        redundant_constraints=first.redundant,
        covered=covered,
        interfaces=first.interfaces,
        segments=len(manifest.segments),
        bytes=sum(each.bytes for each in manifest.segments),
        quarantine=str(rejected),
        seconds=round(time.monotonic() - began, 3),
    )


class _First(NamedTuple):
    """What the first pass tells."""

    parts: tuple[Part, ...]
    doubles: pa.Table
    coverers: pa.Table
    interfaces: int
    sample: np.ndarray

    @classmethod
    def of(cls, packets: list[Packet]) -> _First:
        """Put together what tasks told, in an order that does not depend on theirs."""
        parts = sorted((Part(**json.loads(p.data)) for p in packets if p.what == "part"), key=lambda part: part.number)
        samples = [p.table() for p in sorted(packets) if p.what == "sample"]
        doubles = _joined([p.table() for p in packets if p.what == "doubles"], ("ref", "fault"))
        coverers = _joined([p.table() for p in packets if p.what == "coverers"], COVERERS)
        sample = pa.concat_tables(samples) if samples else None
        return cls(
            tuple(parts),
            doubles.sort_by("ref"),
            coverers.sort_by("ref"),
            sum(p.number for p in packets if p.what == "coverers"),
            np.zeros((0, 2)) if sample is None else np.stack([sample["x"].to_numpy(), sample["y"].to_numpy()], axis=1),
        )

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def good(self) -> int:
        return sum(part.good for part in self.parts)

    @property
    def unsatisfiable(self) -> int:
        return sum(part.unsatisfiable for part in self.parts)

    @property
    def redundant(self) -> int:
        return sum(part.redundant for part in self.parts)

    @property
    def lost(self) -> int:
        return sum(part.lost for part in self.parts)

    @property
    def refused(self) -> list[str]:
        return [part.quarantine for part in self.parts if part.quarantine is not None]


class _Counts(NamedTuple):
    """What the second pass tells."""

    places: dict[int, int]
    uses: Counter[tuple[str, str]]
    tokens: list[dict[str, Any]]
    refused: list[str]

    @classmethod
    def of(cls, packets: list[Packet]) -> _Counts:
        """Add up what tasks told."""
        places: Counter[int] = Counter()
        uses: Counter[tuple[str, str]] = Counter()
        tokens: list[dict[str, Any]] = []
        refused = []
        for packet in packets:
            if packet.what == "places":
                table = packet.table()
                places.update(dict(zip(table["bucket"].to_pylist(), table["count"].to_pylist(), strict=True)))
            elif packet.what == "uses":
                uses.update({(name, operator): n for name, operator, n in json.loads(packet.data)})
            elif packet.what == "refused":
                refused.append(packet.data.decode())
            else:
                tokens += packet.table().to_pylist()
        tokens.sort(key=lambda row: (-row["documents"], row["token"]))
        return cls(dict(places), uses, tokens, sorted(refused))


def _joined(tables: list[pa.Table], names: Sequence[str]) -> pa.Table:
    return pa.concat_tables(tables) if tables else pa.table({name: pa.array([], pa.int64()) for name in names})


def _write_quarantine(unread: Sequence[tuple[str, str]], files: Sequence[str], path: Path) -> int:
    """Put the quarantine together, a table also when it is empty; how many rows it has."""
    path.mkdir()
    whole = [(file, None, None, reason, None) for file, reason in unread]
    columns = list(zip(*whole, strict=True)) if whole else [()] * len(QUARANTINE)
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, QUARANTINE, strict=True)], schema=QUARANTINE)
    if whole or not files:
        pq.write_table(table, path / "part-unread.parquet")
    for number, file in enumerate(files):
        shutil.move(file, path / f"part-{number:05}.parquet")
    rows: int = sum(pq.read_metadata(file).num_rows for file in path.glob("*.parquet"))
    return rows


def _attributes(uses: Counter[tuple[str, str]], subscriptions: int) -> pa.Table:
    """(attribute, operator, subscriptions, share of all), the most frequent first."""
    rows = sorted(uses.items(), key=lambda item: (-item[1], item[0]))
    return pa.table(
        {
            "attribute": pa.array([name for (name, _), _ in rows], pa.string()),
            "operator": pa.array([operator for (_, operator), _ in rows], pa.string()),
            "subscriptions": pa.array([n for _, n in rows], pa.int64()),
            "share": pa.array([n / max(1, subscriptions) for _, n in rows], pa.float64()),
        }
    )


def _write_places(counted: Mapping[int, int], path: Path) -> None:
    """Write the spatial histogram: how many places, or their coverers, have their centre in each cell of the grid."""
    cells = sorted((*bucket_parts(bucket), n) for bucket, n in counted.items())
    held = [(KINDS[kind], x, y, n) for kind, _, x, y, n in cells if KINDS[kind] != "hash"]
    names = {"kind": pa.string(), "x": pa.int32(), "y": pa.int32(), "subscriptions": pa.int64()}
    columns = {name: pa.array([row[k] for row in held], kind) for k, (name, kind) in enumerate(names.items())}
    _write_table(pa.table(columns), path)


def _write_table(table: pa.Table, path: Path) -> None:
    path.mkdir()
    pq.write_table(table, path / "part-0.parquet")


@contextmanager
def _alone(place: Path) -> Iterator[Path]:
    """A staging directory, while no one else builds this index."""
    with (place / _LOCK).open("w") as lock:
        try:
            take_lock(lock)
        except OSError:
            raise InvalidValue(f"{place}: another build is under way; wait for it, or choose another OUT") from None
        for left in place.glob(f"{_STAGING}*"):
            shutil.rmtree(left)
        staging = place / f"{_STAGING}{uuid4().hex}"
        staging.mkdir()
        try:
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)
