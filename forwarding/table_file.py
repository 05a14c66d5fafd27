"""A forwarding table as a file: its arrays as they are, memory-mapped when loaded.

Kind "forwarding-table" of spatial/arrays_file.py. Everything the table's own types need is used straight from the file,
page by page, and copied only when it changes or an array first grows. Constraints of plugged-in types are stored as
the codec writes them (`plugged`, cut at `plugged_ends`) with their kind, name, handle and whether they are posted
(`plugged_rows`); their indexes are built again on loading. Interfaces must be strings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contrada.errors import CorruptFile, InvalidValue
from contrada.forwarding.arena import Arena
from contrada.forwarding.codec import Limits, decode_filter, encode_filter
from contrada.forwarding.filter import Filter
from contrada.forwarding.index import layout
from contrada.forwarding.parts import Parts
from contrada.forwarding.plugged import Settings, make_type
from contrada.forwarding.registers import Register
from contrada.forwarding.store import Store
from contrada.spatial.arrays_file import load_arrays, save_arrays
from contrada.spatial.relate import EXACT, Uniform

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from contrada.forwarding.constraint import Constraint
    from contrada.forwarding.operands import Roads

KIND: Final = "forwarding-table"
VERSION: Final = 1
# What the table took, it takes back: limits are for strangers.
_NO_LIMITS: Final = Limits(size=1 << 31, string_length=1 << 31, vertices=1 << 31, keywords=1 << 31, set_size=1 << 31)
_TOPS: Final = {
    "operands": layout.S_OPERANDS,
    "filters": layout.S_FILTERS,
    "postings": layout.S_POSTINGS,
    "thresholds": layout.S_THRESHOLDS,
    "heads": layout.S_BUCKETS,
    "words": layout.S_WORDS,
}


def save_table(path: str | os.PathLike[str], parts: Parts) -> None:
    """Write a table to one file."""
    store, names, interfaces = parts.store, parts.names, parts.interfaces.objects
    for interface in interfaces[1:]:
        if interface is not None and not isinstance(interface, str):
            raise InvalidValue(f"interface {interface!r} is not a string, and only strings can be saved")
    arrays: dict[str, np.ndarray[Any, Any]] = {
        name: store.arenas[name].array[: store.state[top]] for name, top in _TOPS.items()
    }
    arrays["fields"] = store.arenas["fields"].array[: len(names.objects) * layout.KINDS]
    arrays["interfaces"] = store.interfaces.array[: len(interfaces)]
    arrays["state"] = store.state
    rows, texts = [], []
    for kind, plugged in parts.types.items():
        for handle, name, posted in plugged.handles():
            rows.append((kind, name, handle, int(posted)))
            texts.append(encode_filter(Filter((plugged.constraint(handle, str(names.objects[name])),))))
    arrays["plugged_rows"] = np.array(rows, np.int64).reshape(-1, 4)
    arrays["plugged_ends"] = np.cumsum([len(text) for text in texts], dtype=np.int64)
    arrays["plugged"] = np.frombuffer(b"".join(texts) + b"\0", np.uint8)
    discretization = parts.settings.discretization
    sampled = [discretization.density, discretization.halo] if isinstance(discretization, Uniform) else None
    save_arrays(
        path,
        kind=KIND,
        version=VERSION,
        arrays=arrays,
        meta={
            "names": names.objects,
            "interfaces": interfaces,
            "simplify": parts.simplify,
            "uniform": sampled,
            "geotext_index": parts.settings.geotext_index,
        },
    )


def load_table(path: str | os.PathLike[str], roads: Roads | None, verify: bool) -> Parts:
    """Map the parts of a table from a file."""
    arrays, meta = load_arrays(path, kind=KIND, version=VERSION, verify=verify)
    try:
        uniform = meta["uniform"]
        parts = Parts(
            Settings(EXACT if uniform is None else Uniform(*uniform), meta["geotext_index"], roads),
            meta["simplify"],
            Store.over(
                {name: Arena.over(arrays[name]) for name in (*_TOPS, "fields")},
                Arena.over(arrays["interfaces"]),
                arrays["state"].copy(),
            ),
            Register.of(meta["names"]),
            Register.of(meta["interfaces"]),
        )
        plugged = _plugged(arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptFile(f"{path}: not a whole forwarding table: {error}") from error
    for kind, constraints in plugged.items():
        parts.types[kind] = make_type(kind, parts.settings)
        parts.types[kind].restore(constraints)
    return parts


def _plugged(arrays: Mapping[str, np.ndarray[Any, Any]]) -> dict[int, list[tuple[int, int, bool, Constraint]]]:
    """What each plugged-in type, by its kind, has to restore."""
    found: dict[int, list[tuple[int, int, bool, Constraint]]] = {}
    text = arrays["plugged"].tobytes()
    start = 0
    rows, ends = arrays["plugged_rows"].tolist(), arrays["plugged_ends"].tolist()
    for (kind, name, handle, posted), end in zip(rows, ends, strict=True):
        (constraint,) = decode_filter(text[start:end], _NO_LIMITS).filters[0].constraints
        found.setdefault(kind, []).append((handle, name, bool(posted), constraint))
        start = end
    return found
