"""Compile the engine's kernels before they are needed, and say how far it is.

Kernels compile on first use, once for a machine: the machine code is kept in the user's cache and found by its content
(`spatial/storage/kernel_cache.py`). A broker compiles what is missing before it takes its first message, so that no
client waits for a compiler; `contrada warm` does it ahead of time, on all cores.

What a kernel is needed for is told by using it: small tables, trees and indexes are put through everything that a
broker does with them. With everything in the cache that takes about a second.
"""

from __future__ import annotations

import math
import os
import signal
import time
from concurrent.futures import Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from itertools import product
from multiprocessing import get_context
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from contrada.forwarding.codec.msgpack import encode_notification
from contrada.forwarding.covering.covering_set import CoveringSet
from contrada.forwarding.language.lonlat import LONLAT, PLANE
from contrada.forwarding.table.table import ForwardingTable
from contrada.forwarding.types.trying import EVERY_WAY, WORTH
from contrada.spatial.cr_tree.tree import CRTree
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.lines.line import Line
from contrada.spatial.relations.relation import INTERSECTS
from contrada.spatial.storage import kernel_cache
from contrada.spatial.textual.geotext import GeoText
from contrada.spatial.textual.protocol import Subscription
from contrada.spatial.textual.registry import DEFAULT, textual_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

    from contrada.forwarding.language.values import Value
    from contrada.spatial.road.network import RoadNetwork

KERNELS: Final = 720  # that a broker needs, some of them in two processes, rounded up: for the share that is done
_FEW: Final = 128  # filters of two interfaces
_CIRCLES: Final = 72  # of which a grid is made as soon as nine points are asked about
_CROWD: Final = 200  # filters: of one interface, so many that an index of boxes finds who covers whom
_LOOK: Final = 0.5  # seconds between two looks at how far it is

_PLAIN: Final = (
    'x > 3 and s = "k" and t exists',
    'x < 9 and x != 4 and s prefix "a" and s suffix "b" and s contains "c"',
    'b = true and x in [1, 2.5, "k"] and d >= 2026-01-01T00:00:00Z',
    "x > 3 or x > 5",  # one covers the other
)
_NOTIFICATION: Final[dict[str, Value]] = {"x": 4, "s": "acb", "b": True}
_SPATIAL: Final = (
    "area overlaps POLYGON((0 0, 10 0, 10 10, 0 10))",
    "area contains BOX(2 2, 3 3) or area intersects POLYGON((0 0, 3 0, 3 3)) and x >= 0",
    "area disjoint POLYGON((0 0, 1 0, 1 1)) and x <= 100 or area inside POLYGON((0 0, 9 0, 9 9), (5 1, 6 1, 6 2))",
    "place within 1 of POINT(1 1) or area within 1 of BOX(5 5, 6 6) or x >= 0 and place beyond 3 of BOX(5 5, 6 6)",
    "place inside BOX(0 0, 2 2) or place meets POLYGON((0 0, 3 0, 3 3)) or area contains POINT(19 6)",
    "area inside BOX(0 0, 9 9) or area inside BOX(1 1, 8 8) or place within 2 of POINT(1 1)",  # some cover others
    "route crosses BOX(0 0, 5 5) or route intersects LINESTRING(0 0, 3 4) or route contains POINT(1 1)",
    "route inside BOX(0 0, 9 9)",
    "route within 3 of LINESTRING(0 0, 3 4) or x >= 0 and route within 3 of LINESTRING(0 0, 3 4)",
    "route crosses LINESTRING(0 0, 3 4) or route inside LINESTRING(0 0, 3 4) or place inside LINESTRING(0 0, 2 2)",
    "x >= 0 and route meets BOX(0 0, 5 5) or x >= 0 and route disjoint LINESTRING(0 0, 3 4)",
)
_TEXTUAL: Final = (
    'post matches {"ipad", "sale"} within BOX(0 0, 5 5) or post matches {"ipad"} within POLYGON((0 0, 3 0, 3 3))',
    'post matches {"sale"}',
    'post matches {"rain"} or not post matches {"ice"}',
    'post matches {"snow"} within BOX(0 0, 1 1)',
)
# Posted alone, the second of a name one by one, and beside another that it is posted under.
_SIMILAR: Final = (
    'post similar {"ipad", "sale"} at POINT(1 1) alpha 0.4 tau 0.1',
    'post similar {"ipad"} at POINT(1 1) alpha 1 tau 0 or x = 1 and post similar {"sale"} at POINT(1 1) alpha 1 tau 0',
)


