"""Tallies: whatever the batches and the order of merging, the counts are those of counting one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contrada.spark_jobs.replaying.report import tally as tally_module
from contrada.spark_jobs.replaying.report.tally import BINS, STEPS, Tally, places_of
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box
from contrada.spatial.textual.geotext import GeoText

# Coordinates are 0 or at least 1e-100 in magnitude: none underflows when it is divided by a cell's side.
coordinates = st.floats(-1e6, 1e6).map(lambda c: c if abs(c) >= 1e-100 else 0.0) | st.sampled_from(
    (0.0, 1e-9, 179.999, 1e30, -1e30)
)
places = st.tuples(coordinates, coordinates) | st.just((np.nan, np.nan))
times = st.integers(-(10**15), 10**16) | st.integers(0, 10**7)  # of centuries, and of seconds
events = st.tuples(times, places, st.integers(0, 5))


def counted(rows: list[Any]) -> Tally:
    tally = Tally()
    if rows:
        times, where, deliveries = zip(*rows, strict=True)
        tally.add(np.array(times), np.array(where, np.float64).reshape(-1, 2), np.array(deliveries))
    tally._check()
    return tally


@given(st.lists(st.lists(events, max_size=6), max_size=4))
def test_merging_counts_all(batches: list[list[Any]]) -> None:
    merged = Tally()
    for batch in batches:
        merged.merge(counted(batch))
    merged._check()
    rows = [row for batch in batches for row in batch]
    assert (merged.events, merged.deliveries) == (len(rows), sum(n for _, _, n in rows))
    by_bin: dict[int, list[int]] = {}
    when = [time for time, _, _ in rows]
    fitting = (step for step in STEPS if not rows or max(when) // step - min(when) // step < BINS)
    assert merged.step == next(fitting), "the finest that fits, in whatever order they are merged"
    assert merged.ends == ((min(when), max(when)) if rows else None)
    by_cell: dict[tuple[int, int], list[int]] = {}
    for time, (x, y), n in rows:
        counts = by_bin.setdefault(time // merged.step, [0, 0])
        counts[0] += 1
        counts[1] += n
        if x == x:
            side = 2.0**merged.level
            cell = by_cell.setdefault((int(np.floor(x / side)), int(np.floor(y / side))), [0, 0])
            cell[0] += 1
            cell[1] += n
    assert merged.bins == by_bin
    assert merged.cells == by_cell


def test_a_grid_stays_small_and_loses_nothing(monkeypatch: Any) -> None:
    monkeypatch.setattr(tally_module, "CELLS", 64)
    rng = np.random.default_rng(1)
    tally = Tally()
    for _ in range(20):
        tally.add(np.zeros(500, np.int64), rng.uniform(-180, 180, (500, 2)), np.ones(500, np.int64))
    tally._check()
    assert len(tally.cells) <= 64
    assert sum(counts[0] for counts in tally.cells.values()) == 10_000


def test_where_an_event_is() -> None:
    notes = [
        {"price": 1, "at": Point(1, 2), "area": Box(0, 0, 9, 9)},
        {"area": Box(0, 0, 4, 2)},
        {"post": GeoText("ipad", at=(5, 6))},
        {"price": 1, "text": "POINT(1 2)"},
    ]
    found = places_of(notes)
    assert found[:3].tolist() == [[1, 2], [2, 1], [5, 6]]
    assert np.isnan(found[3]).all()
