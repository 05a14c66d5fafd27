"""An index in an object store: the files of an index directory (index_directory.py), under one URL.

Segments are put under their names, which are digests of what is in them, and are nothing until a manifest names them.
The manifest is the pointer: one object, which appears whole and at once, so that a reader has the old index or the new
one. It is put last, by whoever is alone in the folder (`object_store.alone_in`). What no manifest of the last two names
is removed then.

A reader has the manifest, fetches the segments that it needs into the cache of its machine (local_cache.py), looks at
every byte of a file once, when it comes, and maps it from there.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contrada.errors import CorruptFile
from contrada.forwarding.segments.index_directory import digest_of, manifest_for
from contrada.forwarding.segments.manifest import FOLDERS, MANIFEST, ROADS, Manifest, read_manifest
from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import is_url, join, name_inside, shown
from contrada.forwarding.stores.local_cache import LocalCache
from contrada.forwarding.table.options import DEFAULT_OPTIONS, TableOptions
from contrada.spatial.storage.arrays_file import verify_arrays

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contrada.forwarding.segments.manifest import SegmentInfo
    from contrada.spatial.road.network import RoadNetwork


@contextmanager
def holding(path: str | os.PathLike[str], info: SegmentInfo) -> Iterator[Path]:
    """A directory of this machine with the files of a segment, as long as it takes to map them."""
    if not is_url(path):
        yield Path(path)
        return
    url = str(path)
    try:
        with LocalCache.of_environment().holding([join(url, name) for name in info.files], verify_arrays) as files:
            yield files[0].parent
    except FileNotFoundError as error:
        raise CorruptFile(f"{shown(url)}: {info.file} is missing: {error.strerror or error}") from error


def roads_of(path: str | os.PathLike[str], manifest: Manifest) -> RoadNetwork | None:
    """The road network that an index brings with it, mapped; None if it has none."""
    folder = manifest.folders.get("roads")
    if folder is None:
        return None
    from contrada.spatial.road.network import RoadNetwork

    if not is_url(path):
        return RoadNetwork.load(Path(path) / folder / ROADS)
    with LocalCache.of_environment().holding([join(str(path), folder, ROADS)]) as (file,):
        return RoadNetwork.load(file)


def check_room(path: str | os.PathLike[str], segments: Iterable[SegmentInfo]) -> None:
    """Refuse to keep all these segments mapped where the cache may not hold them."""
    if is_url(path):
        LocalCache.of_environment().check_room(sum(each.bytes for each in segments), shown(path))


def commit_stored(
    url: str,
    segments: Iterable[SegmentInfo],
    options: TableOptions = DEFAULT_OPTIONS,
    *,
    statistics: Mapping[str, Any] | None = None,
    folders: Mapping[str, Path] | None = None,
) -> Manifest:
    """Make these segments, which are there already, the index; then sweep up. `folders` are of this machine."""
    named = {what: f"{what}-{digest_of(folder)}" for what, folder in (folders or {}).items()}
    manifest = manifest_for(segments, options, statistics, named)
    for what, folder in (folders or {}).items():
        object_store.upload_folder(folder, join(url, named[what]))
    there = {each.address: each.size for each in object_store.entries(url)}
    for segment in manifest.segments:
        sizes = [there.get(join(url, name), -1) for name in segment.files]
        if -1 in sizes or sum(sizes) != segment.bytes:
            raise CorruptFile(f"{shown(url)}: {segment.file} is not whole, so the index is not committed; build again")
    try:
        before = read_manifest(url)
    except CorruptFile:
        before = Manifest(())
    object_store.write(join(url, MANIFEST), manifest.encoded())
    object_store.delete(each for each in there if not _kept(name_inside(url, each), (before, manifest)))
    return manifest


def _kept(name: str, manifests: Sequence[Manifest]) -> bool:
    """Whether an object, by its name in the index, is none of ours or still belongs to one of the manifests."""
    first, _, rest = name.partition("/")
    if rest:
        return not first.startswith(FOLDERS) or any(first in each.folders.values() for each in manifests)
    return not name.startswith("segment-") or any(name in s.files for each in manifests for s in each.segments)
