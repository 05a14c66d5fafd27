"""[LFILTER]'s experiments in shape: Figures 7, 8, 9 and 11, ours beside what it prints.

The paper ran C++ on a 3 GHz machine over 10 million tweets. Its plots are not in the text; the milliseconds quoted are
those that the prose gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.geotext_workloads import GROUPS, World, measure_in_turns, measure_index

if TYPE_CHECKING:
    from benchmarks.geotext_workloads import Subscriptions
    from benchmarks.harness import Report
    from contrada.spatial.textual.base import StoredIndex

_PRINTED_7 = {"tokens": 72, "trie": 98, "cost": 56}  # long range messages of 1,000 tokens
_PRINTED_8 = {"mbr-trie": "> 50", "pt-quadtree": "> 50", "lfilter": "16"}  # the same
_PRINTED_9 = {"lfilter": "2-4", "rt++": "10", "ir-tree": "15"}  # long point messages


def _lengths(group: str) -> tuple[int, ...]:
    return (6, 12, 20) if group.startswith("short") else (100, 300, 1_000)


def _by_length(world: World, index: StoredIndex, group: str, count: int) -> list[float]:
    how = dict(GROUPS[group])
    times = []
    for length in _lengths(group):
        how["tokens"] = (length, length)
        messages = world.messages(count if length < 100 else max(20, count // 6), **how)
        times.append(measure_index(index, messages).milliseconds)
    return times


def _compare(
    report: Report, world: World, indexes: dict[str, StoredIndex], count: int, figure: str, printed: dict[str, Any]
) -> dict[str, dict[str, list[float]]]:
    """One table and plot of all groups: a line per index, a column per message length."""
    times = {
        name: {group: _by_length(world, index, group, count) for group in GROUPS} for name, index in indexes.items()
    }
    size = len(next(iter(indexes.values())))
    for kind in ("point", "range"):
        groups = [g for g in GROUPS if g.endswith(kind)]
        lengths = [n for g in groups for n in _lengths(g)]
        lines = {name: [t for g in groups for t in its[g]] for name, its in times.items()}
        report.table(
            f"[LFILTER], {figure}: ms per {kind} message by its tokens, {size:,} subscriptions",
            [
                {
                    "index": name,
                    **{f"{n:,}": t for n, t in zip(lengths, line, strict=True)},
                    "paper": str(printed[name]),
                }
                for name, line in lines.items()
            ],
        )
        report.plot(
            f"{report.name}-{kind}",
            {name: (lengths, line) for name, line in lines.items()},
            x=f"tokens in the {kind} message",
            y="ms per message",
            log="xy",
        )
    return times


def figure_7(report: Report, world: World, subscriptions: Subscriptions, count: int) -> None:
    """The three ways to probe the trie."""
    tries = {probe: subscriptions.build("mbr-trie", probe=probe) for probe in ("tokens", "trie", "cost")}
    _compare(report, world, tries, count, "Fig. 7: probing strategies (paper: 1,000 tokens, range)", _PRINTED_7)


def figure_8(report: Report, world: World, subscriptions: Subscriptions, count: int) -> None:
    """LFilter against its parts: never behind the better of the two by more than the cost of choosing."""
    parts = {name: subscriptions.build(name) for name in ("mbr-trie", "pt-quadtree", "lfilter")}
    _compare(report, world, parts, count, "Fig. 8: the parts and LFilter (paper: 1,000 tokens, range)", _PRINTED_8)
    rows = []
    for group, how in GROUPS.items():
        messages = world.messages(count if group.startswith("short") else max(20, count // 6), **how)
        best = measure_in_turns(parts, messages)
        ratio = best["lfilter"] / min(best["mbr-trie"], best["pt-quadtree"])
        rows.append(
            {"group": group, **{f"{name}, ms": t for name, t in best.items()}, "lfilter over the better": ratio}
        )
        if len(subscriptions) >= 100_000:
            what = f"lfilter over the better of its parts, {group}, {len(subscriptions):,} subscriptions"
            report.target(what, ratio, 1.1, at_least=False)
    report.table("[LFILTER], section 5: the choice, all lengths of a group together", rows)


def figure_9(report: Report, world: World, subscriptions: Subscriptions, count: int) -> None:
    """LFilter against R^t++ and the IR-tree."""
    rivals = {name: subscriptions.build(name) for name in ("lfilter", "rt++", "ir-tree")}
    _compare(report, world, rivals, count, "Fig. 9: existing methods (paper: long point)", _PRINTED_9)


def figure_11(report: Report, world: World, subscriptions: Subscriptions, count: int) -> None:
    """LFilter as the number of subscriptions grows."""
    sizes = [len(subscriptions) * i // 5 for i in (1, 2, 3, 4, 5)]
    rows: list[dict[str, Any]] = []
    for size in sizes:
        index = subscriptions.first(size).build("lfilter")
        row: dict[str, Any] = {"subscriptions": f"{size:,}"}
        for group, how in GROUPS.items():
            messages = world.messages(count if group.startswith("short") else max(20, count // 6), **how)
            row[f"{group}, ms"] = measure_index(index, messages).milliseconds
        rows.append(row)
    report.table(
        "[LFILTER], Fig. 11: lfilter as subscriptions grow (paper: 6 ms at 2 million, 16 ms at 10 million)", rows
    )
    report.plot(
        report.name,
        {group: (sizes, [row[f"{group}, ms"] for row in rows]) for group in GROUPS},
        x="subscriptions",
        y="ms per message",
    )


FIGURES = {"fig7": figure_7, "fig8": figure_8, "fig9": figure_9, "fig11": figure_11}
