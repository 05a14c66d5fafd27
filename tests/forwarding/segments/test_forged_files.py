"""Index files with right checksums and hostile numbers: refused, or harmless. Never a crash, and never without end.

Each kind runs in a process of its own (forging.py), so that a crash fails its test and not the whole run.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import forging

SEGMENT_KINDS = ("table", "counting-table", "geotext-table", "tree", "segments", "road", "network")
TEXTUAL = ("ap-tree", "mbr-trie", "pt-quadtree", "lfilter", "rt", "rt+", "rt++", "ir-tree", "iq-tree", "rq-tree")
BARE = ("keyword-first", "spatial-first", "scan", "rk-tree")


def forged(kind: str, count: int) -> str:
    ran = subprocess.run(
        [sys.executable, forging.__file__, kind, "1", str(count)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"{kind}: ended with {ran.returncode}\n{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}"
    return ran.stdout.splitlines()[-1]


@pytest.mark.parametrize("kind", SEGMENT_KINDS)
def test_a_forged_file_is_refused_or_harmless(kind: str) -> None:
    assert "refused" in forged(kind, 80)


@pytest.mark.parametrize("name", [*BARE, *TEXTUAL])
def test_a_forged_textual_index_is_refused_or_harmless(name: str) -> None:
    assert "refused" in forged(f"textual:{name}", 40)
