"""The report of a replay: two pictures, and one page that needs nothing but itself.

    timeline.png    events and deliveries over time, and
    heat_map.png    where the delivered events and the subscriptions were (pictures.py)
    report.html     totals, both pictures, the busiest and the dead subscriptions, differences, what was tried out

Whatever came from outside is escaped; the page has no scripts and asks no server for anything.
"""

from __future__ import annotations

import base64
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from contrada.spark_jobs.replaying.report.pictures import draw_heat_map, draw_timeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from contrada.spark_jobs.replaying.report.outlines import Outline
    from contrada.spark_jobs.replaying.report.tally import Tally

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


def write_report(home: Path, summary: Mapping[str, Any], tally: Tally, outlines: Sequence[Outline] = ()) -> None:
    """Write the pictures and the page into a directory."""
    pictures = {"timeline": draw_timeline(tally), "heat_map": draw_heat_map(tally, outlines)}
    encoded = {}
    for name, figure in pictures.items():
        if figure is not None:
            data = BytesIO()
            figure.savefig(data, format="png", dpi=120, metadata={"Software": None})
            (home / f"{name}.png").write_bytes(data.getvalue())
            encoded[name] = base64.b64encode(data.getvalue()).decode()
    (home / "report.html").write_text(page(summary, encoded), encoding="utf-8")


# -- the page --------------------------------------------------------------------------------------------------


def page(summary: Mapping[str, Any], pictures: Mapping[str, str]) -> str:
    """The page, as text."""
    first, last = summary["first_event"], summary["last_event"]
    span = "no events" if first is None else f"from {first} to {last}"
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
        '<p class="quiet">Outlines are places that subscriptions ask for, of some where there are many.</p>',
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
