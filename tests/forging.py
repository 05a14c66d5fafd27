"""Forges saved indexes: hostile numbers in arrays, under right checksums. Run as a program, so that a crash is its own.

    python forging.py KIND SEED COUNT

saves an index of that kind, and COUNT times forges a copy, loads it, and if it loads, searches it and then changes it.
Loading and searching may raise a `ContradaError` and nothing else; changing may fail in any way but a crash. What is
neither, or does not end, ends the program; the last line that it wrote says which forgery it was.
"""

from __future__ import annotations

import faulthandler
import json
import random
import sys
import tempfile
import traceback
import zlib
from collections import Counter
from contextlib import suppress
from math import cos, sin
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contrada.errors import ContradaError
from contrada.forwarding.segments.index_directory import write_index
from contrada.forwarding.segments.segmented_table import SegmentedTable
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.cr_tree.tree import CRTree
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.textual.geotext import GeoText
from contrada.spatial.textual.protocol import Subscription
from contrada.spatial.textual.registry import NAMES, textual_index

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PATIENCE = 120.0  # seconds for one forgery, on a machine that others keep busy
KINDS = (
    *("table", "counting-table", "geotext-table", "tree", "segments", "road", "network"),
    *(f"textual:{name}" for name in NAMES),
)
WORDS = [f"w{n}" for n in range(12)]


def forge(source: Path, target: Path, rng: random.Random) -> str:
    """Write a forged copy of a file of arrays, its checksums put right; what was forged."""
    whole = bytearray(source.read_bytes())
    length = int.from_bytes(whole[12:16], "little")
    header = json.loads(whole[24 : 24 + length])
    first = (24 + length + 63) // 64 * 64
    arrays = {name: said for name, said in header["arrays"].items() if np.prod(said[1])}
    told = []
    # Small arrays say most about the others, and large ones would otherwise get all the attention.
    for name in rng.choices(list(arrays), k=rng.choice((1, 1, 1, 2, 4))):
        dtype, shape, offset, _ = arrays[name]
        count = int(np.prod(shape))
        array = np.frombuffer(whole, dtype, count, first + offset)
        sizes = [said[1][0] for said in arrays.values()]
        for _ in range(rng.choice((1, 1, 2, 8))):
            at = rng.randrange(count)
            before = array[at]
            array[at] = _hostile(array, rng, sizes)
            told.append(f"{name}[{at}] {before} -> {array[at]}")
        arrays[name][3] = zlib.crc32(array.tobytes())
    made = json.dumps(header).encode()
    made += b" " * (length - len(made))
    if len(made) != length:  # a longer checksum moved everything: forge another one instead
        return forge(source, target, rng)
    whole[16:20] = zlib.crc32(made).to_bytes(4, "little")
    whole[24 : 24 + length] = made
    target.write_bytes(whole)
    return ", ".join(told)


