"""`orient` against rational arithmetic, above all where doubles are too coarse."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import assume, example, given
from hypothesis import strategies as st

from contrada.spatial.geometry.predicates import MAX_MAGNITUDE, MIN_MAGNITUDE, orient


def exact_sign(ax, ay, bx, by, cx, cy):
    ax, ay, bx, by, cx, cy = (Fraction(v) for v in (ax, ay, bx, by, cx, cy))
    determinant = (ax - cx) * (by - cy) - (ay - cy) * (bx - cx)
    return (determinant > 0) - (determinant < 0)


anywhere = st.one_of(
    st.just(0.0),
    st.floats(MIN_MAGNITUDE, MAX_MAGNITUDE),
    st.floats(-MAX_MAGNITUDE, -MIN_MAGNITUDE),
)
grid = st.integers(-20, 20).map(float)


@given(*[st.one_of(anywhere, grid)] * 6)
@example(1e100, 1e-100, -1e100, 1e-100, 1e-100, 1e100)
def test_any_three_points(ax, ay, bx, by, cx, cy):
    assert orient(ax, ay, bx, by, cx, cy) == exact_sign(ax, ay, bx, by, cx, cy)


@given(
    *[st.floats(-180, 180).filter(lambda v: v == 0 or abs(v) > 1e-50)] * 4,
    st.floats(0, 1),
    st.integers(-3, 3),
    st.integers(-3, 3),
)
def test_a_few_ulps_off_a_line(ax, ay, bx, by, t, up_x, up_y):
    cx, cy = ax + t * (bx - ax), ay + t * (by - ay)
    for _ in range(abs(up_x)):
        cx = math.nextafter(cx, math.copysign(math.inf, up_x))
    for _ in range(abs(up_y)):
        cy = math.nextafter(cy, math.copysign(math.inf, up_y))
    assume(all(v == 0 or abs(v) >= MIN_MAGNITUDE for v in (cx, cy)))
    sign = orient(ax, ay, bx, by, cx, cy)
    assert sign == exact_sign(ax, ay, bx, by, cx, cy)
    assert orient(bx, by, ax, ay, cx, cy) == -sign
    assert orient(bx, by, cx, cy, ax, ay) == sign
