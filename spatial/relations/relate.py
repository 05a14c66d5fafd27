"""The relation of two shapes, and of one region to many: the public face of `exact` and `uniform`.

`relate(a, b)` reads `a relation b`. A discretization says how: `EXACT`, the default, decides by exact orientation tests
alone; `Uniform` is the paper's sampling. Both are converse-consistent, and depend on the point sets alone.

A point against a region is inside, meets or disjoint; it has no boundary to sample, so it is located exactly under any
discretization.

Many regions are packed one after another, so that a batch is one call into compiled code:

    xy         (v, 2)  their rows, one after another       starts      (k+1,)  region i is xy[starts[i] : starts[i+1]]
    boxes      (r, 4)  their run boxes, likewise           box_starts  (k+1,)

The rows of a region of one ring are its closed vertices (`rings`), those of others as `compound.rows` has them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contrada.errors import InvalidValue, shown
from contrada.spatial.geometry.compound.rows import MARK, locate_in
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Region, ring_of
from contrada.spatial.geometry.rings import IN, ON, locate
from contrada.spatial.relations.compound.relating import relate_regions
from contrada.spatial.relations.discretization import EXACT, Discretization, Exact, Uniform
from contrada.spatial.relations.exact import relate_rings
from contrada.spatial.relations.relation import CONVERSE_CODE, DISJOINT, INSIDE, MEETS, RELATIONS, Relation
from contrada.spatial.relations.uniform import relate_uniform
from contrada.spatial.storage.jit import kernel

__all__ = ["EXACT", "Discretization", "Exact", "Rings", "Uniform", "pack", "relate", "relate_many"]

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.lines.line import Line

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


class Rings(NamedTuple):
    """Many regions in four arrays, as the module's docstring draws them. Made by `pack`."""

    xy: Floats
    starts: Ints
    boxes: Floats
    box_starts: Ints


def relate(a: Region | Point | Line, b: Region | Point | Line, discretization: Discretization = EXACT) -> Relation:
    """Return the relation of `a` to `b`. Lines are related exactly under any discretization (`lines.relating`)."""
    check_discretization(discretization)
    if isinstance(a, Region) and isinstance(b, Region):
        axy, aboxes = ring_of(a)
        bxy, bboxes = ring_of(b)
        if isinstance(discretization, Uniform):
            return RELATIONS[relate_uniform(axy, aboxes, bxy, bboxes, discretization.density, discretization.halo)]
        return RELATIONS[relate_regions(axy, aboxes, bxy, bboxes)]
    if isinstance(a, Point) and isinstance(b, Region):
        return RELATIONS[_OF_POINT[locate_in(a.x, a.y, *ring_of(b))]]
    if isinstance(a, Region) and isinstance(b, Point):
        return RELATIONS[CONVERSE_CODE[_OF_POINT[locate_in(b.x, b.y, *ring_of(a))]]]
    if isinstance(a, Point) and isinstance(b, Point):
        return Relation.EQUALS if a == b else Relation.DISJOINT
    from contrada.spatial.lines.line import Line

    if isinstance(a, Line) and isinstance(b, Region):
        from contrada.spatial.lines.relating import relate_line

        return RELATIONS[relate_line(a, b)]
    if isinstance(b, Line) and isinstance(a, (Region, Point, Line)):
        from contrada.spatial.lines.relating import relate_to_line

        return RELATIONS[relate_to_line(a, b)]
    if isinstance(a, Line) and isinstance(b, Point):
        raise InvalidValue("a line has no relation to a point; the point has one to the line: relate(point, line)")
    wrong = b if isinstance(a, (Region, Point, Line)) else a
    raise InvalidValue(f"a {type(wrong).__name__} has no relations; make it a Region (Region.of) or a Point")


def relate_many(
    a: Region | Point, regions: Iterable[Region] | Rings, discretization: Discretization = EXACT
) -> list[Relation]:
    """Return the relation of `a` to each of the regions, in order. Pack regions that are asked about repeatedly."""
    return [RELATIONS[code] for code in relate_codes(a, regions, discretization).tolist()]


