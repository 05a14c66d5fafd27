"""What a road network may be made of, checked where it comes in; and lengths on a grid, so that sums are exact.

Nodes have coordinates as points have (`spatial.point`). Edges are straight, undirected, between two different nodes: an
edge from a node to itself has no points of its own and is refused. Several edges between the same two nodes are
several roads, and stay. Lengths are finite and not negative; they need not be those of the straight line. Zero is a
length: nodes that the map has twice are joined by such edges. Nodes without an edge are allowed and play no part.

Lengths are rounded to whole multiples of a power of two, the *grain*, chosen so that twice the length of all roads
together is at most 2**52 grains: one part in 10**15 of the network. Places on edges are rounded alike. Every sum of
lengths along a path is then exact in floating point: a distance does not depend on the direction in which or the order
in which it is added up, and every algorithm finds the same.
"""

from __future__ import annotations

from math import frexp, fsum, ldexp
from typing import TYPE_CHECKING

import numpy as np

from contrada.errors import InvalidValue, shown
from contrada.spatial.geometry.point import check_coordinates

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_MOST = 2**31 - 1


def checked_nodes(xy: ArrayLike) -> NDArray[np.float64]:
    """Return coordinates of nodes as an array (n, 2)."""
    try:
        nodes = np.array(xy, np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValue(f"nodes are rows of x, y: {error}") from error
    if nodes.ndim != 2 or nodes.shape[1] != 2:
        raise InvalidValue(f"nodes are rows of x, y, not an array of shape {nodes.shape}")
    fine = check_coordinates(nodes).all(axis=1)
    if not fine.all():
        bad = int(np.argmin(fine))
        raise InvalidValue(f"node {bad} is at {nodes[bad].tolist()}: not finite, or outside 1e-100 to 1e100")
    return nodes


def checked_edges(edges: ArrayLike, nodes: int) -> NDArray[np.int32]:
    """Return edges as an array (m, 2) of numbers of nodes."""
    try:
        ends = np.asarray(edges)
    except ValueError as error:
        raise InvalidValue(f"edges are pairs of numbers of nodes: {error}") from error
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise InvalidValue(f"edges are pairs of numbers of nodes, not {ends.dtype} of shape {ends.shape}")
    if not 0 < len(ends) <= _MOST:
        raise InvalidValue(f"a road network has at least one edge and at most {_MOST}, not {len(ends)}")
    outside = ((ends < 0) | (ends >= nodes)).any(axis=1)
    if outside.any():
        bad = int(np.argmax(outside))
        raise InvalidValue(f"edge {bad} is {ends[bad].tolist()}, and there are {nodes} nodes, counted from 0")
    loops = ends[:, 0] == ends[:, 1]
    if loops.any():
        bad = int(np.argmax(loops))
        raise InvalidValue(f"edge {bad} leads from node {ends[bad, 0]} to itself: leave it out")
    return np.ascontiguousarray(ends, np.int32)


def checked_lengths(lengths: ArrayLike | None, straight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return lengths of edges; those of the straight lines where none are given."""
    if lengths is None:
        return straight
    try:
        given = np.array(lengths, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValue(f"lengths are numbers, one per edge: {error}") from error
    if given.shape != straight.shape:
        raise InvalidValue(f"{len(straight)} edges, but lengths of shape {given.shape}")
    fine = np.isfinite(given) & (given >= 0) & (given <= 1e100)
    if not fine.all():
        bad = int(np.argmin(fine))
        raise InvalidValue(f"the length of edge {bad} is {given[bad]}: lengths are finite and not negative")
    return given


def grain_of(lengths: NDArray[np.float64]) -> float:
    """Return the power of two that lengths are rounded to multiples of."""
    total = fsum(lengths.tolist())
    return ldexp(1.0, max(frexp(total)[1] - 51, -1000)) if total else 1.0


def on_grain(lengths: NDArray[np.float64], grain: float) -> NDArray[np.float64]:
    """Round to multiples of the grain."""
    rounded: NDArray[np.float64] = np.rint(lengths / grain) * grain
    return rounded


def checked_d_max(d_max: float | None, nodes: NDArray[np.float64]) -> float:
    """Return the distance from which on nothing is similar; by default the diagonal of the network's extent."""
    if d_max is None:
        return float(np.hypot(*np.ptp(nodes, axis=0))) or 1.0
    if isinstance(d_max, bool) or not isinstance(d_max, (int, float, np.floating, np.integer)):
        raise InvalidValue(f"d_max is a distance along roads, not {d_max!r}")
    if not 0 < d_max <= 1e100:  # as it is: an integer may be too large for a float
        raise InvalidValue(f"d_max is a distance along roads, finite and above 0, not {shown(d_max)}")
    return float(d_max)
