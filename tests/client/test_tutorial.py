"""docs/tutorial.md, run from top to bottom: its commands do what it says, and print what it shows."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCKS = re.findall(r"^```(sh|python|text)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def test_the_tutorial(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp", reason="the gateway's libraries are not installed: contrada[gateway]")
    if shutil.which("curl") is None:
        pytest.skip("there is no curl on this machine: the tutorial is not run")
    broker, http = free_port(), free_port()
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "contrada").write_text(f'#!/bin/sh\nexec {sys.executable} -m contrada "$@"\n')
    (bin / "contrada").chmod(0o755)
    url = f"tcp://127.0.0.1:{broker}"
    environment = {**os.environ, "PATH": f"{bin}:{os.environ['PATH']}", "CONTRADA_URL": url}
    output = (tmp_path / "output").open("w+")
    running = []
    shown = 0
    try:
        for kind, text in BLOCKS:
            text = text.replace("127.0.0.1:7480", f"127.0.0.1:{http}").replace("127.0.0.1:7400", f"127.0.0.1:{broker}")
            if kind == "text":
                wait_for(tmp_path / "output", text.strip())
                shown += 1
                continue
            for line in [text] if kind == "python" else text.strip().splitlines():
                words = [sys.executable, "-c", line] if kind == "python" else ["bash", "-c", line.removesuffix(" &")]
                if "contrada broker" in line:
                    words[-1] += f" --listen {url}"
                if line.endswith(" &"):
                    running.append(subprocess.Popen(["setsid", *words], cwd=tmp_path, env=environment, stdout=output))
                    if "contrada sub" in line:
                        wait_for_subscription(environment)
                else:
                    done = subprocess.run(words, cwd=tmp_path, env=environment, stdout=output, timeout=120, check=False)
                    assert done.returncode == 0, line
    finally:
        for process in reversed(running):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)
        output.close()
    assert shown == 3
    assert any((tmp_path / "log").iterdir())


def wait_for(path: Path, wanted: str) -> None:
    end = time.monotonic() + 60
    while wanted not in path.read_text():
        assert time.monotonic() < end, f"{wanted!r} is not in {path.read_text()!r}"
        time.sleep(0.05)


def wait_for_subscription(environment: dict[str, str]) -> None:
    from contrada import Client

    with Client(environment["CONTRADA_URL"]) as client:
        end = time.monotonic() + 60
        while not client.status()["subscriptions"]:
            assert time.monotonic() < end
            time.sleep(0.05)
