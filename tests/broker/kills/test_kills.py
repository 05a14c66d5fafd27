"""Processes that die at any time: what was acknowledged as durable arrives. `make soak` kills a thousand times."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import contextmanager, suppress
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.broker.kills.schedule import World, kills

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.mark.parametrize(("brokers", "seed", "rounds"), [(1, 0, 6), (3, 1, 10), (3, 2, 10)])
def test_kills_of_everybody_lose_nothing(tmp_path: Path, brokers: int, seed: int, rounds: int) -> None:
    with World(tmp_path, 40 * rounds, brokers=brokers) as world:
        kills(world, Random(seed), rounds)
        world.finish()
        world.audit()
        assert world.starts > rounds


@pytest.mark.parametrize("name", ["broker", "broker-2", "broker-3"])
def test_a_broker_that_is_stopped_for_longer_than_the_timeout_goes_on(tmp_path: Path, name: str) -> None:
    with World(tmp_path, 150, brokers=3) as world:
        world.progress(20)
        os.kill(world.running[name].pid, signal.SIGSTOP)
        other = "broker-2" if name != "broker-2" else "broker"
        world.wait(lambda: "link down" in (world.directory / f"{other}.log").read_text(), "a link that is lost")
        if name != "broker":
            world.progress(20)  # it is kept by the broker before
        os.kill(world.running[name].pid, signal.SIGCONT)
        world.finish()
        world.audit()


def test_a_consumer_ten_times_too_slow_gets_everything(tmp_path: Path) -> None:
    with World(tmp_path, 150, brokers=3, pause=0.05) as world:
        world.wait(lambda: len(world.lines("published")) >= world.total, "publishing all")
        assert len(world.lines("received")) < world.total / 2
        world.finish()
        world.audit()


def test_frames_that_are_no_messages_change_nothing(tmp_path: Path) -> None:
    with World(tmp_path, 100, brokers=3) as world:
        world.frames = 5000
        world.start("vandal")
        world.finish()
        world.wait(lambda: world.has_spoken("vandal"), "that the vandal is done")
        world.audit()
        assert world.running["broker"].poll() is None


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
