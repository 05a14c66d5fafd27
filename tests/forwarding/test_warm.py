"""Compiling ahead of time: what it tells, and that it finds what was compiled."""

from __future__ import annotations

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


def test_no_filter_or_notification_makes_a_broker_compile_afterwards() -> None:
    compile_kernels()
    used = {path.name.split("-")[0] for path in kernel_cache.used}
    for name in ("change.changing.repost_filters", "match.matching.match_batch", "match.reading.read_bodies"):
        assert f"forwarding.kernels.{name}" in used
    assert {"forwarding.types.region._relate_pairs", "spatial.cr_tree.search.search_ring"} <= used
