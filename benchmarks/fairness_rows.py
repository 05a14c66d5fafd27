"""What one client may send within the limits that clients have by default: the rows of `benchmarks.fairness`.

A row is a generator of steps: messages, of which each that has a request is answered before the next step begins. Rows
of BROKERS are measured at a broker with these options, and those of PEERS by a link.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import zmq

from contrada import Box, GeoText, Line, Point, Predicate, Region, attr, parse
from contrada.broker.protocol.frames import decode, encode
from contrada.broker.protocol.messages import (
    Ack,
    Advertise,
    Error,
    Explain,
    Hello,
    Link,
    Message,
    NotificationId,
    Ping,
    Pong,
    Publish,
    Reply,
    Store,
    Subscribe,
    SubscribeDurable,
)
from contrada.broker.protocol.peer_frames import encode_peer
from contrada.broker.protocol.peer_messages import Change, Digest, Flow, Forward, LinkState, LinkStates, Run
from contrada.broker.protocol.wire import VERSION, Policy
from contrada.forwarding.codec.msgpack import encode_filter, encode_notification

if TYPE_CHECKING:
    from collections.abc import Iterator


class Raw:
    """A client that speaks frames, so that the client library is not what is measured."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.rcvhwm = 0
        self.socket.connect(url)
        self.request = 0
        self.latest = 0  # the number of the first notification of what was acknowledged last
        self.say(Hello(1, VERSION, "bench"))
        self.broker = self.hear().broker

    def say(self, message: Any) -> None:
        """Send a message of a client or of a neighbour."""
        self.socket.send_multipart(encode(message) if isinstance(message, Message) else encode_peer(message))

    def hear(self, seconds: float = 120.0) -> Any:
        """The next message."""
        if not self.socket.poll(seconds * 1000):
            raise TimeoutError("the broker does not answer")
        return decode(self.socket.recv_multipart())

    def await_answers(self, count: int) -> None:
        """Listen until so many requests are answered."""
        done = 0
        while done < count:
            message = self.hear()
            if isinstance(message, Ack):
                done += len(message.entries)
                self.latest = message.entries[-1].sequence
            elif isinstance(message, Reply):
                done += 1
            elif isinstance(message, Error):
                raise RuntimeError(message.reason)
            elif isinstance(message, Ping):
                self.say(Pong(message.nonce))

    def await_each(self, types: tuple[type, ...]) -> None:
        """Listen until a message of each type has come."""
        missing = set(types)
        while missing:
            message = self.hear()
            if isinstance(message, Error):
                raise RuntimeError(message.reason)
            if isinstance(message, Ping):
                self.say(Pong(message.nonce))
            missing.discard(type(message))

    def subscribe(self, *filters: Any) -> Subscribe:
        """The message that asks for filters."""
        self.request += 1
        encoded = tuple(encode_filter(each) for each in filters)
        return Subscribe(self.request, self.request, encoded, Policy.BLOCK, 10**6)

    def store(self, *notifications: Any, retain: str = "") -> Store:
        """The message that publishes durably."""
        self.request += 1
        return Store(self.request, tuple(encode_notification(each) for each in notifications), "", retain)

    def subscribe_durably(self, name: str, filter: Any, *, since: Any = None, credit: int = 10**6) -> SubscribeDurable:
        """The message that makes a durable subscription."""
        self.request += 1
        return SubscribeDurable(self.request, self.request, name, (encode_filter(filter),), "", credit, since)

    def publish(self, *notifications: Any) -> Publish:
        """The message that publishes."""
        self.request += 1
        return Publish(self.request, tuple(encode_notification(each) for each in notifications))


# -- what a client may send --------------------------------------------------------------------------------


def ring(rng: random.Random, vertices: int, *, star: bool = False, size: float = 10.0) -> Region:
    """A polygon around some place; a star's radius jumps from vertex to vertex."""
    x, y = rng.uniform(0, 100), rng.uniform(0, 100)
    points = []
    for number in range(vertices):
        angle = 2 * math.pi * number / vertices
        radius = size * (rng.uniform(0.3, 1.0) if star else 1.0 + 0.1 * math.sin(9 * angle) + 0.001 * rng.random())
        points.append((x + radius * math.cos(angle), y + radius * math.sin(angle)))
    return Region(points)


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
    yield []


def idle(client: Raw) -> Iterator[list[Any]]:
    """Nothing."""
    yield []


# -- shapes that are dear though small ---------------------------------------------------------------------


