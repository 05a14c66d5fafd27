"""The live map with many subscriptions and many notifications a second, in Chromium: how long its pictures take.

A broker, a gateway, a client with the fences and one that publishes points at a steady rate are processes of their own;
the page runs in a headless Chromium (of the machine, without a graphics processor: SwiftShader draws). Measured are the
times between frames that the page could draw in, at rest and while the map is dragged, and what of them is the page's
own doing: the tasks of its main thread that took longer than 50 ms.

    python -m benchmarks.live_map [--fences 50000] [--rate 10000] [--seconds 8]

Everything shares the machine's cores: see the share of them that the page had.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import contrada
from benchmarks.gateway import gateway
from benchmarks.harness import Report
from contrada.client.cli.local import local_broker

SPAWN = multiprocessing.get_context("spawn")
WEB = Path(__file__).parents[1] / "web"
SESSIONS = 10
AT_ONCE = 200
VEHICLES = 2000
WEST, SOUTH, EAST, NORTH = -87.0, 25.0, -80.0, 31.0


def fence(rng: random.Random) -> str:
    """A hexagon of one to three kilometres somewhere over Florida."""
    x, y, size = rng.uniform(WEST, EAST), rng.uniform(SOUTH, NORTH), rng.uniform(0.005, 0.015)
    corners = [(1, 0), (0.5, 0.9), (-0.5, 0.9), (-1, 0), (-0.5, -0.9), (0.5, -0.9)]
    ring = ", ".join(f"{x + dx * size:.4f} {y + dy * size:.4f}" for dx, dy in corners)
    return f"position inside POLYGON(({ring}))"


def keep_fences(url: str, count: int, say: Any) -> None:
    """Subscribe, and take nothing: the broker drops, which is not what is measured."""

    async def run() -> None:
        rng = random.Random(20)
        logging.disable(logging.WARNING)  # of what is dropped
        clients = [await contrada.connect(url, name=f"fleet-{number}") for number in range(SESSIONS)]
        wanted = [(clients[number % SESSIONS], fence(rng)) for number in range(count)]
        for start in range(0, count, AT_ONCE):
            await asyncio.gather(
                *(subscribe(client, text) for client, text in wanted[start : start + AT_ONCE]),
            )
        say.send("ready")
        await asyncio.Event().wait()

    async def subscribe(client: Any, text: str) -> None:
        await client.subscribe(text, window=1, queue=1)

    asyncio.run(run())


def publish(url: str, rate: int) -> None:
    """Vehicles that move about, so many a second."""
    rng = random.Random(7)
    places = [(rng.uniform(WEST, EAST), rng.uniform(SOUTH, NORTH)) for _ in range(VEHICLES)]

    def step() -> dict[str, Any]:
        number = rng.randrange(VEHICLES)
        x, y = places[number]
        places[number] = x, y = x + rng.gauss(0, 0.01), y + rng.gauss(0, 0.01)
        return {"vehicle": f"v{number}", "position": contrada.Point(x, y), "speed": rng.randrange(120)}

    with contrada.Client(url, name="vehicles") as client:
        due = time.perf_counter()
        while True:
            client.publish_many([step() for _ in range(rate // 20)], ack=False)
            due = max(due + 0.05, time.perf_counter() - 1.0)
            time.sleep(max(0.0, due - time.perf_counter()))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fences", type=int, default=50_000)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--out", default="")
    arguments = parser.parse_args()
    node = shutil.which("node")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if node is None or browser is None or not (WEB / "node_modules").is_dir():
        print("THERE IS NO node, Chromium or web/node_modules HERE (make web): nothing is measured", file=sys.stderr)
        return 0
    report = Report("live_map")
    with local_broker() as url, gateway(url) as doors:
        here, there = SPAWN.Pipe()
        others = [
            SPAWN.Process(target=keep_fences, args=(url, arguments.fences, there), daemon=True),
            SPAWN.Process(target=publish, args=(url, arguments.rate), daemon=True),
        ]
        try:
            others[0].start()
            assert here.recv() == "ready"
            others[1].start()
            out = arguments.out or tempfile.mkdtemp()
            words = [node, "browser/scenario.mjs", f"{doors['http']}/", browser, out, "crowd"]
            wanted = {"CONTRADA_FENCES": str(arguments.fences), "CONTRADA_SECONDS": str(arguments.seconds)}
            done = subprocess.run(
                words, cwd=WEB, env={**os.environ, **wanted}, text=True, capture_output=True, check=False
            )
        finally:
            for other in others:
                other.terminate()
    figures = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not figures:
        print(done.stdout, done.stderr, file=sys.stderr)
        return 1
    report.table(f"{arguments.fences:,} fences, {arguments.rate:,} notifications a second", figures)
    print(f"the picture is in {out}")
    for row in figures:
        report.target(f"frames {row['map']}: median, ms", row["median frame, ms"], 50.0, at_least=False)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
