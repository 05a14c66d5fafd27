"""Walks over postings: what each posting that a value hits comes to.

Each is a filter one of whose constraints holds: its access, or where filters are counted any. The short cuts of SFF
([SFF]; [SIENA-2D], section 2.2) come in order of price: the names and values it needs must be among the notification's
(masks.py: one `and` on the posting itself; what SFF does for the names that all filters of an interface share, its
determinants), its interface must not have matched yet (one load), and if it has no other constraint, it matches. A
filter that is counted is left alone until its count is reached, or where searches are postponed (postponing.py) until
all was counted but its constraints of plugged-in types. What is left become candidates (matching.py); so does, where
more was found than holds, also what has no other constraint.

Walks are given the few arrays they need and not the whole index: a call that copies seventy words of array headers
costs more than the walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.forwarding.kernels.match.postponing import plugs_of
from contrada.forwarding.kernels.match.prefetching import prefetch
from contrada.forwarding.kernels.match.verifying import (
    C_CANDIDATES,
    C_COUNTERS,
    C_FOUND,
    C_FULL,
    C_GENERATION,
    C_LEFT,
    C_MET,
    C_POSTPONED,
    POSTPONED,
    REST,
    SIFTED,
)
from contrada.forwarding.kernels.memory.bits import (
    payload_alone,
    payload_counted,
    payload_filter,
    payload_interface,
    status_rest,
)
from contrada.forwarding.kernels.memory.layout import F_ACCESS
from contrada.forwarding.kernels.memory.postings import COUNT
from contrada.spatial.storage.jit import bare_inline_kernel, bare_kernel

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Ints

_AHEAD = 8  # lists that are fetched ahead of the one at hand


@bare_inline_kernel
def _count(f: int, filters: Ints, words: Ints, stamps: Ints, cursor: Ints) -> bool:
    """Count one more constraint of a filter of several; whether that is the last.

    A counter is `generation << REST | constraints left`, 0 standing for all but one: how many a filter has is looked up
    at its second, which most never see; at its first where searches are postponed.
    """
    at = cursor[C_COUNTERS] + f
    counter = stamps[at]
    generation = cursor[C_GENERATION]
    if counter >> REST != generation:
        left = 0
        if cursor[C_POSTPONED] == POSTPONED:
            left = status_rest(filters[f, F_ACCESS]) - plugs_of(filters, words, f) - 1
        stamps[at] = generation << REST | left
        return cursor[C_POSTPONED] == POSTPONED and left == 0
    left = counter & ((1 << REST) - 1)
    left = status_rest(filters[f, F_ACCESS]) - 2 if left == 0 else left - 1
    stamps[at] = generation << REST | left
    return left == 0


@bare_inline_kernel
def _meet(
    mask: int,
    payload: int,
    missing: int,
    by_filter: bool,
    filters: Ints,
    words: Ints,
    stamps: Ints,
    found: Ints,
    candidates: Ints,
    cursor: Ints,
) -> None:
    """A posting: pass it over, count it, take its interface as matched, or keep it as a candidate."""
    if mask & missing == 0 and (by_filter or stamps[payload_interface(payload)] != cursor[C_GENERATION]):
        if payload_alone(payload) and not by_filter and cursor[C_POSTPONED] != SIFTED:
            stamps[payload_interface(payload)] = cursor[C_GENERATION]
            cursor[C_LEFT] -= 1
            if cursor[C_FOUND] < found.shape[0]:
                found[cursor[C_FOUND]] = payload_interface(payload)
                cursor[C_FOUND] += 1
            else:
                cursor[C_FULL] = 1
        elif payload_counted(payload) == 0 or _count(payload_filter(payload), filters, words, stamps, cursor):
            if cursor[C_CANDIDATES] < candidates.shape[0]:
                candidates[cursor[C_CANDIDATES]] = payload
                cursor[C_CANDIDATES] += 1
            else:
                cursor[C_FULL] = 1


@bare_kernel
def walk(
    postings: Ints,
    heads: Ints,
    lists: int,
    missing: int,
    by_filter: bool,
    filters: Ints,
    words: Ints,
    stamps: Ints,
    found: Ints,
    candidates: Ints,
    cursor: Ints,
) -> None:
    """Meet every posting of so many lists, until all interfaces have matched."""
    for i in range(lists):
        if i + _AHEAD < lists:
            prefetch(postings, heads[i + _AHEAD])
        head = heads[i]
        while head != 0 and cursor[C_LEFT] != 0:
            count = postings[head, 1] & COUNT
            cursor[C_MET] += count
            for at in range(head + 1, head + 1 + count):
                _meet(
                    postings[at, 0],
                    postings[at, 1],
                    missing,
                    by_filter,
                    filters,
                    words,
                    stamps,
                    found,
                    candidates,
                    cursor,
                )
            head = postings[head, 0]


@bare_kernel
def walk_run(
    thresholds: Ints,
    start: int,
    end: int,
    missing: int,
    by_filter: bool,
    filters: Ints,
    words: Ints,
    stamps: Ints,
    found: Ints,
    candidates: Ints,
    cursor: Ints,
) -> None:
    """Meet a run of thresholds."""
    if cursor[C_LEFT] == 0:
        return
    cursor[C_MET] += end - start
    for at in range(start, end):
        _meet(
            thresholds[at, 1],
            thresholds[at, 2],
            missing,
            by_filter,
            filters,
            words,
            stamps,
            found,
            candidates,
            cursor,
        )
