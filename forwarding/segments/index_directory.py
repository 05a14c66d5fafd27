"""An index directory: packed segments of a large set of subscriptions, and the manifest that makes them one.

    OUT/manifest.json             what is valid: format, counts, statistics, the segments with their gates
    OUT/segment-<digest>.table    a saved ForwardingTable, memory-mapped when it is opened (state/file.py)
    OUT/segment-<digest>.ids      which subscription each of its filters is of (subscription_ids.py)
    OUT/<folder>-<digest>/        what else belongs to the index: statistics, a quarantine; the manifest says which

Files are named by a digest of the subscriptions in them, so that building the same again gives the same names, and are
never changed. The manifest is replaced by one atomic rename after every file it speaks of is in place, so a reader sees
the old index or the new one, whole, and a writer may be killed at any moment. What an earlier index left is swept away
when a later one is committed, except the files of the last one: a reader may just have read its manifest.

Writers share nothing: any process may write segments into a staging directory (`write_segment`), and one of them then
commits them (`commit_index`). `write_index` does both in one process. The same files lie in an object store, too
(stored_index.py).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from contrada.errors import CorruptFile, InvalidValue
from contrada.forwarding.codec.msgpack import encode_filter
from contrada.forwarding.language.filter import as_filters
from contrada.forwarding.language.lonlat import LONLAT, PLANE, filter_in_degrees
from contrada.forwarding.segments.gate import Anchor, Gate, anchor_of
from contrada.forwarding.segments.manifest import (
    FOLDERS,
    MANIFEST,
    SEGMENT_KINDS,
    VERSION,
    Manifest,
    SegmentInfo,
    read_manifest,
)
from contrada.forwarding.segments.subscription_ids import SubscriptionIds, check_id
from contrada.forwarding.table.options import DEFAULT_OPTIONS, TableOptions
from contrada.spatial.relations.discretization import describe_discretization

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contrada.forwarding.batches.packed_columns import Filters
    from contrada.forwarding.language.filter import Expression, Filter
    from contrada.forwarding.table.table import ForwardingTable
    from contrada.spatial.road.network import RoadNetwork

_SEGMENT: Final = 1 << 17  # filters of a segment, unless told otherwise


class Row(NamedTuple):
    """A subscription as writers take it: its id, the interface it belongs to, and its filter, predicate or text."""

    id: str
    interface: str
    filter: Expression | str


class Packed(NamedTuple):
    """A subscription on its way into a segment.

    What is known of it already saves looking: `content`, bytes that tell filters apart; the `anchors` of its filters;
    whether it may cover or be covered (`weigh`).
    """

    id: str
    interface: str
    filters: Sequence[Filter]
    content: bytes | None = None
    anchors: Sequence[Anchor] | None = None
    weigh: bool = True


def write_segment(
    directory: str | os.PathLike[str],
    rows: Iterable[Packed],
    kind: str,
    options: TableOptions = DEFAULT_OPTIONS,
) -> SegmentInfo | None:
    """Build a segment of subscriptions and write it; None when there are none.

    Ids must be unique. The order of rows does not matter: they are sorted, so that equal sets give equal names.
    """
    from contrada.forwarding.table.table import ForwardingTable

    ordered = sorted(rows, key=lambda row: row.id)
    if not ordered:
        return None
    if options.crs == LONLAT:
        ordered = [row._replace(filters=[*map(filter_in_degrees, row.filters)], anchors=None) for row in ordered]
    pairs = [(row.interface, each) for row in ordered for each in row.filters]
    weigh = [row.weigh for row in ordered for _ in row.filters]
    table = ForwardingTable.packed(pairs, options, weigh=weigh)
    ids = SubscriptionIds.of([row.id for row in ordered], [len(row.filters) for row in ordered])
    gate = Gate.around(anchor for row in ordered for anchor in row.anchors or map(anchor_of, row.filters))
    digest = hashlib.blake2b(_origin(kind, options), digest_size=12)
    for row in ordered:
        content = row.content or b"".join(map(encode_filter, row.filters))
        for part in (row.id.encode(), row.interface.encode(), content):
            digest.update(len(part).to_bytes(8, "little") + part)
    gate = gate.in_degrees() if options.crs == LONLAT else gate
    return _write_files(directory, table, ids, gate, kind, digest.hexdigest())


def write_columns(
    directory: str | os.PathLike[str],
    ids: SubscriptionIds,
    filters: Filters,
    content: Iterable[bytes],
    gate: Gate,
    kind: str,
    options: TableOptions = DEFAULT_OPTIONS,
    *,
    road_network: RoadNetwork | None = None,
) -> tuple[SegmentInfo, int]:
    """As `write_segment`, of columns; also how many of the filters are covered by others.

    The filters follow the order of `ids`. `content` tells sets of subscriptions apart, whatever pieces it comes in.
    """
    from contrada.forwarding.table.table import ForwardingTable

    table = ForwardingTable.packed_columns(filters, options, road_network=road_network)
    digest = hashlib.blake2b(_origin(kind, options), digest_size=12)
    digest.update(b"" if road_network is None else road_network.digest.encode())
    for part in content:
        digest.update(part)
    gate = gate.in_degrees() if options.crs == LONLAT else gate
    info = _write_files(directory, table, ids, gate, kind, digest.hexdigest())
    return info, table.stats().covered


def _origin(kind: str, options: TableOptions) -> bytes:
    """What tells segments of the same subscriptions apart."""
    relations = describe_discretization(options.discretization)
    told = f"{VERSION} {kind} {options.geotext_index} {options.matching} {relations}"
    return f"{told}{'' if options.simplify else ' whole'}{'' if options.crs == PLANE else f' {options.crs}'}".encode()


def _write_files(
    directory: str | os.PathLike[str],
    table: ForwardingTable[str],
    ids: SubscriptionIds,
    gate: Gate,
    kind: str,
    digest: str,
) -> SegmentInfo:
    stem = f"segment-{digest}"
    files = Path(directory) / f"{stem}.table", Path(directory) / f"{stem}.ids"
    table.save(files[0])
    ids.save(files[1])
    size = sum(file.stat().st_size for file in files)
    return SegmentInfo(files[0].name, kind, len(table), len(ids), size, gate)


def commit_index(
    path: str | os.PathLike[str],
    segments: Iterable[SegmentInfo],
    options: TableOptions = DEFAULT_OPTIONS,
    *,
    staged: str | os.PathLike[str] | None = None,
    statistics: Mapping[str, Any] | None = None,
    folders: Mapping[str, Path] | None = None,
) -> Manifest:
    """Make these segments, written to `staged` or to the directory itself, the index; then sweep up.

    With `folders`, directories that belong to it move into place under names of their own and are valid with the
    manifest, and not before: a reader finds those of the index that it reads.
    """
    path = Path(path)
    named = {what: f"{what}-{digest_of(folder)}" for what, folder in (folders or {}).items()}
    manifest = manifest_for(segments, options, statistics, named)
    for what, folder in (folders or {}).items():
        if not (path / named[what]).exists():  # or it is there already, word for word
            folder.rename(path / named[what])
    for name in (name for segment in manifest.segments for name in segment.files):
        if staged is not None and (Path(staged) / name).exists():
            (Path(staged) / name).replace(path / name)
        if not (path / name).exists():
            raise CorruptFile(f"{path / name}: missing, so the index is not committed; build it again")
    _sync(path)
    try:
        before = read_manifest(path)
    except CorruptFile:
        before = Manifest(())
    _replace_manifest(path, manifest)
    kept = {name for segment in (*before.segments, *manifest.segments) for name in segment.files}
    for file in path.glob("segment-*"):
        if file.name not in kept:
            file.unlink(missing_ok=True)
    kept = {*before.folders.values(), *manifest.folders.values()}
    for folder in (each for what in FOLDERS for each in path.glob(f"{what}-*")):
        if folder.name not in kept and folder.is_dir():
            shutil.rmtree(folder, ignore_errors=True)
    return manifest


def manifest_for(
    segments: Iterable[SegmentInfo],
    options: TableOptions,
    statistics: Mapping[str, Any] | None,
    folders: Mapping[str, str],
) -> Manifest:
    """The manifest of segments, in an order that depends on nothing else."""
    order = {kind: i for i, kind in enumerate(SEGMENT_KINDS)}
    unique = {each.file: each for each in segments}
    ordered = sorted(unique.values(), key=lambda each: (order[each.kind], _first_corner(each), each.file))
    return Manifest(tuple(ordered), options, dict(statistics or {}), folders)


def digest_of(folder: Path) -> str:
    """A digest of what is in a directory's files, however they are called."""
    digests = []
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb") as content:
                part = str(file.parent.relative_to(folder)).encode()
                digests.append(part + hashlib.file_digest(content, "sha256").digest())
    return hashlib.blake2b(b"".join(sorted(digests)), digest_size=12).hexdigest()


