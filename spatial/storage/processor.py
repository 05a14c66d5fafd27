"""Which processor kernels are compiled for: a baseline that most machines share, so that one compilation serves many.

By default numba compiles for the very processor it runs on, and machine code from one kind does not run on another. A
wheel that carries compiled kernels needs a common kind. On x86-64 that is x86-64-v3 (AVX2, BMI, FMA: processors since
about 2015), on 64-bit ARM what every ARMv8 has (NEON), where this machine has it; anywhere else it is the machine's own
processor. `NUMBA_CPU_NAME` and `NUMBA_CPU_FEATURES` in the environment win, and so does a numba that has compiled
something before: it has one target for all of a process.

`jit.py` asks for it before it makes the first kernel.
"""

from __future__ import annotations

import os
import platform
import sys
from typing import Final, NamedTuple

from llvmlite import binding


class Baseline(NamedTuple):
    """A kind of processor by LLVM's name for it, and the features that a machine must have to be of that kind."""

    name: str
    features: tuple[str, ...]


_X86: Final = Baseline("x86-64-v3", ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2"))
_ARM: Final = Baseline("generic", ("fp-armv8", "neon"))
BASELINES: Final = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}  # by what the platform calls itself


def choose_processor() -> None:
    """Have numba compile for the baseline, unless somebody has chosen or it has compiled already."""
    chosen = "NUMBA_CPU_NAME" in os.environ or "NUMBA_CPU_FEATURES" in os.environ
    baseline = BASELINES.get(platform.machine().lower())
    if chosen or baseline is None or _numba_has_compiled():
        return
    has = binding.get_host_cpu_features()
    if all(has.get(feature) for feature in baseline.features):
        features = ",".join(f"+{feature}" for feature in baseline.features)
        os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = baseline.name, features
        if (settings := sys.modules.get("numba.core.config")) is not None:  # it has read the environment already
            vars(settings).update(CPU_NAME=baseline.name, CPU_FEATURES=features)


def _numba_has_compiled() -> bool:
    targets = sys.modules.get("numba.core.registry")
    return targets is not None and "_toplevel_target_context" in vars(targets.cpu_target)
