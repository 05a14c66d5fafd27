"""The eight topological relations between regions, and sets of them.

The relations are jointly exhaustive and pairwise disjoint ([SIENA-2D], section 2.1): two regions are in exactly one.
`A relation B` reads left to right. Kernels speak of a relation by its `code`, 0 to 7 in the order below, and of a
set of relations by a bit mask with bit `code` set; a constraint's operator is such a set: one relation, or
`INTERSECTS`, which is every relation but `disjoint`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Relation(StrEnum):
    """One of the eight relations of region A to region B. Values are the operator's words."""

    DISJOINT = "disjoint"
    MEETS = "meets"
    OVERLAPS = "overlaps"
    EQUALS = "equals"
    INSIDE = "inside"
    CONTAINS = "contains"
    COVERED_BY = "covered-by"
    COVERS = "covers"

    @property
    def code(self) -> int:
        """The relation's number in kernels and files."""
        return _CODE[self]

    @property
    def mask(self) -> int:
        """The set that holds this relation alone."""
        return 1 << _CODE[self]

    @property
    def converse(self) -> Relation:
        """The relation of B to A."""
        return RELATIONS[CONVERSE_CODE[_CODE[self]]]


RELATIONS: Final = tuple(Relation)
_CODE: Final = {relation: code for code, relation in enumerate(RELATIONS)}

DISJOINT: Final = 0
MEETS: Final = 1
OVERLAPS: Final = 2
EQUALS: Final = 3
INSIDE: Final = 4
CONTAINS: Final = 5
COVERED_BY: Final = 6
COVERS: Final = 7

CONVERSE_CODE: Final = (DISJOINT, MEETS, OVERLAPS, EQUALS, CONTAINS, INSIDE, COVERS, COVERED_BY)

ALL: Final = 0xFF
INTERSECTS: Final = ALL & ~(1 << DISJOINT)
