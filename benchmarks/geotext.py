"""Geotext indexes: the experiments of [RT-TREE], [LFILTER] and [AP-TREE], ours beside what the papers print.

    python -m benchmarks.geotext --quick                                      # everything, small: does it run?
    python -m benchmarks.geotext --paper ap-tree --only fig12 --size 5000000  # one figure, at the paper's size
    python -m benchmarks.geotext --only orders                                # orders of subscribing, growth from empty
    python -m benchmarks.geotext --world places --data DIR                    # real names at real places

Worlds: `zipf` as the papers print (geotext_workloads.py), `thinned` with its most frequent words thinned out, `places`
from place_names.parquet in `--data` or $CONTRADA_DATA. Figures to reach are judged at the size they are stated for.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from benchmarks import geotext_ap_tree, geotext_lfilter, geotext_orders, geotext_rt_tree
from benchmarks.geotext_workloads import Places, Synthetic, World
from benchmarks.harness import Report, data_directory

if TYPE_CHECKING:
    from pathlib import Path

PAPERS = {
    "rt-tree": geotext_rt_tree.FIGURES,
    "lfilter": geotext_lfilter.FIGURES,
    "ap-tree": {**geotext_ap_tree.FIGURES, "orders": geotext_orders.sample_orders},
}


def _world(name: str, data: Path | None, parser: argparse.ArgumentParser) -> World:
    if name != "places":
        return Synthetic(shift=10.0 if name == "thinned" else 0.0)
    if data is None or not (data / "place_names.parquet").exists():
        parser.error("--world places needs --data, a directory with place_names.parquet")
    return Places(data)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paper", choices=tuple(PAPERS), action="append", help="which paper; all by default")
    parser.add_argument("--only", action="append", metavar="FIGURE", help="which figure, as fig12; all by default")
    parser.add_argument("--world", choices=("zipf", "thinned", "places"), default="zipf")
    parser.add_argument("--size", type=int, default=1_000_000, help="subscriptions")
    parser.add_argument("--messages", type=int, default=1_000, help="messages per measurement")
    parser.add_argument(
        "--quick", action="store_true", help="20,000 subscriptions and 60 messages, to see that it runs"
    )
    parser.add_argument("--data", help="directory of place_names.parquet; $CONTRADA_DATA by default")
    arguments = parser.parse_args()
    papers = arguments.paper or list(PAPERS)
    known = {name for paper in papers for name in PAPERS[paper]}
    if unknown := set(arguments.only or ()) - known:
        parser.error(f"no such figure: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    size, messages = (20_000, 60) if arguments.quick else (arguments.size, arguments.messages)
    world = _world(arguments.world, data_directory(arguments.data), parser)
    subscriptions = world.subscriptions(size)
    code = 0
    for paper in papers:
        for name, figure in PAPERS[paper].items():
            if arguments.only is None or name in arguments.only:
                report = Report(f"geotext-{paper}-{name}-{arguments.world}-{size}")
                figure(report, world, subscriptions, messages)
                code |= report.finish()
    return code


if __name__ == "__main__":
    raise SystemExit(main())