def diamonds(vertices: int, phase: float, size: float = 10.0) -> Line:
    """A spiral of four vertices to a turn: two of them do not touch, and the boxes of their edges all meet."""
    turns = [(size * (0.05 + (n + phase) / vertices), math.pi / 2 * n) for n in range(vertices)]
    return Line([(50 + r * round(math.cos(a)), 50 + r * round(math.sin(a))) for r, a in turns])


def ripple(rng: random.Random, vertices: int, size: float) -> Region:
    """A ring around one place whose radius hardly changes."""
    angles = [2 * math.pi * n / vertices for n in range(vertices)]
    radii = [size * (1 + 0.001 * rng.random()) for _ in angles]
    return Region([(50 + r * math.cos(a), 50 + r * math.sin(a)) for a, r in zip(angles, radii, strict=True)])


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
    again = Raw(client.url)
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


# -- links -------------------------------------------------------------------------------------------------


def change(client: Raw) -> Iterator[list[Any]]:
    """A neighbour wants 4,000 filters, 50 polygons of 10,000 vertices and 400 of 150."""
    rng = random.Random(14)
    small = tuple(encode_filter(attr("x") == n) for n in range(4000))
    large = tuple(encode_filter(attr("r").intersects(ring(rng, 10_000))) for _ in range(50))
    middle = tuple(encode_filter(attr("r").intersects(ring(rng, 150, size=1.0))) for _ in range(400))
    for filters in (small, large[:25], large[25:], middle):
        yield [Change(Flow.SUBSCRIPTIONS, filters, ())]


def digests(client: Raw) -> Iterator[list[Any]]:
    """A neighbour sends a thousand digests, none of which is right."""
    yield [Change(Flow.SUBSCRIPTIONS, tuple(encode_filter(attr("x") == n) for n in range(4000)), ())]
    yield [Digest(Flow.SUBSCRIPTIONS, tuple(range(k, k + 64))) for k in range(1000)]


def link_states(client: Raw) -> Iterator[list[Any]]:
    """A neighbour tells of a thousand brokers, and of each a hundred times."""
    names = [f"b{n}" for n in range(1000)]
    for sequence in range(1, 101):
        states = [LinkState(name, sequence, frozenset(names[n - 2 : n])) for n, name in enumerate(names)]
        yield [LinkStates(tuple(states[n : n + 100])) for n in range(0, 1000, 100)]


def forwarded(client: Raw) -> Iterator[list[Any]]:
    """A neighbour forwards what is dear: 40 regions of 15 KB for 400 such filters of its own client."""
    rng = random.Random(15)
    own = Raw(client.url)
    for _ in range(4):
        own.say(own.subscribe(*(attr("p").covered_by(ripple(rng, 900, 10.0)) for _ in range(100))))
        own.await_answers(1)
    bodies = tuple(encode_notification({"p": ripple(rng, 900, 10.0)}) for _ in range(40))
    yield [Forward((Run("far", "p", 1, tuple(range(1, 41)), bodies),))]


def advertised(client: Raw) -> Iterator[list[Any]]:
    """2,000 advertisements, each of a polygon."""
    rng = random.Random(16)
    for start in range(0, 2000, 200):
        yield [
            Advertise(n + 1, n + 1, (encode_filter(attr("r").intersects(ring(rng, 150, size=1.0))),))
            for n in range(start, start + 200)
        ]


ROWS = {
    each.__name__: each
    for each in (
        idle, contains, polygons, districts, stars, large_star, geotexts, many_small, leaves,
        distances, small_distances, earth, earth_points, lines, small_shapes, sets, patterns, shaped_texts, payloads,
        explained, stored, stored_small, queued, retained, retained_shapes, replayed, replayed_shapes,
        change, digests, link_states, forwarded, advertised,
    )
}  # fmt: skip
_ON_DISK = ("stored", "stored_small", "queued", "retained", "retained_shapes", "replayed", "replayed_shapes")
BROKERS: dict[str, dict[str, Any]] = {
    "earth": {"crs": "lonlat"},
    "earth_points": {"crs": "lonlat"},
    "advertised": {"advertisements": True},
    **{name: {"data": ...} for name in _ON_DISK},  # a directory that is made for it
}
PEERS = frozenset(("change", "digests", "link_states", "forwarded"))


def peer(url: str) -> Raw:
    """A client that has become a neighbour."""
    client = Raw(url)
    client.say(Link("far", False, 1))
    return client
