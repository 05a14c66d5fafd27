"""`area intersects <box> and kind = <one of K>`: the table beside what one would do without it.

The rival is a table of the areas alone, matched by `match_pairs`, and an array of kinds that its hits are looked up in:
compiled code and numpy, given the same notifications. Both return the same, and that is checked. Boxes and events are
spread evenly over a square of side 1,000; an event is a point or a box of 0.5 to 5 units.
"""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.harness import Report
    from contrada.forwarding.kernels.memory.layout import Ints

SIZES = (20_000, 80_000)
SEGMENT_KINDS = (2, 20, 200, 2_000)
BOXES = (0.1, 1.0, 10.0, 100.0)
SINGLE = 200  # events matched one by one
ROUNDS = 7


class Areas:
    """The rival: areas in a table of their own, the kind of each in an array."""

    def __init__(self, areas: ForwardingTable, kinds: Ints) -> None:
        self._areas = areas
        self._kinds = kinds  # by id, from 1
        self._codes = {f"kind {kind}": kind for kind in range(int(kinds.max()) + 1)}

    def pairs(self, events: Sequence[Any]) -> tuple[Ints, Ints]:
        """As `match_pairs`."""
        places, ids = self._areas.match_pairs(events)
        codes = np.array([self._codes.get(event["kind"], -1) for event in events])
        held = self._kinds[ids] == codes[places]
        return places[held], ids[held]

    def filters(self, event: Any) -> list[int]:
        """As `match_filters`."""
        _, ids = self._areas.match_pairs([event])
        return sorted(ids[self._kinds[ids] == self._codes.get(event["kind"], -1)].tolist())

    def interfaces(self, event: Any) -> set[int]:
        """As `match`, where a filter's interface is its id."""
        _, ids = self._areas.match_pairs([event])
        return {*ids[self._kinds[ids] == self._codes.get(event["kind"], -1)].tolist()}

    def many(self, events: Sequence[Any]) -> list[set[int]]:
        """As `match_many`."""
        places, ids = self.pairs(events)
        ends = np.searchsorted(places, np.arange(len(events)), side="right").tolist()
        everyone = ids.tolist()
        return [{*everyone[start:end]} for start, end in zip([0, *ends], ends, strict=False)]


def boxes(count: int, side: float, seed: int = 21) -> list[Box]:
    """Squares of one size, spread evenly."""
    corners = np.random.default_rng(seed).random((count, 2)) * (1000 - side)
    return [Box(x, y, x + side, y + side) for x, y in corners.tolist()]


def events(count: int, kinds: int, *, points: bool, seed: int = 22) -> list[dict[str, Any]]:
    """Notifications with an area and a kind."""
    rng = np.random.default_rng(seed)
    places = rng.random((count, 2)) * 995
    sides = rng.uniform(0.5, 5, count)
    chosen = rng.integers(kinds, size=count)
    return [
        {"area": Point(x, y) if points else Box(x, y, x + side, y + side), "kind": f"kind {kind}"}
        for (x, y), side, kind in zip(places.tolist(), sides.tolist(), chosen.tolist(), strict=True)
    ]


def areas_table(regions: Sequence[Box]) -> ForwardingTable:
    """The areas alone, each of its own interface."""
    table = ForwardingTable()
    made = ((i, Filter([Constraint("area", Operator.INTERSECTS, box)])) for i, box in enumerate(regions, 1))
    table.add_many(made)
    return table


def conditions_table(regions: Sequence[Box], kinds: Ints) -> ForwardingTable:
    """The areas with a kind each."""
    table = ForwardingTable()
    table.add_many(
        (i, Filter([Constraint("area", Operator.INTERSECTS, box), Constraint("kind", Operator.EQ, f"kind {kind}")]))
        for i, (box, kind) in enumerate(zip(regions, kinds[1:].tolist(), strict=True), 1)
    )
    return table


def beside(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float]:
    """Least seconds of processor time of either, by turns."""
    ours()
    theirs()
    best = [np.inf, np.inf]
    gc.collect()
    gc.disable()
    for _ in range(ROUNDS):
        for which, call in enumerate((ours, theirs)):
            start = time.process_time()
            call()
            best[which] = min(best[which], time.process_time() - start)
    gc.enable()
    return best[0], best[1]


def conditions(report: Report, quick: bool) -> None:
    """Ratios of the rival's time to the table's, in every cell."""
    rows: list[dict[str, Any]] = []
    rng = np.random.default_rng(20)
    for count in SIZES[:1] if quick else SIZES:
        for side in BOXES:
            regions = boxes(count, side)
            areas = areas_table(regions)
            for kinds in SEGMENT_KINDS:
                codes = np.concatenate(([-1], rng.integers(kinds, size=count)))
                table = conditions_table(regions, codes)
                for points in (True, False):
                    rows.append(_cell(table, Areas(areas, codes), events(1_000, kinds, points=points)))
                    what = {"filters": count, "box": side, "kinds": kinds, "events": "points" if points else "boxes"}
                    rows[-1] = what | rows[-1]
    report.table("An area and a kind: the areas alone, then the kind, over the table", rows)
    for call in ("match", "match_filters", "match_many", "match_pairs"):
        report.target(f"area and kind: {call}, the least ratio", min(row[call] for row in rows), 1)


def _cell(table: ForwardingTable, rival: Areas, given: list[dict[str, Any]]) -> dict[str, Any]:
    some = given[:SINGLE]
    assert table.match_many(given) == rival.many(given)
    measured = {
        "match": beside(lambda: [*map(table.match, some)], lambda: [*map(rival.interfaces, some)]),
        "match_filters": beside(lambda: [*map(table.match_filters, some)], lambda: [*map(rival.filters, some)]),
        "match_many": beside(lambda: table.match_many(given), lambda: rival.many(given)),
        "match_pairs": beside(lambda: table.match_pairs(given), lambda: rival.pairs(given)),
    }
    found = sum(map(len, table.match_many(given))) / len(given)
    row: dict[str, Any] = {"found": found}
    row |= {call: theirs / ours for call, (ours, theirs) in measured.items()}
    return row | {
        "match µs": measured["match"][0] / SINGLE * 1e6,
        "match_many µs": measured["match_many"][0] / len(given) * 1e6,
    }
