"""Plays the scenario against a broker with the public client, and keeps the picture that the views draw.

Two clients take part: a weather service that publishes, and an emergency management office that holds everybody's
subscriptions. At the end every delivery is checked: each published notification is evaluated against each filter by
itself, without index or broker, and must have reached exactly those whose filter it satisfies.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, cast

from contrada.client.async_client import connect
from contrada.client.demo import scenario
from contrada.spatial.relations.relate import relate

if TYPE_CHECKING:
    from collections.abc import Callable

    from contrada.client.async_client import AsyncClient
    from contrada.client.demo.scenario import StormState, Subscriber
    from contrada.client.notification import Notification
    from contrada.client.subscriptions import AsyncSubscription
    from contrada.spatial.geometry.region import Region

STEP = 0.125  # seconds between reports of each storm
GAUGES_PER_STEP = 100
POSTS_PER_STEP = 4
_GLOW = 1.5  # seconds that a county stays coloured after a warning


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the story. `kind`: storm, warned, not-warned, post, rain."""

    at: float
    kind: str
    who: str
    why: str


@dataclass
class Picture:
    """Everything a view shows."""

    counties: list[scenario.County]
    seconds: float
    elapsed: float = 0.0
    storms: list[StormState] = field(default_factory=list)
    published: Counter[str] = field(default_factory=Counter)
    delivered: Counter[str] = field(default_factory=Counter)
    subscriptions: int = 0
    story: deque[Line] = field(default_factory=lambda: deque(maxlen=200))
    reached: dict[str, set[str]] = field(default_factory=dict)  # storm: names of those warned
    strongest: dict[str, float] = field(default_factory=dict)
    warned_at: dict[tuple[int, str], float] = field(default_factory=dict)  # (county, who): when
    rates: dict[str, float] = field(default_factory=dict)  # the broker's own
    broker: str = ""
    playing: float = 0.0  # seconds that publishing took
    wrong: int | None = None  # deliveries that differ from the evaluation; None: not checked yet

    def warned(self) -> dict[int, int]:
        """Return how many in each county were warned just now."""
        return Counter(county for (county, _), at in self.warned_at.items() if self.elapsed - at <= _GLOW)


