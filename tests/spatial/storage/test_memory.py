"""What loading kernels leaves behind is given back, and what is compiled later still works."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOAD = """
import resource
from pathlib import Path
from contrada.spatial.storage.memory import code_of_llvm, give_back
import numba

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

once = numba.njit(lambda x: x + 1)
assert once(1) == 2
before = resident()
give_back()
after = resident()
again = numba.njit(lambda x: x * 2)
assert again(3) == 6 and once(2) == 3
print(before - after > 10_000_000, len(code_of_llvm()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="nothing is given back elsewhere")
def test_code_is_given_back_and_comes_back() -> None:
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.split() == ["True", "1"]