class Progress(NamedTuple):
    """How far compiling is."""

    done: int  # kernels compiled so far, in all processes
    most: int  # that may have to be, at most
    seconds: float  # since it began

    @property
    def seconds_left(self) -> float:
        """How long it goes on, if it goes on as so far."""
        return self.seconds * (self.most - self.done) / self.done if self.done else 0.0

    def __str__(self) -> str:
        left = self.seconds_left
        rest = f", about {left:.0f} s left" if self.done >= 10 and left >= 1 else ""
        return f"compiling kernels, once for this machine: {self.done} of {self.most}{rest}"


@contextmanager
def told_while_compiling(tell: Callable[[Progress], None], period: float = 5.0) -> Iterator[None]:
    """Within the block, tell how far this process is whenever it has compiled something: at once, then periodically."""
    began = time.monotonic()
    done = 0
    told = -math.inf

    def count(_name: str) -> None:
        nonlocal done, told
        done += 1
        now = time.monotonic() - began
        if now - told >= period:
            told = now
            tell(Progress(done, max(KERNELS, done), now))

    kernel_cache.compiled.append(count)
    try:
        yield
    finally:
        kernel_cache.compiled.remove(count)


def compile_kernels(
    roads: RoadNetwork | None = None, crs: str = PLANE, *, tidy: Callable[[], None] = lambda: None
) -> None:
    """Put a small table, and a set of filters for neighbours, through everything a broker does with them.

    With a road network, `similar` too; with longitudes and latitudes, distances on the Earth. `tidy` is called after
    the first kernels, and now and then.
    """
    _compile_shapes()
    tidy()
    if crs == LONLAT:
        _compile_earth()
    filters = (*_PLAIN, *_SPATIAL, *_TEXTUAL, *(() if roads is None else _SIMILAR))
    _use_table(filters, [_NOTIFICATION, *_places()], roads)
    tidy()
    _compile_crowded()
    _compile_few()


def _compile_plain() -> None:
    """What filters of numbers and strings need."""
    _use_table(_PLAIN, [_NOTIFICATION])
    table: ForwardingTable[int] = ForwardingTable()
    table.add_many((number, f"kind = {number % 9} and x = {number}") for number in range(_CROWD))
    table.match_many([{"kind": 1, "x": number} for number in range(9)])


def _compile_areas() -> None:
    """What filters of shapes need besides."""
    _use_table(_SPATIAL, _places())
    _compile_crowded()
    _compile_few()


def _places() -> list[dict[str, Value]]:
    hollow = Region([(0.0, 0.0), (9.0, 0.0), (9.0, 9.0)], holes=[[(5.0, 1.0), (6.0, 1.0), (6.0, 2.0)]])
    return [
        {"x": 4.5, "area": Region([(5.0, 5.0), (20.0, 5.0), (20.0, 20.0)])},
        {"x": 1, "route": Line([(0.0, 0.0), (3.0, 4.0)]), "area": Box(2.0, 2.0, 3.0, 3.0)},
        {"x": 1, "route": hollow},
        {"x": 1, "area": Point(5.0, 5.0), "place": Point(1.0, 1.0), "post": GeoText("iPad", at=(1.0, 1.0))},
    ]


def _use_table(texts: Sequence[str], notifications: list[dict[str, Value]], roads: RoadNetwork | None = None) -> None:
    table: ForwardingTable[str] = ForwardingTable(road_network=roads)
    ids = [id for number, text in enumerate(texts) for id in table.add(f"i{number % 3}", text)]
    table.match_many(notifications)
    for notification in notifications:
        table.match(notification)
        table.match_filters(notification)
    table.match_bodies([encode_notification(each) for each in notifications * 2])
    for notification, id in product(notifications, ids):
        table.explain(notification, id)
    filters: CoveringSet[int] = CoveringSet()
    for id in ids:
        filters.add(id, table.filter(id))
        filters.remove(id)
        table.remove(id)


def _compile_crowded() -> None:
    """What only many filters need: trees that grow, accesses that are chosen again, regions that are verified."""
    table: ForwardingTable[int] = ForwardingTable()
    filters = [f"kind = {number} and area overlaps BOX(0 0, {number + 1} 9)" for number in range(_CROWD)]
    table.add_many(enumerate(filters))
    table.add_many((0, f"area overlaps BOX({number} 0, {number + 1} 9)") for number in range(_CROWD))
    ring = Region([(5.0, 5.0), (20.0, 5.0), (20.0, 20.0)])
    table.add_many((0, f"pos within 1 of POINT({number} 0)") for number in range(_CIRCLES))
    for place in (ring, Point(0.5, 0.5)):
        table.match({"kind": 3, "area": place})
        table.match_many([{"kind": number, "area": place, "pos": place} for number in range(9)])


