"""Geotext indexes: the experiments of papers 2, 3 and 4. `make bench-geotext ARGS="--paper 2 --size 1000000"`.

Without `--data` the world is synthetic; with it, real place names are used as well where the experiment has a real set.
"""

from __future__ import annotations

import argparse

from benchmarks import geotext_paper2, geotext_paper3, geotext_paper4
from benchmarks.geotext_workloads import Places, Synthetic
from benchmarks.harness import Report, data_directory


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paper", type=int, choices=(2, 3, 4), action="append", help="which paper; all by default")
    parser.add_argument("--size", type=int, default=200_000, help="subscriptions")
    parser.add_argument("--messages", type=int, default=400, help="messages per measurement")
    parser.add_argument("--data", help="directory of place_names.parquet; $CONTRADA_DATA by default")
    arguments = parser.parse_args()
    worlds: dict[str, Synthetic | Places] = {"synthetic": Synthetic()}
    data = data_directory(arguments.data)
    if data is not None and (data / "place_names.parquet").exists():
        worlds["places"] = Places(data)
    code = 0
    experiments = {2: geotext_paper2.run, 3: geotext_paper3.run, 4: geotext_paper4.run}
    for label, world in worlds.items():
        subscriptions = world.subscriptions(arguments.size)
        for paper in arguments.paper or experiments:
            report = Report(f"geotext-paper{paper}-{label}")
            experiments[paper](report, world, subscriptions, messages=arguments.messages)
            code |= report.finish()
    return code


if __name__ == "__main__":
    raise SystemExit(main())
