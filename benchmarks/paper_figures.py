"""The figures of section 5 of [SIENA-2D] for docs/papers.md: `make bench-paper_figures`, after the benchmarks.

Draws what `make bench-forwarding_paper` and `make bench-regions` saved under benchmarks/results as small pictures in
docs/figures. Of its Fig. 4 and 5 the paper prints curves without numbers; the numbers of its Table 3 are drawn too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import RESULTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OUT = Path(__file__).parent.parent / "docs" / "figures"
# Table 3 as printed, ms: scenario 1 with the CR-tree; scenario 2 without and with the simplifier; types A, B, C.
PRINTED = {
    "census blocks": ((73, 89, 7), (67, 78, 4.4), (0.18, 0.54, 0.12)),
    "natural features": ((108, 93, 7), (59, 169, 72), (1.4, 6.4, 0.53)),
    "London": ((1.4, 6.4, 0.53), (0.95, 5.0, 0.32), (0.75, 1.24, 0.05)),
}


def rows_of(document: dict[str, Any], title: str) -> list[dict[str, Any]]:
    """The table whose title begins so; none if it was not measured."""
    return next((rows for name, rows in document["tables"].items() if name.startswith(title)), [])


def lines(axes: Axes, rows: list[dict[str, Any]], x: str, columns: dict[str, str]) -> None:
    """A line for each column, by what it is to be called."""
    for column, label in columns.items():
        axes.plot([row[x] for row in rows], [row[column] for row in rows], marker=".", label=label)
    axes.legend(fontsize=7)
    axes.grid(visible=True, alpha=0.3)


def draw(width: int, title: str) -> tuple[Any, Any]:
    """A figure of so many panels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6 * width, 3.0), layout="constrained")
    figure.suptitle(title, fontsize=9)
    return figure, [figure.add_subplot(1, width, place + 1) for place in range(width)]


def keep(figure: Any, name: str) -> None:
    """Save a figure as SVG: text stays text, and nothing in it says when it was made."""
    import matplotlib as mpl

    OUT.mkdir(exist_ok=True)
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(OUT / f"{name}.svg", metadata={"Date": None})


def figure_4(document: dict[str, Any]) -> None:
    """Fig. 4a and 4b."""
    first, second = rows_of(document, "Fig. 4a"), rows_of(document, "Fig. 4b")
    if first:
        figure, (axes,) = draw(1, "Fig. 4a: N predicates of one constraint, ms")
        lines(axes, first, "constraints", {"exact ms": "exact", "Uniform(2000) ms": "sampled, D = 2000"})
        axes.set(xlabel="constraints", yscale="log")
        keep(figure, "siena-2d-fig4a")
    if second:
        figure, panels = draw(3, "Fig. 4b: N constraints in filters of two, ms")
        ways = {"counting ms": "counting", "selective ms": "selective", "auto ms": "auto"}
        for axes, (column, label) in zip(panels, ways.items(), strict=True):
            for predicates in (1, 5, 15, 25, None):
                mine = [row for row in second if row["predicates"] == (predicates or row["constraints"] // 2)]
                xs, ys = [row["constraints"] for row in mine], [row[column] for row in mine]
                axes.plot(xs, ys, marker=".", label=f"{predicates or 'N / 2'} predicates")
            axes.set(xlabel=f"constraints, {label}", yscale="log")
            axes.grid(visible=True, alpha=0.3)
        panels[0].legend(fontsize=7)
        keep(figure, "siena-2d-fig4b")


def table_3(document: dict[str, Any]) -> None:
    """Both scenarios of Table 3, a panel for each set, printed beside measured."""
    for scenario, title in ((1, "Table 3, scenario 1"), (2, "Table 3, scenario 2")):
        rows = rows_of(document, title)
        sets = list(dict.fromkeys(row["set"] for row in rows))
        if not sets:
            continue
        figure, panels = draw(len(sets), f"{title}: ms, by type of region; hatched as printed")
        for axes, name in zip(panels, sets, strict=True):
            mine = [row for row in rows if row["set"] == name]
            printed = PRINTED[name]
            bars = {"printed": list(printed[0])} if scenario == 1 else {"printed, simplified": list(printed[2])}
            bars |= {column.removesuffix(" ms"): [row[column] for row in mine] for column in mine[0] if " ms" in column}
            for place, (label, values) in enumerate(bars.items()):
                xs = [kind + place / (len(bars) + 1) for kind in range(3)]
                hatch = "//" if label.startswith("printed") else None
                axes.bar(xs, values, 0.9 / (len(bars) + 1), align="edge", label=label, hatch=hatch)
            axes.set(yscale="log", xticks=[0.4, 1.4, 2.4], xticklabels=["A", "B", "C"])
            axes.set_title(name, fontsize=8)
        panels[0].legend(fontsize=5)
        keep(figure, f"siena-2d-table3-{scenario}")


def figure_5(document: dict[str, Any]) -> None:
    """Fig. 5, a line for each set and type."""
    rows = rows_of(document, "Fig. 5")
    if not rows:
        return
    densities = [column for column in rows[0] if str(column).replace(",", "").isdigit()]
    figure, (axes,) = draw(1, "Fig. 5: incremental precision gain, %, by points per half-length")
    for row in rows:
        label = " ".join(str(row[column]) for column in row if column not in densities)
        axes.plot([int(d.replace(",", "")) for d in densities], [row[d] for d in densities], marker=".", label=label)
    axes.legend(fontsize=5)
    axes.grid(visible=True, alpha=0.3)
    keep(figure, "siena-2d-fig5")


def main() -> int:
    drawn = {"forwarding_paper": (figure_4, table_3), "regions": (figure_5,)}
    for name, draws in drawn.items():
        source = RESULTS / f"{name}.json"
        if not source.exists():
            print(f"no {source.name}: make bench-{name} first")
            continue
        for each in draws:
            each(json.loads(source.read_text()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
