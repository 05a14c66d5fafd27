"""Buckets in which filters of one interface meet that may cover one another (rule 3 of paper 1, section 4.2).

Comparing all pairs is quadratic. A filter f covers g only if each constraint of f follows from those of g on the same
name, so it is enough that one constraint of f, the most telling, leads it to g. f *asks* in a few buckets for what it
may cover; g *gives* itself into every bucket in which a coverer of it may ask:

    f has                         asks in                                   g gives itself to
    =name value                   that name and value                       each of its equalities
    matches keywords              one keyword, rare if it can be told       each of its keywords
    a relation to a place         cells, as large as the place, it meets    the cells of its centre, of all sizes above
    anything else                 the name                                  each of its names

Pairs that meet in no bucket are not found: rule 3 may miss some, and no answer depends on it.
"""

from __future__ import annotations

from math import floor, frexp
from typing import TYPE_CHECKING, Final

from contrada.forwarding.constraint import Operator
from contrada.forwarding.gates import place_of
from contrada.forwarding.operands import TextMatch
from contrada.forwarding.values import Kind

if TYPE_CHECKING:
    from collections.abc import Collection

    from contrada.forwarding.constraint import Constraint
    from contrada.forwarding.filter import Filter
    from contrada.forwarding.gates import Bounds

_LEVELS: Final = 12  # sizes of cells above its own that a place is found in


def asks(filter: Filter, hot: Collection[str] = ()) -> list[str]:
    """The buckets in which a filter looks for what it covers; keywords in `hot` are avoided."""
    best = min(filter.constraints, key=_telling)
    name = best.name
    if best.op is Operator.EQ:
        return [_equality(best)]
    if isinstance(best.value, TextMatch):
        words = sorted(best.value.keywords, key=lambda word: (word in hot, -len(word), word))
        return [keyword_bucket(name, words[0])]
    box = place_of(best)
    if box is not None:
        level = _level(box)
        size = 2.0**level
        across = range(floor(box[0] / size), floor(box[2] / size) + 1)
        up = range(floor(box[1] / size), floor(box[3] / size) + 1)
        return [_cell(name, level, x, y) for x in across for y in up]
    return [f"?{name}"]


def gives(filter: Filter) -> list[str]:
    """The buckets in which coverers of a filter may look for it."""
    found = [f"?{name}" for name in sorted(filter.names)]
    for constraint in filter.constraints:
        if constraint.op is Operator.EQ:
            found.append(_equality(constraint))
        elif isinstance(constraint.value, TextMatch):
            found += [keyword_bucket(constraint.name, word) for word in sorted(constraint.value.keywords)]
        box = place_of(constraint)
        if box is not None and constraint.kind is Kind.REGION:
            x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
            own = _level(box)
            found += [
                _cell(constraint.name, level, floor(x / 2.0**level), floor(y / 2.0**level))
                for level in range(own, own + _LEVELS)
            ]
    return found


def keyword_bucket(name: str, word: str) -> str:
    """Where filters with a keyword under that name meet."""
    return f"#{name}\t{word}"


def _telling(constraint: Constraint) -> int:
    """Smaller is more telling."""
    if constraint.op is Operator.EQ:
        return 0
    if isinstance(constraint.value, TextMatch):
        return 1
    return 2 if place_of(constraint) is not None else 3


def _equality(constraint: Constraint) -> str:
    return f"={constraint.name}\t{constraint.kind}\t{constraint.value}"


def _level(box: Bounds) -> int:
    """The exponent of the smallest power of two that is at least the box's longer side."""
    return frexp(max(box[2] - box[0], box[3] - box[1]))[1]


def _cell(name: str, level: int, x: int, y: int) -> str:
    return f"@{name}\t{level}:{x}:{y}"
