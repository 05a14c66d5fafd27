"""The report: one page that needs nothing else, whatever the ids hold."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from contrada.spark_jobs.report import draw_heat_map, draw_timeline, write_report
from contrada.spark_jobs.tally import HOUR, Tally

if TYPE_CHECKING:
    from pathlib import Path

EVIL = "<script src='http://evil.example/x.js'>alert(1)</script>"


def summary(**more: Any) -> dict[str, Any]:
    return {
        "events": 3,
        "deliveries": 2,
        "rejected": 0,
        "first_hour": "2026-11-16T12:00:00+00:00",
        "last_hour": "2026-11-16T13:00:00+00:00",
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
    empty = summary(events=0, first_hour=None, last_hour=None, top_subscriptions=[], dead=0, dead_subscriptions=[])
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
