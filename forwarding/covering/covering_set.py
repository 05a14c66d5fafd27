"""A set of filters that knows which of them say it all: the ones that no other covers.

A broker tells its neighbour only those. Each filter is either *shown* or *hidden* under one shown filter that covers
it. `add` and `remove` return the change of the shown set; removing a shown filter shows those it hid, unless another
shown filter covers them. Invariants (`_check`): every hidden filter is covered by the shown filter it hangs under,
and no shown filter is covered by another that was there when it came, unless the budget (`covering_budget`) did not
suffice to find out: then more is shown than need be.

To find who covers whom without asking every pair, each filter has an envelope, two coordinates per name: bounds within
which the coordinates of every matching value lie, and the span of its witnesses' coordinates (`samples.py`). A number's
coordinates are (number, 0), a string's (hash, 0), a place's the centre of its box. If g covers f, then f's witnesses
match g, so their span lies within g's bounds. A region that intersects another may have its centre anywhere, a point
may not: so there are two coordinates more, in which only points are placed and bounds are those of matching points.

Filters of the same names share a table, so both questions, who may cover f and whom may f cover, are asked of an index
over their envelopes (`envelope_index.py`); `covers` decides for the few that pass. A filter without witnesses is a
candidate for everything.

Cost of a change: two searches per table whose names fit, plus `covers` on the candidates, as far as the budget goes.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar
from zlib import crc32

from contrada.forwarding.covering.budget import CoveringBudget
from contrada.forwarding.covering.covering import covers
from contrada.forwarding.covering.samples import witnesses
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.values import Kind, kind_of, microseconds
from contrada.spatial.relations.relation import COVERED_BY, DISJOINT, EQUALS, INSIDE

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from contrada.forwarding.language.filter import Filter
    from contrada.forwarding.language.values import Value

K = TypeVar("K", bound="Hashable")

_WITHIN_MASK: Final = 1 << INSIDE | 1 << COVERED_BY | 1 << EQUALS
_COORDINATES: Final = 4  # of each name
_ANYWHERE: Final = ((-math.inf, math.inf),) * _COORDINATES
_NO_LOW: Final = (-math.inf,) * _COORDINATES
_NO_HIGH: Final = (math.inf,) * _COORDINATES
_NO_SAMPLE: Final = ((math.inf, math.inf), (-math.inf, -math.inf))  # a span that is within any bounds


class Shown(NamedTuple):
    """How the shown filters changed."""

    added: tuple[Any, ...]
    removed: tuple[Any, ...]


class CoveringSet(Generic[K]):
    """Filters under the caller's keys, and which of them are shown."""

    def __init__(self, *, sampled: bool = False) -> None:
        self._filters: dict[K, Filter] = {}
        self._hides: dict[K, set[K]] = {}  # of every shown key, those hidden under it
        self._hidden_under: dict[K, K] = {}
        self._tables: dict[frozenset[str], _Table[K]] = {}
        self.budget = CoveringBudget(sampled=sampled)

    @property
    def shown(self) -> dict[K, Filter]:
        """The filters that cover all the others."""
        return {key: self._filters[key] for key in self._hides}

    def is_shown(self, key: K) -> bool:
        """Whether the filter is in the set, and shown."""
        return key in self._hides

    def add(self, key: K, f: Filter) -> Shown:
        """Add a filter under a new key."""
        if key in self._filters:
            raise KeyError(f"{key!r} is in the set")
        self._filters[key] = f
        self.budget.earn()
        return self._place(key, _envelope(f))

    def remove(self, key: K) -> Shown:
        """Remove a filter; `KeyError` when it is not there."""
        f = self._filters.pop(key)
        self.budget.earn()
        if key in self._hidden_under:
            self._hides[self._hidden_under.pop(key)].discard(key)
            return Shown((), ())
        self._table(f).discard(key)
        orphans = self._hides.pop(key)
        added: dict[K, None] = {}
        removed = [key]
        for orphan in orphans:
            del self._hidden_under[orphan]
        # Orphans that hide one another decide among themselves: a wider one, placed later, takes over from a narrower.
        for orphan in orphans:
            change = self._place(orphan, _envelope(self._filters[orphan]))
            for shown in change.added:
                added[shown] = None
            for hidden in change.removed:
                if hidden in added:
                    del added[hidden]
                else:
                    removed.append(hidden)
        return Shown(tuple(added), tuple(removed))

    def _place(self, key: K, envelope: _Envelope) -> Shown:
        f = self._filters[key]
        for names, table in self._tables.items():
            if names <= envelope.names:
                for other in table.may_cover(envelope):
                    if covers(self._filters[other], f, self.budget):
                        self._hides[other].add(key)
                        self._hidden_under[key] = other
                        return Shown((), ())
        beneath = [
            other
            for names, table in self._tables.items()
            if envelope.names <= names
            for other in table.may_be_covered_by(envelope)
            if covers(f, self._filters[other], self.budget)
        ]
        self._hides[key] = set()
        for other in beneath:
            self._table(self._filters[other]).discard(other)
            for hidden in (*self._hides.pop(other), other):
                self._hides[key].add(hidden)
                self._hidden_under[hidden] = key
        self._table(f).add(key, envelope)
        return Shown((key,), tuple(beneath))

    def _table(self, f: Filter) -> _Table[K]:
        names = f.names
        if names not in self._tables:
            self._tables[names] = _Table(sorted(names))
        return self._tables[names]

    def __contains__(self, key: K) -> bool:
        return key in self._filters

    def __getitem__(self, key: K) -> Filter:
        return self._filters[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._filters)

    def __len__(self) -> int:
        return len(self._filters)

    def _check(self) -> None:
        """Assert the invariants."""
        assert self._filters.keys() == self._hides.keys() | self._hidden_under.keys()
        assert not self._hides.keys() & self._hidden_under.keys()
        assert {(under, key) for key, under in self._hidden_under.items()} == {
            (under, key) for under, keys in self._hides.items() for key in keys
        }
        listed = [key for table in self._tables.values() for key in table.keys()]  # noqa: SIM118  # not a mapping
        assert len(listed) == len(self._hides)
        assert set(listed) == self._hides.keys()
        for table in self._tables.values():
            table._check()


