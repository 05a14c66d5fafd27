"""Compiling ahead of time: what it tells, and that it finds what was compiled."""

from __future__ import annotations

import subprocess
import sys

from contrada.client.cli.commands.warm import progress_lines
from contrada.forwarding.warm import KERNELS, Progress, compile_kernels, told_while_compiling
from contrada.spatial.storage import kernel_cache


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
