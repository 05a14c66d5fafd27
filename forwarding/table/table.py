"""The forwarding table: predicates of all interfaces, indexed so that a notification finds those it satisfies.

    kernels/      the arrays and the kernels over them: `layout` says what they hold, `filing` how a filter is posted,
                  `matching` how a notification finds it, `simplifying` what is left out meanwhile
    batches/      Python objects, encoded notifications and columns into the batches that kernels read
    types/        types with indexes of their own: regions, geotext
    changer       adding and removing around the kernels; `matcher` the same for matching
    arguments     what callers give, looked at; `answers` what they get, made of what matching has found
    state/        what these share: `memory` and `growable` are its memory, `file` its form on disk

With n filters, a notification costs what its attributes look up plus the postings they meet: the filters whose most
selective constraint it satisfies, whatever n. Adding and removing a filter are O(constraints · log n), without pauses:
nothing is ever rebuilt or copied, arrays grow in place, and a coverer's removal moves those it covered a few per
operation.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import accumulate, chain
from operator import index
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn

from contrada.errors import InvalidValue, NotFound, shown
from contrada.forwarding.batches.bodies import read_plain
from contrada.forwarding.batches.columns import encode_given
from contrada.forwarding.batches.encode import as_ints
from contrada.forwarding.batches.packed_columns import check_degrees_of
from contrada.forwarding.kernels.change.adding import I_FIRST
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.language.explain import Explanation, explain
from contrada.forwarding.language.filter import as_filters, vertices_of
from contrada.forwarding.language.lonlat import LONLAT, PLANE, notification_in_degrees
from contrada.forwarding.state.file import load_table, save_table
from contrada.forwarding.state.lock import ReadersWriter
from contrada.forwarding.state.matching import DEFAULT_MATCHING, matching_number
from contrada.forwarding.state.state import TableState, TableStats, table_stats
from contrada.forwarding.table.answers import interface_sets, pairs_of, runs, set_of, shared_sets
from contrada.forwarding.table.arguments import given_in_degrees, hashed, interface_filter_pairs, listed
from contrada.forwarding.table.changer import Changer
from contrada.forwarding.table.interfaces import InterfaceT
from contrada.forwarding.table.matcher import (
    MATCH_AT_ONCE,
    match_by_pieces,
    match_encoded,
    match_in_degrees,
    match_notifications,
)
from contrada.forwarding.table.options import DEFAULT_OPTIONS, TableOptions
from contrada.forwarding.table.rebuild import Rebuilder
from contrada.forwarding.table.single import UNPACKABLE, Single, packed
from contrada.forwarding.table.threads import cut, in_threads, joined_pairs, thread_count
from contrada.forwarding.types.plugged import Settings, check_roads
from contrada.spatial.relations.relate import EXACT, Discretization
from contrada.spatial.textual.registry import DEFAULT

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set

    from contrada.errors import CodecError
    from contrada.forwarding.batches.columns import Columns
    from contrada.forwarding.batches.encode import Encoded
    from contrada.forwarding.batches.packed_columns import Filters
    from contrada.forwarding.kernels.memory.layout import Ints
    from contrada.forwarding.language.filter import Expression, Filter
    from contrada.forwarding.state.numbering import NameNumbering
    from contrada.forwarding.table.answers import Found
    from contrada.spatial.road.network import RoadNetwork

_ADD: Final = 256  # filters added before others get their turn
_FEW: Final = 6  # bodies up to which one entry into compiled code for each costs less than a batch
PIECE: Final = 64  # filters that one step of `adding` adds, and
_VERTICES: Final = 256  # vertices that count as one filter more
_SLOT: Final = (1 << 32) - 1


class ForwardingTable(Generic[InterfaceT]):
    """Filters of many interfaces. Any hashable object names an interface; ids of filters are integers, never reused.

    To type checkers, `ForwardingTable[str]` is one whose interfaces are strings, so that `match` gives `set[str]`.

    Matching may run in several threads at once. Changes take effect before they return and wait for matching that
    has begun; a batch is matched, and added, in pieces, so that neither waits long.

    `discretization` decides relations of regions, `geotext_index` names the index behind `matches`, `road_network` is
    what `similar` asks. With `simplify`, filters that another filter of the same interface covers are kept
    aside; no answer depends on it. Where relations are sampled (`Uniform`), constraints on different regions are not
    compared for it. With `crs="lonlat"` coordinates are longitudes and latitudes (language/lonlat.py).
    """

    def __init__(
        self,
        discretization: Discretization = EXACT,
        geotext_index: str = DEFAULT,
        road_network: RoadNetwork | None = None,
        simplify: bool = True,
        crs: str = PLANE,
        matching: str = DEFAULT_MATCHING,
    ) -> None:
        self._make(TableOptions(geotext_index, matching, discretization, simplify, crs), road_network)

    @classmethod
    def of(cls, options: TableOptions, road_network: RoadNetwork | None = None) -> ForwardingTable[InterfaceT]:
        """An empty table with these options."""
        table = cls.__new__(cls)
        table._make(options, road_network)
        return table

    def _make(self, options: TableOptions, road_network: RoadNetwork | None) -> None:
        check_roads(road_network)
        settings = Settings(options.discretization, options.geotext_index, road_network, options.crs)
        state = TableState(settings, options.simplify)
        state.memory.state[layout.S_MATCHING] = matching_number(options.matching)
        self._take(state)

    def _take(self, state: TableState) -> None:
        """Be the table of this state."""
        self._state = state
        self._memory, self._names, self._interfaces = state.memory, state.names, state.interfaces
        self._types = state.types
        self._degrees = state.settings.crs == LONLAT
        self._changer = Changer(state)
        self._lock = ReadersWriter()
        self._singles: list[Single] = []

    @property
    def crs(self) -> str:
        """What coordinates are: "plane" or "lonlat"."""
        return self._state.settings.crs

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: two tables must not share one memory."""
        raise InvalidValue("a forwarding table is not copied or pickled; save it, and load as many as you need")

    def __len__(self) -> int:
        """How many filters there are."""
        return int(self._memory.state[layout.S_FILTER_COUNT])

    def add(self, interface: InterfaceT, filter: Expression | str) -> list[int]:
        """Add a filter, each filter of a predicate, or those that a text describes; their ids, in order."""
        filters = as_filters(filter, self.crs)
        if len(filters) > _ADD:
            return self.add_many([(interface, filter)])[0]
        hashed(interface)
        return self._add([(interface, each) for each in filters])

    def add_many(self, pairs: Iterable[tuple[InterfaceT, Expression | str]]) -> list[list[int]]:
        """As `add` of each (interface, filter) pair, at a fraction of the cost. When one is refused none is added."""
        counts: list[int] = []
        ids: list[int] = []
        waiting: list[tuple[InterfaceT, Filter]] = []
        crs = self.crs
        try:
            for interface, expression in interface_filter_pairs(pairs):
                filters = as_filters(expression, crs)
                counts.append(len(filters))
                if len(filters) == 1:
                    waiting.append((interface, filters[0]))
                else:
                    waiting += [(interface, each) for each in filters]
                while len(waiting) >= _ADD:
                    ids += self._add(waiting[:_ADD])
                    del waiting[:_ADD]
            ids += self._add(waiting)
        except BaseException:
            for id in ids:
                with suppress(KeyError):  # another thread may have removed it
                    self.remove(id)
            raise
        return [ids[start:end] for start, end in runs(accumulate(counts))]

    def alike(self) -> ForwardingTable[InterfaceT]:
        """An empty table with the same settings."""
        table: ForwardingTable[InterfaceT] = ForwardingTable.__new__(ForwardingTable)
        state = TableState(self._state.settings, self._state.simplify)
        state.memory.state[layout.S_MATCHING] = self._memory.state[layout.S_MATCHING]
        table._take(state)
        return table

    def adding(self, interface: InterfaceT, filter: Expression | str, start: int = 0) -> Iterator[list[int]]:
        """As `add`, a piece at each step: the ids of the piece. For callers who have others to serve in between.

        A piece is some tens of filters, or fewer of many vertices, and takes some milliseconds. Filters of the pieces
        so far match already. Who stops early removes the interface, or the ids there are, and may go on later with the
        filter at `start`, here or in another table.
        """
        piece: list[tuple[InterfaceT, Filter]] = []
        room = PIECE
        for each in as_filters(filter, self.crs)[start:]:
            cost = 1 + vertices_of(each) // _VERTICES
            if piece and cost > room:
                yield self._add(piece)
                piece, room = [], PIECE
            piece.append((interface, each))
            room -= cost
        yield self._add(piece)

    @classmethod
    def packed(
        cls,
        pairs: Sequence[tuple[InterfaceT, Filter]],
        options: TableOptions = DEFAULT_OPTIONS,
        *,
        weigh: Sequence[bool] | None = None,
    ) -> ForwardingTable[InterfaceT]:
        """A new table of these filters, whose ids are 1, 2, …: as by `add_many`, with the types' indexes built in bulk.

        `weigh` says which filters of plugged-in types may cover or be covered, where that is known; else all may.
        """
        table = cls.of(options)
        with table._lock.writing(), table._changer.in_bulk():
            for start in range(0, len(pairs), _ADD):
                part = slice(start, start + _ADD)
                table._changer.add(pairs[part], None if weigh is None else weigh[part])
        return table

    @classmethod
    def packed_columns(
        cls,
        filters: Filters,
        options: TableOptions = DEFAULT_OPTIONS,
        *,
        road_network: RoadNetwork | None = None,
    ) -> ForwardingTable[str]:
        """As `packed`, of filters column by column. Those of longitudes beyond 180 are given as filters."""
        table: ForwardingTable[str] = ForwardingTable.of(options, road_network)
        if options.crs == LONLAT:
            check_degrees_of(filters)
        with table._lock.writing(), table._changer.in_bulk():
            table._changer.add_columns(filters)
        return table

    def _add(self, pairs: Sequence[tuple[InterfaceT, Filter]]) -> list[int]:
        if not pairs:
            return []
        with self._lock.writing():
            return self._ids(self._changer.add(pairs))

    def remove(self, id: int) -> None:
        """Take a filter out. `NotFound` when there is none of that id."""
        with self._lock.writing():
            self._changer.remove(self._row(id))

    def remove_interface(self, interface: Hashable) -> None:
        """Take all filters of an interface out. `NotFound` when it has none.

        Between pieces of a long removal other calls get their turn, and may see the interface with fewer filters.
        """
        more = True
        with self._lock.reading():
            if hashed(interface) not in self._interfaces:
                raise NotFound(f"no filter is of interface {interface!r}")
        while more:
            with self._lock.writing():
                for _ in range(_ADD):
                    number = self._interfaces.find(interface)
                    first = int(self._memory.interfaces.array[number, I_FIRST]) if number else 0
                    more = first != 0
                    if not more:
                        break
                    self._changer.remove(first)

    def match(self, notification: Mapping[str, object]) -> set[InterfaceT]:
        """Every interface with at least one filter that matches."""
        if type(notification) is dict and not self._degrees and "" not in notification:
            singles = self._singles
            try:
                single = singles.pop()
            except IndexError:
                single = self._new_single()
            try:
                found = self._match_body(single, single.pack(notification))
            except UNPACKABLE:
                found = None
            finally:
                singles.append(single)
            if found is not None:
                return found
        return self._interfaces_of([notification])[0]

    def _take_single(self) -> Single:
        """What one thread needs for one notification, to be put back among the singles."""
        try:
            return self._singles.pop()
        except IndexError:
            return self._new_single()

    def _new_single(self) -> Single:
        return Single(self._memory, self._names, self._types)

    def _match_body(self, single: Single, body: bytes) -> set[InterfaceT] | None:
        """The interfaces of a notification as bytes, or None if it goes the long way."""
        lock = self._lock
        lock.enter()
        try:
            found = single.match(body, lock.writes)
            answer = None if found is None else set_of(self._interfaces, found)
        finally:
            lock.leave()
        if single.is_due or self._changer.rows_to_turn:
            single.is_due = False
            self._reconsider()
        return answer

    def match_many(
        self, notifications: Iterable[Mapping[str, object]], *, threads: int | None = 1
    ) -> list[set[InterfaceT]]:
        """As `match` of each, much cheaper per notification; a large batch in several threads, None for all cores."""
        given = listed(notifications)
        pieces = [given[start : start + MATCH_AT_ONCE] for start in range(0, len(given), MATCH_AT_ONCE)]
        return [*chain.from_iterable(in_threads(self._interfaces_of, pieces, thread_count(threads)))]

    def match_bodies(self, bodies: Sequence[bytes]) -> tuple[list[Set[InterfaceT]], dict[int, CodecError]]:
        """As `match_many` of notifications as `encode_notification` writes them, most of which are never made objects.

        What the codec refuses matches nothing; its place, and the reason, are in the second answer. Equal answers may
        be one object.
        """
        if self._degrees:
            return match_in_degrees(bodies, self._interfaces_of)
        return match_by_pieces(bodies, self._match_plain, self._interfaces_of)

    def match_filters(self, notification: Mapping[str, object]) -> list[int]:
        """The ids of the filters that match, in ascending order."""
        return self._filters_of([notification])[0]

    def match_many_filters(self, notifications: Iterable[Mapping[str, object]]) -> list[list[int]]:
        """As `match_filters` of each, much cheaper per notification."""
        answers: list[list[int]] = []
        given = listed(notifications)
        for start in range(0, len(given), MATCH_AT_ONCE):
            answers += self._filters_of(given[start : start + MATCH_AT_ONCE])
        return answers

    def match_pairs(
        self, notifications: Columns | Sequence[Mapping[str, object]], *, threads: int | None = 1
    ) -> tuple[Ints, Ints]:
        """As `match_many_filters`, in arrays: places of notifications, ascending, and ids of filters they match.

        Notifications may be given by columns, as analytical files hold them. The filters of one notification come in no
        order. No filter changes before the whole batch is matched.
        """
        given = given_in_degrees(notifications) if self._degrees else notifications
        count = thread_count(threads)
        if count == 1:
            return self.match_batch_pairs(lambda: encode_given(given, self._names.numbers))

        pieces = cut(given, MATCH_AT_ONCE)
        self._lock.enter()
        try:
            found = in_threads(lambda piece: self._pairs(encode_given(piece[1], self._names.numbers)), pieces, count)
        finally:
            self._leave()
        return joined_pairs(pieces, found)

    def interface_numbers(self, ids: Ints) -> tuple[Ints, Sequence[InterfaceT]]:
        """The interfaces of filters that were just matched: places in a list of names, and that list."""
        with self._lock.reading():
            objects: list[Any] = self._interfaces.objects
            return self._memory.index.filters[ids & _SLOT, layout.F_INTERFACE], objects

    def _interfaces_of(self, notifications: Sequence[Mapping[str, object]]) -> list[set[InterfaceT]]:
        bodies = None if self._degrees or len(notifications) <= _FEW else packed(notifications)
        self._lock.enter()
        try:
            read = None if bodies is None else read_plain(bodies, self._names.names)
            if read is None or read[3]:  # some that compiled code leaves to be looked at one by one
                found = self._match(notifications, by_filter=False)
            else:
                found = match_encoded(*read[:3], self._memory, self._types, by_filter=False)
            return interface_sets(self._interfaces, self._memory.index.filters, found)
        finally:
            self._leave()

    def _match_plain(self, bodies: Sequence[bytes]) -> tuple[list[Set[InterfaceT]], list[int]]:
        """The interfaces of the bodies that compiled code reads, and the places of the others."""
        left: list[int] = []
        if len(bodies) <= _FEW:
            single = self._take_single()
            try:
                answers = [self._match_body(single, body) for body in bodies]
            finally:
                self._singles.append(single)
            left = [place for place, answer in enumerate(answers) if answer is None]
            return [answer for answer in answers if answer is not None], left

        def read() -> Encoded:
            batch, values, widest, others = read_plain(bodies, self._names.names)
            left.extend(others)
            return batch, values, widest

        return self.match_batch(read), left

    # -- for a table that is made of tables: batches in numbers of this one -------------------------------

    @property
    def names(self) -> NameNumbering:
        """The numbers of attributes' names, which change when filters do: read it where a batch is made."""
        return self._names

    def match_batch(self, make: Callable[[], Encoded]) -> list[Set[InterfaceT]]:
        """The interfaces of each notification of the batch that `make` gives. No filter changes meanwhile.

        Equal answers may be one object.
        """
        self._lock.enter()
        try:
            found = match_encoded(*make(), self._memory, self._types, by_filter=False)
            return shared_sets(self._interfaces, self._memory.index.filters, found)
        finally:
            self._leave()

    def match_batch_pairs(self, make: Callable[[], Encoded]) -> tuple[Ints, Ints]:
        """As `match_pairs`, of the batch that `make` gives. No filter changes meanwhile."""
        self._lock.enter()
        try:
            return self._pairs(make())
        finally:
            self._leave()

    def _pairs(self, encoded: Encoded) -> tuple[Ints, Ints]:
        """As `match_pairs`; the caller holds the lock."""
        places, rows = pairs_of(match_encoded(*encoded, self._memory, self._types, by_filter=True))
        return places, (self._memory.index.filters[rows, layout.F_STATE] >> 8) << 32 | rows

    def _filters_of(self, notifications: Sequence[Mapping[str, object]]) -> list[list[int]]:
        self._lock.enter()
        try:
            found, ends, places, late = self._match(notifications, by_filter=True)
            ids = self._ids(found)
            answers = [ids[start:end] for start, end in runs(ends.tolist())]
            for n, id in zip(places.tolist(), self._ids(late), strict=True):
                answers[n].append(id)
            for answer in answers:
                answer.sort()
            return answers
        finally:
            self._leave()

    def _leave(self) -> None:
        """Stop matching, and look at how filters are posted."""
        self._lock.leave()
        self._reconsider()

    def _reconsider(self) -> None:
        """Reconsider the filters that were met in vain if they are many and nobody else matches."""
        suspects = self._memory.suspects
        if suspects.noted >= suspects.enough and not self._changer.is_pressing() and self._lock.try_write():
            try:
                rows = as_ints(suspects.take())
                suspects.outcome(len(rows), self._changer.reconsider(rows)[0])
            finally:
                self._lock.written()
        elif self._changer.is_turning() and self._lock.try_write():
            try:
                self._changer.turn()
            finally:
                self._lock.written()

    def _match(self, notifications: Sequence[Mapping[str, object]], *, by_filter: bool) -> Found:
        if self._degrees:
            notifications = [notification_in_degrees(each) for each in notifications]
        return match_notifications(notifications, self._names.numbers, self._memory, self._types, by_filter=by_filter)

    def explain(self, notification: Mapping[str, object], id: int) -> Explanation:
        """Constraint by constraint, whether the filter of that id holds and why; `str()` of it is readable."""
        with self._lock.reading():
            row = self._row(id)
            interface = self._interfaces.objects[int(self._memory.index.filters[row, layout.F_INTERFACE])]
            found = self._rebuilder().filter(row)
        settings = self._state.settings
        given = notification_in_degrees(notification) if self._degrees else notification
        return explain(found, interface, given, settings.discretization, settings.road_network, degrees=self._degrees)

    def filter(self, id: int) -> Filter:
        """The filter of that id, equal to what was added. `KeyError` when there is none."""
        with self._lock.reading():
            return self._rebuilder().filter(self._row(id))

    def interface(self, id: int) -> InterfaceT:
        """The interface of the filter of that id. `KeyError` when there is none."""
        with self._lock.reading():
            objects: list[Any] = self._interfaces.objects
            found: InterfaceT = objects[int(self._memory.index.filters[self._row(id), layout.F_INTERFACE])]
            return found

    def interface_filters(self, interface: Hashable, most: int | None = None) -> list[int]:
        """The ids of an interface's filters, or of `most` of them; none when it has none."""
        with self._lock.reading():
            number = self._interfaces.find(interface)
            row = int(self._memory.interfaces.array[number, I_FIRST]) if number else 0
            rows: list[int] = []
            while row and (most is None or len(rows) < most):
                rows.append(row)
                row = int(self._memory.index.filters[row, layout.F_FOLLOWING])
            return sorted(self._ids(as_ints(rows)))

    def __contains__(self, id: object) -> bool:
        """Whether there is a filter of that id."""
        with self._lock.reading():
            try:
                self._row(id)  # type: ignore[arg-type]  # it judges whatever it is given
            except KeyError:
                return False
            return True

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to one file. Interfaces must be strings; the road network is not part of it."""
        with self._lock.reading():
            save_table(path, self._state)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, road_network: RoadNetwork | None = None, verify: bool = True
    ) -> ForwardingTable[str]:
        """Map a saved table: it can be matched against at once, and goes on changing in memory.

        With `verify` every byte is checked first; `CorruptFile` for what `save` did not write whole.
        """
        check_roads(road_network)
        table: ForwardingTable[str] = ForwardingTable.__new__(ForwardingTable)
        table._take(load_table(path, road_network, verify))
        return table

    def stats(self) -> TableStats:
        """How much the table holds."""
        with self._lock.reading():
            return table_stats(self._state)

    def _ids(self, rows: Ints) -> list[int]:
        """Rows as ids: a row's generation tells its filters, one after another, apart."""
        if len(rows) == 1:
            row = int(rows[0])
            return [int(self._memory.index.filters[row, layout.F_STATE]) >> 8 << 32 | row]
        ids: list[int] = ((self._memory.index.filters[rows, layout.F_STATE] >> 8) << 32 | rows).tolist()
        return ids

    def _row(self, id: int) -> int:
        try:
            number = -1 if isinstance(id, bool) else index(id)
        except TypeError:
            number = -1
        row = number & _SLOT if number > 0 else 0
        if 0 < row < self._memory.state[layout.S_FILTERS]:
            state = int(self._memory.index.filters[row, layout.F_STATE])
            if state & 255 not in (layout.FREE, layout.GHOST) and state >> 8 == number >> 32:
                return row
        raise NotFound(f"there is no filter of id {shown(id)}, or no longer")

    def _rebuilder(self) -> Rebuilder:
        return Rebuilder(self._memory.index, self._names.objects, self._types)

    def _check(self) -> None:
        """Assert every invariant of the table."""
        from contrada.forwarding.state.check import check_table

        with self._lock.reading():
            check_table(self._memory, self._names, self._interfaces)
            self._names._check()
            for plugged in self._types.values():
                plugged._check()
