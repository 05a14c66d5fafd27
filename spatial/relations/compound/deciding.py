"""Which parts and holes of regions made their relation what it is: for people to read.

A relation is of the whole regions (`relating`). What people ask is where: in which hole the point lies, which part
sticks out. Each part is related by itself; of many, the first few are named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.spatial.geometry.point import Point
from contrada.spatial.lines.line import Line
from contrada.spatial.relations.relate import EXACT, relate, relate_many
from contrada.spatial.relations.relation import Relation

if TYPE_CHECKING:
    from contrada.spatial.geometry.region import Region
    from contrada.spatial.relations.relate import Discretization

_NAMED: Final = 3
_WITHIN: Final = (Relation.INSIDE, Relation.COVERED_BY, Relation.EQUALS)


def decided_by(value: Point | Line | Region, region: Region, discretization: Discretization = EXACT) -> str:
    """Say which parts and holes decided the relation of `value` to `region`; empty if neither has several rings.

    >>> from contrada import Region
    >>> lake = Region([(0, 0), (9, 0), (9, 9), (0, 9)], holes=[[(3, 3), (6, 3), (6, 6), (3, 6)]])
    >>> decided_by(Point(4, 4), lake)
    'it lies in hole 0'
    """
    if isinstance(value, Line):
        mine = [relate(Line(part), region) for part in value.parts]
        told = [_listed("its part", mine) if len(mine) > 1 else "", _of_region(value, region, discretization)]
        return "; ".join(filter(None, told))
    if not isinstance(value, Point) and value.is_compound and not value.in_one_part:
        mine = [relate(part, region, discretization) for part in value.parts]
        return "; ".join([_listed("its part", mine), *filter(None, [_of_region(value, region, discretization)])])
    return _of_region(value, region, discretization)


def _of_region(value: Point | Line | Region, region: Region, discretization: Discretization) -> str:
    """What it is to the parts and holes of the region."""
    if not region.is_compound:
        return ""
    holes = [(part, hole, each) for part, of in enumerate(region.parts) for hole, each in enumerate(of.holes)]
    to_holes = _relations(value, [each for _, _, each in holes], discretization)
    several = not region.in_one_part
    names = [f"hole {hole}" + (f" of part {part}" if several else "") for part, hole, _ in holes]
    to_parts = _relations(value, list(region.parts), discretization)
    told = []
    if several and any(each is not Relation.DISJOINT for each in to_parts):
        told.append(_listed("to part", to_parts))
    within = [name for name, each in zip(names, to_holes, strict=True) if each in _WITHIN]
    if within and all(each in (Relation.DISJOINT, Relation.MEETS) for each in to_parts):
        told.append(f"it lies in {within[-1]}")
    touched = [name for name, each in zip(names, to_holes, strict=True) if each not in (*_WITHIN, Relation.DISJOINT)]
    if touched:
        told.append(f"it reaches {_enumerated(touched)}")
    if not told:
        return f"it is apart from all {len(to_parts)} parts" if several else ""
    return "; ".join(told)


def _relations(value: Point | Line | Region, regions: list[Region], discretization: Discretization) -> list[Relation]:
    if isinstance(value, Line):
        return [relate(value, each) for each in regions]
    return relate_many(value, regions, discretization)


def _listed(what: str, relations: list[Relation]) -> str:
    """What each is, those that are alike together: `to part 0 inside, to the 3 others disjoint`."""
    by_relation: dict[Relation, list[int]] = {}
    for number, relation in enumerate(relations):
        by_relation.setdefault(relation, []).append(number)
    ordered = sorted(by_relation.items(), key=lambda item: (item[0] is Relation.DISJOINT, item[1]))
    return ", ".join(
        f"{what}{'s' if len(numbers) > 1 else ''} {_enumerated([str(n) for n in numbers])} {relation.value}"
        for relation, numbers in ordered
    )


def _enumerated(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
