"""How what a job writes becomes valid, in a directory or in an object store.

    an index      segments under their names; the manifest is replaced last (forwarding/segments)
    an output     in a directory: written beside it, and renamed (stores/commit.py). In a store, where nothing can be
                  renamed, each run has a folder of its own, and OUT/summary.json, put last, names it:

                      OUT/summary.json       {"folder": "run-…", …}
                      OUT/run-…/deliveries/  and all else; the folder of the run before is kept, for its readers

`Staging` is the place meanwhile: `here` is a directory of the driver, and `shared` what all machines see. Of an OUT
that is a directory both are the same. What tasks have written counts only when the driver was told of it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

from contrada.errors import InvalidValue
from contrada.forwarding.segments.index_directory import commit_index
from contrada.forwarding.segments.stored_index import commit_stored
from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import is_url, join, name_inside, shown
from contrada.spark_jobs.common.paths import check_writable
from contrada.spark_jobs.stores.commit import check_output, output, replacing, staging_inside

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from contrada.forwarding.segments.manifest import Manifest, SegmentInfo
    from contrada.forwarding.table.options import TableOptions

REFUSED: Final = "refused"
"""The quarantine of a build that was not committed."""

_STAGING: Final = ".staging-"
_RUN: Final = "run-"
_TOGETHER: Final = 8  # objects that are copied at a time


class Staging(NamedTuple):
    """Where a job writes meanwhile."""

    here: Path
    shared: str
    segments: str  # where tasks put segments
    sign: str  # something that every machine must see


def check_place(out: str, what: str) -> None:
    """Refuse a place that cannot be written, or a store that cannot be reached."""
    if not is_url(out):
        check_writable(Path(out), what)
        return
    try:
        object_store.size_of(out)
    except OSError as error:
        raise InvalidValue(f"{what} {shown(out)}: out of reach: {error.strerror}") from error


def check_output_place(out: str, mark: str) -> None:
    """Refuse to replace what is not an earlier output of this kind of job."""
    if not is_url(out):
        check_output(Path(out), mark)
        return
    check_place(out, "OUT")
    names = {name_inside(out, each.address) for each in object_store.entries(out)}
    if mark not in names and any(not each.startswith((object_store.MARK, _RUN)) for each in names):
        raise InvalidValue(f"{shown(out)} holds something other than an earlier output (no {mark}); name another place")


# -- indexes -------------------------------------------------------------------------------------------------


@contextmanager
def index_staging(out: str) -> Iterator[Staging]:
    """A place to build an index in, while no one else builds the same."""
    if not is_url(out):
        with staging_inside(Path(out)) as here:
            yield Staging(here, str(here), str(here / "segments"), str(here))
        return
    with object_store.alone_in(out) as mark, tempfile.TemporaryDirectory(prefix="contrada-") as home:
        left = (each.address for each in object_store.entries(out))
        object_store.delete(each for each in left if name_inside(out, each).startswith(_STAGING))  # by killed jobs
        shared = join(out, f"{_STAGING}{uuid4().hex}")
        try:
            yield Staging(Path(home), shared, out, mark)
        finally:
            _delete_folder(shared)


def commit_build(
    out: str,
    staging: Staging,
    segments: Iterable[SegmentInfo],
    options: TableOptions,
    *,
    statistics: Mapping[str, Any],
    folders: Mapping[str, Path],
) -> Manifest:
    """Make what was built the index."""
    if is_url(out):
        manifest = commit_stored(out, segments, options, statistics=statistics, folders=folders)
        _delete_folder(join(out, REFUSED))
    else:
        manifest = commit_index(out, segments, options, staged=staging.segments, statistics=statistics, folders=folders)
        shutil.rmtree(Path(out) / REFUSED, ignore_errors=True)
    return manifest


def keep_refused(out: str, quarantine: Path) -> str:
    """Keep the quarantine of a build that is not committed; its address."""
    place = join(out, REFUSED)
    if is_url(out):
        _delete_folder(place)
        object_store.upload_folder(quarantine, place)
    else:
        with replacing(Path(place)) as kept:
            shutil.copytree(quarantine, kept, dirs_exist_ok=True)
    return place


# -- outputs -------------------------------------------------------------------------------------------------


@contextmanager
def output_staging(out: str, mark: str) -> Iterator[Staging]:
    """A place for an output, which is valid if the block ends well; `here` must then hold the file `mark`."""
    if not is_url(out):
        with output(Path(out), mark) as here:
            yield Staging(here, str(here), "", str(here))
        return
    with object_store.alone_in(out) as sign, tempfile.TemporaryDirectory(prefix="contrada-") as home:
        run = f"{_RUN}{uuid4().hex}"
        shared = join(out, run)
        done = False
        try:
            yield Staging(Path(home), shared, "", sign)
            summary = json.loads((Path(home) / mark).read_bytes())
            (Path(home) / mark).unlink()
            object_store.upload_folder(Path(home), shared)
            _delete_hidden(shared)
            _point_at(out, mark, run, summary)
            done = True
        finally:
            if not done:
                _delete_folder(shared)


def _point_at(out: str, mark: str, run: str, summary: dict[str, Any]) -> None:
    """Make a run the valid one; remove those that are neither it nor the one before."""
    pointer = join(out, mark)
    try:
        before = json.loads(object_store.read(pointer, 1 << 30)).get("folder")
    except (FileNotFoundError, ValueError, AttributeError):
        before = None
    told = json.dumps(summary, ensure_ascii=False, indent=1)
    object_store.write(pointer, f"{told}\n".encode())
    for each in {name_inside(out, each.address).split("/")[0] for each in object_store.entries(out)}:
        if each.startswith(_RUN) and each not in (run, before):
            _delete_folder(join(out, each))


def move_all(files: Iterable[tuple[str, str]]) -> None:
    """Put files that tasks have written where they belong; in a store they are copied there, by the store itself."""
    listed = list(files)
    for written, target in listed:
        if not is_url(written):
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            Path(written).rename(target)
    with ThreadPoolExecutor(_TOGETHER) as pool:
        list(pool.map(lambda each: object_store.copy(*each), (each for each in listed if is_url(each[0]))))


def _delete_folder(address: str) -> None:
    object_store.delete(each.address for each in object_store.entries(address))


def _delete_hidden(address: str) -> None:
    """Remove what only tasks needed."""
    inside = ((name_inside(address, each.address), each.address) for each in object_store.entries(address))
    object_store.delete(where for name, where in inside if name.startswith("."))
