"""The report of a replay: two pictures, and one page that needs nothing but itself.

    timeline.png    events and deliveries by hour, or by day when there are many hours
    heat_map.png    where the delivered events were: deliveries by cell (tally.py), on a logarithmic scale
    report.html     totals, both pictures, the busiest and the dead subscriptions, differences, what was tried out

Whatever came from outside is escaped; the page has no scripts and asks no server for anything.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contrada.spark_jobs.tally import HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.figure import Figure

    from contrada.spark_jobs.tally import Tally

_HOURS: Final = 24 * 21  # more are shown by days
_INK: Final = "#14304f"
_WARM: Final = "#c8511b"
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.totals { display: flex; flex-wrap: wrap; gap: 1rem; padding: 0; list-style: none; }
.totals li { border: 1px solid var(--line); border-radius: .5rem; padding: .5rem 1rem; }
.totals b { display: block; font-size: 1.4rem; font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
img { max-width: 100%; background: #fff; border-radius: .5rem; }
.bad { color: #c8321b; } small, .quiet { opacity: .75; }
"""


def write_report(home: Path, summary: Mapping[str, Any], tally: Tally) -> None:
    """Write the pictures and the page into a directory."""
    pictures = {"timeline": draw_timeline(tally), "heat_map": draw_heat_map(tally)}
    encoded = {}
    for name, figure in pictures.items():
        if figure is not None:
            data = BytesIO()
            figure.savefig(data, format="png", dpi=120, metadata={"Software": None})
            (home / f"{name}.png").write_bytes(data.getvalue())
            encoded[name] = base64.b64encode(data.getvalue()).decode()
    (home / "report.html").write_text(page(summary, encoded), encoding="utf-8")


# -- pictures --------------------------------------------------------------------------------------------------


