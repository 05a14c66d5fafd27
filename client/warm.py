"""Compile the kernels before they are needed: `python -m contrada.client.warm`.

Kernels are compiled on first use and kept on disk beside their sources. The first use in a fresh installation takes a
minute or so, in which a broker could answer nobody; so `contrada broker` does it before it listens, and `make setup`
once for all. Loading what is already compiled takes about a second.
"""

from __future__ import annotations

import sys


def warm_up() -> None:
    """Add, match and remove one filter of each kind in a table that is then thrown away."""
    from contrada.forwarding.language import parse
    from contrada.forwarding.table import ForwardingTable
    from contrada.spatial.geotext import GeoText
    from contrada.spatial.point import Point
    from contrada.spatial.region import Region

    ring = [(0, 0), (5, 0), (6, 2), (5, 5), (0, 5)]
    filters = (
        'n > 3 and price < 7.5 and name prefix "a" and kind = "b"',
        'name suffix "a" or name contains "b" or flag = true or n in [1, "x"] or n exists or n != 5',
        "area intersects POLYGON((0 0, 3 0, 3 3, 1 2)) and wind > 3",
        "area overlaps POLYGON((0 0, 3 0, 3 3)) or place inside BOX(0 0, 2 2)",
        'post matches {"a", "b"} within BOX(0 0, 1 1)',
        'post matches {"a"} within POLYGON((0 0, 3 0, 3 3))',
    )
    notification = {
        "n": 4,
        "price": 1.5,
        "name": "aab",
        "kind": "b",
        "flag": True,
        "area": Region(ring),
        "wind": 9,
        "place": Point(1, 1),
        "post": GeoText("a b c", at=(0.5, 0.5)),
    }
    table = ForwardingTable()
    for interface, text in enumerate(filters):
        table.add(interface, parse(text))
    table.match_many([notification, {"n": 1}])
    table.remove_interface(0)


if __name__ == "__main__":
    print("compiling kernels, once for this installation …", file=sys.stderr, flush=True)
    warm_up()
