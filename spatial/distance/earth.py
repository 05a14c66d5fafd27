"""Whether paths are within a length of one another on the Earth: as `planar`, in degrees and metres.

Positions are (longitude, latitude), edges straight in degrees, lengths metres along geodesics (`geodesic`). Longitudes
that differ by 360 are one: a window around a position is looked for at its longitude and at 360 more and less. How far
a window must reach is told by the radii of curvature: along a way of s metres the latitude changes by at most s over
the smallest of a meridian, and the longitude by at most s over the smallest distance from the axis. A window that
reaches a pole has all longitudes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.distance.geodesic import ALL_AROUND, edges_near, position_near_edge, positions_within, reach
from contrada.spatial.distance.strips import apart, first_leaves, next_leaves, reach_between, strips_of
from contrada.spatial.geometry.compound.rows import MARK, locate_in, ring_boxes_at, ring_count, ring_xy_at
from contrada.spatial.geometry.rings import OUT, edges_touch, next_edge
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from contrada.spatial.geometry.rings import Floats


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
    east, north = reach(lat, lat, length)
    y1, y2 = lat - north, lat + north
    for turn in range(-1, 2):
        if east == ALL_AROUND and turn != 0:
            continue
        x1, x2 = lon + 360.0 * turn - east, lon + 360.0 * turn + east
        i = next_edge(xy, boxes, 0, x1, y1, x2, y2)
        while i < edges:
            p, q, lat1, lat2 = xy[i, 0], xy[i + 1, 0], xy[i, 1], xy[i + 1, 1]
            here = lon + 360.0 * turn
            if position_near_edge(lon, lat, p, lat1, q, lat2, length) or edges_touch(
                here, lat, here, lat, p, lat1, q, lat2
            ):
                return True
            i = next_edge(xy, boxes, i + 1, x1, y1, x2, y2)
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
def _strips_near(axy: Floats, bxy: Floats, length: float) -> bool:
    """Whether some edge of A comes within `length` metres of one of B, in little more than O(n + m) steps."""
    a, a_bounds = strips_of(axy)
    b, b_bounds = strips_of(bxy)
    mine, theirs = np.empty(8), np.empty(8)
    for turn in range(-1, 2):
        moved = 360.0 * turn
        stack = first_leaves(a.shape[0], b.shape[0])
        row = next_leaves(stack, a_bounds, b_bounds, moved, length, True)
        while row > 0:
            for i in range(stack[row, 1], stack[row, 2]):
                _as_node(a[i], mine)
                for j in range(stack[row, 4], stack[row, 5]):
                    _as_node(b[j], theirs)
                    east, north = reach_between(mine, theirs, length)
                    if apart(mine, theirs, moved, east, north):
                        continue
                    p, q, lat1, lat2 = a[i, 0] + moved, a[i, 2] + moved, a[i, 1], a[i, 3]
                    if edges_touch(p, lat1, q, lat2, b[j, 0], b[j, 1], b[j, 2], b[j, 3]) or edges_near(
                        p, lat1, q, lat2, b[j, 0], b[j, 1], b[j, 2], b[j, 3], length
                    ):
                        return True
            row = next_leaves(stack, a_bounds, b_bounds, moved, length, True)
    return False


@kernel
def _as_node(edge: Floats, node: Floats) -> None:
    """Fill in the bounds of an edge alone."""
    for k in range(2):
        node[4 * k] = node[4 * k + 2] = edge[2 * k]
        node[4 * k + 1] = node[4 * k + 3] = edge[2 * k + 1]


@kernel
def _boxes_apart(a: Floats, b: Floats, length: float) -> bool:
    """Whether nothing in one box is within `length` metres of anything in another."""
    mine, theirs = np.empty(8), np.empty(8)
    mine[:4] = mine[4:] = a
    theirs[:4] = theirs[4:] = b
    east, north = reach_between(mine, theirs, length)
    before = apart(mine, theirs, -360.0, east, north)
    return before and apart(mine, theirs, 0.0, east, north) and apart(mine, theirs, 360.0, east, north)


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
    if _boxes_apart(aboxes[aboxes.shape[0] - 1], bboxes[bboxes.shape[0] - 1], length):
        return False
    a, b = ring_xy_at(axy, 0), ring_xy_at(bxy, 0)
    if positions_within(a[0, 0], a[0, 1], b[0, 0], b[0, 1], length):
        return True
    if b_filled and _has_ring_in(axy, bxy, bboxes):
        return True
    if a_filled and _has_ring_in(bxy, axy, aboxes):
        return True
    return _strips_near(axy, bxy, length)


@kernel
def _has_ring_in(axy: Floats, bxy: Floats, bboxes: Floats) -> bool:
    """Whether the first vertex of some ring of A is in B."""
    for k in range(ring_count(axy)):
        ring = ring_xy_at(axy, k)
        if _locate_around(ring[0, 0], ring[0, 1], bxy, bboxes):
            return True
    return False
