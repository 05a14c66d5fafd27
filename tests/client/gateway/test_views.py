"""Windows and rates: what is shown is what the definition says, never more than the rate, nothing uncounted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import Box, GeoText, Point
from contrada.client.gateway.forms.shapes import shapes_of
from contrada.client.gateway.problems import Problem
from contrada.client.gateway.streaming.views import View, Viewer, touches

corner = st.integers(-3, 3)
windows = st.tuples(corner, corner, corner, corner).map(
    lambda c: (min(c[0], c[2]), min(c[1], c[3]), max(c[0], c[2]), max(c[1], c[3]))
)
points = st.builds(Point, corner, corner)
values = st.one_of(
    points,
    st.builds(lambda x, y: Box(x, y, x + 1, y + 2), corner, corner),
    st.builds(lambda x, y: GeoText("ice", at=(x, y)), corner, corner),
    st.integers(),
)


class Seen:
    """As much of a notification as a viewer looks at."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values_by_name = values


def naive_touches(values: dict[str, Any], window: Any) -> bool:
    """Every place's corners against the window, by shapely."""
    import shapely
    from shapely.geometry import shape

    places = [
        shape(getattr(value, "place", value).__geo_interface__).envelope
        for value in values.values()
        if not isinstance(value, int)
    ]
    return not places or any(place.intersects(shapely.box(*window)) for place in places)


@given(st.dictionaries(st.sampled_from("abc"), values), windows)
def test_a_window_takes_what_touches_it_and_what_is_nowhere(found, window):
    assert touches(found, window) == naive_touches(found, window)


@given(
    st.lists(st.tuples(st.floats(0, 2), st.integers(0, 60)), max_size=20),
    st.integers(1, 30),
    st.none() | windows,
    st.data(),
)
def test_no_second_shows_more_than_the_rate(arrivals, rate, window, data):
    now = 0.0
    viewer = Viewer(View(window, rate), lambda: now)
    shown, came = [], 0
    for pause, count in arrivals:
        now += pause
        batch = [Seen({"p": data.draw(points)}) if window else Seen({}) for _ in range(count)]
        chosen = viewer.select(batch)
        came += count
        assert all(any(each is one for one in batch) for each in chosen)
        assert window is None or all(touches(each.values_by_name, window) for each in chosen)
        shown += [now] * len(chosen)
    for start in {0.0, *shown}:
        assert sum(start <= at < start + 1 for at in shown) <= 2 * rate
    assert sum(at <= now for at in shown) <= rate + rate * now + 1e-6
    assert len(shown) + viewer.skipped == came


def test_without_a_rate_nothing_in_the_window_is_skipped_and_what_was_skipped_is_told_once_a_second():
    now = 0.0
    viewer = Viewer(View((0, 0, 1, 1)), lambda: now)
    batch = [Seen({"p": Point(n % 2 * 5, 0)}) for n in range(10)]
    assert viewer.select(batch) == batch[::2]
    assert viewer.news() == []
    now = 2.0
    assert viewer.news() == [("skipped", {"skipped": 5, "total": 5})]
    assert viewer.news() == []
    viewer.change(View())
    assert viewer.select(batch) == batch


@pytest.mark.parametrize(
    "given",
    [
        {"bounds": "1,2,3"},
        {"bounds": [3, 0, 1, 1]},
        {"bounds": "a,b,c,d"},
        {"bounds": [0, 0, float("inf"), 1]},
        {"bounds": [0, 0, True, 1]},
        {"bounds": {"x": 1}},
        {"rate": 0},
        {"rate": "9" * 5000},
        {"rate": 2.5},
        {"rate": True},
    ],
)
def test_what_is_no_view_is_refused(given):
    with pytest.raises(Problem):
        View.of(given)


def test_shapes_are_those_of_the_constraints():
    found = shapes_of(
        [
            "area overlaps POLYGON((0 0, 1 0, 1 1)) and wind > 3 or gauge inside BOX(0 0, 2 2)",
            'post matches {"ice"} within BOX(0 0, 5 5)',
            "wind > 9",
            "this was … cut",
            "pos within 3 km of POINT(12 41) and ship beyond 2 of LINESTRING(0 0, 1 1)",
        ]
    )
    assert [(each["attribute"], each["operator"], each["geometry"]["type"]) for each in found] == [
        ("area", "overlaps", "Polygon"),
        ("gauge", "inside", "Polygon"),
        ("post", "matches", "Polygon"),
        ("pos", "within", "Point"),
        ("ship", "beyond", "LineString"),
    ]
    assert [(each["distance"], each["unit"]) for each in found[3:]] == [(3000.0, "m"), (2.0, "")]
