"""What matching has found (matcher.py), as callers get it: sets of interfaces, or places and rows.

Found are numbers of interfaces, or rows of filters, notification by notification, with where each one's end; and then
`places` of notifications and the rows of filters (`late`) that plugged-in types have decided for afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.forwarding.kernels.memory import layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Set

    from contrada.forwarding.kernels.memory.layout import Ints


def interface_sets(
    interfaces: Sequence[Any], filters: Ints, found: list[int], ends: list[int], places: list[int], late: Ints
) -> list[set[Any]]:
    """The interfaces of each notification."""
    if len(ends) == 1:
        answers = [{interfaces[number] for number in found}]
    else:
        everyone = [interfaces[number] for number in found]
        answers = [set(everyone[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
    if places:
        for n, number in zip(places, filters[late, layout.F_INTERFACE].tolist(), strict=True):
            answers[n].add(interfaces[number])
    return answers


def shared_sets(
    interfaces: Sequence[Any], filters: Ints, found: list[int], ends: list[int], places: list[int], late: Ints
) -> list[Set[Any]]:
    """As `interface_sets`, where notifications that go to one and the same interface share the answer."""
    alone: dict[int, Set[Any]] = {number: {interfaces[number]} for number in set(found)}
    answers = [
        alone[found[start]] if end - start == 1 else {interfaces[number] for number in found[start:end]}
        for start, end in runs(ends)
    ]
    if places:
        for n, number in zip(places, filters[late, layout.F_INTERFACE].tolist(), strict=True):
            answers[n] = {*answers[n], interfaces[number]}
    return answers


def pairs_of(found: Ints, ends: Ints, late_places: Ints, late: Ints) -> tuple[Ints, Ints]:
    """Places of notifications, ascending, and the rows of filters they match."""
    places = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    if not len(late):
        return places, found
    places = np.concatenate((places, late_places))
    order = np.argsort(places, kind="stable")
    return places[order], np.concatenate((found, late))[order]


def runs(ends: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Where each run begins and ends, by the ends."""
    start = 0
    for end in ends:
        yield start, end
        start = end
