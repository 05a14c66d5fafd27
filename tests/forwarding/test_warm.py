"""Compiling ahead of time: what it tells, and that it finds what was compiled."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import process
from typing import TYPE_CHECKING

import pytest

from contrada.client.cli.commands.warm import copy_kernels, progress_lines
from contrada.client.cli.commands.warm import warm as warm_command
from contrada.errors import ContradaError
from contrada.forwarding import warm
from contrada.forwarding.warm import KERNELS, Progress, compile_kernels, compile_on_all_cores, told_while_compiling
from contrada.spark_jobs.common import session
from contrada.spark_jobs.common.errors import SparkMissing
from contrada.spatial.storage import jit, kernel_cache

if TYPE_CHECKING:
    from pathlib import Path


def test_progress_says_how_many_and_how_long() -> None:
    said = str(Progress(done=110, most=660, seconds=20.0))
    assert said == "compiling kernels, once for this machine: 110 of 660, about 100 s left"
    assert "left" not in str(Progress(done=3, most=660, seconds=1.0))


def test_lines_come_every_few_seconds() -> None:
    lines: list[str] = []
    hear = progress_lines(lines.append)
    for second in range(12):
        hear(Progress(1 + second, 660, float(second)))
    assert [line.split(": ")[1].split(" ")[0] for line in lines] == ["1", "6", "11"]


def test_what_was_compiled_is_not_compiled_again() -> None:
    compile_kernels()
    names: list[str] = []
    listener = names.append
    kernel_cache.compiled.append(listener)
    try:
        compile_kernels()
    finally:
        kernel_cache.compiled.remove(listener)
    assert names == []


def test_a_process_may_tidy_up_after_the_first_kernels_and_before_the_last() -> None:
    script = (
        "from contrada.forwarding.warm import compile_kernels\n"
        "from contrada.spatial.storage import kernel_cache\n"
        "compile_kernels(tidy=lambda: print(len(kernel_cache.used)))\n"
        "print(len(kernel_cache.used))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)
    used = [int(count) for count in done.stdout.split()]
    assert len(used) >= 3
    assert 0 < used[0] < used[-1] // 3


def test_what_this_process_compiles_is_counted_and_told_at_once_and_then_now_and_then() -> None:
    told: list[Progress] = []
    with told_while_compiling(told.append, period=1000.0):
        for name in "abc":
            for hear in list(kernel_cache.compiled):
                hear(name)
    with told_while_compiling(told.append, period=0.0):
        for hear in list(kernel_cache.compiled) * 2:
            hear("d")
    assert [each.done for each in told] == [1, 1, 2]
    assert all(each.most == KERNELS for each in told)


_BROKER = """
from random import Random
from contrada.forwarding.warm import compile_kernels
from contrada.spatial.storage import kernel_cache
compile_kernels()
before = set(kernel_cache.used)
from contrada import Box, ForwardingTable, GeoText, Line, Point, Region, attr
from contrada.forwarding.codec.msgpack import encode_notification
rng = Random(1)
hollow = Region([(0, 0), (9, 0), (9, 9), (0, 9)], holes=[[(1, 1), (2, 1), (2, 2)]])
several = Region.of("MULTIPOLYGON(((0 0, 1 0, 1 1)), ((5 5, 7 5, 7 7)))")
places = (hollow, several, Point(1, 1), Line([(0, 0), (3, 4)]), Box(2, 2, 3, 3))
texts = [
    'x > 3 and s like "a%b_" or s ~= "ABC" or not s contains "x" or not x exists or true',
    'tags has "ice" or not tags has "x" or tags has any [1, 2] or x in [1, 2] and s prefix "a"',
    "a crosses BOX(0 0, 5 5) or a intersects LINESTRING(0 0, 3 4) or a within 3 of LINESTRING(0 0, 3 4)",
    "a crosses LINESTRING(0 0, 3 4) or a inside LINESTRING(0 0, 3 4)",
    "a within 2 of POINT(1 1) or a within 1 of POINT(1 1) or a beyond 1 of BOX(0 0, 5 5) or a contains POINT(1 1)",
    'p matches {"a"} within BOX(0 0, 5 5) or not p matches {"b"} within BOX(0 0, 5 5) or p matches {"a"}',
]
filters = [*texts, attr("a").inside(hollow), attr("a").overlaps(several), ~attr("a").inside(several)]
notifications = [{"x": 4, "s": "abc", "tags": ["ice"], "a": each, "p": GeoText("a b", at=(1, 1))} for each in places]
table = ForwardingTable()
ids = [id for number, each in enumerate(filters) for id in table.add(number % 3, each)]
for each in notifications:
    table.match(each)
    table.match_filters(each)
