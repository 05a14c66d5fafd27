"""Whether the arrays of a loaded road network are those of one: what kernels follow leads where it should, and ends.

An expansion ends, and its heap has room, because lengths are numbers from 0 on; a point finds an edge because
coordinates are finite and the boxes of the tree are as many as its blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contrada.spatial.geometry.point import check_coordinates
from contrada.spatial.road.graph.edge_tree import LEAF
from contrada.spatial.road.graph.kd_order import levels_for
from contrada.spatial.storage.row_numbers import (
    check_lengths,
    check_met_once,
    check_offsets,
    check_rows,
    check_shapes,
    check_that,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

SHAPES: Final = {
    "xy": (np.float64, (2,)),
    "edges": (np.int32, (2,)),
    "lengths": (np.float64, ()),
    "grain": (np.float64, ()),
    "order": (np.int32, ()),
    "boxes": (np.float64, (4,)),
    "road": (np.int32, ()),
    "start": (np.float64, ()),
    "way": (np.float64, ()),
    "cell": (np.int32, ()),
    "cell_boxes": (np.float64, (4,)),
    "component": (np.int32, ()),
    "graph.first": (np.int64, ()),
    "graph.to": (np.int32, ()),
    "graph.length": (np.float64, ()),
    "graph.ends": (np.int32, (2,)),
    "graph.road_length": (np.float64, ()),
}
_WHAT: Final = "road network"


def guard_network(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse arrays that are not a network's, with `CorruptFile`."""
    check_shapes(_WHAT, arrays, SHAPES)
    edges, ends, to = len(arrays["edges"]), arrays["graph.ends"], arrays["graph.to"]
    roads, cells, junctions = len(ends), len(arrays["cell_boxes"]), len(arrays["graph.first"]) - 1
    check_shapes(_WHAT, arrays, {"cell_bounds": (np.float64, (cells,))})
    check_that(f"{_WHAT}: no edges, or no grain", edges > 0 and len(arrays["grain"]) == 1)
    check_lengths(_WHAT, edges, *(arrays[name] for name in ("lengths", "order", "road", "start", "way")))
    check_lengths(_WHAT, roads, *(arrays[name] for name in ("cell", "component", "graph.road_length")))
    check_lengths(_WHAT, len(to), arrays["graph.length"])
    check_lengths(_WHAT, cells, arrays["cell_bounds"])
    check_lengths(_WHAT, 2 << levels_for(edges, LEAF), arrays["boxes"])

    check_that(f"{_WHAT}: a node that is nowhere", check_coordinates(arrays["xy"]))
    check_rows(f"{_WHAT}: ends of edges", arrays["edges"], len(arrays["xy"]))
    check_rows(f"{_WHAT}: edges by position", arrays["order"], edges)
    check_met_once(f"{_WHAT}: edges by position", arrays["order"], edges)
    check_rows(f"{_WHAT}: roads of edges", arrays["road"], roads)
    check_rows(f"{_WHAT}: cells of roads", arrays["cell"], cells)
    check_rows(f"{_WHAT}: components of roads", arrays["component"], roads)
    check_rows(f"{_WHAT}: ends of roads", ends, junctions)
    check_rows(f"{_WHAT}: ends of arcs", to, junctions)
    check_offsets(f"{_WHAT}: arcs of junctions", arrays["graph.first"], len(to))

    lengths = (arrays[name] for name in ("lengths", "start", "graph.length", "graph.road_length"))
    check_that(f"{_WHAT}: a length that is none", all(np.all((each >= 0) & np.isfinite(each)) for each in lengths))
    boxes = (arrays[name] for name in ("boxes", "cell_boxes"))
    check_that(f"{_WHAT}: a box that is none", all(np.isfinite(each).all() for each in boxes))
    check_that(f"{_WHAT}: a grain that is none", (arrays["grain"] > 0) & np.isfinite(arrays["grain"]))
    check_that(f"{_WHAT}: an edge that runs neither along nor against its road", np.abs(arrays["way"]) == 1)
    check_that(f"{_WHAT}: a bound of cells that is none", arrays["cell_bounds"] >= 0)
