"""What the test suite does for seconds, for as long as it takes: `make soak`.

    python -m tests.soak [--crashes 1000000] [--broker-crashes 1000000] [--kills 1000] [--frames 1000000] [--seed 0]

The journal alone on a simulated disk; brokers on such disks, alone and linked, in virtual time; real processes that are
killed, of one broker and of three that are linked; and frames that are no messages.

A run that fails prints its seed, and the same seed fails again. Exits with 1 if any did.
"""

from __future__ import annotations

import argparse
import gc
import logging
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests.broker.durable.simulation import simulate
from tests.broker.kills.schedule import World, kills
from tests.forwarding.journal.auditor import Auditor, audit_lenient

RUN = 20  # crashes
BATCH = 50  # runs
SHAPES = ("alone", "line", "triangle", "line", "square")  # of simulated worlds, in turn
WORLDS = 8 * len(SHAPES)  # in a batch
STEPS = 1500  # of each
CHECK_EVERY = 32  # turns: invariants are looked at
ROUNDS = 20  # of kills, of one world
PATIENCE = 600.0  # seconds, with processes on a machine that is busy


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


def collect_seldom() -> None:
    """Have a worker look for cycles seldom, and not among modules: that is a fifth of the time."""
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)


def soak_journal(crashes: int, seed: int, workers: int) -> int:
    """Crash the journal so many times; how many runs failed."""
    began, failed, done = time.monotonic(), 0, 0
    batches = range(seed, seed + -(-crashes // RUN), BATCH)
    with multiprocessing.get_context("spawn").Pool(workers, collect_seldom) as pool:
        for told in pool.imap_unordered(crash, batches):
            done += RUN * BATCH
            failed += len(told)
            for line in told:
                print(line, flush=True)
            if done % 100_000 == 0:
                print(f"{done:,} crashes, {failed} failed, {time.monotonic() - began:.0f} s", flush=True)
    print(f"the journal: {done:,} simulated crashes, {failed} runs failed, {time.monotonic() - began:.0f} s")
    return failed


def simulate_some(first: int) -> tuple[int, int, list[str]]:
    """A batch of simulated worlds of all shapes: crashes, durable publishes acknowledged, what went wrong."""
    logging.disable(logging.CRITICAL)
    crashes = acknowledged = 0
    failed = []
    for seed in range(first, first + WORLDS):
        try:
            world = simulate(seed, SHAPES[seed // 2 % len(SHAPES)], STEPS, check_every=CHECK_EVERY)
            crashes += world.crashes
            acknowledged += len(world.auditor.ids)
        except Exception as error:
            failed.append(str(error))
    return crashes, acknowledged, failed


def soak_brokers(wanted: int, seed: int, workers: int) -> int:
    """Crash simulated brokers so many times; how many worlds failed."""
    began, failed, crashes, acknowledged, worlds = time.monotonic(), 0, 0, 0, 0
    with multiprocessing.get_context("spawn").Pool(workers, collect_seldom) as pool:
        while crashes < wanted:
            batches = range(seed + worlds, seed + worlds + 20 * WORLDS, WORLDS)
            for some, ids, told in pool.imap_unordered(simulate_some, batches):
                crashes += some
                acknowledged += ids
                worlds += WORLDS
                failed += len(told)
                for line in told:
                    print(line, flush=True)
            print(f"{crashes:,} crashes of brokers, {failed} failed, {time.monotonic() - began:.0f} s", flush=True)
    print(
        f"brokers: {crashes:,} simulated crashes in {worlds:,} worlds, {acknowledged:,} published durably, "
        f"{failed} worlds failed, {time.monotonic() - began:.0f} s"
    )
    return failed


def soak_frames(frames: int, seed: int) -> int:
    """Send so many frames that are no messages, beside a publisher and a subscriber; whether that failed."""
    directory = tempfile.TemporaryDirectory(prefix="contrada-frames-")
    with directory as name, World(Path(name), 200, brokers=3, patience=PATIENCE) as world:
        world.frames, world.starts = frames, seed
        world.start("vandal")
        world.finish()
        world.running["vandal"].wait()
        world.audit()
        alive = all(world.running[name].poll() is None for name in world.brokers)
    print(f"{frames:,} frames that are no messages, brokers {'alive' if alive else 'dead'}", flush=True)
    return int(not alive)


def soak_processes(rounds: int, seed: int) -> int:
    """Kill brokers, one alone and three linked, their publisher and subscriber so often; how many worlds failed."""
    began, failed = time.monotonic(), 0
    for at in range(0, rounds, ROUNDS):
        with tempfile.TemporaryDirectory(prefix="contrada-kills-") as directory:
            try:
                brokers = 1 if at // ROUNDS % 5 == 4 else 3
                with World(Path(directory), 40 * ROUNDS, brokers=brokers, patience=PATIENCE) as world:
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
    parser.add_argument("--broker-crashes", type=int, default=1_000_000, help="of brokers on simulated disks")
    parser.add_argument("--frames", type=int, default=1_000_000, help="that are no messages, to a real broker")
    parser.add_argument("--kills", type=int, default=1000, help="rounds of kill -9 over real processes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    failed = soak_journal(arguments.crashes, arguments.seed, arguments.workers)
    failed += soak_brokers(arguments.broker_crashes, arguments.seed, arguments.workers)
    failed += soak_processes(arguments.kills, arguments.seed)
    failed += soak_frames(arguments.frames, arguments.seed) if arguments.frames else 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
