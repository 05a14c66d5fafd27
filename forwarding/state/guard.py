"""Refuses a loaded table whose arrays would lead kernels astray.

Kernels follow row numbers without looking where they lead. In a table that was built here they lead where layout.py
says; in a file with right checksums they may be anybody's. So everything that a kernel follows is checked when a file
is loaded (kernels/guard): where a column points, that lists end, that no two pieces of memory overlap, that what is
counted is there. It is what check.py asserts, fast enough for every load: less than a microsecond for each filter.

    operands   tags, texts, hashes, handles      first, each by itself
    chains     the hash over operands            these two beside
    tries      patterns in tries                 the following:
    filters    constraints, access, relatives: interfaces, groups, what covers what
    lists      postings, thresholds; free rows and pieces of memory; counts
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contrada.errors import CorruptFile
from contrada.forwarding.kernels.guard.filters import guard_filters
from contrada.forwarding.kernels.guard.lists import guard_free, guard_lists, guard_sums
from contrada.forwarding.kernels.guard.marks import FAULTS, MOST_NAMES, SUMS, Marks
from contrada.forwarding.kernels.guard.operands import guard_chains, guard_operands
from contrada.forwarding.kernels.guard.relatives import guard_forest
from contrada.forwarding.kernels.guard.tries import guard_tries
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.kernels.substrings.fingerprints import PRIME

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from contrada.forwarding.state.memory import Memory
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
    if not names or not interfaces or len(names) > min(len(index.fields) // layout.KINDS, MOST_NAMES):
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
    fault = guard_operands(index, len(names), handles, marks) or _guard_rest(memory, len(names), len(interfaces), marks)
    if fault:
        raise CorruptFile(FAULTS[fault])
    if None in interfaces[1:]:
        nobody = np.array([each is None for each in interfaces])
        if marks.counts[nobody].any():
            raise CorruptFile("a filter is of an interface without a name")
    if None in names[1:]:
        nobody = np.array([each is None for each in names])
        if marks.uses.reshape(-1, layout.KINDS)[nobody].any():
            raise CorruptFile("a constraint is on an attribute without a name")
    state[layout.S_EVENTS] = 0


def _guard_rest(memory: Memory, names: int, interfaces: int, marks: Marks) -> int:
    """All but the operands by themselves: what is wrong, or 0. Another thread looks at the hash and at the tries."""
    index = memory.index
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(lambda: guard_tries(index, marks) or guard_chains(index, marks))
        fault = guard_filters(index, memory.interfaces.array, interfaces, marks) or guard_forest(index, marks)
        fault = fault or beside.result()  # lists ask what fields should say of their tries
    return fault or guard_lists(index, names, marks) or guard_free(index, marks) or guard_sums(index, marks)


def _marks(memory: Memory, names: int, interfaces: int) -> Marks:
    tops = {name: int(memory.state[top]) for name, (_, top) in SHAPES.items()}

    def bits(name: str) -> NDArray[np.uint8]:
        return np.zeros(tops[name], np.uint8)

    def numbers(size: int) -> NDArray[np.int64]:
        return np.zeros(size, np.int64)

    return Marks(
        words=bits("words"),
        postings=bits("postings"),
        thresholds=bits("thresholds"),
        named=bits("operands"),
        holders=numbers(tops["operands"]),
        links=numbers(tops["operands"]),
        owners=numbers(tops["postings"]),
        crossing=numbers(tops["filters"]),
        uses=numbers(names * layout.KINDS),
        tries=numbers(names * layout.KINDS),
        counts=numbers(interfaces),
        sums=numbers(SUMS),
    )
