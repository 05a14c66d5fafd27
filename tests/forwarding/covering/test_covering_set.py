"""The covering set against looking at every pair, and witnesses against the definition."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from contrada.forwarding.covering.covering_set import CoveringSet
from contrada.forwarding.covering.samples import witnesses
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.text.parse import parse
from tests.forwarding.strategies import filters

if TYPE_CHECKING:
    from contrada.forwarding.language.filter import Filter


@given(filters())
def test_a_witness_matches_its_filter(f):
    found = witnesses(f)
    for pick in (min, max) if found else ():
        example = {name: pick(values, key=repr) for name, values in found.items()}
        assert f.matches(example)


def test_ordinary_filters_have_witnesses():
    for text in [
        "x > 3 and x < 4",
        'x >= 3 and x != 3 and s prefix "ab" and s suffix "c"',
        'b = true and t > 2026-01-01T00:00:00Z and s in ["p", "q"]',
        "area inside BOX(0 0, 4 4)",
        "area overlaps POLYGON((0 0, 5 0, 5 5))",
        "area contains BOX(0 0, 4 4) and x exists",
        "area covers BOX(0 0, 4 4)",
        "area covered-by BOX(0 0, 4 4)",
        "area meets BOX(0 0, 4 4)",
        "area disjoint BOX(0 0, 4 4)",
        'post matches {"ipad"} within BOX(0 0, 5 5)',
    ]:
        (f,) = parse(text).filters
        assert witnesses(f) is not None, text


@given(st.lists(filters(), max_size=12), st.randoms(use_true_random=False))
def test_shown_filters_cover_all_whatever_comes_and_goes(made, rng):
    held: CoveringSet[int] = CoveringSet()
    shown: set[int] = set()
    keys = list(range(len(made)))
    steps = keys + rng.sample(keys, len(keys) // 2)
    for key in steps:
        change = held.remove(key) if key in held else held.add(key, made[key])
        assert not set(change.added) & shown
        assert set(change.removed) <= shown
        shown = (shown | set(change.added)) - set(change.removed)
        held._check()
        assert set(held.shown) == shown
        for present in held:
            assert any(made[g] == made[present] or made[g].covers(made[present]) for g in shown)


def test_no_cover_is_missed_among_nested_ranges_and_boxes():
    rng = random.Random(7)
    held: CoveringSet[int] = CoveringSet()
    made: dict[int, Filter] = {}
    for key in range(400):
        low, x, y = rng.randrange(50), rng.randrange(50), rng.randrange(50)
        width = rng.choice([1, 3, 10, 30])
        ranges = (attr("x") >= low) & (attr("x") <= low + width)
        made[key] = (
            ranges
            & attr("area").inside(f"POLYGON(({x} {y}, {x + width} {y}, {x + width} {y + width}, {x} {y + width}))")
            if key % 2
            else ranges
        )
        held.add(key, made[key])
    for key in rng.sample(range(400), 150):
        held.remove(key)
    for a in held.shown:
        assert not any(b != a and made[b].covers(made[a]) and not made[a].covers(made[b]) for b in held)
