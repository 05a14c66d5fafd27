"""What the test suite does for seconds, for as long as it takes: `make soak`.

    python -m tests.soak [--crashes 1000000] [--seed 0] [--workers 2]

A run that fails prints its seed, and the same seed fails again. Exits with 1 if any did.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time

from tests.forwarding.journal.auditor import Auditor, audit_lenient

RUN = 20  # crashes
BATCH = 50  # runs


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crashes", type=int, default=1_000_000, help="of the journal on a simulated disk")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    return int(soak_journal(arguments.crashes, arguments.seed, arguments.workers) > 0)


if __name__ == "__main__":
    sys.exit(main())
