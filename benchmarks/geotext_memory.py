"""Peak resident memory of building an index, measured in a process of its own that does nothing else.

The subscriptions are saved as arrays, and the fresh process maps them and builds: what the generator of the workload
holds does not count, what the interpreter, numba, the vocabulary, the mapped input and the index hold does.

    python -m benchmarks.geotext_memory rk-tree DIR    # the fresh process itself; prints seconds and megabytes
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.textual.registry import textual_index

if TYPE_CHECKING:
    from benchmarks.geotext_workloads import Subscriptions

_ARRAYS = ("offsets", "keywords", "boxes")


def peak_of_build(subscriptions: Subscriptions, name: str) -> tuple[float, float]:
    """Seconds and peak resident megabytes of building the index in a fresh process."""
    with tempfile.TemporaryDirectory() as directory:
        for array in _ARRAYS:
            np.save(Path(directory, f"{array}.npy"), getattr(subscriptions, array))
        Path(directory, "vocabulary").write_text("\n".join(subscriptions.vocabulary))
        command = [sys.executable, "-m", "benchmarks.geotext_memory", name, directory]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    took, megabytes = map(float, printed.split())
    return took, megabytes


def main() -> None:
    name, directory = sys.argv[1], Path(sys.argv[2])
    offsets, keywords, boxes = (np.load(directory / f"{array}.npy", mmap_mode="r") for array in _ARRAYS)
    vocabulary = (directory / "vocabulary").read_text().split("\n")
    index = textual_index(name)
    start = time.perf_counter()
    index.build_arrays(np.arange(len(boxes)), offsets, keywords, vocabulary, boxes)
    took = time.perf_counter() - start
    print(took, _peak())


def _peak() -> float:
    """Megabytes that were resident at most. Linux's `ru_maxrss` would include the process that started this one."""
    status = Path("/proc/self/status")
    if status.exists():
        return float(re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())[0]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    main()