def relate_codes(
    a: Region | Point, regions: Iterable[Region] | Rings, discretization: Discretization = EXACT
) -> NDArray[np.uint8]:
    """As `relate_many`, but the relations' codes in an array."""
    check_discretization(discretization)
    rings = regions if isinstance(regions, Rings) else pack(regions)
    codes = np.empty(len(rings.starts) - 1, np.uint8)
    if isinstance(a, Point):
        _point_to_all(a.x, a.y, *rings, codes)
    elif isinstance(a, Region):
        if isinstance(discretization, Uniform):
            _ring_to_all(*ring_of(a), *rings, True, discretization.density, discretization.halo, codes)
        else:
            _ring_to_all(*ring_of(a), *rings, False, 0.0, False, codes)
    else:
        raise InvalidValue(f"a {type(a).__name__} has no relations; make it a Region (Region.of) or a Point")
    return codes


def pack(regions: Iterable[Region]) -> Rings:
    """Lay the rings of many regions out in one place."""
    rings = [ring_of(region) for region in only_regions(regions)]
    starts = np.array([0, *accumulate([len(xy) for xy, _ in rings])])
    box_starts = np.array([0, *accumulate([len(boxes) for _, boxes in rings])])
    xy = np.concatenate([xy for xy, _ in rings]) if rings else np.empty((0, 2))
    boxes = np.concatenate([boxes for _, boxes in rings]) if rings else np.empty((0, 4))
    return Rings(xy, starts, boxes, box_starts)


def only_regions(regions: object) -> list[Region]:
    """Return the regions as a list; `InvalidValue` for what is not made of regions alone."""
    if isinstance(regions, Region) or not isinstance(regions, Iterable) or getattr(regions, "ndim", 1) != 1:
        raise InvalidValue(f"a {type(regions).__name__} is no list of regions")
    listed = list(regions)
    for index, region in enumerate(listed):
        if not isinstance(region, Region):
            raise InvalidValue(f"regions: {index} is a {type(region).__name__} and no Region; make it one (Region.of)")
    return listed


def check_discretization(discretization: object) -> None:
    """Refuse what says nothing about how relations are decided."""
    if not isinstance(discretization, (Exact, Uniform)):
        raise InvalidValue(f"{shown(discretization)} is not a discretization; expected EXACT or Uniform(density)")


# What `locate` finds, as the relation of the point to the region.
_OF_POINT: Final = {0: DISJOINT, ON: MEETS, IN: INSIDE}


@kernel
def _ring_to_all(
    axy: Floats,
    aboxes: Floats,
    xy: Floats,
    starts: Ints,
    boxes: Floats,
    box_starts: Ints,
    sampled: bool,
    density: float,
    halo: bool,
    codes: NDArray[np.uint8],
) -> None:
    for k in range(codes.shape[0]):
        bxy = xy[starts[k] : starts[k + 1]]
        bboxes = boxes[box_starts[k] : box_starts[k + 1]]
        if sampled:
            codes[k] = relate_uniform(axy, aboxes, bxy, bboxes, density, halo)
        else:
            single = axy[0, 0] != MARK and bxy[0, 0] != MARK
            codes[k] = relate_rings(axy, aboxes, bxy, bboxes) if single else relate_regions(axy, aboxes, bxy, bboxes)


@kernel
def _point_to_all(
    px: float, py: float, xy: Floats, starts: Ints, boxes: Floats, box_starts: Ints, codes: NDArray[np.uint8]
) -> None:
    for k in range(codes.shape[0]):
        bxy, bboxes = xy[starts[k] : starts[k + 1]], boxes[box_starts[k] : box_starts[k + 1]]
        where = locate(px, py, bxy, bboxes) if bxy[0, 0] != MARK else locate_in(px, py, bxy, bboxes)
        codes[k] = INSIDE if where == IN else MEETS if where == ON else DISJOINT
