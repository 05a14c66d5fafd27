"""The report: one page that needs nothing else, whatever the ids hold."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from contrada.forwarding.segments.index_directory import write_index
from contrada.spark_jobs.common.index_cache import IndexFiles, opened
from contrada.spark_jobs.replaying.report.outlines import Outline, chosen, outlines_of
from contrada.spark_jobs.replaying.report.pictures import draw_heat_map, draw_timeline, width_of
from contrada.spark_jobs.replaying.report.report import write_report
from contrada.spark_jobs.replaying.report.tally import STEPS, Tally

if TYPE_CHECKING:
    from pathlib import Path

HOUR = 3_600_000_000
EVIL = "<script src='http://evil.example/x.js'>alert(1)</script>"


def summary(**more: Any) -> dict[str, Any]:
    return {
        "events": 3,
        "deliveries": 2,
        "rejected": 0,
        "first_event": "2026-11-16T12:00:00+00:00",
        "last_event": "2026-11-16T12:00:07.500000+00:00",
        "subscriptions": 2,
        "dead": 1,
        "top_subscriptions": [{"filter_id": EVIL, "interface": "東京", "deliveries": 2}],
        "dead_subscriptions": [{"filter_id": "s&1", "interface": EVIL}],
        "problems": [],
        "seconds": 1.0,
    } | more


def tally(places: list[tuple[float, float]], hours: list[int]) -> Tally:
    made = Tally()
    if hours:
        made.add(np.array(hours) * HOUR, np.array(places), np.ones(len(hours), np.int64))
    return made


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]


def test_the_page_stands_alone(tmp_path: Path) -> None:
    compare = {
        "missing": 1,
        "extra": 0,
        "differences": [
            {"difference": "missing", "time": None, "event_id": EVIL, "interface": "i", "filter_id": None, "copies": 1}
        ],
    }
    what_if = {key: summary()[key] for key in ("deliveries", "dead", "top_subscriptions", "dead_subscriptions")}
    write_report(
        tmp_path,
        summary(compare=compare, what_if=what_if, problems=[f"torn {EVIL}"]),
        tally([(0, 0), (1, 1), (np.nan, np.nan)], [1, 2, 3]),
    )
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    read = Links()
    read.feed(page)
    assert not {"script", "link", "iframe", "object", "base"} & set(read.tags)
    assert read.sources
    assert all(source.startswith("data:image/png;base64,") for source in read.sources)
    assert not re.search(r"url\(|@import", page)
    assert "東京" in page
    assert "s&amp;1" in page
    for name in ("timeline", "heat_map"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_report_of_nothing(tmp_path: Path) -> None:
    empty = summary(events=0, first_event=None, last_event=None, top_subscriptions=[], dead=0, dead_subscriptions=[])
    write_report(tmp_path, empty, Tally())
    assert not (tmp_path / "heat_map.png").exists()
    assert "no events" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("places", "hours"),
    [
        ([(5.0, 5.0)], [10]),
        ([(0.0, 0.0), (1e30, -1e30)], [-500_000, 500_000]),
        ([(1e-9, 0.0), (2e-9, 0.0)], [0, 10_000]),
        ([(x / 7, 0.0) for x in range(50)], list(range(50))),
    ],
)
def test_pictures_of_odd_extents(places: list[tuple[float, float]], hours: list[int]) -> None:
    made = tally(places, hours)
    assert draw_timeline(made) is not None
    assert draw_heat_map(made) is not None


@pytest.mark.parametrize(
    ("seconds", "width"), [(0.2, "ms"), (7, "20 ms"), (100, "500 ms"), (3600, "15 seconds"), (10**6, "hour")]
)
def test_a_timeline_fits_its_span(seconds: float, width: str) -> None:
    """A recording of seconds fills the picture, from its first to its last moment."""
    start, count = 1_794_830_400_000_000, 1000
    made = Tally()
    times = start + np.linspace(0, seconds * 1e6, count).astype(np.int64)
    made.add(times, np.full((count, 2), np.nan), np.full(count, 3))
    figure = draw_timeline(made)
    assert figure is not None
    upper, lower = figure.axes
    assert upper.get_title(loc="left") == f"per {width}"
    for axes, each in ((upper, 1), (lower, 3)):
        values, edges, _ = axes.patches[0].get_data()
        assert values.sum() == each * count
        assert 40 <= len(values) <= 360
        low, high = axes.get_xlim()
        assert (edges[-1] - edges[0]) / (high - low) > 0.9
        assert (edges[-1] - edges[0]) * 86_400 == pytest.approx(seconds, rel=0.1)


def test_widths_in_words() -> None:
    assert [width_of(step) for step in STEPS[:5]] == ["ms", "5 ms", "20 ms", "100 ms", "500 ms"]
    assert [width_of(step) for step in STEPS[-7:]] == [
        *("12 hours", "day", "week", "4 weeks", "52 weeks", "520 weeks", "5200 weeks")
    ]


def test_outlines_are_those_of_subscriptions(tmp_path: Path) -> None:
    texts = [
        "area intersects BOX(0 0, 2 1)",
        "area inside POLYGON((5 5, 9 5, 5 9)) and price > 1",
        'post matches {"ipad"} within BOX(3 3, 4 4) or area overlaps BOX(6 6, 7 7)',
        "area disjoint BOX(0 0, 100 100)",
        "price > 5",
    ]
    write_index(tmp_path / "index", [(f"s{n}", "I", text) for n, text in enumerate(texts)])
    index = opened(IndexFiles.of(tmp_path / "index"))
    ids = [index[number].ids.to_pylist() for number in range(len(index.infos))]
    sums = {number: np.array([int(id == "s1") * 7 for id in held]) for number, held in enumerate(ids)}
    found = {tuple(map(tuple, each.ring.tolist())): each.deliveries for each in outlines_of([(index, sums)])}
    assert len(found) == 4
    assert all(ring[0] == ring[-1] for ring in found)
    corners = {frozenset(ring): deliveries for ring, deliveries in found.items()}
    assert corners[frozenset({(5.0, 5.0), (9.0, 5.0), (5.0, 9.0)})] == 7
    assert corners[frozenset({(0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (0.0, 1.0)})] == 0
    assert frozenset({(3.0, 3.0), (4.0, 3.0), (4.0, 4.0), (3.0, 4.0)}) in corners


def test_of_many_subscriptions_the_busiest_and_an_even_sample() -> None:
    counts = np.zeros(10_000, np.int64)
    counts[[17, 4711, 9000]] = [5, 1, 2]
    some = chosen(counts, 100)
    assert len(some) == 100
    assert {17, 4711, 9000} <= set(some.tolist())
    assert np.diff(some).max() < 150
    assert chosen(counts[:5], 100).tolist() == [0, 1, 2, 3, 4]


def test_a_map_shows_outlines_and_keeps_events_in_view() -> None:
    made = tally([(x, y) for x in range(10) for y in range(10)], list(range(100)))
    near = np.array([(8.0, 8.0), (14.0, 8.0), (8.0, 14.0), (8.0, 8.0)])
    far = np.array([(-1e6, 0.0), (1e6, 0.0), (0.0, 1e6), (-1e6, 0.0)])
    figure = draw_heat_map(made, [Outline(near, 2), Outline(near + 1, 0)])
    assert figure is not None
    axes = figure.axes[0]
    drawn = [path.vertices for lines in axes.collections for path in lines.get_paths()]
    assert any(np.array_equal(ring, near) for ring in drawn)
    assert len(drawn) == 2
    assert 14 < axes.get_xlim()[1] < 17
    figure = draw_heat_map(made, [Outline(far, 2)])
    assert figure is not None
    low, high = figure.axes[0].get_xlim()
    assert high - low < 40
