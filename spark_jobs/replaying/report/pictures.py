"""The pictures of a report: what happened over time, and where."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contrada.errors import InvalidValue
from contrada.forwarding.language.values import from_microseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contrada.forwarding.kernels.memory.layout import Floats
    from contrada.spark_jobs.replaying.report.outlines import Outline
    from contrada.spark_jobs.replaying.report.tally import Tally

_INK: Final = "#14304f"
_WARM: Final = "#c8511b"
_IDLE: Final = "#7b8794"
_CELLS: Final = 128  # along a side of the map: smaller ones would not be seen
_DECADE: Final = 20  # counts up to this are labelled one by one on a logarithmic scale
_UNITS: Final = (
    (7 * 86_400, "week"),
    (86_400, "day"),
    (3600, "hour"),
    (60, "minute"),
    (1, "second"),
)


def draw_timeline(tally: Tally) -> Figure | None:
    """Events and deliveries over time, in bins of a width that fits the span; None when there were no events."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    if tally.ends is None:
        return None
    first, last = (time // tally.step for time in tally.ends)
    bins = np.zeros((last - first + 1, 2), np.int64)
    for bin, counts in tally.bins.items():
        bins[bin - first] = counts
    edges: Any = date2num([_moment((first + n) * tally.step) for n in range(len(bins) + 1)])  # type: ignore[no-untyped-call]  # matplotlib.dates has no types
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for axes, values, colour, name in ((upper, bins[:, 0], _INK, "events"), (lower, bins[:, 1], _WARM, "deliveries")):
        axes.stairs(values, edges, fill=True, color=colour, alpha=0.25)
        axes.stairs(values, edges, color=colour, linewidth=1)
        axes.set_ylim(0, max(1.0, 1.08 * float(values.max())))
        axes.set_ylabel(name)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.grid(visible=True, alpha=0.3)
    margin = 0.02 * (edges[-1] - edges[0])
    lower.set_xlim(edges[0] - margin, edges[-1] + margin)
    locator = AutoDateLocator(tz=UTC)  # type: ignore[no-untyped-call]  # matplotlib.dates has no types
    lower.xaxis.set_major_locator(locator)
    lower.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=UTC))  # type: ignore[no-untyped-call]  # matplotlib.dates has no types
    lower.set_xlabel("time (UTC)")
    upper.set_title(f"per {width_of(tally.step)}", loc="left", fontsize="medium")
    return figure


def width_of(step: int) -> str:
    """The width of a bin in words: 5 minutes, hour, 4 weeks."""
    for seconds, unit in _UNITS:
        count, rest = divmod(step, seconds * 1_000_000)
        if count and not rest:
            return unit if count == 1 else f"{count} {unit}s"
    return "ms" if step == 1000 else f"{step // 1000} ms"


def _moment(time: int) -> datetime:
    """A time, or the nearest that there is a date for: the last bin may end beyond the year 9999."""
    try:
        return from_microseconds(time)
    except InvalidValue:
        return (datetime.max if time > 0 else datetime.min).replace(tzinfo=UTC)


def draw_heat_map(tally: Tally, outlines: Sequence[Outline] = ()) -> Figure | None:
    """Deliveries by place, or events where nothing was delivered, and outlines; None when no event has a place."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter

    if not tally.cells:
        return None
    what = 1 if any(counts[1] for counts in tally.cells.values()) else 0
    side = 2.0**tally.level
    xs = [x for x, _ in tally.cells]
    ys = [y for _, y in tally.cells]
    left, bottom, shift = min(xs), min(ys), 0
    while max(max(xs) - left, max(ys) - bottom) >> shift >= _CELLS:
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
    )
    _draw_outlines(axes, outlines)
    x1, x2, y1, y2 = _view(extent, outlines)
    axes.set_xlim(x1, x2)
    axes.set_ylim(y1, y2)
    axes.set_aspect("equal" if 0.2 < (y2 - y1) / (x2 - x1) < 5 else "auto")
    scale = figure.colorbar(image, ax=axes, label=("events", "deliveries")[what], shrink=0.8)
    plain = FuncFormatter(lambda value, _: f"{value:,.0f}")
    scale.ax.yaxis.set_major_formatter(plain)
    scale.ax.yaxis.set_minor_formatter(plain if grid.max() < _DECADE else NullFormatter())
    axes.set_xlabel("x")
    axes.set_ylabel("y")
    return figure


def _draw_outlines(axes: Axes, outlines: Sequence[Outline]) -> None:
    """Draw outlines, those of subscriptions without a delivery dashed and below the others."""
    from matplotlib.collections import LineCollection

    dead = [each.ring for each in outlines if not each.deliveries]
    alive = [each.ring for each in outlines if each.deliveries]
    thin = min(1.0, 40 / max(len(outlines), 1)) ** 0.5  # many are drawn lightly
    for rings, colour, style, name in (
        (dead, _IDLE, "dashed", "subscriptions without a delivery"),
        (alive, _INK, "solid", "subscriptions"),
    ):
        if rings:
            lines = LineCollection(rings, colors=colour, linestyles=style, label=name)
            lines.set(linewidth=0.4 + 0.6 * thin, alpha=0.35 + 0.45 * thin)
            axes.add_collection(lines, autolim=False)
    if outlines:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.08), ncols=2, frameon=False, fontsize="small")


def _view(extent: tuple[float, float, float, float], outlines: Sequence[Outline]) -> tuple[float, float, float, float]:
    """What the map shows: where events were, and outlines about it as far as events keep a third of each side."""
    x1, x2, y1, y2 = extent
    low, high = np.array([x1, y1]), np.array([x2, y2])
    room = high - low
    if outlines:
        points: Floats = np.vstack([each.ring for each in outlines])
        low = np.maximum(np.minimum(low, points.min(axis=0)), low - room)
        high = np.minimum(np.maximum(high, points.max(axis=0)), high + room)
    margin = 0.02 * (high - low)
    (x1, y1), (x2, y2) = (low - margin).tolist(), (high + margin).tolist()
    return x1, x2, y1, y2