_Place: TypeAlias = "tuple[float, ...]"


class _Envelope(NamedTuple):
    """Bounds (low, high) and span of the witnesses (least, most) of one filter: per name, four coordinates."""

    names: frozenset[str]
    low: dict[str, _Place]
    high: dict[str, _Place]
    least: dict[str, _Place] | None
    most: dict[str, _Place] | None

    @classmethod
    def of(cls, f: Filter) -> _Envelope:
        low: dict[str, _Place] = {}
        high: dict[str, _Place] = {}
        for constraint in f.constraints:
            lows, highs = zip(*_bounds(constraint), strict=True)
            low[constraint.name] = tuple(map(max, low.get(constraint.name, _NO_LOW), lows))
            high[constraint.name] = tuple(map(min, high.get(constraint.name, _NO_HIGH), highs))
        examples = witnesses(f)
        if examples is None:
            return cls(f.names, low, high, None, None)
        least: dict[str, _Place] = {}
        most: dict[str, _Place] = {}
        for name, values in examples.items():
            xs, ys = zip(*map(_coordinates, values), strict=True)
            lower, upper = (min(xs), min(ys)), (max(xs), max(ys))
            points = all(kind_of(value) is Kind.POINT for value in values)
            least[name] = lower + (lower if points else _NO_SAMPLE[0])
            most[name] = upper + (upper if points else _NO_SAMPLE[1])
        return cls(f.names, low, high, least, most)


# A broker puts one filter into the set of every link; few are kept, since one may be megabytes.
_envelope = lru_cache(maxsize=256)(_Envelope.of)


