"""Two views of the demo: a live screen for terminals, and plain lines for everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.layout import Layout
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from contrada.client.demo.run import Line, Picture
    from contrada.client.demo.sketch import Sketch

_SYMBOL = {"storm": "◎", "warned": "▲", "not-warned": "·", "post": "✎", "rain": "☂"}
_STYLE = {
    "storm": "bold magenta",
    "warned": "bold orange1",
    "not-warned": "grey62",
    "post": "cyan",
    "rain": "dodger_blue1",
}


def screen(picture: Picture, sketch: Sketch, console: Console) -> RenderableType:
    """Draw one frame for the whole terminal."""
    width, height = console.size
    body = height - 4
    columns, rows = sketch.size(max(20, min(72, width * 9 // 20) - 4), max(5, body - 2))
    layout = Layout()
    layout.split_column(
        Layout(_head(picture), size=1), Layout(name="body", size=body), Layout(_foot(picture, width), size=3)
    )
    layout["body"].split_row(
        Layout(
            Panel(
                sketch.draw(columns, rows, picture.storms, picture.warned()),
                title="Florida, county by county",
                border_style="grey35",
            ),
            size=columns + 4,
        ),
        Layout(name="side"),
    )
    side = width - columns - 4
    layout["side"].split_column(
        Layout(Panel(_storms(picture), title="storms published", border_style="grey35"), size=6),
        Layout(Panel(_story(picture, body - 8, side - 4), title="who gets what, and why", border_style="grey35")),
    )
    return layout


def _head(picture: Picture) -> RenderableType:
    return Text.assemble(
        (" contrada ", "bold black on orange1"),
        f" {picture.subscriptions} subscriptions at broker {picture.broker}; three storms are coming",
        no_wrap=True,
        overflow="ellipsis",
    )


def _storms(picture: Picture) -> RenderableType:
    table = Table(box=None, pad_edge=False, expand=True, show_header=True, header_style="grey62")
    for name in ("storm", "wind", "category", "warned so far"):
        table.add_column(name, justify="left" if name == "storm" else "right")
    for state in picture.storms:
        colour = "red" if state.category >= 3 else "orange1" if state.category else "white"
        table.add_row(
            Text(state.name, "bold magenta"),
            Text(f"{state.wind:.0f} km/h", colour),
            str(state.category) if state.category else "tropical",
            str(len(picture.reached.get(state.name, ()))),
        )
    return table


def _story(picture: Picture, rows: int, width: int) -> RenderableType:
    lines = [story_line(line, width) for line in list(picture.story)[-max(rows, 1) :]]
    return Group(*lines) if lines else Text("waiting for the first storm", "grey62")


def story_line(line: Line, width: int = 0) -> Text:
    """Lay out one line of the story."""
    style = _STYLE[line.kind]
    text = Text.assemble(
        (f"{line.at:5.1f} s " if not 0 < width < 50 else "", "grey50"),
        (f"{_SYMBOL[line.kind]} ", style),
        (line.who, style),
        (" was not warned: " if line.kind == "not-warned" else "  ", "grey62"),
        (line.why, "grey70" if line.kind == "not-warned" else "white"),
        no_wrap=True,
        overflow="ellipsis",
    )
    if width:
        text.truncate(width, overflow="ellipsis")
    return text


def _foot(picture: Picture, width: int) -> RenderableType:
    published, delivered = picture.published.total(), picture.delivered.total()
    elapsed = max(picture.elapsed, 1e-9)
    counts = Text.assemble(
        (f" {published:,}", "bold"),
        f" published ({published / elapsed:,.0f}/s)   ",
        (f"{delivered:,}", "bold"),
        f" delivered ({delivered / elapsed:,.0f}/s)   ",
        ("▲ warning  ☂ rain  ✎ post  · spared (asked of the broker)", "grey62"),
        no_wrap=True,
        overflow="ellipsis",
    )
    bar = ProgressBar(total=picture.seconds, completed=picture.elapsed, width=max(10, width - 2))
    return Group(counts, Text(), bar)


def summary(picture: Picture) -> RenderableType:
    """Say how it ended."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for name in ("", "published", "delivered"):
        table.add_column(name, justify="left" if not name else "right")
    for kind in ("storms", "posts", "gauges"):
        table.add_row(f"{kind}", f"{picture.published[kind]:,}", f"{picture.delivered[kind]:,}")
    storms = [
        Text.assemble(
            "  ",
            (name, "bold magenta"),
            f" reached {picture.strongest[name]:.0f} km/h and warned {len(who)} facilities",
        )
        for name, who in picture.reached.items()
    ]
    total, playing = picture.published.total(), max(picture.playing, 1e-9)
    rate = f"{total / playing:,.0f} notifications/s in, {picture.delivered.total() / playing:,.0f} deliveries/s out"
    if picture.wrong == 0:
        checked = Text("every delivery agrees with evaluating each filter by itself", "bold green")
    else:
        checked = Text(f"{picture.wrong} deliveries differ from evaluating each filter by itself", "bold red")
    return Group(
        Text(f"{picture.subscriptions} subscriptions, {picture.playing:.1f} s, {rate}"),
        Text(),
        table,
        Text(),
        *storms,
        Text(),
        checked,
    )
