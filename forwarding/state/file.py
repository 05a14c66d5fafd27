"""A forwarding table as a file: its arrays as they are, memory-mapped when loaded.

Kind "forwarding-table" of arrays_file.py. The table's arrays are used straight from the file, page by page,
and copied only where they change; behind them is room to grow. So are those of plugged-in types, under `type.<kind>.`,
which are copied when they first grow. Whatever a kernel would follow is looked at before (guard.py). The
names and the interfaces, which must be strings, are msgpack arrays with nil for numbers that are free. Names are few
and become a dictionary at once; interfaces may be as many as filters, and are found by hash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgpack  # type: ignore[import-untyped]  # it ships no types
import numpy as np

from contrada.errors import CorruptFile, InvalidValue
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.language.lonlat import PLANE, check_crs
from contrada.forwarding.state.growable import GrowableArray
from contrada.forwarding.state.guard import check_shapes, guard_table
from contrada.forwarding.state.hashes import Hashes
from contrada.forwarding.state.memory import Memory
from contrada.forwarding.state.numbering import NameNumbering, SavedNumbering, saved_hashes
from contrada.forwarding.state.state import TableState
from contrada.forwarding.types.plain import nested, numbered, within
from contrada.forwarding.types.plugged import Settings, make_type
from contrada.spatial.relations.relate import EXACT, Uniform
from contrada.spatial.storage.arrays_file import load_arrays, save_arrays

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from contrada.spatial.road.network import RoadNetwork

KIND: Final = "forwarding-table"
VERSION: Final = 4
_TOPS: Final = {
    "operands": layout.S_OPERANDS,
    "filters": layout.S_FILTERS,
    "postings": layout.S_POSTINGS,
    "thresholds": layout.S_THRESHOLDS,
    "heads": layout.S_BUCKETS,
    "words": layout.S_WORDS,
}


def save_table(path: str | os.PathLike[str], state: TableState) -> None:
    """Write a table to one file."""
    memory, names, interfaces = state.memory, state.names, state.interfaces
    if None in interfaces.numbers:
        raise InvalidValue("interface None is not a string, and only strings can be saved")
    for interface in interfaces.objects:
        if interface is not None and not isinstance(interface, str):
            raise InvalidValue(f"interface {interface!r} is not a string, and only strings can be saved")
    arrays: dict[str, np.ndarray[Any, Any]] = {
        name: memory.arrays[name].array[: memory.state[top]] for name, top in _TOPS.items()
    }
    arrays["fields"] = memory.arrays["fields"].array[: len(names.objects) * layout.KINDS]
    arrays["interfaces"] = memory.interfaces.array[: len(interfaces.objects)]
    arrays["state"] = memory.state
    arrays["name_texts"] = _packed(names.objects)
    arrays["interface_texts"] = _packed(interfaces.objects)
    arrays |= nested("interface_hashes", saved_hashes(interfaces).arrays())
    for kind, plugged in state.types.items():
        arrays |= nested(f"type.{kind}", plugged.arrays())
    discretization = state.settings.discretization
    sampled = [discretization.density, discretization.halo] if isinstance(discretization, Uniform) else None
    save_arrays(
        path,
        kind=KIND,
        version=VERSION,
        arrays=arrays,
        meta={
            "simplify": state.simplify,
            "uniform": sampled,
            "geotext_index": state.settings.geotext_index,
            "crs": state.settings.crs,
        },
    )


def load_table(path: str | os.PathLike[str], roads: RoadNetwork | None, verify: bool) -> TableState:
    """Map the state of a table from a file."""
    growing = (*_TOPS, "fields", "interfaces")
    arrays, meta = load_arrays(path, kind=KIND, version=VERSION, verify=verify, growing=growing)
    try:
        check_shapes(arrays)
        uniform = meta["uniform"]
        state = TableState(
            Settings(
                EXACT if uniform is None else Uniform(*uniform),
                meta["geotext_index"],
                roads,
                check_crs(meta.get("crs", PLANE)),
            ),
            meta["simplify"],
            Memory.over(
                {name: GrowableArray.over(arrays[name]) for name in (*_TOPS, "fields")},
                GrowableArray.over(arrays["interfaces"]),
                arrays["state"].copy(),
            ),
            NameNumbering.of(_unpacked(arrays["name_texts"])),
            _interfaces(arrays),
        )
        for kind in numbered("type", arrays):
            state.types[kind] = make_type(kind, state.settings)
            state.types[kind].restore(within(f"type.{kind}", arrays))
        guard_table(state.memory, state.names.objects, state.interfaces.objects, state.types)
        state.memory.posted.restore(state.memory.index, state.types)
    except (KeyError, TypeError, ValueError, msgpack.UnpackException, CorruptFile) as error:
        raise CorruptFile(f"{path}: not a whole forwarding table: {error}") from error
    return state


def _interfaces(arrays: Mapping[str, np.ndarray[Any, Any]]) -> SavedNumbering:
    texts = _unpacked(arrays["interface_texts"])
    return SavedNumbering(texts, Hashes.from_arrays(within("interface_hashes", arrays), len(texts)))


def _packed(texts: list[Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(msgpack.packb(texts, unicode_errors="surrogatepass"), np.uint8)


def _unpacked(array: np.ndarray[Any, Any]) -> list[Any]:
    texts = msgpack.unpackb(array.data, unicode_errors="surrogatepass", max_array_len=array.size)
    if type(texts) is not list or not texts or not {*map(type, texts)} <= {str, type(None)} or texts[0] is not None:
        raise CorruptFile("names and interfaces are lists of strings")
    return texts
