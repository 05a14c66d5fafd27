"""What matching has found (matcher.py), as callers get it: sets of interfaces, or places and rows.

Found are numbers of interfaces, or rows of filters, notification by notification, with where each one's end; and then
`places` of notifications and the rows of filters (`late`) that plugged-in types have decided for afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from contrada.forwarding.kernels.memory import layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set

    from contrada.forwarding.kernels.memory.layout import Ints
    from contrada.forwarding.state.numbering import Numbering

    Found: TypeAlias = tuple[Ints, Ints, Ints, Ints]  # what was found, where each one's end, places, late

_MANY: Final = 64  # interfaces from which on an array of them is read rather than a list


def interface_sets(interfaces: Numbering[Any], filters: Ints, found: Found) -> list[set[Any]]:
    """The interfaces of each notification."""
    numbers, ends, places, late = found
    everyone = objects_of(interfaces, numbers)
    if len(ends) == 1:
        answers = [set(everyone)]
    else:
        answers = [set(everyone[start:end]) for start, end in runs(ends.tolist())]
    if len(places):
        for n, interface in zip(
            places.tolist(), objects_of(interfaces, filters[late, layout.F_INTERFACE]), strict=True
        ):
            answers[n].add(interface)
    return answers


def shared_sets(interfaces: Numbering[Any], filters: Ints, found: Found) -> list[Set[Any]]:
    """As `interface_sets`, where notifications that go to one and the same interface share the answer."""
    numbers, ends, places, late = found
    everyone, which = objects_of(interfaces, numbers), numbers.tolist()
    alone: dict[int, Set[Any]] = {}
    answers: list[Set[Any]] = []
    for start, end in runs(ends.tolist()):
        answer = alone.get(which[start]) if end - start == 1 else None
        if answer is None:
            answer = set(everyone[start:end])
            if end - start == 1:
                alone[which[start]] = answer
        answers.append(answer)
    if len(places):
        for n, interface in zip(
            places.tolist(), objects_of(interfaces, filters[late, layout.F_INTERFACE]), strict=True
        ):
            answers[n] = {*answers[n], interface}
    return answers


def set_of(interfaces: Numbering[Any], numbers: memoryview) -> set[Any]:
    """The interfaces of some numbers, each once."""
    if len(numbers) > _MANY:
        return set(interfaces.at(np.asarray(numbers)))
    objects = interfaces.objects
    return {objects[number] for number in numbers.tolist()}


def objects_of(interfaces: Numbering[Any], numbers: Ints | memoryview) -> list[Any]:
    """The interfaces of some numbers."""
    if len(numbers) > _MANY:
        return interfaces.at(np.asarray(numbers))
    objects = interfaces.objects
    return [objects[number] for number in numbers.tolist()]


def pairs_of(found: Found) -> tuple[Ints, Ints]:
    """Places of notifications, ascending, and the rows of filters they match."""
    rows, ends, late_places, late = found
    places = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    if not len(late):
        return places, rows
    places = np.concatenate((places, late_places))
    order = np.argsort(places, kind="stable")
    return places[order], np.concatenate((rows, late))[order]


def runs(ends: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Where each run begins and ends, by the ends."""
    start = 0
    for end in ends:
        yield start, end
        start = end
