"""Comparisons of distances against rational arithmetic: ordinary, tied, and at the ends of what doubles hold."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from contrada.spatial.distance.comparing import points_within, segment_within
from tests.naive.distance import of_point

grid = st.integers(-6, 6).map(float)
magnitudes = st.floats(1e-100, 1e100) | st.sampled_from([1e-100, 1e100, 1.0, 2.0**52, 0.1])
hostile = st.just(0.0) | st.tuples(magnitudes, st.sampled_from([-1.0, 1.0])).map(math.prod)
ordinary = st.floats(-1e4, 1e4).filter(lambda c: c == 0 or abs(c) > 1e-100)


def near_ties(squared: Fraction) -> list[float]:
    """Lengths around the root of a squared distance, the exact one among them if it is a double."""
    numerator, denominator = squared.as_integer_ratio()
    shift = max(0, 220 + denominator.bit_length() - numerator.bit_length())
    root = math.isqrt((numerator << 2 * shift) // denominator) if numerator else 0
    middle = float(Fraction(root, 1 << shift))
    lengths = [middle, math.nextafter(middle, math.inf), math.nextafter(middle, 0.0), middle * 2, middle / 2]
    return [0.0, *(d for d in lengths if 1e-100 <= d <= 1e100)]


@st.composite
def positions(draw, count):
    kind = draw(st.sampled_from([grid, ordinary, hostile, st.one_of(grid, hostile)]))
    return draw(st.lists(st.tuples(kind, kind), min_size=count, max_size=count))


@given(positions(2))
def test_points(drawn):
    a, p = drawn
    squared = of_point(p, a, a)
    for d in near_ties(squared):
        assert points_within(*a, *p, d) == (squared <= Fraction(d) ** 2)


@given(positions(3))
def test_segments(drawn):
    a, b, p = drawn
    squared = of_point(p, a, b)
    for d in near_ties(squared):
        assert segment_within(*a, *b, *p, d) == (squared <= Fraction(d) ** 2)


@given(st.integers(1, 30), st.integers(0, 400), st.integers(-20, 20))
def test_ties_of_slanted_segments_are_within(scale, along, shift):
    # p is off the line from a to b, of direction (4, 3), by (-3, 4) times scale: 5 * scale away, exactly.
    a, b = (float(shift), 0.0), (shift + 400.0, 300.0)
    p = (shift + along - 3.0 * scale, along * 0.75 + 4.0 * scale)
    squared = of_point(p, a, b)
    assert squared == 25 * scale**2
    assert segment_within(*a, *b, *p, 5.0 * scale)
    assert not segment_within(*a, *b, *p, math.nextafter(5.0 * scale, 0.0))
