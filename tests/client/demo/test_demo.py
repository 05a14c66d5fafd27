"""The demo: its scenario is lawful, its picture is drawn, and what it shows is what happened."""

from __future__ import annotations

import asyncio
import io
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import contrada
from contrada.client.demo import scenario
from contrada.client.demo.run import Line, Show
from contrada.client.demo.sketch import Sketch
from contrada.client.demo.view import screen, story_line, summary

COUNTIES = scenario.load_counties()


def test_the_counties_are_those_of_florida() -> None:
    assert len(COUNTIES) == 67
    assert len({county.name for county in COUNTIES}) == 67
    for county in COUNTIES:
        x1, y1, x2, y2 = county.region.bounds
        assert -88 < x1 < x2 < -79.5
        assert 24 < y1 < y2 < 31.1


@given(storm=st.sampled_from(scenario.STORMS), time=st.floats(0, 1))
def test_a_storm_is_a_valid_region_at_any_time(storm: scenario.Storm, time: float) -> None:
    state = storm.at(time)
    assert (state is not None) == (storm.starts <= time <= storm.ends)
    if state is not None:
        notification = state.notification()
        assert isinstance(notification["area"], contrada.Region)
        assert 0 < notification["wind"] < 300
        assert state.covers(state.x, state.y)


def test_the_scenario_repeats_with_its_seed() -> None:
    def everything() -> list[object]:
        rng = Random(5)
        storms = [state for storm in scenario.STORMS if (state := storm.at(0.5))]
        people = scenario.facilities(COUNTIES, rng) + scenario.rivers(COUNTIES, rng) + scenario.desks(COUNTIES, rng)
        made = [scenario.post(COUNTIES, storms, rng) for _ in range(20)]
        made += [scenario.gauge(COUNTIES, storms, rng) for _ in range(20)]
        return [[(each.name, each.filter) for each in people], made]

    assert everything() == everything()


@pytest.mark.parametrize(("columns", "rows"), [(20, 5), (60, 30), (150, 40)])
def test_the_map_keeps_to_its_size_and_shows_storms_and_warnings(columns: int, rows: int) -> None:
    sketch = Sketch(COUNTIES)
    wide, high = sketch.size(columns, rows)
    assert wide <= columns
    assert high <= rows
    storms = [state for storm in scenario.STORMS if (state := storm.at(0.5))]
    plain = sketch.draw(wide, high)
    assert [len(line) for line in plain.plain.split("\n")] == [wide] * high
    busy = sketch.draw(wide, high, storms, dict.fromkeys(range(67), 1))
    assert "I" in busy.plain
    assert len(busy.spans) > 0
    assert busy.spans != plain.spans


def test_a_short_run_agrees_with_evaluating_each_filter(url: str) -> None:
    told: list[Line] = []
    show = Show(url, seconds=2.0, tell=told.append)
    picture = asyncio.run(asyncio.wait_for(show.play(), 100))
    assert picture.wrong == 0
    assert picture.published["storms"] > 10
    assert picture.delivered["storms"] > 10
    assert picture.published["posts"] > 10
    assert {line.kind for line in told} >= {"storm", "warned"}
    assert set(picture.reached) == {"Ines", "Teo", "Ada"}
    for width, height in ((80, 24), (160, 50)):
        console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, record=True)
        console.print(screen(picture, Sketch(COUNTIES), console))
        assert "subscriptions at broker" in console.export_text()
    console = Console(file=io.StringIO(), width=100, record=True)
    console.print(summary(picture), story_line(told[-1]))
    assert "every delivery agrees" in console.export_text()
