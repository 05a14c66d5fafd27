"""Pairs of values and regions, decided together: each as by itself, and not beyond what an interface needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.types.plugged import Settings
from contrada.forwarding.types.relating import FAILED, HELD, NOT_ASKED
from contrada.forwarding.types.shape import ShapeType
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.lines.line import Line
from contrada.spatial.relations.relate import EXACT, Uniform

if TYPE_CHECKING:
    from contrada.spatial.relations.relate import Discretization

_boxes = st.builds(lambda x, y, w, h: Box(x, y, x + w, y + h), *(st.integers(0, 4),) * 2, *(st.integers(1, 3),) * 2)
_shapes = _boxes | st.sampled_from(
    [
        Region([(0, 0), (6, 1), (5, 5)]),
        Region([(1, 1), (4, 1), (4, 4), (2, 5)]),
        Region([(1, 1), (4, 1), (4, 4), (1, 4)]),
        Region([(0, 0), (4, 0), (4, 3), (1, 3)]),
        Region([(1, 0), (5, 0), (4, 3), (1, 3)]),
        Region([(0, 0), (9, 0), (9, 9), (0, 9)], holes=[[(2, 2), (5, 2), (5, 5)]]),
    ]
)
_values = _shapes | st.builds(Point, st.integers(0, 6), st.integers(0, 6))
_operators = st.sampled_from([op for op in Operator if op.mask and " " not in op])


@given(
    st.lists(st.tuples(_operators, _shapes), min_size=1, max_size=6),
    st.lists(_values, min_size=1, max_size=4),
    st.sampled_from([EXACT, Uniform(2.0), Uniform(1.0, halo=True)]),
    st.booleans(),
    st.data(),
)
def test_pending_filters_are_decided_as_their_pairs_are(
    wanted: list[tuple[Operator, Region]],
    values: list[Region | Point],
    way: Discretization,
    every: bool,
    data: st.DataObject,
) -> None:
    shapes = ShapeType(Settings(way, "scan", None))
    constraints = [Constraint("a", op, region) for op, region in wanted]
    handles = [shapes.handle(1, each) for each in constraints]
    shapes.store_made()
    pending, pairs, owners = [], [], []
    for n, value in enumerate(values):
        for _ in range(data.draw(st.integers(0, 4))):
            chosen = data.draw(st.lists(st.integers(0, len(handles) - 1), min_size=1, max_size=3))
            pairs += [(n, 6, handles[i]) for i in chosen]
            pending.append((n, 1, len(pairs), all(constraints[i].holds(value, discretization=way) for i in chosen)))
            owners.append(data.draw(st.integers(0, 2)))
    if not pending:
        return
    verdicts = shapes.decide_pending(
        np.array([each[:3] for each in pending], np.int64),
        np.array(pairs, np.int64),
        np.array(owners, np.int64),
        np.zeros(0 if every else 3, np.int64),
        values,
    )
    assert verdicts is not None
    matched: set[tuple[int, int]] = set()
    for (n, _, _, holds), owner, verdict in zip(pending, owners, verdicts.tolist(), strict=True):
        if not every and (n, owner) in matched:
            assert verdict == NOT_ASKED
        else:
            assert verdict == (HELD if holds else FAILED)
            matched |= {(n, owner)} if holds else set()


@pytest.mark.parametrize("value", [Line([(0, 0), (3, 3)]), Point(1, 1)])
def test_what_is_more_than_relations_of_regions_is_left(value: Line | Point) -> None:
    shapes = ShapeType(Settings(EXACT, "scan", None))
    asked = "a within 2 of POINT(0 0)" if type(value) is Point else "a intersects BOX(0 0, 1 1)"
    handle = shapes.handle(1, parse(asked).filters[0].constraints[0])
    shapes.store_made()
    one = np.array([[0, 1, 1]], np.int64)
    pair, nobody = np.array([[0, 6, handle]], np.int64), np.zeros(1, np.int64)
    assert shapes.decide_pending(one, pair, nobody, nobody[:0], [value]) is None
