"""Types of values that plug into the forwarding table: what one must do, and which there are.

The table itself compares numbers, strings, bools, times and points. A type with an index of its own, such as regions
with their CR-tree, is a module with a class of the protocol below and a line in `TYPES`; nothing in the table changes.

A constraint of such a type has a *handle*, an integer the type chooses: the same for equal constraints on one name.
Of a filter's constraints one is its access (filing.py). If that is of a plugged-in type, the type is told to
*post* the handle, and `search` must find it; all other constraints are decided by `holds`, many at once, for those
filters whose constraints of the table's own types held.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from contrada.errors import InvalidValue
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.language.lonlat import PLANE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from contrada.forwarding.covering.budget import CoveringBudget
    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.forwarding.language.constraint import Constraint
    from contrada.spatial.relations.relate import Discretization
    from contrada.spatial.road.network import RoadNetwork


class Settings(NamedTuple):
    """What the table was told that concerns types."""

    discretization: Discretization
    geotext_index: str
    road_network: RoadNetwork | None
    crs: str = PLANE  # what coordinates are (language/lonlat.py)


def check_roads(roads: object) -> None:
    """Refuse what is no road network; None is none."""
    if roads is not None:
        from contrada.spatial.road.network import RoadNetwork

        if not isinstance(roads, RoadNetwork):
            raise InvalidValue(f"road_network is a RoadNetwork, not {roads!r}")


class PluggedType(Protocol):
    """A type of values with an index of its own. Searches may run at once; changes have the type to themselves."""

    made: int  # how many handles have been made
    news: bool  # whether values turned out otherwise than shares were judged by; whoever looks at them takes it back

    def __init__(self, settings: Settings) -> None: ...

    def handle(self, name: int, constraint: Constraint) -> int:
        """The handle of a constraint on that name (a number of the table's), made when it is new; not negative."""
        ...

    def store_made(self) -> None:
        """Be told that no more handles are made for now: whatever `handle` has left to be done for many at once."""
        ...

    def note_constraints(self, handles: Sequence[int]) -> None:
        """Learn from constraints of which nobody asks what share of values satisfies them."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything it knows, as arrays for a file."""
        ...

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `arrays` gave, when new. The arrays are mapped: what is not touched is not read."""
        ...

    def constraint(self, handle: int, name: str) -> Constraint:
        """The constraint of a handle."""
        ...

    def release(self, handle: int) -> None:
        """Forget a handle: no filter holds the constraint any more."""
        ...

    def post(self, handle: int) -> None:
        """Make `search` find a handle."""
        ...

    def post_many(self, handles: Sequence[int]) -> None:
        """As `post` of each, in bulk."""
        ...

    def unpost(self, handle: int) -> None:
        """Undo `post`."""
        ...

    def search(self, names: Sequence[int], values: Sequence[Any]) -> list[Ints | None]:
        """For each value under its name, the posted handles whose constraints it satisfies; None for none."""
        ...

    def sift(self, names: Sequence[int], values: Sequence[Any]) -> list[Ints | None]:
        """As `search`, but more handles may be given, if that costs less: those that a value perhaps satisfies."""
        ...

    def holds(self, numbers: Ints, handles: Ints, values: Sequence[Any]) -> NDArray[np.bool_]:
        """For each pair, whether `values[number]` satisfies the constraint of the handle."""
        ...

    def decide_pending(
        self, pending: Ints, pairs: Ints, owners: Ints, matched: Ints, values: Sequence[Any], *, learn: bool = True
    ) -> NDArray[np.int8] | None:
        """What becomes of filters, (notification, filter, end of its pairs), of which pairs of this type are left.

        1 of one that holds, 0 of one that fails, 2 of one that need not be asked: where `matched` has room for all
        `owners`, the interfaces, one filter of each is enough. None if the type does no better than by `holds`.
        Unless `learn`, the pairs are none that say how often constraints hold.
        """
        ...

    def shares(self, handles: Ints) -> Floats:
        """For each handle, the share of values under its name expected to satisfy it; 0 where that is not known.

        Times what finding one more costs, if that is more than a filter of the table's own types costs to verify.
        """
        ...

    def boxes(self, handles: Ints) -> Floats:
        """The boxes, (n, 4), around what constraints speak of: a coverer's is around the covered one's, or within it.

        Infinite where there is none.
        """
        ...

    def covers(self, first: int, second: int, budget: CoveringBudget) -> bool:
        """Whether whatever satisfies the second handle's constraint satisfies the first's. May miss some.

        Raises `OutOfBudget` when that would cost too much.
        """
        ...

    def promise(self, handle: int, others: Ints, *, above: bool) -> NDArray[np.float64]:
        """How likely each of the others covers a handle (`above`), or is covered by it, told cheaply.

        0 is a certain no, infinity a certain yes.
        """
        ...

    @property
    def decided(self) -> int:
        """How many constraints searches have decided one by one so far, as `holds` does; 0 if that is not counted."""
        ...

    @property
    def handles(self) -> int:
        """One more than the largest handle there has been."""
        ...

    def __len__(self) -> int:
        """How many handles there are."""
        ...

    def _check(self) -> None:
        """Assert every invariant."""
        ...


class Fillable(Protocol):
    """A type that takes in many constraints at once, column by column (batches/packed_columns.py)."""

    def fill(self, columns: Any) -> Ints:
        """Take in constraints, their names by number, when new: the handle of each. `post_many` comes next."""
        ...


TYPES: Final = {
    layout.REGION: "shape:ShapeType",
    layout.GEOTEXT: "geotext:GeotextType",
    layout.SET: "sets:SetType",
}


def make_type(kind: int, settings: Settings) -> PluggedType:
    """The plugged-in type of a kind, loaded when the first value or constraint of it turns up."""
    module, _, name = TYPES[kind].partition(":")
    made: PluggedType = getattr(import_module(f"contrada.forwarding.types.{module}"), name)(settings)
    return made
