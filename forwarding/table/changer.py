"""Adding and removing filters: what Python does around the kernels of changing.py. The caller holds the lock.

A change makes room first (`Memory.reserve`), so that kernels never run out of it half-way; they leave *events*, which
tell here what became of names and of constraints of plugged-in types. A filter that is refused leaves nothing behind.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from contrada.errors import InvalidValue
from contrada.forwarding.batches.encode import Writer, as_ints, encode_constraint
from contrada.forwarding.batches.indexed import ADDED, as_indexed
from contrada.forwarding.covering.budget import CoveringBudget
from contrada.forwarding.covering.crowds import Crowds
from contrada.forwarding.covering.simplify import Weigher, split_redundant
from contrada.forwarding.kernels.change.adding import I_COUNT
from contrada.forwarding.kernels.change.changing import MOVES, add_filters, choosers, remove_filter, repost_filters
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.language.lonlat import LONLAT, filter_in_degrees
from contrada.forwarding.table.turning import Turning
from contrada.forwarding.types.plugged import TYPES, make_type
from contrada.spatial.relations.relate import EXACT

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from numpy.typing import ArrayLike

    from contrada.forwarding.batches.packed_columns import Filters
    from contrada.forwarding.kernels.match.batch import Batch
    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.forwarding.language.constraint import Constraint
    from contrada.forwarding.language.filter import Filter
    from contrada.forwarding.state.state import TableState
    from contrada.forwarding.types.plugged import Fillable

_LOW_HALF: Final = (1 << 32) - 1
_REVIEWED: Final = 2  # filters whose access is reviewed for each change, and
_REVIEW: Final = 32  # at a time at least
AT_ONCE: Final = 64  # filters that are posted anew at a time, at most
_FEW: Final = 4  # filters added at once, up to which it is estimated later, with others, how often they are hit
_TURNED: Final = 256  # filters that are looked at between two matches, when they are to be posted in another way
_PRESSING: Final = 256.0  # pairs left of a value after matching, on average
_TOGETHER: Final = 4096  # filters of columns that are added at once


class Changer:
    """Changes one table."""

    def __init__(self, state: TableState) -> None:
        self._simplify = state.simplify
        self._settings = state.settings
        self._memory = state.memory
        self._names = state.names
        self._interfaces = state.interfaces
        self._types = state.types
        self._room: Ints = np.empty(64, np.int64)
        self._sampled = state.settings.discretization != EXACT
        self.budget = CoveringBudget(sampled=self._sampled)
        self._crowds = Crowds()
        self._due = 0  # filters to be reviewed
        self._unestimated: list[int] = []  # rows of filters that were added one by one, with whatever is there since
        self._hand = 1  # the row of the next to be reviewed: it goes round and round
        self._turning = Turning(state.memory, state.types)
        self.rows_to_turn = 0  # filters up to this row are to be looked at, see `turn`
        self._fresh: list[tuple[int, int]] = []  # handles made by the add under way
        self._waiting: dict[int, dict[int, None]] | None = None  # in bulk: handles to be posted, by kind

    @contextmanager
    def in_bulk(self) -> Iterator[None]:
        """Post to plugged-in types at the end of the block, all at once. Nothing is matched meanwhile."""
        self._waiting = {}
        before, self.budget = self.budget, CoveringBudget(bulk=True, sampled=self._sampled)
        try:
            yield
            self._review_all()
        finally:
            self.budget = before
            waiting, self._waiting = self._waiting, None
            for kind, handles in waiting.items():
                self._types[kind].post_many(list(handles))

    def add(self, pairs: Sequence[tuple[Hashable, Filter]], weigh: Sequence[bool] | None = None) -> Ints:
        """Add filters, each for its interface; their rows.

        `weigh` says for which of them plugged-in types are asked about covers; all unless it is given.
        """
        self._fresh.clear()
        self.budget.earn(len(pairs))
        try:
            batch, needed, interface_numbers, void = self._encode(pairs)
        except BaseException:
            self._forget(pairs)
            raise
        several = as_ints([*needed, *interface_numbers, *void])
        count = len(needed)
        return self._place(batch, several[:count], several[count : 2 * count], several[2 * count :], weigh)

    def add_columns(self, filters: Filters) -> None:
        """Add many filters to an empty table, in their order."""
        names = as_ints([self._names.number(name) for name in filters.names])
        known = as_ints([self._interfaces.number(interface) for interface in filters.interfaces])
        interface_numbers = known[filters.interface_places]
        codes, values = np.zeros(len(interface_numbers), np.int64), np.zeros(len(interface_numbers), np.int64)
        for kind, columns in ((layout.GEOTEXT, filters.matches), (layout.REGION, filters.relations)):
            if len(columns.places):
                numbers = names[columns.names]
                self._types[kind] = plugged = make_type(kind, self._settings)
                codes[columns.places] = numbers << 8 | layout.PLUG << 4 | kind
                values[columns.places] = cast("Fillable", plugged).fill(columns._replace(names=numbers))
        others = iter([*filters.others, (len(interface_numbers), None)])
        place, other = next(others)
        made: list[Ints] = []
        nobody = np.zeros(len(interface_numbers), np.bool_)  # covers are weighed when all are there
        for start in range(0, len(interface_numbers), _TOGETHER):
            end = min(start + _TOGETHER, len(interface_numbers))
            pairs: list[tuple[Hashable, Filter]] = []
            places: list[int] = []
            while other is not None and place < end:
                pairs.append((filters.interfaces[filters.interface_places[place]], other))
                places.append(place - start)
                place, other = next(others)
            self.budget.earn(end - start)
            rows = np.stack((codes[start:end], values[start:end]), axis=1)
            batch, needed, void = self._with_others(rows, pairs, places)
            made.append(self._place(batch, needed, interface_numbers[start:end], void, nobody[start:end]))
        if made and self._simplify and self._types:
            self._weigh_columns(np.concatenate(made), filters)

    def _weigh_columns(self, rows: Ints, filters: Filters) -> None:
        """Let types decide about covers: first whether those cover that seem to, then about what is left."""
        if filters.coverers is not None:
            weigher = self._weigher()
            hinted = np.flatnonzero(filters.coverers >= 0)
            for row, coverer in zip(rows[hinted].tolist(), rows[filters.coverers[hinted]].tolist(), strict=True):
                if self._is_active(row) and self._is_active(coverer):
                    self._memory.state[layout.S_EVENTS] = 0
                    weigher.weigh_pair(row, coverer, self._memory.events)
                    self._apply_events()
        self._weigh(rows[filters.weigh])

    def _with_others(
        self, rows: Ints, pairs: Sequence[tuple[Hashable, Filter]], places: list[int]
    ) -> tuple[Batch, Ints, Ints]:
        """A batch of filters of one row each and of others, which stand at some places instead; see `_encode`."""
        counts, extra, void = np.ones(len(rows), np.int64), np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        batch, needed, _, unsatisfiable = self._encode(pairs)
        starts = np.concatenate(([0], batch.ends))[: len(batch.ends)]
        counts[places] = batch.ends - starts
        extra[places] = batch.ends - as_ints(needed)
        void[places] = unsatisfiable
        ends = np.cumsum(counts)
        merged = np.repeat(rows, counts, axis=0)
        if places:
            mine = np.zeros(len(rows), np.bool_)
            mine[places] = True
            merged[np.repeat(mine, counts)] = batch.rows
        return batch._replace(rows=merged, ends=ends), ends - extra, void

    def _place(self, batch: Batch, needed: Ints, interface_numbers: Ints, void: Ints, weigh: ArrayLike | None) -> Ints:
        """Make the filters of a batch; their rows."""
        moved = MOVES * int(self._memory.state[layout.S_LARGEST])
        self._reserve(len(batch.rows) + moved, len(interface_numbers) + MOVES, len(batch.text))
        made = np.empty(len(interface_numbers), np.int64)
        add_filters(
            self._memory.index,
            self._memory.interfaces.array,
            batch,
            needed,
            interface_numbers,
            void,
            self._simplify,
            self._memory.events,
            np.empty(2 * len(batch.rows) + 64, np.int64),
            made,
        )
        self._apply_events()
        if self._types and len(made) <= _FEW:
            self._unestimated += made.tolist()
        if self._simplify and self._types:
            self._weigh(made if weigh is None else made[np.array(weigh, np.bool_)])
        self._changed(len(made))
        return made

    def remove(self, row: int) -> None:
        """Take out the filter of a row."""
        interface = int(self._memory.index.filters[row, layout.F_INTERFACE])
        # Filters may come back from under the one that goes: room for as many as move at once.
        self._reserve(MOVES * int(self._memory.state[layout.S_LARGEST]), MOVES, 0)
        remove_filter(
            self._memory.index, self._memory.interfaces.array, row, self._simplify, self._memory.events, self._room
        )
        self._apply_events()
        if not self._memory.interfaces.array[interface, I_COUNT]:
            self._interfaces.release(interface)
            self._crowds.forget(interface)
        self._changed(1)

    def _changed(self, count: int) -> None:
        """Review a few filters for so many changes, as the table that they were posted into is no more."""
        self._memory.trying.changes += count
        if self._types or self._memory.state[layout.S_MATCHING] >= layout.AUTO:
            self._due += _REVIEWED * count
            if len(self._unestimated) >= _REVIEW:
                rows, self._unestimated = as_ints(self._unestimated), []
                self.reconsider(rows, len(rows))
            if self._due >= _REVIEW:
                self._review()

    def _review(self) -> None:
        """Reconsider the next filters that are due, or as many as may move at once."""
        rows = int(self._memory.state[layout.S_FILTERS]) - 1
        count = min(self._due, rows, _TOGETHER)
        self._due = 0
        going_round = (self._hand - 1 + np.arange(count)) % rows + 1
        reached = self.reconsider(going_round, MOVES + count // 4)[1]
        self._hand = reached or (self._hand - 1 + count) % rows + 1

    def is_turning(self) -> bool:
        """Whether filters may have to be posted in another way, for what matching has shown."""
        if self.rows_to_turn > 0 or self._have_news():
            return True
        return bool(self._memory.state[layout.S_MATCHING] >= layout.AUTO) and self._turning.is_due()

    def _have_news(self) -> bool:
        """Whether values turned out otherwise than estimates had it."""
        return any(plugged.news for plugged in self._types.values())

    def is_pressing(self) -> bool:
        """Whether that should not wait for single filters to be posted better."""
        if self.rows_to_turn > 0 or self._have_news():
            return True
        return self._memory.trying.late >= _PRESSING and self.is_turning()

    def turn(self) -> None:
        """Look at how some filters are posted: the way has become another (turning.py), or there is news of values."""
        state = self._memory.state
        way = self._turning.choose() if state[layout.S_MATCHING] >= layout.AUTO else state[layout.S_MATCHING]
        if way != state[layout.S_MATCHING] or self._have_news():
            state[layout.S_MATCHING] = way
            for plugged in self._types.values():
                plugged.news = False
            self.rows_to_turn = int(state[layout.S_FILTERS]) - 1
        first = max(self.rows_to_turn - _TURNED, 0)
        self.rows_to_turn = self.reconsider(np.arange(self.rows_to_turn, first, -1), AT_ONCE)[1] or first

    def _review_all(self) -> None:
        end = int(self._memory.state[layout.S_FILTERS]) if self._types else 0
        for first in range(1, end, _TOGETHER):
            going, last = first, min(first + _TOGETHER, end)
            while going:
                going = self.reconsider(np.arange(going, last), AT_ONCE)[1]

    def reconsider(self, rows: Ints, most: int = AT_ONCE) -> tuple[int, int]:
        """Give those filters another access for which the present one has turned out wrong, `most` at a time.

        How many have moved, and the row to go on with, 0 when all were looked at.
        """
        operands = np.empty(4 * len(rows) + 64, np.int64)
        kept, count = choosers(self._memory.index, rows, operands)
        if not kept:
            return 0, 0
        self._estimate(operands[:count])
        self._reserve(most * int(self._memory.state[layout.S_LARGEST]), most, 0)
        rows = rows[:kept]
        moved, looked_at = repost_filters(self._memory.index, rows, most, self._memory.events)
        self._apply_events()
        return moved, int(rows[looked_at]) if looked_at < kept else 0

    def _estimate(self, operands: Ints) -> None:
        """Ask plugged-in types anew how often their operands are hit."""
        found = self._memory.index.operands
        kinds = found[operands, layout.O_TAG] & 255
        for kind in np.unique(kinds).tolist():
            mine = operands[kinds == kind]
            found[mine, layout.O_LEN] = _units(self._types[kind].shares(found[mine, layout.O_KEY]))

    def _with_shares(self, batch: Batch) -> Batch:
        """Beside the handles in a batch, what their types expect; of a filter's only constraint nobody asks that."""
        sizes = np.diff(batch.ends, prepend=0)
        plugged = np.flatnonzero((batch.rows[:, 0] >> 4 & 15 == layout.PLUG) & (np.repeat(sizes, sizes) > 1))
        kinds = batch.rows[plugged, 0] & 15
        for kind in np.unique(kinds).tolist():
            mine = plugged[kinds == kind]
            batch.rows[mine, 1] |= _units(self._types[kind].shares(batch.rows[mine, 1])) << 32
        return batch

    def _encode(self, pairs: Sequence[tuple[Hashable, Filter]]) -> tuple[Batch, list[int], list[int], list[bool]]:
        """The batch of some filters; where the needed rows of each end, its interface, whether nothing satisfies it."""
        writer = Writer()
        needed: list[int] = []
        interface_numbers: list[int] = []
        void: list[bool] = []
        alone: dict[int, list[int]] = {}  # handles of constraints that are all of a filter, by kind
        names, number = self._names.numbers, self._names.number
        degrees = self._settings.crs == LONLAT
        for interface, given in pairs:
            interface_numbers.append(self._interfaces.number(interface))
            each = filter_in_degrees(given) if degrees else given
            constraints = each.constraints
            start = len(writer.rows)
            redundant: tuple[Constraint, ...] = ()
            unsatisfiable = False
            if self._simplify and len(constraints) > 1 and _repeats_a_name(constraints):
                constraints, redundant, unsatisfiable = split_redundant(each, self.budget)
            for constraint in constraints:
                if constraint.op in ADDED:
                    for name, one in as_indexed(constraint):
                        encode_constraint(writer, number(name), one, self._handle)
                    continue
                name = constraint.name
                encode_constraint(writer, names.get(name) or number(name), constraint, self._handle)
            needed.append(len(writer.rows) >> 1)
            for constraint in redundant:
                for name, one in as_indexed(constraint):
                    encode_constraint(writer, number(name), one, self._handle)
            void.append(unsatisfiable)
            if len(writer.rows) == start + 2 and writer.rows[start] >> 4 & 15 == layout.PLUG:
                alone.setdefault(writer.rows[start] & 15, []).append(writer.rows[-1])
            writer.end()
        batch = writer.batch()
        for kind in {kind for kind, _ in self._fresh}:
            self._types[kind].store_made()
        for kind, handles in alone.items():
            self._types[kind].note_constraints(handles)
        asked = sum(map(len, alone.values())) < len(pairs) and len(pairs) > _FEW and self._types
        return self._with_shares(batch) if asked else batch, needed, interface_numbers, void

    def _handle(self, kind: int, name: int, constraint: Constraint) -> int:
        if kind not in self._types:
            if kind not in TYPES:
                raise InvalidValue(f"{constraint}: this table has no index for {constraint.op}")
            self._types[kind] = make_type(kind, self._settings)
        plugged = self._types[kind]
        before = plugged.made
        handle = plugged.handle(name, constraint)
        if plugged.made > before:
            self._fresh.append((kind, handle))
        return handle

    def _forget(self, pairs: Sequence[tuple[Hashable, Filter]]) -> None:
        """Undo what encoding filters that are not added, one being refused, has registered."""
        for kind in {kind for kind, _ in self._fresh}:
            self._types[kind].store_made()
        for kind, handle in self._fresh:
            self._types[kind].release(handle)
        counts, fields = self._memory.interfaces.array, self._memory.index.fields
        for interface, each in pairs:
            number = self._interfaces.find(interface)
            if number and (number >= len(counts) or not counts[number, I_COUNT]):
                self._interfaces.release(number)
            for name in [name for constraint in each for name, _ in as_indexed(constraint)]:
                number = self._names.find(name)
                row = number * layout.KINDS
                if number and (row >= len(fields) or not fields[row, layout.N_USES]):
                    self._names.release(number)

    def _weigh(self, rows: Ints) -> None:
        """Let plugged-in types decide whether new filters cover, or are covered."""
        filters, counts = self._memory.index.filters, self._memory.interfaces.array
        if len(rows) == 1:  # without arrays, which take longer to make than all that is asked here
            if counts[filters[rows[0], layout.F_INTERFACE], I_COUNT] <= 1:
                return
        else:
            rows = rows[counts[filters[rows, layout.F_INTERFACE], I_COUNT] > 1]  # others have nobody beside them
            if not len(rows):
                return
        weigher = self._weigher()
        for row in rows.tolist():
            last = self._memory.index.filters[row]
            word = int(self._memory.index.words[int(last[layout.F_CODE]) + (int(last[layout.F_SIZE]) & _LOW_HALF) - 1])
            first = int(self._memory.index.words[int(last[layout.F_CODE])])
            plugged = layout.PLUG in (word & 15, first & 15)
            if plugged and self._is_active(row):
                self._memory.state[layout.S_EVENTS] = 0
                weigher.weigh(row, self._memory.events)
                self._apply_events()

    def _weigher(self) -> Weigher:
        memory = self._memory
        return Weigher(memory.index, memory.interfaces.array, self._types, self.budget, self._crowds)

    def _is_active(self, row: int) -> bool:
        return int(self._memory.index.filters[row, layout.F_STATE]) & 255 == layout.ACTIVE

    def _reserve(self, rows: int, filters: int, text: int) -> None:
        self._memory.reserve(
            rows=rows,
            filters=filters,
            text=text,
            names=len(self._names.objects),
            interfaces=len(self._interfaces.objects),
        )
        self._memory.state[layout.S_EVENTS] = 0

    def _apply_events(self) -> None:
        """Do what the last change asks of names and types."""
        self._memory.postponing.note_change()
        count = int(self._memory.state[layout.S_EVENTS])
        if self._waiting is not None and (self._memory.events[:count, 0] == layout.EVENT_POSTED).all():
            for kind in np.unique(self._memory.events[:count, 1] & 255).tolist():
                mine = self._memory.events[:count, 2][self._memory.events[:count, 1] & 255 == kind]
                self._memory.posted.note(kind, mine & _LOW_HALF, mine >> 32)
                self._waiting.setdefault(kind, {}).update(dict.fromkeys((mine & _LOW_HALF).tolist()))
            return
        events = self._memory.events[:count]
        if self._waiting is None and count > 1 and (events[:, 0] == layout.EVENT_POSTED).all():
            for kind in {*(events[:, 1] & 255).tolist()}:
                mine = events[events[:, 1] & 255 == kind, 2]
                self._memory.posted.note(kind, mine & _LOW_HALF, mine >> 32)
                self._types[kind].post_many((mine & _LOW_HALF).tolist())
            return
        for what, tag, value in events.tolist():
            if what == layout.EVENT_NAME_FREE:
                self._names.release(tag)
            elif what == layout.EVENT_POSTED:
                handle = value & _LOW_HALF
                self._memory.posted.put(tag & 255, handle, value >> 32)
                if self._waiting is None:
                    self._types[tag & 255].post(handle)
                else:
                    self._waiting.setdefault(tag & 255, {})[handle] = None
            elif what == layout.EVENT_UNPOSTED:
                if self._waiting is None or value not in self._waiting.get(tag & 255, ()):
                    self._types[tag & 255].unpost(value)
                else:
                    del self._waiting[tag & 255][value]
            else:
                self._types[tag & 255].release(value)


def _units(shares: Floats) -> Ints:
    """Shares as operands have them."""
    units = np.clip(np.ceil(shares * layout.SHARES), 0, layout.SHARES - 1)
    return units.astype(np.int64)


def _repeats_a_name(constraints: tuple[Constraint, ...]) -> bool:
    """Whether two constraints of a filter, which keeps them sorted by name, speak of one name."""
    before = None
    for constraint in constraints:
        if constraint.name == before:
            return True
        before = constraint.name
    return False
