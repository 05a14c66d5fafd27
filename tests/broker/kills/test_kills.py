"""Processes that die at any time: what was acknowledged as durable arrives. `make soak` kills a thousand times."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager, suppress
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.broker.kills.schedule import World, kills

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.mark.parametrize("seed", range(2))
def test_kills_of_everybody_lose_nothing(tmp_path: Path, seed: int) -> None:
    with World(tmp_path, 400) as world:
        kills(world, Random(seed), 10)
        world.finish()
        world.audit()
        assert world.starts > 10


@pytest.mark.parametrize("fault", ["write", "sync"])
def test_a_disk_that_fails_refuses_and_forgets_nothing(tmp_path: Path, fault: str) -> None:
    with World(tmp_path, 100) as world:
        world.progress(20)
        (world.faults / fault).touch()
        reason = "No space left" if fault == "write" else "Input/output error"
        world.wait(lambda: reason in world.told("publisher"), "a refusal with the reason")
        (world.faults / fault).unlink()
        if fault == "sync":  # nobody knows what the disk has, until it is opened again
            world.kill("broker")
            world.start("broker")
        world.finish()
        world.audit()


@contextmanager
def small_disk(directory: Path, size: str) -> Iterator[Path]:
    """A file system of its own, which is soon full."""
    directory.mkdir()
    mount = shutil.which("mount")
    if mount is None or subprocess.run([mount, "-t", "tmpfs", "-o", f"size={size}", "none", directory]).returncode:
        pytest.skip("a tmpfs needs the right to mount one")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)


def test_a_full_disk_refuses_and_takes_again(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1m") as disk, World(tmp_path, 100, disk / "data") as world:
        world.progress(10)
        ballast = disk / "ballast"
        with suppress(OSError), ballast.open("wb", 0) as file:
            while True:
                file.write(bytes(4096))
        world.wait(lambda: "No space left" in world.told("publisher"), "a refusal with the reason")
        world.kill("broker")  # and it starts on a full disk
        world.start("broker")
        world.kill("subscriber")
        world.start("subscriber")
        ballast.unlink()
        world.finish()
        world.audit()
