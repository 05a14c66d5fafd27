"""The algebra of the eight relations: converse, composition, and what follows for constraints.

A set of relations is a mask (`relation`). A spatial constraint is a mask and a region R, and holds for a value X when
the relation of X to R is in the mask; `intersects` is a mask of seven. [SIENA-2D] (section 4.2) asks of two constraints
whether one covers the other (whatever satisfies C2 satisfies C1) or they conflict (nothing satisfies both), and
evaluates both "in the intuitive way"; its printed example is wrong: `x covered-by A` does not conflict with `x
disjoint B` when A overlaps B, for x may lie in A minus B. Here both follow from composition: with k the relation of
R2 to R1,

    X r2 R2 and R2 k R1  imply  X r R1 for some r in COMPOSITION[r2][k]

so C1 covers C2 if everything that C2 and k leave possible is in C1's mask, and they conflict if nothing is. The table
is the composition table of RCC-8 (Cohn et al.; disjoint = DC, meets = EC, overlaps = PO, equals = EQ, inside = NTPP,
contains = NTPPi, covered-by = TPP, covers = TPPi). It holds for regions more general than ours, so answers are sound
by construction; they are incomplete only where the shapes of R1 and R2 leave less possible than their relation does.

A notification may carry a point, which is disjoint from a region, meets it or is inside it. Wherever a point is in
relation r to R2 and s to R1, s is in COMPOSITION[r][k] too, as going through the three rows shows, so the answers are
sound for points as well, and need no table of their own.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from contrada.spatial.relations import relation
from contrada.spatial.relations.relate import relate

if TYPE_CHECKING:
    from contrada.spatial.geometry.region import Region

_D, _M, _O, _E = 1 << relation.DISJOINT, 1 << relation.MEETS, 1 << relation.OVERLAPS, 1 << relation.EQUALS
_I, _C, _CB, _CV = 1 << relation.INSIDE, 1 << relation.CONTAINS, 1 << relation.COVERED_BY, 1 << relation.COVERS

_PART: Final = _I | _CB
_WHOLE: Final = _C | _CV
_NOT_WHOLE: Final = _D | _M | _O | _PART
_NOT_PART: Final = _D | _M | _O | _WHOLE

# COMPOSITION[r][k]: the possible relations of X to R1 when X r R2 and R2 k R1. Columns in the order of the codes:
# disjoint, meets, overlaps, equals, inside, contains, covered-by, covers.
COMPOSITION: Final = (
    (relation.ALL, _NOT_WHOLE, _NOT_WHOLE, _D, _NOT_WHOLE, _D, _NOT_WHOLE, _D),
    (_NOT_PART, _D | _M | _O | _E | _CB | _CV, _NOT_WHOLE, _M, _O | _PART, _D, _M | _O | _PART, _D | _M),
    (_NOT_PART, _NOT_PART, relation.ALL, _O, _O | _PART, _NOT_PART, _O | _PART, _NOT_PART),
    (_D, _M, _O, _E, _I, _C, _CB, _CV),
    (_D, _D, _NOT_WHOLE, _I, _I, relation.ALL, _I, _NOT_WHOLE),
    (_NOT_PART, _O | _WHOLE, _O | _WHOLE, _C, _O | _E | _PART | _WHOLE, _C, _O | _WHOLE, _C),
    (_D, _D | _M, _NOT_WHOLE, _CB, _I, _NOT_PART, _PART, _D | _M | _O | _E | _CB | _CV),
    (_NOT_PART, _M | _O | _WHOLE, _O | _WHOLE, _CV, _O | _PART, _C, _O | _E | _CB | _CV, _WHOLE),
)


def converse(mask: int) -> int:
    """Return the set of the converses."""
    return sum(1 << relation.CONVERSE_CODE[code] for code in codes(mask))


def compose(first: int, second: int) -> int:
    """Return the possible relations of X to Z, when those of X to Y are `first` and those of Y to Z are `second`."""
    possible = 0
    for r in codes(first):
        for k in codes(second):
            possible |= COMPOSITION[r][k]
    return possible


@cache  # there are 2**16 at most, and few in use
def covering_relations(mask1: int, mask2: int) -> int:
    """The set of those relations of R2 to R1 with which `mask1` to R1 covers `mask2` to R2."""
    return sum(1 << k for k in range(8) if not compose(mask2, 1 << k) & ~mask1)


def covers(mask1: int, region1: Region, mask2: int, region2: Region) -> bool:
    """Whether every region and every point in `mask2` to `region2` is in `mask1` to `region1`. Sound, not complete."""
    return not compose(mask2, relate(region2, region1).mask) & ~mask1


def conflicts(mask1: int, region1: Region, mask2: int, region2: Region) -> bool:
    """Whether no region and no point is in `mask1` to `region1` and in `mask2` to `region2`. Sound, not complete."""
    return not compose(mask2, relate(region2, region1).mask) & mask1


def codes(mask: int) -> list[int]:
    """Return the codes of the relations in a set."""
    return [code for code in range(8) if mask >> code & 1]
