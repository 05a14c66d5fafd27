"""Compile the engine's kernels before they are needed.

Kernels compile on first use, which takes two to three minutes in all, once per installation: the machine code is
cached beside the source. A broker does it before it listens, so that no client waits for a compiler; `python -m
contrada.forwarding.warm` does it ahead of time, on all cores. With a warm cache this takes about a second.
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import TYPE_CHECKING, Final

from contrada.forwarding.codec.msgpack import encode_notification
from contrada.forwarding.covering.covering_set import CoveringSet
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.cr_tree.tree import CRTree
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.relations.relation import INTERSECTS
from contrada.spatial.textual.geotext import GeoText
from contrada.spatial.textual.protocol import Subscription
from contrada.spatial.textual.registry import DEFAULT, textual_index

if TYPE_CHECKING:
    from contrada.forwarding.language.values import Value
    from contrada.spatial.road.network import RoadNetwork

_FILTERS: Final = (
    'x > 3 and s = "k" and t exists',
    'x < 9 and x != 4 and s prefix "a" and s suffix "b" and s contains "c"',
    'b = true and x in [1, 2.5, "k"] and d >= 2026-01-01T00:00:00Z',
    "area overlaps POLYGON((0 0, 10 0, 10 10, 0 10))",
    "area contains BOX(2 2, 3 3) or area intersects POLYGON((0 0, 3 0, 3 3)) and x >= 0",
    "area disjoint POLYGON((0 0, 1 0, 1 1)) and x <= 100",
    "place inside BOX(0 0, 2 2) or place meets POLYGON((0 0, 3 0, 3 3))",
    'post matches {"ipad", "sale"} within BOX(0 0, 5 5) or post matches {"ipad"} within POLYGON((0 0, 3 0, 3 3))',
)
# Posted alone, the second of a name one by one, and beside another that it is posted under.
_SIMILAR: Final = (
    'post similar {"ipad", "sale"} at POINT(1 1) alpha 0.4 tau 0.1',
    'post similar {"ipad"} at POINT(1 1) alpha 1 tau 0 or x = 1 and post similar {"sale"} at POINT(1 1) alpha 1 tau 0',
)


def compile_kernels(roads: RoadNetwork | None = None) -> None:
    """Put a small table, and a set of filters for neighbours, through everything a broker does with them.

    With a road network, `similar` too.
    """
    notifications: list[dict[str, Value]] = [
        {"x": 4, "s": "acb", "b": True},
        {"x": 4.5, "area": Region([(5.0, 5.0), (20.0, 5.0), (20.0, 20.0)])},
        {"x": 1, "area": Point(5.0, 5.0), "place": Point(1.0, 1.0), "post": GeoText("iPad", at=(1.0, 1.0))},
    ]
    table = ForwardingTable(road_network=roads)
    texts = _FILTERS if roads is None else (*_FILTERS, *_SIMILAR)
    ids = [id for number, text in enumerate(texts) for id in table.add(f"i{number % 3}", text)]
    table.match_many(notifications)
    for notification in notifications:
        table.match(notification)
        table.match_filters(notification)
    table.match_bodies([encode_notification(each) for each in notifications * 2])
    filters: CoveringSet[int] = CoveringSet()
    for id in ids:
        filters.add(id, table.filter(id))
        filters.remove(id)
        table.remove(id)


def _compile_plain() -> None:
    table = ForwardingTable()
    (id,) = table.add("i", _FILTERS[0])
    table.match({"x": 4, "s": "acb", "b": True})
    table.remove(id)


def _compile_regions() -> None:
    tree = CRTree()
    tree.insert(1, Box(0, 0, 1, 1), INTERSECTS)
    tree.search(Region([(5.0, 5.0), (20.0, 5.0), (20.0, 20.0)]))
    tree.search(Point(1.0, 1.0))
    tree.remove(1)


def _compile_geotext() -> None:
    index = textual_index(DEFAULT).build(())
    index.insert(Subscription(1, frozenset({"ipad"}), (0.0, 0.0, 5.0, 5.0)))
    index.search({"ipad"}, (1.0, 1.0, 1.0, 1.0))
    index.remove(1)


def compile_on_all_cores() -> None:
    """As `compile_kernels`, in several processes: what they compile, the last pass finds in the cache."""
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        wait([pool.submit(part) for part in (_compile_plain, _compile_geotext, _compile_regions)])
    compile_kernels()


if __name__ == "__main__":
    print("compiling kernels, once for this installation …", file=sys.stderr, flush=True)
    compile_on_all_cores()