table.match_bodies([encode_notification(each) for each in notifications] * 4)
for id in ids:
    table.explain(notifications[0], id)
    table.remove(id)
few = ForwardingTable()
for number in range(600):
    size = rng.uniform(1, 50)
    few.add(number % 2, attr("a").inside(Box(50 - size, 50 - size, 50 + size, 50 + size)))
    few.add(number % 2, attr("a").overlaps(Region([(rng.uniform(0, 40), 0), (80, 40), (rng.uniform(40, 90), 90)])))
for _ in range(60):
    few.match({"a": Region([(0, 0), (90, 1), (50, 80)])})
print(sorted(path.name.split("-")[0] for path in set(kernel_cache.used) - before))
"""


def test_no_filter_or_notification_makes_a_broker_compile_afterwards() -> None:
    said = subprocess.run([sys.executable, "-c", _BROKER], capture_output=True, text=True, check=True, timeout=250)
    assert said.stdout == "[]\n"


_COUNT = """
from importlib import import_module
from contrada.forwarding.warm import compile_kernels
from contrada.spatial.storage import kernel_cache
compile_kernels()
names = {path.name.split("-")[0] for path in kernel_cache.used}
split = (each.rpartition(".") for each in names)
entries = [getattr(import_module("contrada." + module), name) for module, _, name in split]
reached = {each.py_func for each in entries}
waiting = list(reached)
while waiting:
    for callee in kernel_cache._describe_function(waiting.pop())[1]:
        if callee not in reached:
            reached.add(callee)
            waiting.append(callee)
print(len(entries), len(reached))
"""


def test_the_share_that_is_done_is_told_of_about_as_many_kernels_as_there_are() -> None:
    said = subprocess.run([sys.executable, "-c", _COUNT], capture_output=True, text=True, check=True, timeout=250)
    entries, reached = map(int, said.stdout.split())
    assert entries + reached <= KERNELS <= 1.25 * (entries + reached)  # some are compiled in two processes


_WAIT = """
import multiprocessing, signal, threading, time
from functools import partial
from contrada.forwarding.warm import compile_on_all_cores
def look():
    while not multiprocessing.active_children():
        time.sleep(0.01)
    print("begun", flush=True)
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=look, daemon=True).start()
    compile_on_all_cores(lambda progress: None, partial(time.sleep, 1000))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_goes_on_when_warming_is_interrupted_or_ended(number: signal.Signals) -> None:
    command = [sys.executable, "-c", _WAIT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        try:
            process.communicate(timeout=60)  # until the last process that writes there has ended
        finally:
            process.kill()
    assert process.returncode == -number


def test_ctrl_c_while_a_process_starts_is_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_thread: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(process._ExecutorManagerThread, "start", interrupt)
    with pytest.raises(KeyboardInterrupt):
        compile_on_all_cores()


def test_copied_kernels_may_be_read_by_others_and_the_cache_may_be_copied_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, elsewhere = tmp_path / "cache", tmp_path / "image" / "kernels"
    cache.mkdir()
    kept = cache / "a.kernel"
    kept.write_bytes(b"code")
    kept.chmod(0o600)
    monkeypatch.setattr(warm, "compile_kernels", lambda: None)
    monkeypatch.setattr(kernel_cache, "used", {kept})
    assert copy_kernels(elsewhere) == 1
    (tmp_path / "plain").touch()
    assert (elsewhere / "a.kernel").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert copy_kernels(cache) == 1
    assert kept.read_bytes() == b"code"


def test_without_spark_or_a_compiler_warming_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setattr(session, "find_spec", lambda name: None)
        with pytest.raises(SparkMissing, match="pip install"):
            warm_command(jobs=True)
    monkeypatch.setattr(jit.config, "DISABLE_JIT", 1)
    with pytest.raises(ContradaError, match="NUMBA_DISABLE_JIT is set"):
        warm_command()


def test_what_was_not_kept_cannot_be_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "compile_kernels", lambda: None)
    monkeypatch.setattr(kernel_cache, "used", {tmp_path / "not kept"})
    with pytest.raises(ContradaError, match="cannot be written to"):
        copy_kernels(tmp_path / "kernels")