class Show:
    """One run of the demo."""

    def __init__(
        self, url: str, seconds: float, seed: int = scenario.SEED, tell: Callable[[Line], None] | None = None
    ) -> None:
        self._url = url
        self._rng = Random(seed)
        self._tell = tell
        counties = scenario.load_counties()
        self._index = {county.name: i for i, county in enumerate(counties)}
        self.picture = Picture(counties, seconds)
        self._subscribers = [
            subscriber
            for invent in (scenario.facilities, scenario.rivers, scenario.desks)
            for subscriber in invent(counties, self._rng)
        ]
        self._sent: list[dict[str, Any]] = []
        self._received: Counter[str] = Counter()
        self._subscriptions: dict[str, AsyncSubscription] = {}
        self._last_storm: Notification | None = None
        self._began = 0.0

    async def play(self) -> Picture:
        """Connect, subscribe, let it happen, check."""
        picture = self.picture
        async with (
            connect(self._url, name="weather service") as weather,
            connect(self._url, name="emergency office") as office,
        ):
            picture.broker = weather.broker
            await self._subscribe(office)
            await weather.publish({"rehearsal": True})  # the first match loads the broker's compiled kernels
            self._began = time.monotonic()
            async with asyncio.TaskGroup() as group:
                listeners = [group.create_task(self._listen(s)) for s in self._subscribers]
                asker = group.create_task(self._ask(office))
                await self._publish(weather)
                asker.cancel()
                expected = self._expected()
                await self._await_deliveries(expected)
                for listener in listeners:
                    listener.cancel()
        names = expected.keys() | self._received.keys()
        picture.wrong = sum(abs(expected[name] - self._received[name]) for name in names)
        return picture

    async def _subscribe(self, office: AsyncClient) -> None:
        for subscriber in self._subscribers:
            self._subscriptions[subscriber.name] = await office.subscribe(subscriber.filter, policy="block")
        self.picture.subscriptions = len(self._subscriptions)

    async def _publish(self, weather: AsyncClient) -> None:
        picture = self.picture
        step = 0
        while picture.elapsed < picture.seconds:
            now = picture.elapsed / picture.seconds
            picture.storms = [state for storm in scenario.STORMS if (state := storm.at(now)) is not None]
            for state in picture.storms:
                await self._announce(weather, state)
            for _ in range(POSTS_PER_STEP):
                await self._send(weather, "posts", scenario.post(picture.counties, picture.storms, self._rng))
            for _ in range(GAUGES_PER_STEP):
                gauge = scenario.gauge(picture.counties, picture.storms, self._rng)
                await self._send(weather, "gauges", gauge)
            step += 1
            await asyncio.sleep(max(0.0, self._began + step * STEP - time.monotonic()))
            picture.elapsed = time.monotonic() - self._began
        await weather.flush()
        picture.playing = time.monotonic() - self._began

    async def _announce(self, weather: AsyncClient, state: StormState) -> None:
        picture = self.picture
        if state.name not in picture.reached:
            picture.reached[state.name] = set()
            self._say("storm", state.name, f"appears with {state.wind:.0f} km/h")
        picture.strongest[state.name] = max(state.wind, picture.strongest.get(state.name, 0.0))
        await self._send(weather, "storms", state.notification())

    async def _send(self, weather: AsyncClient, kind: str, notification: dict[str, Any]) -> None:
        await weather.publish(notification, ack=False)
        self._sent.append(notification)
        self.picture.published[kind] += 1

    async def _listen(self, subscriber: Subscriber) -> None:
        async for n in self._subscriptions[subscriber.name]:
            self._received[subscriber.name] += 1
            self._note(subscriber, n)

    def _note(self, subscriber: Subscriber, n: Notification) -> None:
        picture = self.picture
        county = self._index[subscriber.county.name]
        if "storm" in n:
            picture.delivered["storms"] += 1
            self._last_storm = n
            picture.warned_at[county, subscriber.name] = picture.elapsed
            reached = picture.reached.setdefault(n["storm"], set())
            if subscriber.name not in reached:
                reached.add(subscriber.name)
                self._say("warned", subscriber.name, why(subscriber, n))
        elif "post" in n:
            picture.delivered["posts"] += 1
            self._say("post", subscriber.name, f"“{n['text']}”")
        else:
            picture.delivered["gauges"] += 1
            picture.warned_at[county, subscriber.name] = picture.elapsed
            if picture.delivered["gauges"] % 20 == 1:
                at = f"{n['gauge'].x:.2f} {n['gauge'].y:.2f}"
                self._say("rain", subscriber.name, f"{n['rain']:g} mm/h at {at}, inside {subscriber.county.name}")

    async def _ask(self, office: AsyncClient) -> None:
        """Every now and then ask the broker itself: its rates, and why somebody was not warned."""
        while True:
            await asyncio.sleep(1.0)
            status = await office.status()
            self.picture.rates = {k: float(v) for k, v in status.get("rates", {}).items()}
            n = self._last_storm
            if n is None:
                continue
            spared = [s for s in self._subscribers if s.kind not in ("desk", "river") and not s.filter.matches(n)]
            near = min(spared, key=lambda s: _distance(s, n), default=None)
            if near is None:
                continue
            document = await office.explain(n.id, self._subscriptions[near.name])
            if document.get("fate") == "no-match":
                self._say("not-warned", near.name, why_not(near, n, document))

    def _say(self, kind: str, who: str, text: str) -> None:
        line = Line(self.picture.elapsed, kind, who, text)
        self.picture.story.append(line)
        if self._tell is not None:
            self._tell(line)

    def _expected(self) -> Counter[str]:
        """Evaluate every filter on everything published, one by one."""
        expected: Counter[str] = Counter()
        for notification in self._sent:
            for subscriber in self._subscribers:
                if subscriber.filter.matches(notification):
                    expected[subscriber.name] += 1
        return expected

    async def _await_deliveries(self, expected: Counter[str]) -> None:
        """Wait for the last deliveries to arrive."""
        deadline = time.monotonic() + 5.0
        while self._received != expected and time.monotonic() < deadline:
            await asyncio.sleep(0.02)


def why(subscriber: Subscriber, n: Notification) -> str:
    """Say why a storm reached a facility: each constraint with what it found."""
    limit = _limit(subscriber)
    relation = relate(n["area"], subscriber.county.region).value
    return f"{n['storm']} {relation} it, wind {n['wind']:g} > {limit:g}"


def why_not(subscriber: Subscriber, n: Notification, document: dict[str, Any]) -> str:
    """Put the broker's explanation in short words: the constraints that did not hold."""
    relation = relate(n["area"], subscriber.county.region).value
    words = {"area": f"{n['storm']} is {relation}", "wind": f"wind {n['wind']:g} is not > {_limit(subscriber):g}"}
    verdicts = [verdict for each in document.get("filters", []) for verdict in each.get("verdicts", [])]
    failed = [str(verdict["constraint"]).split(" ", 1)[0] for verdict in verdicts if not verdict["held"]]
    return " and ".join(words[name] for name in failed if name in words) or str(document.get("why", ""))


def _limit(subscriber: Subscriber) -> float:
    (limit,) = (c.value for each in subscriber.filter.filters for c in each if c.name == "wind")
    return cast("float", limit)


def _distance(subscriber: Subscriber, n: Notification) -> float:
    x1, y1, x2, y2 = subscriber.county.region.bounds
    area: Region = n["area"]
    a1, b1, a2, b2 = area.bounds
    return abs(x1 + x2 - a1 - a2) + abs(y1 + y2 - b1 - b2)
