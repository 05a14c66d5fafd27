"""What one client may send within the limits that clients have by default: the rows of `benchmarks.fairness`.

A row is a generator of steps: messages, of which each that has a request is answered before the next step begins, or
functions, which are called. Rows of PEERS are measured by a link.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from benchmarks.fairness_links import advertised, change, digests, forwarded, link_states, malformed, short_sessions
from benchmarks.fairness_shapes import diamonds, ring, ripple
from contrada import Box, GeoText, Point, Predicate, RoadNetwork, attr, parse
from contrada.broker.protocol.messages import (
    Bye,
    Explain,
    Link,
    NotificationId,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.fairness_client import Raw


# -- what a client may send --------------------------------------------------------------------------------


def contains(client: Raw) -> Iterator[list[Any]]:
    """64 `contains` that resemble "aaa…", one notification of 1 MB of "a"."""
    yield [client.subscribe(attr("t").contains("a" * (190 + n) + "b")) for n in range(64)]
    yield [client.publish({"t": "a" * 1_000_000})]


def polygons(client: Raw) -> Iterator[list[Any]]:
    """One SUBSCRIBE of 50 polygons of 10,000 vertices."""
    rng = random.Random(1)
    yield [client.subscribe(*(attr("r").intersects(ring(rng, 10_000)) for _ in range(50)))]


def districts(client: Raw) -> Iterator[list[Any]]:
    """One predicate of 1,000 polygons of 150 vertices."""
    rng = random.Random(2)
    yield [client.subscribe(Predicate([attr("r").intersects(ring(rng, 150, size=1.0)) for _ in range(1000)]))]


def stars(client: Raw) -> Iterator[list[Any]]:
    """40 star polygons of 10,000 vertices against 400 such filters."""
    rng = random.Random(3)
    for _ in range(10):
        yield [client.subscribe(*(attr("r").intersects(ring(rng, 10_000, star=True)) for _ in range(40)))]
    yield [client.publish(*({"r": ring(rng, 10_000, star=True)} for _ in range(40)))]


def large_star(client: Raw) -> Iterator[list[Any]]:
    """One star polygon of 10,000 vertices that lies over all of 400 such filters."""
    rng = random.Random(5)
    for _ in range(10):
        yield [client.subscribe(*(attr("r").intersects(ring(rng, 10_000, star=True)) for _ in range(40)))]
    yield [client.publish({"r": ring(rng, 10_000, star=True, size=60.0)})]


def geotexts(client: Raw) -> Iterator[list[Any]]:
    """100 geotexts of 4,096 keywords against 100 filters of keywords."""
    rng = random.Random(4)
    words = [f"word{n}" for n in range(20_000)]
    box = Box(0, 0, 100, 100)
    yield [client.subscribe(attr("g").matches(rng.sample(words, 5), within=box)) for _ in range(100)]
    texts = [GeoText(" ".join(rng.sample(words, 4096)), at=(50, 50)) for _ in range(100)]
    yield [client.publish(*({"g": each} for each in texts))]


def many_small(client: Raw) -> Iterator[list[Any]]:
    """4,000 small notifications at once that half of 1,000 subscriptions want."""
    yield [client.subscribe(attr("x") > n) for n in range(0, 4000, 4)]
    yield [client.publish(*({"x": n * 100 + each} for each in range(100))) for n in range(40)]


def leaves(client: Raw) -> Iterator[list[Any]]:
    """A client with 10,000 subscriptions leaves."""
    for start in range(0, 10_000, 1000):
        yield [client.subscribe(attr("x") == start + n) for n in range(1000)]
    yield [Bye()]


def idle(client: Raw) -> Iterator[list[Any]]:
    """Nothing."""
    yield []


# -- shapes that are dear though small ---------------------------------------------------------------------


def distances(client: Raw) -> Iterator[list[Any]]:
    """100 distances from lines of 4,500 vertices, 40 lines of 900 vertices that come close to all of them."""
    for start in range(0, 100, 20):
        near = (attr("p").within(1e-9 * (n + 1), of=diamonds(4500, 0.3)) for n in range(start, start + 20))
        yield [client.subscribe(*near)]
    yield [client.publish(*({"p": diamonds(900, 0.001 * n)} for n in range(40)))]


def small_distances(client: Raw) -> Iterator[list[Any]]:
    """10,000 distances from lines of 20 vertices, 100 lines of as many."""
    for start in range(0, 10_000, 500):
        near = (attr("p").within(1e-9 * (n + 1), of=diamonds(20, 0.3)) for n in range(start, start + 500))
        yield [client.subscribe(*near)]
    yield [client.publish(*({"p": diamonds(20, 0.001 * n)} for n in range(100)))]


def earth(client: Raw) -> Iterator[list[Any]]:
    """100 distances in metres from lines of 450 vertices, 20 lines of 450 vertices; longitudes and latitudes."""
    for start in range(0, 100, 20):
        near = (parse(f"p within {n + 1} m of {diamonds(450, 0.3, 30.0).wkt}") for n in range(start, start + 20))
        yield [client.subscribe(*near)]
    yield [client.publish(*({"p": diamonds(450, 0.001 * n, 30.0)} for n in range(20)))]


def earth_points(client: Raw) -> Iterator[list[Any]]:
    """5,000 circles around a place, 1,000 points; longitudes and latitudes."""
    rng = random.Random(6)
    for start in range(0, 5000, 1000):
        near = (parse(f"p within {n + 1} km of POINT(50 50)") for n in range(start, start + 1000))
        yield [client.subscribe(*near)]
    places = ({"p": Point(50 + rng.uniform(-9, 9), 50 + rng.uniform(-9, 9))} for _ in range(1000))
    yield [client.publish(*places)]


def lines(client: Raw) -> Iterator[list[Any]]:
    """400 regions of 900 vertices, 40 lines of 900 vertices that wind through them."""
    rng = random.Random(7)
    for start in range(0, 400, 100):
        yield [client.subscribe(*(attr("p").inside(ripple(rng, 900, 11.0)) for _ in range(start, start + 100)))]
    yield [client.publish(*({"p": diamonds(900, 0.001 * n)} for n in range(40)))]


def small_shapes(client: Raw) -> Iterator[list[Any]]:
    """800 regions of 15 KB, 60 such regions that lie close along all of them."""
    rng = random.Random(8)
    for _ in range(8):
        yield [client.subscribe(*(attr("p").covered_by(ripple(rng, 900, 10.0)) for _ in range(100)))]
    yield [client.publish(*({"p": ripple(rng, 900, 10.0)} for _ in range(60)))]


def sets(client: Raw) -> Iterator[list[Any]]:
    """2,000 filters that want any of 200 members, 100 sets of 500 members."""
    for start in range(0, 2000, 250):
        wanted = (attr("s").has_any([f"m{(n + k) % 500}" for k in range(200)]) for n in range(start, start + 250))
        yield [client.subscribe(*wanted)]
    yield [client.publish(*({"s": {f"m{k}" for k in range(500)}} for _ in range(100)))]


def patterns(client: Raw) -> Iterator[list[Any]]:
    """10,000 `like` that a text of 4,000 bytes takes to its end, 100 such texts."""
    rng = random.Random(9)
    for _ in range(20):
        wanted = ["%" + "_".join(rng.choice("ab") for _ in range(25)) + "%" for _ in range(500)]
        yield [client.subscribe(*(attr("s").like(each) for each in wanted))]
    yield [client.publish(*({"s": "ab" * 2000} for _ in range(100)))]


def shaped_texts(client: Raw) -> Iterator[list[Any]]:
    """5,000 filters of a keyword within a polygon, 50 texts with all of the keywords."""
    rng = random.Random(10)
    words = [f"word{n}" for n in range(40)]
    for _ in range(10):
        wanted = (attr("g").matches([rng.choice(words)], within=ripple(rng, 40, 10.0)) for _ in range(500))
        yield [client.subscribe(*wanted)]
    yield [client.publish(*({"g": GeoText(" ".join(words), at=(50, 50))} for _ in range(50)))]


def similar(client: Raw) -> Iterator[list[Any]]:
    """500 `similar` at one end of 90,000 junctions, 100 geotexts at the other."""
    words = [f"word{n}" for n in range(500)]
    wanted = (attr("g").similar([word], at=(n % 9, 0), alpha=0.01, tau=0.9) for n, word in enumerate(words))
    yield [client.subscribe(each) for each in wanted]
    texts = (GeoText(" ".join(words[n : n + 5]), at=(_SIDE - 1, _SIDE - 1)) for n in range(100))
    yield [client.publish(*({"g": each} for each in texts))]


_SIDE = 300  # junctions


def roads() -> RoadNetwork:
    """A square of roads between all neighbours."""
    places = [(float(x), float(y)) for x in range(_SIDE) for y in range(_SIDE)]
    across = [(n, n + _SIDE) for n in range(_SIDE * (_SIDE - 1))]
    along = [(n, n + 1) for n in range(_SIDE * _SIDE) if (n + 1) % _SIDE]
    return RoadNetwork(places, across + along, d_max=4.0 * _SIDE)


def payloads(client: Raw) -> Iterator[list[Any]]:
    """Texts of 1 MB that 100 subscriptions want."""
    yield [client.subscribe(attr("t").exists()) for _ in range(100)]
    for _ in range(3):
        yield [client.publish({"t": "x" * 1_000_000}) for _ in range(8)]


def explained(client: Raw) -> Iterator[list[Any]]:
    """Why 100 regions of 10,000 vertices did not match another."""
    rng = random.Random(11)
    for _ in range(5):
        yield [client.subscribe(*(attr("p").inside(ripple(rng, 10_000, 10.0)) for _ in range(20)))]
    yield [client.publish({"p": ripple(rng, 10_000, 10.0)})]
    id = NotificationId(client.broker, client.latest)
    yield [Explain(900 + n, id, 0, n + 1) for n in range(5)]


# -- what is kept on disk ----------------------------------------------------------------------------------


def stored(client: Raw) -> Iterator[list[Any]]:
    """20 MB published durably, which five durable subscriptions want."""
    yield [client.subscribe_durably(f"d{n}", attr("x") >= 0, credit=0) for n in range(5)]
    for _ in range(4):
        yield [client.store(*({"x": n, "t": "x" * 1000} for n in range(500))) for _ in range(10)]


def stored_small(client: Raw) -> Iterator[list[Any]]:
    """40,000 small notifications published durably, for 50 durable subscriptions."""
    yield [client.subscribe_durably(f"d{n}", attr("x") >= 0, credit=0) for n in range(50)]
    for _ in range(5):
        yield [client.store(*({"x": n} for n in range(1000))) for _ in range(8)]


def queued(client: Raw) -> Iterator[list[Any]]:
    """Somebody comes back to 40,000 notifications that wait on disk."""
    yield [client.subscribe_durably("desk", attr("x") >= 0, credit=0)]
    for _ in range(5):
        yield [client.store(*({"x": n, "t": "x" * 200} for n in range(1000))) for _ in range(8)]
    again = client.another()
    again.say(again.subscribe_durably("desk", attr("x") >= 0))
    yield []
    yield []


def retained(client: Raw) -> Iterator[list[Any]]:
    """20,000 last values for 20 new subscriptions."""
    for start in range(0, 20_000, 1000):
        yield [client.store({"x": n, "p": Point(n % 100, n % 97)}, retain=f"k{n}") for n in range(start, start + 1000)]
    yield [client.subscribe(attr("x") >= 0) for _ in range(20)]


def retained_shapes(client: Raw) -> Iterator[list[Any]]:
    """300 last values of 15 KB each for a new subscription of 100 regions."""
    rng = random.Random(12)
    for start in range(0, 300, 50):
        yield [client.store({"p": ripple(rng, 900, 10.0)}, retain=f"k{n}") for n in range(start, start + 50)]
    yield [client.subscribe(*(attr("p").covered_by(ripple(rng, 900, 10.0)) for _ in range(100)))]


def replayed(client: Raw) -> Iterator[list[Any]]:
    """Five new durable subscriptions get all of 40,000 notifications of the past."""
    for _ in range(5):
        yield [client.store(*({"x": n, "t": "x" * 200} for n in range(1000))) for _ in range(8)]
    yield [client.subscribe_durably(f"d{n}", attr("x") >= 0, since="all", credit=0) for n in range(5)]


def replayed_shapes(client: Raw) -> Iterator[list[Any]]:
    """A new durable subscription of 100 regions looks at 300 of the past, 15 KB each."""
    rng = random.Random(13)
    for _ in range(6):
        yield [client.store(*({"p": ripple(rng, 900, 10.0)} for _ in range(50)))]
    wanted = Predicate([attr("p").covered_by(ripple(rng, 900, 10.0)) for _ in range(100)])
    yield [client.subscribe_durably("d", wanted, since="all", credit=0)]


ROWS = {
    each.__name__: each
    for each in (
        idle, contains, polygons, districts, stars, large_star, geotexts, many_small, leaves,
        distances, small_distances, earth, earth_points, lines, small_shapes, sets, patterns, shaped_texts, payloads,
        explained, similar, malformed, short_sessions,
        stored, stored_small, queued, retained, retained_shapes, replayed, replayed_shapes,
        change, digests, link_states, forwarded, advertised,
    )
}  # fmt: skip
_ON_DISK = ("stored", "stored_small", "queued", "retained", "retained_shapes", "replayed", "replayed_shapes")
_IN_DEGREES = ("earth", "earth_points")
PEERS = frozenset(("change", "digests", "link_states", "forwarded"))
UNANSWERED = PEERS | {"leaves", "queued", "malformed", "short_sessions"}  # the broker does not say when it is done


def broker_options(name: str, own: Path, shared: Path) -> dict[str, Any]:
    """The options of a row's broker: a directory is the run's own, and one is shared by all runs."""
    if name in _IN_DEGREES:
        return {"crs": "lonlat"}
    if name in _ON_DISK:
        return {"data": str(own / "data")}
    if name == "advertised":
        return {"advertisements": True}
    if name == "similar":
        if not (file := shared / "roads").exists():
            roads().save(file)
        return {"roads": str(file)}
    return {}


def become_peer(client: Raw) -> None:
    """Make a client a neighbour."""
    client.say(Link("far", False, 1))
