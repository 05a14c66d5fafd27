"""The forwarding table: predicates of all interfaces, indexed so that a notification finds those it satisfies.

    index/        the arrays and the kernels over them: `layout` says what they hold, `filing` how a filter is posted,
                  `matching` how a notification finds it, `simplifying` what is left out meanwhile
    encode        Python objects into the batches that kernels read
    plugged       types with indexes of their own: regions, geotext
    store, arena  memory

With n filters, a notification costs what its attributes look up plus the postings they meet: the filters whose most
selective constraint it satisfies, whatever n. Adding and removing a filter are O(constraints · log n), without pauses:
nothing is ever rebuilt or copied, arrays grow in place, and a coverer's removal moves those it covered a few per
operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from operator import index
from typing import TYPE_CHECKING, Final, NoReturn

import numpy as np

from contrada.errors import InvalidValue
from contrada.forwarding.encode import Writer, as_ints, encode_constraint
from contrada.forwarding.explain import Explanation, explain
from contrada.forwarding.filter import as_filters
from contrada.forwarding.index import layout
from contrada.forwarding.index.adding import I_COUNT, I_FIRST
from contrada.forwarding.index.changing import MOVES, add_filters, remove_filter
from contrada.forwarding.lock import ReadersWriter
from contrada.forwarding.matcher import match_notifications
from contrada.forwarding.plugged import TYPES, Settings, make_type
from contrada.forwarding.rebuild import Rebuilder
from contrada.forwarding.registers import Register
from contrada.forwarding.simplify import Weigher, split_redundant
from contrada.forwarding.store import Store
from contrada.forwarding.table_file import SavedTable, save_table
from contrada.forwarding.values import Kind
from contrada.spatial.relate import EXACT, Discretization, Uniform
from contrada.spatial.textual.registry import NAMES

if TYPE_CHECKING:
    import os
    from collections.abc import Hashable, Iterator, Sequence

    from contrada.forwarding.constraint import Constraint
    from contrada.forwarding.filter import Expression, Filter
    from contrada.forwarding.index.batch import Batch
    from contrada.forwarding.index.layout import Ints
    from contrada.forwarding.operands import Roads
    from contrada.forwarding.plugged import PluggedType

_ADD: Final = 256  # filters added, and
_MATCH: Final = 1024  # notifications matched, before others get their turn
_SLOT: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class TableStats:
    """What a table holds."""

    filters: int
    active: int  # posted
    covered: int  # by another filter of the same interface (rule 3)
    unsatisfiable: int  # (rule 1)
    constraints: int  # to be verified: without the redundant ones (rule 2)
    operands: int  # different (name, value) pairs that constraints compare with
    names: int
    interfaces: int
    postings: int
    bytes: int  # in use by the table's own arrays, without plugged-in types


class ForwardingTable:
    """Filters of many interfaces. Any hashable object names an interface; ids of filters are integers, never reused.

    Matching may run in several threads at once. Changes take effect before they return and wait for matching that
    has begun; a batch is matched, and added, in pieces, so that neither waits long.

    `discretization` decides relations of regions, `geotext_index` names the index behind `matches`, `road_network` is
    what `similar` asks. With `simplify`, filters that another filter of the same interface covers are kept
    aside; no answer depends on it. A table that samples relations (`Uniform`) never simplifies.
    """

    def __init__(
        self,
        discretization: Discretization = EXACT,
        geotext_index: str = "ap-tree",
        road_network: Roads | None = None,
        simplify: bool = True,
    ) -> None:
        if not isinstance(discretization, Discretization):
            raise InvalidValue(f"discretization is EXACT or a Uniform, not {discretization!r}")
        if geotext_index not in NAMES:
            raise InvalidValue(f"no geotext index is called {geotext_index!r}; choose one of: {', '.join(NAMES)}")
        self._settings = Settings(discretization, geotext_index, road_network)
        # Covers and conflicts are theorems about exact relations; sampled ones need not obey them.
        self._simplify = simplify and not isinstance(discretization, Uniform)
        self._store = Store()
        self._names: Register[str] = Register()
        self._interfaces: Register[Hashable] = Register()
        self._types: dict[int, PluggedType] = {}
        self._lock = ReadersWriter()
        self._room: Ints = np.empty(64, np.int64)
        self._fresh: list[tuple[int, int]] = []  # handles made by the add under way

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: two tables must not share one memory."""
        raise InvalidValue("a forwarding table is not copied or pickled; save it, and load as many as you need")

    def __len__(self) -> int:
        """How many filters there are."""
        return int(self._store.state[layout.S_FILTER_COUNT])

    def add(self, interface: Hashable, filter: Expression | str) -> list[int]:
        """Add a filter, each filter of a predicate, or those that a text describes; their ids, in order."""
        filters = as_filters(filter)
        ids: list[int] = []
        for start in range(0, len(filters), _ADD):
            ids += self._add([(interface, each) for each in filters[start : start + _ADD]])
        return ids

    def add_many(self, pairs: Iterable[tuple[Hashable, Expression | str]]) -> list[list[int]]:
        """As `add` of each (interface, filter) pair, at a fraction of the cost."""
        counts: list[int] = []
        ids: list[int] = []
        waiting: list[tuple[Hashable, Filter]] = []
        for interface, expression in pairs:
            filters = as_filters(expression)
            counts.append(len(filters))
            waiting += [(interface, each) for each in filters]
            while len(waiting) >= _ADD:
                ids += self._add(waiting[:_ADD])
                del waiting[:_ADD]
        ids += self._add(waiting)
        return [ids[start:end] for start, end in _runs(accumulate(counts))]

    def _add(self, pairs: Sequence[tuple[Hashable, Filter]]) -> list[int]:
        if not pairs:
            return []
        with self._lock.writing():
            self._fresh.clear()
            try:
                batch, needed, owners, void = self._encode(pairs)
            except BaseException:
                self._forget(pairs)
                raise
            moved = MOVES * int(self._store.state[layout.S_LARGEST])
            self._reserve(len(batch.rows) + moved, len(pairs) + MOVES, len(batch.text))
            made = np.empty(len(pairs), np.int64)
            add_filters(
                self._store.index,
                self._store.interfaces.array,
                batch,
                as_ints(needed),
                as_ints(owners),
                as_ints(void),
                self._simplify,
                self._store.events,
                np.empty(2 * len(batch.rows) + 64, np.int64),
                made,
            )
            self._heed_events()
            if self._simplify and self._types:
                self._weigh(made)
            return self._ids(made)

    def _encode(self, pairs: Sequence[tuple[Hashable, Filter]]) -> tuple[Batch, list[int], list[int], list[bool]]:
        """The batch of some filters; where the needed rows of each end, its interface, whether nothing satisfies it."""
        writer = Writer()
        needed: list[int] = []
        owners: list[int] = []
        void: list[bool] = []
        names, number = self._names.numbers, self._names.number
        for interface, each in pairs:
            owners.append(self._interfaces.number(interface))
            constraints = each.constraints
            redundant: tuple[Constraint, ...] = ()
            unsatisfiable = False
            if self._simplify and len(constraints) > 1 and _repeats_a_name(constraints) and self._is_exact(each):
                constraints, redundant, unsatisfiable = split_redundant(each)
            for constraint in constraints:
                name = constraint.name
                encode_constraint(writer, names.get(name) or number(name), constraint, self._handle)
            needed.append(len(writer.rows) >> 1)
            for constraint in redundant:
                encode_constraint(writer, number(constraint.name), constraint, self._handle)
            void.append(unsatisfiable)
            writer.end()
        return writer.batch(), needed, owners, void

    def _forget(self, pairs: Sequence[tuple[Hashable, Filter]]) -> None:
        """Undo what encoding filters that are not added, one being refused, has registered."""
        for kind, handle in self._fresh:
            self._types[kind].release(handle)
        counts, fields = self._store.interfaces.array, self._store.index.fields
        for interface, each in pairs:
            number = self._interfaces.find(interface)
            if number and (number >= len(counts) or not counts[number, I_COUNT]):
                self._interfaces.release(number)
            for constraint in each:
                number = self._names.find(constraint.name)
                row = number * layout.KINDS
                if number and (row >= len(fields) or not fields[row, layout.N_USES]):
                    self._names.release(number)

    def _is_exact(self, filter: Filter) -> bool:
        """Whether rules 1 and 2 may reason about a filter: about sampled relations nothing is certain."""
        return self._settings.discretization == EXACT or all(each.kind is not Kind.REGION for each in filter)

    def _weigh(self, rows: Ints) -> None:
        """Let plugged-in types decide whether new filters cover, or are covered."""
        weigher = Weigher(self._store.index, self._types)
        for row in rows.tolist():
            last = self._store.index.filters[row]
            word = int(self._store.index.words[int(last[layout.F_CODE]) + (int(last[layout.F_SIZE]) & _SLOT) - 1])
            first = int(self._store.index.words[int(last[layout.F_CODE])])
            plugged = layout.PLUG in (word & 15, first & 15)
            if plugged and int(last[layout.F_STATE]) & 255 == layout.ACTIVE:
                self._store.state[layout.S_EVENTS] = 0
                weigher.weigh(row, self._store.events)
                self._heed_events()

    def remove(self, id: int) -> None:
        """Take a filter out. `KeyError` when there is none of that id."""
        with self._lock.writing():
            self._remove(self._row(id))

    def remove_interface(self, interface: Hashable) -> None:
        """Take all filters of an interface out. `KeyError` when it has none.

        Between pieces of a long removal other calls get their turn, and may see the interface with fewer filters.
        """
        more = True
        with self._lock.reading():
            if interface not in self._interfaces:
                raise KeyError(interface)
        while more:
            with self._lock.writing():
                for _ in range(_ADD):
                    number = self._interfaces.find(interface)
                    first = int(self._store.interfaces.array[number, I_FIRST]) if number else 0
                    more = first != 0
                    if not more:
                        break
                    self._remove(first)

    def _remove(self, row: int) -> None:
        interface = int(self._store.index.filters[row, layout.F_IFACE])
        # Filters may come back from under the one that goes: room for as many as move at once.
        self._reserve(MOVES * int(self._store.state[layout.S_LARGEST]), MOVES, 0)
        remove_filter(
            self._store.index, self._store.interfaces.array, row, self._simplify, self._store.events, self._room
        )
        self._heed_events()
        if not self._store.interfaces.array[interface, I_COUNT]:
            self._interfaces.release(interface)

    def match(self, notification: Mapping[str, object]) -> set[Hashable]:
        """Every interface with at least one filter that matches."""
        return self._interfaces_of([notification])[0]

    def match_many(self, notifications: Iterable[Mapping[str, object]]) -> list[set[Hashable]]:
        """As `match` of each, much cheaper per notification."""
        answers: list[set[Hashable]] = []
        given = _listed(notifications)
        for start in range(0, len(given), _MATCH):
            answers += self._interfaces_of(given[start : start + _MATCH])
        return answers

    def match_filters(self, notification: Mapping[str, object]) -> list[int]:
        """The ids of the filters that match, in ascending order."""
        return self._filters_of([notification])[0]

    def match_many_filters(self, notifications: Iterable[Mapping[str, object]]) -> list[list[int]]:
        """As `match_filters` of each, much cheaper per notification."""
        answers: list[list[int]] = []
        given = _listed(notifications)
        for start in range(0, len(given), _MATCH):
            answers += self._filters_of(given[start : start + _MATCH])
        return answers

    def _interfaces_of(self, notifications: Sequence[Mapping[str, object]]) -> list[set[Hashable]]:
        self._lock.enter()
        try:
            found, ends, rows, late = self._match(notifications, whole=False)
            objects = self._interfaces.objects
            if len(ends) == 1:
                answers = [{objects[number] for number in found}]
            else:
                everyone = [objects[number] for number in found]
                answers = [set(everyone[start:end]) for start, end in _runs(ends)]
            if rows:
                owners = self._store.index.filters[late, layout.F_IFACE].tolist()
                for n, owner in zip(rows, owners, strict=True):
                    answers[n].add(objects[owner])
            return answers
        finally:
            self._lock.leave()

    def _filters_of(self, notifications: Sequence[Mapping[str, object]]) -> list[list[int]]:
        self._lock.enter()
        try:
            found, ends, rows, late = self._match(notifications, whole=True)
            ids = self._ids(as_ints(found))
            answers = [ids[start:end] for start, end in _runs(ends)]
            if rows:
                for n, id in zip(rows, self._ids(late), strict=True):
                    answers[n].append(id)
            for answer in answers:
                answer.sort()
            return answers
        finally:
            self._lock.leave()

    def _match(
        self, notifications: Sequence[Mapping[str, object]], *, whole: bool
    ) -> tuple[list[int], list[int], list[int], Ints]:
        return match_notifications(notifications, self._names.numbers, self._store, self._types, whole=whole)

    def explain(self, notification: Mapping[str, object], id: int) -> Explanation:
        """Constraint by constraint, whether the filter of that id holds and why; `str()` of it is readable."""
        with self._lock.reading():
            row = self._row(id)
            interface = self._interfaces.objects[int(self._store.index.filters[row, layout.F_IFACE])]
            found = self._rebuilder().filter(row)
        return explain(found, interface, notification, self._settings.discretization, self._settings.road_network)

    def filter(self, id: int) -> Filter:
        """The filter of that id, equal to what was added. `KeyError` when there is none."""
        with self._lock.reading():
            return self._rebuilder().filter(self._row(id))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to one file. Interfaces must be strings; the road network is not part of it."""
        with self._lock.reading():
            save_table(
                path, self._store, self._names, self._interfaces.objects, self._types, self._settings, self._simplify
            )

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, road_network: Roads | None = None, verify: bool = True
    ) -> ForwardingTable:
        """Map a saved table: it can be matched against at once, and goes on changing in memory.

        With `verify` every byte is checked first; `CorruptFile` for what `save` did not write whole.
        """
        saved = SavedTable(path, verify)
        table = cls(saved.discretization, saved.geotext_index, road_network, saved.simplify)
        table._store, table._names, table._interfaces = saved.store, saved.names, saved.interfaces
        for kind, constraints in saved.plugged().items():
            table._types[kind] = make_type(kind, table._settings)
            table._types[kind].restore(constraints)
        return table

    def stats(self) -> TableStats:
        """How much the table holds."""
        with self._lock.reading():
            state = self._store.state
            return TableStats(
                filters=int(state[layout.S_FILTER_COUNT]),
                active=int(state[layout.S_ACTIVE]),
                covered=int(state[layout.S_COVERED]),
                unsatisfiable=int(state[layout.S_VOID]),
                constraints=int(state[layout.S_CONSTRAINTS]),
                operands=int(state[layout.S_OPERAND_COUNT]),
                names=len(self._names),
                interfaces=len(self._interfaces),
                postings=int(state[layout.S_POSTING_COUNT] + state[layout.S_THRESHOLD_COUNT]),
                bytes=self._store.nbytes,
            )

    def _reserve(self, rows: int, filters: int, text: int) -> None:
        self._store.reserve(
            rows=rows,
            filters=filters,
            text=text,
            names=len(self._names.objects),
            interfaces=len(self._interfaces.objects),
        )
        self._store.state[layout.S_EVENTS] = 0

    def _heed_events(self) -> None:
        """Do what the last change asks of names and types."""
        count = int(self._store.state[layout.S_EVENTS])
        for what, tag, value in self._store.events[:count].tolist():
            if what == layout.EVENT_NAME_FREE:
                self._names.release(tag)
            elif what == layout.EVENT_POSTED:
                self._types[tag & 255].post(value)
            elif what == layout.EVENT_UNPOSTED:
                self._types[tag & 255].unpost(value)
            else:
                self._types[tag & 255].release(value)

    def _handle(self, kind: int, name: int, constraint: Constraint) -> int:
        if kind not in self._types:
            if kind not in TYPES:
                raise InvalidValue(f"{constraint}: this table has no index for {constraint.op}")
            self._types[kind] = make_type(kind, self._settings)
        plugged = self._types[kind]
        before = len(plugged)
        handle = plugged.handle(name, constraint)
        if len(plugged) > before:
            self._fresh.append((kind, handle))
        return handle

    def _ids(self, rows: Ints) -> list[int]:
        """Rows as ids: a row's generation tells its filters, one after another, apart."""
        ids: list[int] = ((self._store.index.filters[rows, layout.F_STATE] >> 8) << 32 | rows).tolist()
        return ids

    def _row(self, id: int) -> int:
        id = -1 if isinstance(id, bool) or not hasattr(id, "__index__") else index(id)
        row = id & _SLOT if id > 0 else 0
        if 0 < row < self._store.state[layout.S_FILTERS]:
            state = int(self._store.index.filters[row, layout.F_STATE])
            if state & 255 not in (layout.FREE, layout.GHOST) and state >> 8 == id >> 32:
                return row
        raise KeyError(id)

    def _rebuilder(self) -> Rebuilder:
        return Rebuilder(self._store.index, self._names.objects, self._types)

    def _check(self) -> None:
        """Assert every invariant of the table."""
        from contrada.forwarding.table_check import check_table

        with self._lock.reading():
            check_table(self._store, self._names, self._interfaces)
            for plugged in self._types.values():
                plugged._check()


def _listed(notifications: Iterable[Mapping[str, object]]) -> list[Mapping[str, object]]:
    if isinstance(notifications, list):
        return notifications
    if isinstance(notifications, Mapping) or not isinstance(notifications, Iterable):
        raise InvalidValue(f"expected a list of notifications, not {type(notifications).__name__}; one goes to match")
    return list(notifications)


def _runs(ends: Iterable[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for end in ends:
        yield start, end
        start = end


def _repeats_a_name(constraints: tuple[Constraint, ...]) -> bool:
    """Whether two constraints of a filter, which keeps them sorted by name, speak of one name."""
    before = None
    for constraint in constraints:
        if constraint.name == before:
            return True
        before = constraint.name
    return False