def _coordinates(value: Value) -> tuple[float, float]:
    kind = kind_of(value)
    known: Any = value
    if kind is Kind.NUMBER:
        return float(known), 0.0
    if kind is Kind.STRING:
        return float(crc32(known.encode())), 0.0
    if kind is Kind.BOOL:
        return float(known), 0.0
    if kind is Kind.TIME:
        return float(microseconds(known)), 0.0
    if kind is Kind.POINT:
        return known.x, known.y
    if kind is Kind.SET:
        return 0.0, 0.0
    x1, y1, x2, y2 = known.bounds if kind is Kind.REGION else known.box
    return x1 / 2 + x2 / 2, y1 / 2 + y2 / 2


def _bounds(constraint: Constraint) -> tuple[tuple[float, float], ...]:
    """Bounds of the coordinates of every value, and then of every point, on which the constraint holds: x, y, x, y."""
    known: Any = constraint.value
    if constraint.op is Operator.EQ:
        x, y = _coordinates(known)
        return ((x, x), (y, y)) * 2
    if constraint.kind in (Kind.NUMBER, Kind.TIME):
        x, _ = _coordinates(known)
        if constraint.op in (Operator.LT, Operator.LE):
            return (-math.inf, x), *_ANYWHERE[1:]
        if constraint.op in (Operator.GT, Operator.GE):
            return (x, math.inf), *_ANYWHERE[1:]
    elif isinstance(known, Distance):
        if constraint.op is Operator.WITHIN:
            x1, y1, x2, y2 = known.bounds
            return (*_ANYWHERE[:2], (x1, x2), (y1, y2))
    elif constraint.kind is Kind.REGION and constraint.mask and not constraint.mask >> DISJOINT & 1:
        x1, y1, x2, y2 = known.bounds
        within = ((x1, x2), (y1, y2))
        return within * 2 if constraint.mask & ~_WITHIN_MASK == 0 else (*_ANYWHERE[:2], *within)
    return _ANYWHERE


class _Table(Generic[K]):
    """Envelopes of the shown filters of one set of names, indexed."""

    def __init__(self, names: list[str]) -> None:
        from contrada.forwarding.covering.envelope_index import EnvelopeIndex  # loads the compiler

        self._names = names
        self._index = EnvelopeIndex(_COORDINATES * len(names))
        self._numbers: dict[K, int] = {}
        self._keys: dict[int, K] = {}

    def keys(self) -> Iterable[K]:
        return self._numbers

    def add(self, key: K, envelope: _Envelope) -> None:
        low, high = self._flat(envelope.low), self._flat(envelope.high)
        if envelope.least is None or envelope.most is None:
            least, most = [math.inf] * len(low), [-math.inf] * len(low)
        else:
            least, most = self._flat(envelope.least), self._flat(envelope.most)
        number = self._numbers[key] = self._index.add((low, high, least, most))
        self._keys[number] = key

    def discard(self, key: K) -> None:
        number = self._numbers.pop(key)
        del self._keys[number]
        self._index.remove(number)

    def may_cover(self, envelope: _Envelope) -> list[K]:
        """Those whose bounds admit the witnesses."""
        if envelope.least is None or envelope.most is None:
            return list(self._numbers)
        found = self._index.around(self._flat(envelope.least), self._flat(envelope.most))
        return [self._keys[number] for number in found]

    def may_be_covered_by(self, envelope: _Envelope) -> list[K]:
        """Those whose witnesses the bounds admit, and those without any."""
        found = self._index.within(self._flat(envelope.low, -math.inf), self._flat(envelope.high, math.inf))
        return [self._keys[number] for number in found]

    def _flat(self, by_name: dict[str, _Place], absent: float = 0.0) -> list[float]:
        nowhere = (absent,) * _COORDINATES
        return [coordinate for name in self._names for coordinate in by_name.get(name, nowhere)]

    def _check(self) -> None:
        assert self._keys == {number: key for key, number in self._numbers.items()}
        assert len(self._index) == len(self._keys)
        self._index._check()