def _hostile(array: np.ndarray[Any, Any], rng: random.Random, sizes: Sequence[int]) -> Any:
    if array.dtype.kind == "f":
        return rng.choice((np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, -1.0, rng.random(), rng.choice(array.tolist())))
    info = np.iinfo(array.dtype)
    size = rng.choice(sizes)
    near = rng.choice((-1, 0, 1, 2, size - 1, size, size + 1, rng.randrange(size + 1), rng.choice(array.tolist())))
    far = rng.choice((info.min, info.max, info.max // 2, 1 << 31, 1 << 33, 1 << 40, -2, -(1 << 33)))
    flipped = int(rng.choice(array.tolist())) ^ 1 << rng.randrange(info.bits - 1)
    return min(max(rng.choice((near, near, far, flipped)), int(info.min)), int(info.max))


def _regions(rng: random.Random, count: int) -> list[Region]:
    made = []
    for _ in range(count):
        x, y, size = rng.uniform(0, 50), rng.uniform(0, 50), rng.uniform(1, 20)
        box = Box(x, y, x + size, y + size)
        triangle = [(x, y), (x + size, y), (x + size / 2, y + size)]
        hole = [(x + size / 2, y + size / 9), (x + size / 3, y + size / 3), (x + size / 2, y + size / 3)]
        apart = [[(x + 30 + 4 * cos(k), y + 4 * sin(k)) for k in range(5)]]
        among = [
            box,
            Region(triangle),
            Region(triangle, holes=[hole]),
            Region.of({"type": "MultiPolygon", "coordinates": [[triangle, hole], apart]}),
        ]
        made.append(rng.choice(among))
    return made


def _filters(rng: random.Random, count: int) -> list[str]:
    plain = (
        lambda: f"x > {rng.randrange(20)}",
        lambda: f"x < {rng.randrange(20)}",
        lambda: f"x >= {rng.randrange(9)} and x < {rng.randrange(9, 12)}",
        lambda: f"x != {rng.randrange(20)} and y = {rng.randrange(5)}",
        lambda: f"x in [{rng.randrange(9)}, {rng.randrange(9, 20)}, {rng.randrange(20, 30)}]",
        lambda: f's = "{rng.choice(WORDS)}" and x exists',
        lambda: f's prefix "{rng.choice(WORDS)}"',
        lambda: f's suffix "{rng.randrange(12)}" and y > {rng.randrange(4)}',
        lambda: f's contains "{rng.choice(WORDS)}{rng.choice(WORDS)}"',
        lambda: f's > "{rng.choice(WORDS)}"',
        lambda: "y exists",
        lambda: "b = true",
        lambda: f"area intersects {_regions(rng, 1)[0].wkt}",
        lambda: f"area disjoint {_regions(rng, 1)[0].wkt} and x > {rng.randrange(20)}",
        lambda: f"area within {rng.randrange(9)} of {_regions(rng, 1)[0].wkt}",
        lambda: f"area beyond {rng.randrange(9)} of POINT({rng.randrange(9)} 1) or area within 2 of POINT(5 5)",
        lambda: f"area inside {_regions(rng, 1)[0].wkt} or y = {rng.randrange(9)}",
    )
    return [rng.choice(plain)() for _ in range(count)]


def _texts(rng: random.Random, count: int) -> list[str]:
    made = []
    for region in _regions(rng, count):
        words = ", ".join(f'"{word}"' for word in rng.sample(WORDS, rng.randrange(1, 4)))
        made.append(f"post matches {{{words}}} within {region.wkt}")
    return made


def _notifications(rng: random.Random) -> list[dict[str, Any]]:
    return [
        {
            "x": rng.randrange(25),
            "y": rng.randrange(6),
            "s": "".join(rng.choices(WORDS, k=3)),
            "b": rng.random() < 0.5,
            "area": region if rng.random() < 0.7 else Point(rng.uniform(0, 50), rng.uniform(0, 50)),
            "post": GeoText(rng.sample(WORDS, 6), at=(rng.uniform(0, 50), rng.uniform(0, 50))),
        }
        for region in _regions(rng, 12)
    ]


class Table:
    """A forwarding table."""

    def __init__(self, home: Path, rng: random.Random, filters: list[str], matching: str = "selective") -> None:
        table: ForwardingTable[str] = ForwardingTable(matching=matching)
        ids = [id for n, text in enumerate(filters) for id in table.add(f"i{n % 9}", text)]
        for id in rng.sample(ids, len(ids) // 5):  # so that there are ghosts and free rows
            table.remove(id)
        self.files = [home / "table"]
        table.save(self.files[0])

    def open(self, files: list[Path]) -> ForwardingTable:
        return ForwardingTable.load(files[0])

    def search(self, table: ForwardingTable, rng: random.Random) -> None:
        notifications = _notifications(rng)
        table.match_many(notifications)
        table.match_many_filters(notifications)

    def change(self, table: ForwardingTable, rng: random.Random) -> None:
        for n, text in enumerate(_filters(rng, 5)):
            table.add(f"i{n}", text)
        for n in range(9):
            with suppress(ContradaError):
                table.remove_interface(f"i{n}")
        table.match_many(_notifications(rng))


class Tree:
    """A CR-tree."""

    def __init__(self, home: Path, rng: random.Random) -> None:
        tree = CRTree()
        for id, region in enumerate(_regions(rng, 150)):
            tree.insert(id, region, rng.randrange(1, 256))
        for id in rng.sample(range(150), 40):
            tree.remove(id)
        self.files = [home / "tree"]
        tree.save(self.files[0])

    def open(self, files: list[Path]) -> CRTree:
        return CRTree.load(files[0])

    def search(self, tree: CRTree, rng: random.Random) -> None:
        for region in _regions(rng, 10):
            tree.search(region)
        tree.search_points([Point(rng.uniform(0, 50), rng.uniform(0, 50)) for _ in range(10)])

    def change(self, tree: CRTree, rng: random.Random) -> None:
        for id, region in enumerate(_regions(rng, 20), 1000):
            tree.insert(id, region, 255)
        for id in range(150):
            with suppress(ContradaError):
                tree.remove(id)


class Textual:
    """A spatio-textual index."""

    def __init__(self, home: Path, rng: random.Random, name: str) -> None:
        self.index = textual_index(name)
        made = self.index.build(self.subscriptions(rng, range(300)))
        for id in rng.sample(range(300), 40):
            made.remove(id)
        for each in self.subscriptions(rng, range(300, 320)):
            made.insert(each)
        self.files = [home / "index"]
        made.save(self.files[0])

    @staticmethod
    def subscriptions(rng: random.Random, ids: range) -> list[Subscription]:
        return [
            Subscription(id, frozenset(rng.sample(WORDS, rng.randrange(1, 4))), region.bounds)
            for id, region in zip(ids, _regions(rng, len(ids)), strict=True)
        ]

    def open(self, files: list[Path]) -> Any:
        return self.index.load(files[0])

    def search(self, index: Any, rng: random.Random) -> None:
        for region in _regions(rng, 10):
            index.search(rng.sample(WORDS, 6), region.bounds)

    def change(self, index: Any, rng: random.Random) -> None:
        for each in self.subscriptions(rng, range(1000, 1020)):
            index.insert(each)
        for id in range(320):
            with suppress(ContradaError):
                index.remove(id)


class Segments:
    """An index directory."""

    def __init__(self, home: Path, rng: random.Random) -> None:
        filters = [*_filters(rng, 80), *_texts(rng, 40)]
        write_index(home / "index", [(f"s{n:03}", f"i{n % 9}", text) for n, text in enumerate(filters)])
        self.files = sorted((home / "index").glob("segment-*"))
        self.manifest = home / "index" / "manifest.json"

    def open(self, files: list[Path]) -> SegmentedTable:
        (files[0].parent / "manifest.json").write_bytes(self.manifest.read_bytes())
        return SegmentedTable.open(files[0].parent)

    def search(self, table: SegmentedTable, rng: random.Random) -> None:
        notifications = _notifications(rng)
        table.match_many(notifications)
        table.match_many_subscriptions(notifications)

    def change(self, table: SegmentedTable, rng: random.Random) -> None:
        for n in rng.sample(range(120), 30):
            with suppress(ContradaError):
                table.remove_subscription(f"s{n:03}")
        table.match_many(_notifications(rng))


class Road:
    """An index over a road network."""

    def __init__(self, home: Path, rng: random.Random) -> None:
        from contrada.spatial.road.index.base import RoadSubscription
        from contrada.spatial.road.index.eia import EnhancedIndex
        from contrada.spatial.road.network import RoadNetwork

        xy = np.array([(x, y) for x in range(12) for y in range(12)], float)
        across = [(12 * x + y, 12 * x + y + 12) for x in range(11) for y in range(12)]
        up = [(12 * x + y, 12 * x + y + 1) for x in range(12) for y in range(11)]
        self.network = RoadNetwork(xy, np.array([*across, *up]), d_max=9.0)
        self.index = EnhancedIndex
        asked = [
            RoadSubscription(id, frozenset(rng.sample(WORDS, 2)), (rng.uniform(0, 11), rng.uniform(0, 11)), 0.5, 0.4)
            for id in range(120)
        ]
        made = EnhancedIndex.build(self.network, asked)
        for id in rng.sample(range(120), 20):
            made.remove(id)
        self.files = [home / "roads"]
        made.save(self.files[0])

    def open(self, files: list[Path]) -> Any:
        return self.index.load(self.network, files[0])

    def search(self, index: Any, rng: random.Random) -> None:
        for _ in range(10):
            index.search(frozenset(rng.sample(WORDS, 5)), Point(rng.uniform(0, 11), rng.uniform(0, 11)))

    def change(self, index: Any, rng: random.Random) -> None:
        for id in range(120):
            with suppress(ContradaError):
                index.remove(id)


class Network(Road):
    """A road network."""

    def __init__(self, home: Path, rng: random.Random) -> None:
        super().__init__(home, rng)
        self.files = [home / "network"]
        self.network.save(self.files[0])

    def open(self, files: list[Path]) -> Any:
        return type(self.network).load(files[0])

    def search(self, network: Any, rng: random.Random) -> None:
        places = [(rng.uniform(0, 11), rng.uniform(0, 11)) for _ in range(10)]
        for place in places:
            network.snap(place)
            network.distances(place, places)
            network.similarity(frozenset(WORDS[:2]), Point(*place), 0.5, GeoText(WORDS[:3], at=(1.0, 1.0)))

    def change(self, network: Any, rng: random.Random) -> None:
        """A network does not change; an index over it does."""
        from contrada.spatial.road.index.base import RoadSubscription

        asked = [RoadSubscription(id, frozenset(WORDS[:2]), (float(id), 1.0), 0.5, 0.4) for id in range(9)]
        super().search(self.index.build(network, asked), rng)


def made(kind: str, home: Path, rng: random.Random) -> Any:
    """What to forge."""
    makers: dict[str, Callable[[], Any]] = {
        "table": lambda: Table(home, rng, _filters(rng, 200)),
        "counting-table": lambda: Table(home, rng, [*_texts(rng, 20), *_filters(rng, 200)], "counting"),
        "geotext-table": lambda: Table(home, rng, [*_texts(rng, 120), *_filters(rng, 20)]),
        "tree": lambda: Tree(home, rng),
        "segments": lambda: Segments(home, rng),
        "road": lambda: Road(home, rng),
        "network": lambda: Network(home, rng),
    }
    return makers[kind]() if kind in makers else Textual(home, rng, kind.partition(":")[2])


def run(kind: str, seed: int, count: int) -> Counter[str]:
    """Forge, load, search and change, so many times; how it went."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        subject = made(kind, home, random.Random(0))  # always the same: what differs is the forgery
        (home / "forged").mkdir()
        # As it is first: what was saved must be found whole, and kernels are compiled before the clock is watched.
        whole = [home / "forged" / file.name for file in subject.files]
        for source, target in zip(subject.files, whole, strict=True):
            target.write_bytes(source.read_bytes())
        assert _tried(subject, whole, random.Random(0)) == "searched and changed"
        for number in range(count):
            rng = random.Random(f"{kind} {seed} {number}")
            files = [home / "forged" / file.name for file in subject.files]
            for source, target in zip(subject.files, files, strict=True):
                target.write_bytes(source.read_bytes())
            which = rng.randrange(len(files))
            told = forge(subject.files[which], files[which], rng)
            print(f"{kind} {seed} {number}: {told}", flush=True)
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            outcomes[_tried(subject, files, rng)] += 1
            faulthandler.cancel_dump_traceback_later()
    return outcomes


def _tried(subject: Any, files: list[Path], rng: random.Random) -> str:
    try:
        opened = subject.open(files)
    except ContradaError:
        return "refused"
    try:
        subject.search(opened, rng)
    except ContradaError:
        return "refused when searched"
    try:
        subject.change(opened, rng)
    except Exception:  # it is not promised that a forgery can be changed, only that nothing crashes
        return "searched, not changed"
    return "searched and changed"


if __name__ == "__main__":
    faulthandler.enable()
    try:
        print("done", dict(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
    except Exception:  # anything but a ContradaError is a failure, with its forgery told above
        traceback.print_exc(file=sys.stdout)
        sys.exit(1)
