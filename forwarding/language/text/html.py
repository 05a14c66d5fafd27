"""Notifications, filters and explanations as HTML, for notebooks (`_repr_html_`). Everything is escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contrada.forwarding.language.explain import Explanation

_LONGEST: Final = 300  # characters of one value
_MOST: Final = 100  # rows


def attributes_html(title: str, attributes: Mapping[str, Any]) -> str:
    """A table of names and values; regions are drawn."""
    rows = [(escape(name), _value(value)) for name, value in list(attributes.items())[:_MOST]]
    return _table(title, rows, len(attributes) - len(rows))


def filters_html(filters: Iterable[Iterable[Any]]) -> str:
    """A table of constraints for each filter of a predicate."""
    tables = []
    for each in list(filters)[:_MOST]:
        rows = [
            (escape(constraint.name), f"{escape(str(constraint.op))} {_value(constraint.value)}") for constraint in each
        ]
        tables.append(_table("", rows or [("true", "everything matches")], 0))
    return "<p>or</p>".join(tables)


def explanation_html(explanation: Explanation) -> str:
    """Constraint by constraint: held or not, and why."""
    head = "matches" if explanation.matches else "does not match"
    rows = [
        (f"{'✓' if verdict.held else '✗'} {escape(_short(str(verdict.constraint)))}", escape(_short(verdict.why)))
        for verdict in explanation.verdicts
    ]
    return _table(f"{head} the filter of {explanation.interface!r}", rows, 0)


def _value(value: Any) -> str:
    if value is None:
        return ""
    draw = getattr(value, "_repr_svg_", None)
    text = escape(_short(str(getattr(value, "wkt", value))))
    return f"{draw()}<br>{text}" if draw is not None else text


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def _table(title: str, rows: list[tuple[str, str]], more: int) -> str:
    body = "".join(
        f"<tr><th style='text-align:left'>{a}</th><td style='text-align:left'>{b}</td></tr>" for a, b in rows
    )
    rest = f"<tr><td colspan=2>and {more} more</td></tr>" if more > 0 else ""
    head = f"<caption style='text-align:left'>{escape(title)}</caption>" if title else ""
    return f"<table>{head}{body}{rest}</table>"
