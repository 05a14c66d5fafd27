"""Buckets in which filters of one interface meet that may cover one another (rule 3 of [SIENA-2D], section 4.2).

Comparing all pairs is quadratic. A filter f covers g only if each constraint of f follows from those of g on the same
name, so it is enough that one constraint of f, the most telling, leads it to g. f *asks* in a few buckets for what it
may cover; g *gives* itself into every bucket in which a coverer of it may ask:

    f has                         asks in                                   g gives itself to
    =name value                   that name and value                       each of its equalities
    matches keywords              one keyword, rare if it can be told       each of its keywords
    a relation to a place         cells, as large as the place, it meets    the cells of its centre, of all sizes above
    anything else                 the name                                  each of its names
    nothing (`true`)              the empty name                            the empty name, if it has no other

Buckets are known by 64-bit hashes. `asks` and `gives` take a filter; `asks_of_places` and `gives_of_places` are the
same for many relations at once, and box matches hash their keywords by `keyword_keys`. Pairs that meet in no bucket are
not found: rule 3 may miss some, and no answer depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contrada.forwarding.language.constraint import Operator
from contrada.forwarding.language.operands import TextMatch
from contrada.forwarding.language.values import Kind
from contrada.forwarding.segments.gate import place_of
from contrada.spark_jobs.build.hashing import hash_text, mix_all

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Floats
    from contrada.forwarding.language.constraint import Constraint
    from contrada.forwarding.language.filter import Filter

LEVELS: Final = 12
"""Sizes of cells, from its own on, that a place is found in."""


def asks(filter: Filter) -> list[int]:
    """The buckets in which a filter looks for what it covers."""
    if not filter.constraints:
        return [name_key("")]
    best = min(filter.constraints, key=_telling)
    if best.op is Operator.EQ:
        return [_equality(best)]
    if isinstance(best.value, TextMatch):
        longest = min(best.value.keywords, key=lambda word: (-len(word), word))
        return _keywords(best.name, [longest])
    box = place_of(best)
    if box is not None:
        keys: list[int] = asks_of_places(place_roots([best.name]), np.array([box]))[0].tolist()
        return keys
    return [name_key(best.name)]


def gives(filter: Filter) -> list[int]:
    """The buckets in which coverers of a filter may look for it."""
    found = [name_key(name) for name in sorted(filter.names) or [""]]
    for constraint in filter.constraints:
        if constraint.op is Operator.EQ:
            found.append(_equality(constraint))
        elif isinstance(constraint.value, TextMatch):
            found += _keywords(constraint.name, sorted(constraint.value.keywords))
        box = place_of(constraint)
        if box is not None and constraint.kind is Kind.REGION:
            found += gives_of_places(place_roots([constraint.name]), np.array([box]))[0].tolist()
    return found


def name_key(name: str) -> int:
    """Where filters meet that say something about a name."""
    return hash_text(f"?{name}")


def keyword_roots(names: list[str]) -> np.ndarray:
    """What `keyword_keys` starts from, for each name."""
    return np.array([hash_text(f"#{name}") for name in names], np.uint64)


def keyword_keys(roots: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """Where filters meet that have a keyword, given by its hash, under a name, given by its root."""
    keys = roots.copy()
    mix_all(keys, hashes)
    return keys


def place_roots(names: list[str]) -> np.ndarray:
    """What cells' keys start from, for each name."""
    return np.array([hash_text(f"@{name}") for name in names], np.uint64)


def asks_of_places(roots: np.ndarray, boxes: Floats) -> np.ndarray:
    """For each place, under the root of its name, the four cells of its own size that it meets, some of them twice."""
    levels = _levels(boxes)
    size = np.ldexp(1.0, levels)
    corners = [np.floor(boxes[:, k] / size) for k in range(4)]
    pairs = ((0, 1), (0, 3), (2, 1), (2, 3))
    return np.stack([_cells(roots, levels, corners[x], corners[y]) for x, y in pairs], axis=1)


def gives_of_places(roots: np.ndarray, boxes: Floats) -> np.ndarray:
    """For each place, under the root of its name, the cells of all sizes from its own on that its centre is in."""
    own = _levels(boxes)
    x, y = (boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2
    cells = []
    for level in range(LEVELS):
        size = np.ldexp(1.0, own + level)
        cells.append(_cells(roots, own + level, np.floor(x / size), np.floor(y / size)))
    return np.stack(cells, axis=1)


def _levels(boxes: Floats) -> np.ndarray:
    """The exponent of the smallest power of two that is above the longer side of each box."""
    return np.frexp(np.maximum(boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]))[1].astype(np.int64)


def _cells(roots: np.ndarray, levels: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    keys = roots.copy()
    mix_all(keys, levels.view(np.uint64))
    for axis in (x, y):
        mix_all(keys, (axis + 0.0).view(np.uint64))
    return keys


def _keywords(name: str, words: list[str]) -> list[int]:
    hashes = np.array([hash_text(word) for word in words], np.uint64)
    keys: list[int] = keyword_keys(np.repeat(keyword_roots([name]), len(words)), hashes).tolist()
    return keys


def _telling(constraint: Constraint) -> int:
    """Smaller is more telling."""
    if constraint.op is Operator.EQ:
        return 0
    if isinstance(constraint.value, TextMatch):
        return 1
    return 2 if place_of(constraint) is not None else 3


def _equality(constraint: Constraint) -> int:
    return hash_text(f"={constraint.name}\t{constraint.kind}\t{constraint.value}")
