"""The rows of a compound region from loose rings, or what is wrong with them.

Each ring is made canonical by itself (`canonical`), then all are surveyed together (`survey`): rings may touch one
another at points and nothing more. A hole lies in its own shell, and in no other hole of it; a part lies in no other
part, unless it is in a hole of it; and the interior of a part is in one piece, as OGC's Simple Features ask. Faults are
named by the rings as they were given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contrada.errors import InvalidRegion
from contrada.spatial.geometry.compound.rows import compose
from contrada.spatial.geometry.compound.survey import ALONG, APART, CUT, survey
from contrada.spatial.geometry.wkt import format_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contrada.spatial.geometry.rings import Floats

_SHELL: Final = -1


class Ring(NamedTuple):
    """A canonical ring, closed and counter-clockwise, and what it was given as."""

    part: int
    hole: int
    """which hole of its part, or -1: its shell"""
    xy: Floats


class _Names(NamedTuple):
    rings: Sequence[Ring]
    parts: int

    def of(self, k: int) -> str:
        ring = self.rings[k]
        part = f"part {ring.part}" if self.parts > 1 else ""
        if ring.hole == _SHELL:
            return part or "the shell"
        return f"hole {ring.hole}" + (f" of {part}" if part else "")


def assemble(rings: Sequence[Ring]) -> Floats:
    """Return the rows of the region that several rings are; `InvalidRegion` when they are none."""
    by_part: dict[int, list[Ring]] = {}
    for ring in rings:
        by_part.setdefault(ring.part, []).append(ring)
    ordered: list[Ring] = []
    for shell, *holes in sorted(by_part.values(), key=lambda part: _place(part[0])):
        ordered += [shell, *sorted(holes, key=_place)]
    names = _Names(ordered, len(by_part))
    offsets = np.zeros(len(ordered) + 1, np.int64)
    np.cumsum([len(ring.xy) for ring in ordered], out=offsets[1:])
    xy = np.concatenate([ring.xy for ring in ordered])
    starts = np.array([ring.hole == _SHELL for ring in ordered])
    parts = np.cumsum(starts) - 1
    parents = np.empty(len(ordered), np.int64)
    touches = np.empty((len(xy), 2))
    fault, e, f, count = survey(xy, offsets, parts, parents, touches)
    if fault != APART:
        raise InvalidRegion(_describe(fault, e, f, xy, offsets, parents, names))
    _check_nesting(parents, parts, starts, names)
    for k in np.flatnonzero(~starts).tolist():
        xy[offsets[k] : offsets[k + 1]] = xy[offsets[k] : offsets[k + 1]][::-1].copy()
    roles = np.where(starts, parts, -1 - parts)
    return compose(xy, offsets, roles, touches[:count].copy())


def _place(ring: Ring) -> list[list[float]]:
    """What rings are sorted by. They touch at points only, so no two have the same first two vertices."""
    smallest: list[list[float]] = ring.xy[:2].tolist()
    return smallest


def _check_nesting(parents: np.ndarray, parts: np.ndarray, starts: np.ndarray, names: _Names) -> None:
    shells = np.flatnonzero(starts)
    for k, parent in enumerate(parents.tolist()):
        if starts[k]:
            if parent >= 0 and starts[parent]:
                raise InvalidRegion(f"{names.of(k)} lies inside {names.of(parent)}: parts of a region do not overlap")
        elif parent != (own := int(shells[parts[k]])):
            if parent >= 0 and not starts[parent]:
                raise InvalidRegion(f"{names.of(k)} lies inside {names.of(parent)}: a hole is in no other hole")
            raise InvalidRegion(
                f"{names.of(k)} lies outside {names.of(own)}: a hole is in the part that it is cut from"
            )


def _describe(fault: int, e: int, f: int, xy: Floats, offsets: np.ndarray, parents: np.ndarray, names: _Names) -> str:
    if fault == CUT:
        both = f"{names.of(e)} and {names.of(f)} touch, and touch other rings, so that they cut the interior"
        return f"{both} of their part in two: give the pieces as parts"
    a, b = (int(np.searchsorted(offsets, edge, "right")) - 1 for edge in (e, f))
    if a == b and parents[a] >= 0:
        b = int(parents[a])
    if a == b:
        return f"{names.of(a)} crosses another ring near {_edge(xy, e)}"
    if fault == ALONG:
        what = f"{names.of(a)} and {names.of(b)} share more than points: {_edge(xy, e)} runs along {_edge(xy, f)}"
        if names.rings[a].hole == names.rings[b].hole == _SHELL:
            return f"{what}; parts of a region touch at points only: join them into one"
        return f"{what}; rings touch at points only"
    if e == f:
        return f"{names.of(a)} and {names.of(b)} cross near {_edge(xy, e)}"
    both_parts = names.rings[a].hole == names.rings[b].hole == _SHELL
    what = f"{names.of(a)} and {names.of(b)} {'overlap' if both_parts else 'cross'}"
    return f"{what}: at {_edge(xy, e)} and {_edge(xy, f)}"


def _edge(xy: Floats, e: int) -> str:
    (ax, ay), (bx, by) = xy[e : e + 2].tolist()
    return f"the edge from ({format_number(ax)}, {format_number(ay)}) to ({format_number(bx)}, {format_number(by)})"
