"""A plugged-in type without an index: constraints are kept as objects and evaluated one by one.

What regions and geotext build on: they add an index for `search` and kernels for `holds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contrada.forwarding.covering.covering import covers
from contrada.forwarding.language.constraint import Constraint
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.types.records import NAME_BITS, POSTED, Records
from contrada.forwarding.types.shares import Sampler, Traffic
from contrada.spatial import allowance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from contrada.forwarding.covering.budget import CoveringBudget
    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.forwarding.types.plugged import Settings

_PAIRS: Final = 16  # pairs looked at of a call
OBJECTS_COST: Final = 10_000  # nanoseconds, about, in which objects are compared
_SOME: Final = 256  # constraints that tell how large the universe is


class PlainType:
    """Constraints of one type; see `plugged.PluggedType` for what each method must do."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.made = 0
        self.news = False
        self._records = Records()
        self._traffic: dict[int, Traffic] = {}  # by name
        self._searched, self._decided = Sampler(64), Sampler(64)

    def handle(self, name: int, constraint: Constraint) -> int:
        """The handle of a constraint."""
        key = (name, constraint.op, constraint.value)
        handle = self._records.find(key)
        if handle < 0:
            self._made(self._records.next(), constraint)
            handle = self._records.add(key)
            self.made += 1
        return handle

    def store_made(self) -> None:
        """Nothing waits."""

    def note_constraints(self, handles: Sequence[int]) -> None:
        """Nothing is learned from constraints."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, as arrays."""
        return nested("records", self._records.arrays())

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `arrays` gave, when new."""
        self._records = Records.from_arrays(within("records", arrays))

    def constraint(self, handle: int, name: str) -> Constraint:
        """The constraint of a handle."""
        _, op, value = self._records.get(handle)
        return Constraint(name, op, value)

    def release(self, handle: int) -> None:
        """Forget a handle."""
        self._forgotten(handle)
        if (traffic := self._traffic.get(self._records.name(handle))) is not None:
            traffic.forget(handle)
        self._records.remove(handle)

    def post(self, handle: int) -> None:
        """Make `search` find a handle."""
        self._records.mark(handle, POSTED)

    def post_many(self, handles: Sequence[int]) -> None:
        """As `post` of each."""
        for handle in handles:
            self.post(handle)

    def unpost(self, handle: int) -> None:
        """Undo `post`."""
        self._records.unmark(handle, POSTED)

    def search(self, names: Sequence[int], values: Sequence[Any]) -> list[Ints | None]:
        """Evaluate every posted constraint on each value's name."""
        posted = self._records.marked(POSTED).tolist()
        return [
            np.array([h for h in posted if self._records.name(h) == name and self._holds(h, value)], np.int64)
            for name, value in zip(names, values, strict=True)
        ]

    def sift(self, names: Sequence[int], values: Sequence[Any]) -> list[Ints | None]:
        """No more and no less than `search`."""
        return self.search(names, values)

    def holds(self, numbers: Ints, handles: Ints, values: Sequence[Any]) -> NDArray[np.bool_]:
        """Evaluate pairs, each different one once."""
        known: dict[tuple[int, int], bool] = {}
        held = np.empty(len(numbers), np.bool_)
        for i, pair in enumerate(zip(numbers.tolist(), handles.tolist(), strict=True)):
            answer = known.get(pair)
            if answer is None:
                answer = known[pair] = self._holds(pair[1], values[pair[0]])
            held[i] = answer
        return held

    def decide_pending(
        self, pending: Ints, pairs: Ints, owners: Ints, matched: Ints, values: Sequence[Any], *, learn: bool = True
    ) -> NDArray[np.int8] | None:
        """Nothing more than `holds` does."""
        return None

    def shares(self, handles: Ints) -> Floats:
        """Guess the share of values that satisfy each constraint, put right by what happened."""
        shares = self._guesses(handles)
        flags = self._records.flags[handles]
        for name in np.unique(flags >> NAME_BITS).tolist():
            mine = flags >> NAME_BITS == name
            posted = flags[mine] & POSTED != 0
            traffic = self._traffic_of(name)
            shares[mine] = traffic.corrected(handles[mine], shares[mine], posted) + self._work(handles[mine], traffic)
        return shares

    def _work(self, handles: Ints, traffic: Traffic) -> Floats:
        """What a search spends on each constraint for a value, whether or not it satisfies it, beside what it finds."""
        return np.zeros(len(handles))

    def _guesses(self, handles: Ints) -> Floats:
        """Shares judged by the constraints alone; 0 where nothing can be said."""
        return np.zeros(len(handles))

    def _traffic_of(self, name: int) -> Traffic:
        traffic = self._traffic.get(name)
        if traffic is None:
            traffic = self._traffic[name] = Traffic()
            some = np.random.default_rng(name).integers(0, max(len(self._records), 1), _SOME)
            some = np.unique(some[self._records.flags[some] >> NAME_BITS == name])
            traffic.widen(self.boxes(some))  # of a loaded table nothing is known yet
        return traffic

    def boxes(self, handles: Ints) -> Floats:
        """The boxes around the regions of some constraints; infinite where there is none."""
        return np.full((len(handles), 4), np.inf)

    def _learn_search(self, names: Sequence[int], values: Sequence[Any], found: Sequence[Ints | None]) -> None:
        """Look at some of the values searched for."""
        for place in self._searched.chosen(len(names)):
            hit = found[place]
            traffic = self._traffic_of(names[place])
            self._learn_value(traffic, values[place], [] if hit is None else hit.tolist())

    def _learn_value(self, traffic: Traffic, value: Any, found: list[int]) -> None:
        """Look at a value and what was found for it."""

    def _learn_pairs(self, handles: Ints, held: NDArray[np.bool_]) -> None:
        """Look at some of the pairs decided."""
        if self._decided.chosen(1 + len(handles) // 1024):  # few of the short calls: a look takes longer than they do
            self.note_pairs(handles, held)

    def note_pairs(self, handles: Ints, held: NDArray[np.bool_]) -> None:
        """Learn from pairs that were decided: from a few of them."""
        step = 1 + len(handles) // _PAIRS
        some = handles[::step]
        for handle, guess, so in zip(some.tolist(), self._guesses(some).tolist(), held[::step], strict=True):
            self._traffic_of(self._records.name(handle)).decide(guess, bool(so))

    def covers(self, first: int, second: int, budget: CoveringBudget) -> bool:
        """Whether the second handle's constraint implies the first's."""
        one, two = self.constraint(first, "x"), self.constraint(second, "x")
        return covers(Filter((one,)), Filter((two,)), budget)

    def promise(self, handle: int, others: Ints, *, above: bool) -> NDArray[np.float64]:
        """Any is as likely as any other."""
        return np.ones(len(others))

    @property
    def decided(self) -> int:
        """Nothing is known of what a search costs."""
        return 0

    @property
    def handles(self) -> int:
        """One more than the largest handle there has been."""
        return self._records.top

    def __len__(self) -> int:
        """How many handles there are."""
        return len(self._records)

    def _holds(self, handle: int, value: Any) -> bool:
        allowance.spend(self._cost(handle, value))
        return self.constraint(handle, "x").holds(
            value, discretization=self.settings.discretization, roads=self.settings.road_network
        )

    def _cost(self, _handle: int, _value: Any) -> int:
        """What deciding a constraint takes at most, in units of an allowance."""
        return OBJECTS_COST

    def _made(self, handle: int, constraint: Constraint) -> None:
        """Take in a new handle."""

    def _forgotten(self, handle: int) -> None:
        """Let a handle go."""

    def _posted(self) -> dict[int, set[int]]:
        """The posted handles of each name, for checks."""
        posted: dict[int, set[int]] = {}
        for handle in self._records.marked(POSTED).tolist():
            posted.setdefault(self._records.name(handle), set()).add(handle)
        return posted

    def _check(self) -> None:
        self._records._check()


def nested(part: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays of a part, under its name."""
    return {f"{part}.{name}": array for name, array in arrays.items()}


def within(part: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Invert `nested`: the arrays of one part among others."""
    return {name[len(part) + 1 :]: array for name, array in arrays.items() if name.startswith(f"{part}.")}


def numbered(part: str, arrays: Mapping[str, NDArray[Any]]) -> list[int]:
    """The numbers n of the parts `part.n` among the arrays."""
    return sorted({int(name.split(".")[1]) for name in arrays if name.startswith(f"{part}.")})
