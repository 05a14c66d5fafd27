"""Refuses a loaded table whose arrays would lead kernels astray: see guarding.py for what is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contrada.errors import CorruptFile
from contrada.forwarding.kernels.guard import guarding
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.kernels.substrings.fingerprints import PRIME

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from contrada.forwarding.table.memory import Memory
    from contrada.forwarding.types.plugged import PluggedType

# Columns of each array, 0 for a list; and the place in `state` that says how many rows are in use.
SHAPES: Final = {
    "operands": (8, layout.S_OPERANDS),
    "filters": (16, layout.S_FILTERS),
    "postings": (2, layout.S_POSTINGS),
    "thresholds": (4, layout.S_THRESHOLDS),
    "heads": (0, layout.S_BUCKETS),
    "words": (0, layout.S_WORDS),
}
_MOST: Final = 1 << 31  # rows: a payload has room for no more


def check_shapes(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse arrays of other types or shapes than kernels are compiled for, or with fewer rows than they say."""
    state = arrays["state"]
    if state.dtype != np.int64 or state.shape != (layout.STATE_SIZE,):
        raise CorruptFile("the state is not one")
    rows = {name: (columns, int(state[top])) for name, (columns, top) in SHAPES.items()}
    for name, (columns, used) in (rows | {"fields": (8, 0), "interfaces": (2, 0)}).items():
        array = arrays[name]
        shaped = array.shape[1:] == ((columns,) if columns else ())
        if array.dtype != np.int64 or array.ndim != (2 if columns else 1) or not shaped:
            raise CorruptFile(f"array {name!r} is {array.dtype} of shape {array.shape}")
        if not (name not in rows or 1 <= used <= min(len(array), _MOST)):
            raise CorruptFile(f"array {name!r} has {len(array)} rows and says {used}")


def guard_table(
    memory: Memory, names: Sequence[str | None], interfaces: Sequence[Hashable], types: Mapping[int, PluggedType]
) -> None:
    """Refuse a table that is not one; its arrays have the right shapes."""
    index, state = memory.index, memory.state
    if not names or not interfaces or len(names) * layout.KINDS > len(index.fields):
        raise CorruptFile("there are more names than fields")
    if len(interfaces) > len(memory.interfaces.array):
        raise CorruptFile("there are more interfaces than rows for them")
    base, inverse = int(state[layout.S_BASE]), int(state[layout.S_INVERSE])
    if not (2 <= base < PRIME and 0 < inverse < PRIME and base * inverse % PRIME == 1):
        raise CorruptFile("the base of its fingerprints is none")
    handles = np.zeros(layout.KINDS, np.int64)
    for kind, plugged in types.items():
        handles[kind] = plugged.handles
    marks = _marks(memory, len(names), len(interfaces))
    fault = guarding.guard_operands(index, len(names), handles, marks)
    fault = fault or guarding.guard_chains(index, marks)
    fault = fault or guarding.guard_tries(index, marks)
    fault = fault or guarding.guard_filters(index, memory.interfaces.array, len(interfaces), marks)
    fault = fault or guarding.guard_forest(index, marks)
    fault = fault or guarding.guard_lists(index, len(names), marks)
    fault = fault or guarding.guard_sums(index, len(names), marks)
    if fault:
        raise CorruptFile(guarding.FAULTS[fault])
    if None in interfaces[1:]:
        nobody = np.array([each is None for each in interfaces])
        if marks.counts[nobody].any():
            raise CorruptFile("a filter is of an interface without a name")
    if None in names[1:]:
        nobody = np.array([each is None for each in names])
        if marks.uses.reshape(-1, layout.KINDS)[nobody].any():
            raise CorruptFile("a constraint is on an attribute without a name")
    state[layout.S_EVENTS] = 0


def _marks(memory: Memory, names: int, interfaces: int) -> guarding.Marks:
    tops = {name: int(memory.state[top]) for name, (_, top) in SHAPES.items()}

    def bits(name: str) -> NDArray[np.uint8]:
        return np.zeros(tops[name], np.uint8)

    def numbers(size: int) -> NDArray[np.int64]:
        return np.zeros(size, np.int64)

    return guarding.Marks(
        words=bits("words"),
        postings=bits("postings"),
        thresholds=bits("thresholds"),
        operands=bits("operands"),
        owners=numbers(tops["postings"]),
        crossing=numbers(tops["filters"]),
        refs=numbers(tops["operands"]),
        uses=numbers(names * layout.KINDS),
        tries=numbers(names * layout.KINDS),
        counts=numbers(interfaces),
        sums=numbers(guarding.SUMS),
    )
