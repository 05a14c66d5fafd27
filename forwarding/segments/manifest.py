"""The manifest of an index: what is valid in a folder of segments, on a disk or in an object store.

    format, version          what this is
    segments                 files, kinds, counts and gates, in the order in which they are asked
    geotext_index, matching, uniform, simplify, crs
                             how its tables are made (table/options.py); what is not said is as by default
    statistics               what the build counted
    folders                  what else belongs to it, by what it holds: statistics, a quarantine,
                             a road network

It is one file, and whatever it names never changes: replacing it replaces the index. Its digest says which index it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contrada.errors import CorruptFile, InvalidValue
from contrada.forwarding.language.lonlat import PLANE
from contrada.forwarding.segments.gate import Gate
from contrada.forwarding.state.matching import DEFAULT_MATCHING
from contrada.forwarding.stores import object_store
from contrada.forwarding.stores.addresses import is_url, join, shown
from contrada.forwarding.table.options import DEFAULT_OPTIONS, TableOptions
from contrada.spatial.relations.discretization import EXACT, Uniform
from contrada.spatial.storage.regular_file import read_regular

if TYPE_CHECKING:
    from collections.abc import Mapping

MANIFEST: Final = "manifest.json"
FORMAT: Final = "contrada-index"
VERSION: Final = 1
_MOST_BYTES: Final = 1 << 30  # of a manifest
_FILE: Final = re.compile(r"segment-[0-9a-f]+\.table")  # in the directory itself, and nothing that leads out of it
SEGMENT_KINDS: Final = ("region", "geotext", "hash")
"""Segments of filters anchored at a region, at a geotext's place, and of all others."""
FOLDERS: Final = ("statistics", "quarantine", "roads")
"""What may belong to an index besides segments, each a directory of files."""
ROADS: Final = "network.roads"
"""The file in the folder `roads`: the road network that the `similar` filters of the index ask."""


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """What the manifest says of a segment."""

    file: str  # the table; the ids' file has the same stem
    kind: str  # one of SEGMENT_KINDS
    filters: int
    subscriptions: int
    bytes: int  # of both files
    gate: Gate = field(hash=False)

    @property
    def ids_file(self) -> str:
        """The file of its subscriptions' ids."""
        return Path(self.file).stem + ".ids"

    @property
    def files(self) -> tuple[str, str]:
        """Both files."""
        return self.file, self.ids_file

    def to_plain(self) -> dict[str, Any]:
        """As it is kept in a manifest."""
        plain = {name: getattr(self, name) for name in ("file", "kind", "filters", "subscriptions", "bytes")}
        return plain | {"gate": self.gate.to_plain()}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> SegmentInfo:
        """Undo `to_plain`; TypeError, ValueError or KeyError for what is none."""
        info = cls(**{**plain, "gate": Gate.from_plain(plain["gate"])})
        if type(info.file) is not str or not _FILE.fullmatch(info.file) or info.kind not in SEGMENT_KINDS:
            raise ValueError(f"a segment of kind {info.kind!r} in {info.file!r}")
        if any(type(count) is not int or count < 0 for count in (info.filters, info.subscriptions, info.bytes)):
            raise ValueError(f"the counts of {info.file}")
        return info


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an index directory holds."""

    segments: tuple[SegmentInfo, ...]
    options: TableOptions = DEFAULT_OPTIONS
    statistics: Mapping[str, Any] = field(default_factory=dict, hash=False)
    folders: Mapping[str, str] = field(default_factory=dict, hash=False)  # by what they hold, one of FOLDERS

    @property
    def filters(self) -> int:
        """How many filters there are."""
        return sum(each.filters for each in self.segments)

    @property
    def subscriptions(self) -> int:
        """How many subscriptions there are. All filters of one lie in one segment."""
        return sum(each.subscriptions for each in self.segments)

    def shard(self, number: int, of: int) -> tuple[SegmentInfo, ...]:
        """The segments of one of several brokers that share an index: every `of`-th, so that neighbours part."""
        if not (0 <= number < of):
            raise InvalidValue(f"shard {number} of {of}: shards are numbered from 0 to {of - 1}")
        return self.segments[number::of]

    def encoded(self) -> bytes:
        """As it is written."""
        plain = {
            "format": FORMAT,
            "version": VERSION,
            "filters": self.filters,
            "subscriptions": self.subscriptions,
            "geotext_index": self.options.geotext_index,
            "matching": self.options.matching,
            "uniform": [how.density, how.halo] if isinstance(how := self.options.discretization, Uniform) else None,
            "simplify": self.options.simplify,
            "crs": self.options.crs,
            "segments": [each.to_plain() for each in self.segments],
            "statistics": self.statistics,
            "folders": dict(self.folders),
        }
        return json.dumps(plain, ensure_ascii=False, indent=1).encode()


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """The manifest of an index, by path or URL; `CorruptFile` says what is wrong with it."""
    where = shown(path)
    try:
        content = manifest_bytes(path)
    except FileNotFoundError:
        raise CorruptFile(
            f"{where}: not an index (no {MANIFEST}); make one with: contrada build-index SUBSCRIPTIONS {where}"
        ) from None
    except OSError as error:
        raise CorruptFile(f"{where}/{MANIFEST}: cannot be read: {error.strerror or error}") from error
    return manifest_of(content, f"{where}/{MANIFEST}")


def manifest_bytes(path: str | os.PathLike[str]) -> bytes:
    """The file itself; an `OSError` when there is none or it cannot be read."""
    if is_url(path):
        return object_store.read(join(os.fspath(path), MANIFEST), _MOST_BYTES)
    return read_regular(Path(path) / MANIFEST, _MOST_BYTES)


def manifest_digest(path: str | os.PathLike[str]) -> str:
    """Which index there is: every file is named by its contents, and the manifest names them."""
    return digest_of_manifest(manifest_bytes(path))


def digest_of_manifest(content: bytes) -> str:
    """Which index a manifest is of."""
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def manifest_of(content: bytes, file: str) -> Manifest:
    """What a manifest says; `CorruptFile` says what is wrong with it."""
    try:
        plain = json.loads(content)
    except ValueError as error:
        raise CorruptFile(f"{file}: not JSON: {error}") from None
    except RecursionError:
        raise CorruptFile(f"{file}: not a manifest: nested too deeply") from None
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise CorruptFile(f"{file}: not the manifest of a {FORMAT}")
    if plain.get("version") != VERSION:
        raise CorruptFile(f"{file}: version {plain.get('version')}, this program reads {VERSION}")
    try:
        segments = tuple(SegmentInfo.from_plain(each) for each in plain["segments"])
        statistics, folders = plain["statistics"], plain.get("folders", {})
        if not isinstance(statistics, dict):
            raise ValueError("its statistics are none")
        if any(what not in FOLDERS or not re.fullmatch(rf"{what}-[0-9a-f]+", name) for what, name in folders.items()):
            raise ValueError("its folders are none")
        uniform = plain.get("uniform")
        options = TableOptions(
            plain["geotext_index"],
            plain.get("matching", DEFAULT_MATCHING),
            EXACT if uniform is None else Uniform(*uniform),
            plain.get("simplify", True),
            plain.get("crs", PLANE),
        )
        return Manifest(segments, options, statistics, folders)
    except (AttributeError, KeyError, TypeError, ValueError, InvalidValue) as error:
        raise CorruptFile(f"{file}: not a whole manifest: {error!r}") from error