def _compile_few() -> None:
    """What spares searches: filters of few interfaces that are tried first, sifting, and what is decided last."""
    table: ForwardingTable[int] = ForwardingTable()
    table.add_many((number % 2, f"area overlaps BOX({number} 0, {number + 9} 9)") for number in range(_FEW))
    counted: ForwardingTable[int] = ForwardingTable(matching="counting")
    counted.add(0, "kind = 1 and area overlaps BOX(0 0, 9 9)")
    for each in [table] * EVERY_WAY + [counted]:
        each._memory.trying.searched = WORTH  # as if searches had been dear
        each.match({"kind": 1, "area": Box(0, 0, 5, 5)})


def _compile_earth() -> None:
    table: ForwardingTable[str] = ForwardingTable(crs=LONLAT)
    table.add(
        "i", "pos within 500 m of POINT(0 0) or x = 1 and pos within 1 km of BOX(0 0, 1 1) or pos inside BOX(0 0, 1 1)"
    )
    line = Line([(0.0, 0.0), (0.5, 1.0)])
    table.match_many([{"pos": each, "x": 1} for each in (Point(0.0, 0.0), Box(2, 2, 3, 3), line)])


def _compile_shapes() -> None:
    Region([(5.0, 5.0), (20.0, 5.0), (20.0, 20.0)])
    tree = CRTree()
    tree.insert(1, Box(0, 0, 1, 1), INTERSECTS)
    tree.search(Box(0, 0, 2, 2))
    tree.search(Point(1.0, 1.0))
    tree.remove(1)


def _compile_geotext() -> None:
    index = textual_index(DEFAULT).build(())
    index.insert(Subscription(1, frozenset({"ipad"}), (0.0, 0.0, 5.0, 5.0)))
    index.search({"ipad"}, (1.0, 1.0, 1.0, 1.0))
    index.remove(1)


def _begin(counter: Any, held: Connection) -> None:
    """In a process of the pool: add every kernel that it compiles to the counter that all share, and end with them.

    Its parent holds the other end of a pipe. When that is closed, by itself or because the parent was killed, nobody
    waits for the kernels any more. Ctrl-C is the parent's business.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end() -> None:
        held.poll(None)
        os._exit(1)

    Thread(target=end, daemon=True).start()

    def add(_name: str) -> None:
        with counter.get_lock():
            counter.value += 1

    kernel_cache.compiled.append(add)


def compile_on_all_cores(tell: Callable[[Progress], None] = lambda _progress: None, *others: Callable[[], None]) -> int:
    """As `compile_kernels`, in two processes; how many kernels were compiled. `tell` hears how far it is.

    Kernels that only kernels call are compiled in every process that needs them. So one process compiles shapes, and
    the other what shares least with it: tables and texts, then what others need. Neither begins with what the other
    has in hand.
    """
    context = get_context("spawn")
    counter = context.Value("i", 0)
    held, hold = context.Pipe(duplex=False)
    began = time.monotonic()

    def finish(*waiting: Future[None]) -> None:
        left = set(waiting)
        while left:
            done, left = wait(left, timeout=_LOOK)
            for each in done:
                each.result()
            if counter.value:
                tell(Progress(counter.value, max(KERNELS, counter.value), time.monotonic() - began))

    @contextmanager
    def process() -> Iterator[ProcessPoolExecutor]:
        pool = ProcessPoolExecutor(1, mp_context=context, initializer=_begin, initargs=(counter, held))
        try:
            yield pool
        finally:
            with suppress(RuntimeError):  # Ctrl-C came before the pool's own thread had begun: it cannot be waited for
                pool.shutdown()

    with process() as one, process() if (os.cpu_count() or 1) > 1 else nullcontext(one) as other:
        try:
            shapes, tables = one.submit(_compile_shapes), other.submit(_compile_plain)
            beside = [other.submit(each) for each in (_compile_geotext, *others)]
            finish(shapes, tables)
            finish(one.submit(_compile_areas), *beside)
            finish(one.submit(compile_kernels))  # what is left
        except BaseException:
            hold.close()  # they end at once
            raise
    hold.close()
    held.close()
    return int(counter.value)
