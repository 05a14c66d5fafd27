"""What the test suite does for seconds, for as long as it takes: `make soak`.

    python -m tests.soak [--crashes 1000000] [--kills 1000] [--seed 0] [--workers 2]

A run that fails prints its seed, and the same seed fails again. Exits with 1 if any did.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests.broker.kills.schedule import World, kills
from tests.forwarding.journal.auditor import Auditor, audit_lenient

RUN = 20  # crashes
BATCH = 50  # runs
ROUNDS = 20  # of kills, of one world


def crash(first: int) -> list[str]:
    """A batch of runs of the simulated disk, some with damage, some lenient; what went wrong."""
    failed = []
    for seed in range(first, first + BATCH):
        try:
            Auditor(seed, RUN, damage=seed % 4 == 3).run()
            if seed % 50 == 0:
                audit_lenient(seed, RUN)
        except Exception as error:
            failed.append(f"seed {seed}: {error!r}")
    return failed


def soak_journal(crashes: int, seed: int, workers: int) -> int:
    """Crash the journal so many times; how many runs failed."""
    began, failed, done = time.monotonic(), 0, 0
    batches = range(seed, seed + -(-crashes // RUN), BATCH)
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for told in pool.imap_unordered(crash, batches):
            done += RUN * BATCH
            failed += len(told)
            for line in told:
                print(line, flush=True)
            if done % 100_000 == 0:
                print(f"{done:,} crashes, {failed} failed, {time.monotonic() - began:.0f} s", flush=True)
    print(f"the journal: {done:,} simulated crashes, {failed} runs failed, {time.monotonic() - began:.0f} s")
    return failed


def soak_processes(rounds: int, seed: int) -> int:
    """Kill a broker, its publisher and its subscriber so many times; how many worlds failed."""
    began, failed = time.monotonic(), 0
    for at in range(0, rounds, ROUNDS):
        with tempfile.TemporaryDirectory(prefix="contrada-kills-") as directory:
            try:
                with World(Path(directory), 40 * ROUNDS) as world:
                    kills(world, Random(seed + at), ROUNDS)
                    world.finish()
                    world.audit()
            except AssertionError as error:
                failed += 1
                print(f"kills with seed {seed + at}: {error}", flush=True)
        print(
            f"{at + ROUNDS:,} kills of processes, {failed} worlds failed, {time.monotonic() - began:.0f} s", flush=True
        )
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crashes", type=int, default=1_000_000, help="of the journal on a simulated disk")
    parser.add_argument("--kills", type=int, default=1000, help="rounds of kill -9 over real processes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    failed = soak_journal(arguments.crashes, arguments.seed, arguments.workers)
    failed += soak_processes(arguments.kills, arguments.seed)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