def draw_timeline(tally: Tally) -> Figure | None:
    """Events and deliveries over time; None when there were no events."""
    from matplotlib.figure import Figure

    if not tally.hours:
        return None
    first, last = min(tally.hours), max(tally.hours)
    step = 1 if last - first < _HOURS else 24
    bins = np.zeros((last // step - first // step + 1, 2), np.int64)
    for hour, counts in tally.hours.items():
        bins[hour // step - first // step] += counts
    times: Any = [_moment((first // step + i) * step) for i in range(len(bins))]
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    axes = figure.add_subplot()
    if len(bins) == 1:
        axes.plot(times, bins[:, 0], "o", color=_INK, label="events")
        axes.plot(times, bins[:, 1], "o", color=_WARM, label="deliveries")
    else:
        axes.step(times, bins[:, 0], where="post", color=_INK, label="events")
        axes.step(times, bins[:, 1], where="post", color=_WARM, label="deliveries")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("per hour" if step == 1 else "per day")
    axes.set_xlabel("time (UTC)")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False)
    return figure


def draw_heat_map(tally: Tally) -> Figure | None:
    """Deliveries by place, or events where nothing was delivered; None when no event has a place."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    if not tally.cells:
        return None
    what = 1 if any(counts[1] for counts in tally.cells.values()) else 0
    side = 2.0**tally.level
    xs = [x for x, _ in tally.cells]
    ys = [y for _, y in tally.cells]
    left, bottom, shift = min(xs), min(ys), 0
    while max(max(xs) - left, max(ys) - bottom) >> shift >= 1024:  # few cells, far apart
        shift += 1
    grid = np.zeros(((max(ys) - bottom >> shift) + 1, (max(xs) - left >> shift) + 1))
    for (x, y), counts in tally.cells.items():
        grid[y - bottom >> shift, x - left >> shift] += counts[what]
    side *= 2**shift
    extent = (
        left * 2.0**tally.level,
        left * 2.0**tally.level + side * grid.shape[1],
        bottom * 2.0**tally.level,
        bottom * 2.0**tally.level + side * grid.shape[0],
    )
    figure = Figure(figsize=(7, 6), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(
        np.ma.masked_equal(grid, 0),
        origin="lower",
        extent=extent,
        cmap="magma_r",
        norm=LogNorm(1, max(2.0, float(grid.max()))),
        interpolation="nearest",
        aspect="equal" if 0.2 < grid.shape[0] / grid.shape[1] < 5 else "auto",
    )
    figure.colorbar(image, ax=axes, label=("events", "deliveries")[what], shrink=0.8)
    axes.set_xlabel("x")
    axes.set_ylabel("y")
    return figure


def _moment(hour: int) -> datetime:
    return datetime.fromtimestamp(hour * HOUR // 1_000_000, UTC)


# -- the page --------------------------------------------------------------------------------------------------


def page(summary: Mapping[str, Any], pictures: Mapping[str, str]) -> str:
    """The page, as text."""
    first, last = summary["first_hour"], summary["last_hour"]
    span = "no events" if first is None else f"from the hour of {first} to that of {last}"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><title>Contrada replay</title>',
        f"<style>{_STYLE}</style></head><body>",
        f'<h1>Who would have been notified?</h1><p class="quiet">{escape(span)}</p>',
        _totals(summary),
        *_problems(summary),
        *_comparison(summary.get("compare")),
        "<h2>Over time</h2>",
        _picture(pictures.get("timeline"), "events and deliveries over time", "There were no events."),
        "<h2>Where</h2>",
        _picture(pictures.get("heat_map"), "deliveries by place", "No event has a place."),
        *_subscriptions(summary),
    ]
    tried = summary.get("what_if")
    if tried is not None:
        parts.append("<h2>What if</h2>")
        deliveries = _count(tried["deliveries"], "delivery", "deliveries")
        parts.append(f"<p>{deliveries} to the filters that were tried out.</p>")
        parts += _subscriptions(tried)
    parts.append(f"<p><small>Made in {summary['seconds']:.1f} s.</small></p></body></html>\n")
    return "\n".join(parts)


def _totals(summary: Mapping[str, Any]) -> str:
    shown = [(name, summary[name]) for name in ("events", "deliveries", "subscriptions", "dead", "rejected")]
    items = "".join(f"<li><b>{value:,}</b>{_TITLES[name]}</li>" for name, value in shown)
    return f'<ul class="totals">{items}</ul>'


_TITLES: Final = {
    "events": "events",
    "deliveries": "deliveries",
    "subscriptions": "subscriptions",
    "dead": "without a delivery",
    "rejected": "events rejected",
}


def _problems(summary: Mapping[str, Any]) -> Iterable[str]:
    if summary["problems"]:
        items = "".join(f"<li>{escape(each)}</li>" for each in summary["problems"])
        yield f'<h2 class="bad">Not everything could be read</h2><ul>{items}</ul>'


def _comparison(compared: Mapping[str, Any] | None) -> Iterable[str]:
    if compared is None:
        return
    yield "<h2>Compared with what was delivered</h2>"
    if not compared["missing"] and not compared["extra"]:
        yield "<p>No difference.</p>"
        return
    yield f'<p class="bad">{compared["missing"]:,} missing, {compared["extra"]:,} extra. The first:</p>'
    names = ("difference", "time", "event_id", "interface", "filter_id", "copies")
    yield _table(names, [[row[name] for name in names] for row in compared["differences"]])


def _subscriptions(told: Mapping[str, Any]) -> Iterable[str]:
    yield "<h3>Busiest subscriptions</h3>"
    rows = [[row["filter_id"], row["interface"], row["deliveries"]] for row in told["top_subscriptions"]]
    yield _table(("subscription", "interface", "deliveries"), rows) if rows else "<p>None had a delivery.</p>"
    yield "<h3>Dead subscriptions</h3>"
    if not told["dead"]:
        yield "<p>Every one had a delivery.</p>"
        return
    shown = [[row["filter_id"], row["interface"]] for row in told["dead_subscriptions"]]
    more = f", of which the first {len(shown)}" if told["dead"] > len(shown) else ""
    yield f"<p>{_count(told['dead'], 'subscription', 'subscriptions')} had none{more}:</p>"
    yield _table(("subscription", "interface"), shown)


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    def cell(tag: str, value: object) -> str:
        number = isinstance(value, int)
        text = f"{value:,}" if number else "" if value is None else escape(str(value))
        return f"<{tag}{' class=n' if number else ''}>{text}</{tag}>"

    head = "".join(cell("th", each) for each in heads)
    body = "".join(f"<tr>{''.join(cell('td', value) for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _picture(data: str | None, what: str, otherwise: str) -> str:
    if data is None:
        return f"<p>{otherwise}</p>"
    return f'<img alt="{what}" src="data:image/png;base64,{data}">'


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
