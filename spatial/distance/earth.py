"""Whether paths are within a length of one another on the Earth: as `planar`, in degrees and metres.

Positions are (longitude, latitude), edges straight in degrees, lengths metres along geodesics (`geodesic`). Longitudes
that differ by 360 are one: a window around a position is looked for at its longitude and at 360 more and less. How far
a window must reach is told by the radii of curvature: along a way of s metres the latitude changes by at most s over
the smallest of a meridian, and the longitude by at most s over the smallest distance from the axis. A window that
reaches a pole has all longitudes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from contrada.spatial.distance.geodesic import (
    EQUATOR,
    SMALLEST_RADIUS,
    edges_near,
    position_near_edge,
    positions_within,
)
from contrada.spatial.geometry.compound.rows import MARK, locate_in, ring_boxes_at, ring_count, ring_xy_at
from contrada.spatial.geometry.rings import OUT, RUN, edges_touch, next_run
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.spatial.geometry.rings import Floats

_ALL_AROUND: Final = 1e4  # degrees: more than any longitude
_OUTWARDS: Final = 1.0 + 1e-9
_SLACK: Final = 1e-9  # degrees: a tenth of a millimetre, far above rounding
_POLE: Final = 89.999999  # a latitude from which on a window has all longitudes


@kernel
def reach(low: float, high: float, length: float) -> tuple[float, float]:
    """How many degrees of longitude and of latitude `length` metres are at most, from latitudes `low` to `high` on."""
    north = length / SMALLEST_RADIUS * (180.0 / math.pi) * _OUTWARDS + _SLACK
    furthest = max(abs(low), abs(high)) + north
    if furthest >= _POLE:
        return _ALL_AROUND, north
    east = length / (EQUATOR * math.cos(furthest * (math.pi / 180.0))) * (180.0 / math.pi) * _OUTWARDS + _SLACK
    return (_ALL_AROUND if east >= 180.0 else east), north


def grown_on_earth(bounds: tuple[float, float, float, float], length: float) -> tuple[float, float, float, float]:
    """A box that whatever comes within `length` metres of these bounds meets; all around where it would cross 180."""
    x1, y1, x2, y2 = bounds
    east, north = reach(y1, y2, length)
    south, top = max(y1 - north, -90.0), min(y2 + north, 90.0)
    if x1 - east < -180.0 or x2 + east > 180.0:
        return -180.0, south, 180.0, top
    return x1 - east, south, x2 + east, top


@kernel
def _position_near_edges(lon: float, lat: float, xy: Floats, boxes: Floats, length: float) -> bool:
    edges = xy.shape[0] - 1
    runs = (edges + RUN - 1) // RUN
    east, north = reach(lat, lat, length)
    y1, y2 = lat - north, lat + north
    for turn in range(-1, 2):
        if east == _ALL_AROUND and turn != 0:
            continue
        x1, x2 = lon + 360.0 * turn - east, lon + 360.0 * turn + east
        run = next_run(boxes, runs, 0, x1, y1, x2, y2)
        while run < runs:
            for i in range(run * RUN, min((run + 1) * RUN, edges)):
                ax, ay, bx, by = xy[i, 0], xy[i, 1], xy[i + 1, 0], xy[i + 1, 1]
                if (ax < x1 and bx < x1) or (ax > x2 and bx > x2) or (ay < y1 and by < y1) or (ay > y2 and by > y2):
                    continue
                if position_near_edge(lon, lat, ax, ay, bx, by, length):
                    return True
            run = next_run(boxes, runs, run + 1, x1, y1, x2, y2)
    return False


@kernel
def _locate_around(lon: float, lat: float, xy: Floats, boxes: Floats) -> bool:
    """Whether a position is in a region or on it, at its longitude or at one that is the same."""
    here = locate_in(lon, lat, xy, boxes) != OUT
    return here or locate_in(lon - 360.0, lat, xy, boxes) != OUT or locate_in(lon + 360.0, lat, xy, boxes) != OUT


@kernel
def position_near_path(lon: float, lat: float, xy: Floats, boxes: Floats, filled: bool, length: float) -> bool:
    """Whether a position is at most `length` metres away from a path."""
    if xy.shape[0] == 2 and xy[0, 0] == xy[1, 0] and xy[0, 1] == xy[1, 1]:
        return positions_within(lon, lat, xy[0, 0], xy[0, 1], length)
    if filled and _locate_around(lon, lat, xy, boxes):
        return True
    if xy[0, 0] != MARK:
        return _position_near_edges(lon, lat, xy, boxes, length)
    for k in range(ring_count(xy)):
        if _position_near_edges(lon, lat, ring_xy_at(xy, k), ring_boxes_at(xy, boxes, k), length):
            return True
    return False


@kernel
def _edge_near_path(
    lon1: float, lat1: float, lon2: float, lat2: float, xy: Floats, boxes: Floats, length: float
) -> bool:
    edges = xy.shape[0] - 1
    runs = (edges + RUN - 1) // RUN
    east, north = reach(lat1, lat2, length)
    y1, y2 = min(lat1, lat2) - north, max(lat1, lat2) + north
    for turn in range(-1, 2):
        if east == _ALL_AROUND and turn != 0:
            continue
        p, q = lon1 + 360.0 * turn, lon2 + 360.0 * turn
        x1, x2 = min(p, q) - east, max(p, q) + east
        run = next_run(boxes, runs, 0, x1, y1, x2, y2)
        while run < runs:
            for i in range(run * RUN, min((run + 1) * RUN, edges)):
                ax, ay, bx, by = xy[i, 0], xy[i, 1], xy[i + 1, 0], xy[i + 1, 1]
                if (ax < x1 and bx < x1) or (ax > x2 and bx > x2) or (ay < y1 and by < y1) or (ay > y2 and by > y2):
                    continue
                if edges_touch(p, lat1, q, lat2, ax, ay, bx, by) or edges_near(
                    p, lat1, q, lat2, ax, ay, bx, by, length
                ):
                    return True
            run = next_run(boxes, runs, run + 1, x1, y1, x2, y2)
    return False


@kernel
def paths_near_on_earth(
    axy: Floats, aboxes: Floats, a_filled: bool, bxy: Floats, bboxes: Floats, b_filled: bool, length: float
) -> bool:
    """Whether two paths are at most `length` metres apart."""
    edges = axy.shape[0] - 1
    if edges == 1 and axy[0, 0] == axy[1, 0] and axy[0, 1] == axy[1, 1]:
        return position_near_path(axy[0, 0], axy[0, 1], bxy, bboxes, b_filled, length)
    if bxy.shape[0] == 2 and bxy[0, 0] == bxy[1, 0] and bxy[0, 1] == bxy[1, 1]:
        return position_near_path(bxy[0, 0], bxy[0, 1], axy, aboxes, a_filled, length)
    for i in range(ring_count(axy)):
        mine = ring_xy_at(axy, i)
        if b_filled and _locate_around(mine[0, 0], mine[0, 1], bxy, bboxes):
            return True
        for j in range(ring_count(bxy)):
            theirs = ring_xy_at(bxy, j)
            if a_filled and i == 0 and _locate_around(theirs[0, 0], theirs[0, 1], axy, aboxes):
                return True
            if positions_within(mine[0, 0], mine[0, 1], theirs[0, 0], theirs[0, 1], length):
                return True
            boxes = ring_boxes_at(bxy, bboxes, j)
            for k in range(mine.shape[0] - 1):
                if _edge_near_path(mine[k, 0], mine[k, 1], mine[k + 1, 0], mine[k + 1, 1], theirs, boxes, length):
                    return True
    return False
