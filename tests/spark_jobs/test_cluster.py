"""The jobs on a standalone cluster of two workers, and what a cluster that is not ready is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from contrada.errors import InvalidValue
from contrada.spark_jobs.build.build_index import build_index
from contrada.spark_jobs.common.session import check_brought

PROGRAM = Path(__file__).with_name("cluster_program.py")


def run(home: Path, master: str, *arguments: object) -> dict[str, Any]:
    """What the program tells, which is run in a directory that is no executor's."""
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)  # noqa: PTH100  # a link stays a link
    done = subprocess.run(
        [sys.executable, PROGRAM, master, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_build_replay_and_compare_with_executors_killed(cluster: str, tmp_path: Path) -> None:
    rows = [{"id": f"s{n}", "interface": f"I{n % 7}", "filter": f"price > {n} and kind = {n % 5}"} for n in range(400)]
    events = [
        {"id": f"e{n}", "time": "2026-11-16T12:00:00Z", "attributes": {"price": n, "kind": n % 5}} for n in range(300)
    ]
    (tmp_path / "in").mkdir()
    for part in range(4):
        lines = map(json.dumps, rows[part::4])
        (tmp_path / "in" / f"{part}.jsonl").write_text("\n".join(lines))
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, events)))
    wheel = tmp_path / "contrada.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("brought.py", "here = True\n")
    told = run(tmp_path, cluster, wheel)
    assert told["brought"] is True
    build_index(tmp_path / "in", tmp_path / "alone")
    segments = sorted(each.name for each in (tmp_path / "alone").glob("segment-*"))
    assert told["segments"] == segments, "the files are those of one process"
    assert told["after"] == segments, "the same when executors are killed"
    expected = sum(n > m for n in range(300) for m in range(n % 5, 400, 5))
    assert told["deliveries"] == expected
    assert (told["missing"], told["extra"]) == (0, 0)
    assert "does not see SUBSCRIPTIONS" in told["unseen"]
    assert "\n" not in told["unseen"]
    assert told["copied"] == expected, "an index that executors do not see is brought to them"


def test_what_can_be_brought_to_executors(tmp_path: Path) -> None:
    (tmp_path / "environment.tar.gz").touch()
    (tmp_path / "picture.png").touch()
    assert check_brought(tmp_path / "environment.tar.gz") == (tmp_path / "environment.tar.gz").resolve()
    for name, why in (("picture.png", "give an archive"), ("none.whl", "no such file")):
        with pytest.raises(InvalidValue, match=why):
            check_brought(tmp_path / name)