def write_index(
    path: str | os.PathLike[str],
    rows: Iterable[tuple[str, str, Expression | str]],
    options: TableOptions = DEFAULT_OPTIONS,
    *,
    segment_filters: int = _SEGMENT,
    statistics: Mapping[str, Any] | None = None,
) -> Manifest:
    """Write an index of subscriptions (id, interface, filter) in this process; the manifest.

    Whatever is wrong with a row stops it: `contrada build-index` is the forgiving way.
    """
    path = Path(path)
    path.mkdir(parents=True, exist_ok=True)
    parts: dict[str, list[Packed]] = {kind: [] for kind in SEGMENT_KINDS}
    seen: set[str] = set()
    infos: list[SegmentInfo] = []

    def close(kind: str) -> None:
        info = write_segment(path, parts[kind], kind, options)
        parts[kind] = []
        infos.extend([info] if info else [])

    for id, interface, expression in rows:
        if check_id(id) in seen:
            raise InvalidValue(f"two subscriptions have the id {id!r}")
        seen.add(id)
        check_id(interface, "an interface")
        filters = as_filters(expression, options.crs)
        kind = segment_kind(filters)
        parts[kind].append(Packed(id, interface, filters))
        if len(parts[kind]) >= segment_filters:
            close(kind)
    for kind in SEGMENT_KINDS:
        close(kind)
    return commit_index(path, infos, options, statistics=statistics)


def segment_kind(filters: Sequence[Filter]) -> str:
    """The kind of segment for a subscription: by place if all its filters are anchored at places of one type."""
    kinds = {anchor.kind for anchor in map(anchor_of, filters)}
    (only,) = kinds if len(kinds) == 1 else (None,)
    return "hash" if only is None else only.name.lower()


def _first_corner(info: SegmentInfo) -> tuple[float, ...]:
    attributes = info.gate.attributes or {}
    return next((box for box in attributes.values() if box is not None), ())


def _replace_manifest(path: Path, manifest: Manifest) -> None:
    handle, temporary = tempfile.mkstemp(dir=path, prefix=f".{MANIFEST}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(manifest.encoded())
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # noqa: PTH101  # mkstemp made it private; an index is shared
        os.replace(temporary, path / MANIFEST)  # noqa: PTH105  # mkstemp gave a name, not a Path
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync(path)


def _sync(directory: Path) -> None:
    """Make renames in a directory durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
