"""Brokers as processes of their own, which can be killed; the commands that start one."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pytest

import contrada
from contrada.broker.protocol.keys import generate
from contrada.client.cli.commands import bench as bench_command
from contrada.client.cli.commands import broker as broker_command
from contrada.client.cli.commands import demo as demo_command
from contrada.client.cli.local import broker_process
from tests.client.test_reconnect import FAST, free_port, reaches, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_death_of_the_broker_s_process_is_noticed_and_survived(number: signal.Signals) -> None:
    async def main() -> None:
        listen = f"tcp://127.0.0.1:{free_port()}"
        with broker_process("--listen", listen) as (first, _):
            async with contrada.connect(listen, **FAST) as c, c.subscribe("n >= 0") as sub:
                await reaches(c, sub, 1)
                first.send_signal(number)
                first.wait(30)
                with broker_process("--listen", listen):
                    await reaches(c, sub, 2)
                    assert sub.interruptions >= 1

    run(main())


@pytest.mark.parametrize("example", broker_command.EXAMPLES)
def test_examples_of_broker(example: str, tmp_path: Path) -> None:
    generate(tmp_path / "keys", "broker", ())
    np.savez(tmp_path / "seattle.npz", xy=[(0.0, 0.0), (4.0, 0.0)], edges=[(0, 1)], length=[4.0])
    options = shlex.split(example.replace(":7400", ":*"))[2:]
    if "--listen" not in options:
        options += ["--listen", "tcp://127.0.0.1:*"]  # another broker may have the default port on this machine
    options = [str(tmp_path / option) if option in ("keys", "log", "seattle.npz") else option for option in options]
    with broker_process(*options) as (process, url):
        assert url.startswith("tcp://")
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_two_brokers_carry_what_matches_to_each_other() -> None:
    with (
        broker_process("--listen", "tcp://127.0.0.1:*") as (_, first),
        broker_process("--listen", "tcp://127.0.0.1:*", "--peer", first) as (_, second),
        contrada.Client(first) as near,
        contrada.Client(second) as far,
    ):
        sub = near.subscribe("wind > 90")
        for n in range(1000):
            far.publish({"wind": 95, "n": n})
            try:
                notification = sub.get(timeout=0.1)  # until the subscription has crossed the link
            except TimeoutError:
                continue
            assert notification.id.broker == far.broker
            return
    pytest.fail("nothing crossed the link")


def test_a_broker_that_cannot_start_says_why() -> None:
    with pytest.raises(contrada.ContradaError, match="other machines"), broker_process("--listen", "tcp://*:*"):
        pass
    with pytest.raises(contrada.ContradaError, match="not a directory"), broker_process("--keys", "missing"):
        pass


def test_sigterm_delivers_what_is_queued_first() -> None:
    listen = f"tcp://127.0.0.1:{free_port()}"
    with broker_process("--listen", listen) as (process, _), contrada.Client(listen, reconnect=False) as c:
        sub = c.subscribe("n >= 0", window=10)
        c.publish_many({"n": i} for i in range(1000))
        process.send_signal(signal.SIGTERM)
        assert [n["n"] for n in islice(sub, 1000)] == list(range(1000))
        assert process.wait(30) == 0


@pytest.mark.parametrize("example", [*bench_command.EXAMPLES, *demo_command.EXAMPLES])
def test_examples_of_bench_and_demo(example: str) -> None:
    words = shlex.split(example)[1:]
    if words == ["bench"]:
        words += ["--notifications", "500", "--subscriptions", "20"]
    if words == ["demo"]:
        words += ["--seconds", "2"]
    result = subprocess.run([sys.executable, "-m", "contrada", *words], capture_output=True, text=True, timeout=110)
    assert result.returncode == 0, result.stderr
    assert ("end to end" if "bench" in words else "every delivery agrees") in result.stdout
    assert "Traceback" not in result.stderr
