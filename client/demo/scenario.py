"""What happens in the demo, as pure functions of a seed and of time: counties, facilities, storms, posts, gauges.

Counties are real (`florida.json`: U.S. Census Bureau). Facilities, storms and posts are invented. A facility subscribes
to storms that touch its county with more wind than it bears; a desk to posts with certain words from its county; a
river authority to rain measured inside its county. Everything is drawn from one seeded generator, so that a run can be
repeated and its outcome checked.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from contrada.forwarding.language.attr import attr
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Region
from contrada.spatial.textual.geotext import GeoText

if TYPE_CHECKING:
    from random import Random

    from contrada.forwarding.language.filter import Filter, Predicate

SEED = 2026
_VERTICES = 32
_FACILITIES = (("school", 75), ("bridge", 90), ("airport", 105), ("hospital", 120), ("power plant", 140))
_DESK_WORDS = (("flooding",), ("power", "out"), ("help",), ("road", "closed"))
_CHATTER = (
    "Flooding on Main Street, water up to the doors",
    "Power is out in the whole block",
    "Help needed, tree on the roof",
    "Road closed at the bridge, take the detour",
    "Long queue for petrol but everybody is calm",
    "Calm before the storm, beautiful sunset",
    "Shelter at the high school still has room",
    "Flooding and power out, please send help",
)


@dataclass(frozen=True, slots=True)
class County:
    """A county and its outline, in degrees."""

    name: str
    region: Region


@dataclass(frozen=True, slots=True)
class Subscriber:
    """Somebody with a filter."""

    name: str
    kind: str  # of facility, or "desk", or "river"
    county: County
    filter: Filter | Predicate


@dataclass(frozen=True, slots=True)
class Storm:
    """A storm that comes, grows, crosses and fades. Times are fractions of the demo."""

    name: str
    starts: float
    ends: float
    track: tuple[tuple[float, float], tuple[float, float], tuple[float, float]]  # a quadratic curve, lon and lat
    strongest: float  # km/h
    widest: float  # degrees of latitude

    def at(self, time: float) -> StormState | None:
        """Return where it is and how strong; None before and after its life."""
        if not self.starts <= time <= self.ends:
            return None
        age = (time - self.starts) / (self.ends - self.starts)
        (x0, y0), (x1, y1), (x2, y2) = self.track
        a, b, c = (1 - age) ** 2, 2 * age * (1 - age), age**2
        might = math.sin(math.pi * min(1.0, 0.12 + 0.88 * age)) ** 0.7 if age < 1 else 0.0
        radius = self.widest * (0.35 + 0.65 * math.sin(math.pi * (0.1 + 0.75 * age)))
        return StormState(
            self.name,
            a * x0 + b * x1 + c * x2,
            a * y0 + b * y1 + c * y2,
            radius,
            60 + (self.strongest - 60) * might,
            age,
        )


@dataclass(frozen=True, slots=True)
class StormState:
    """A storm at one time."""

    name: str
    x: float
    y: float
    radius: float
    wind: float
    age: float

    def reach(self, angle: float) -> float:
        """Return how far it reaches in one direction: three arms that turn as it ages."""
        turn = 9.0 * self.age
        return self.radius * (1 + 0.17 * math.sin(3 * angle - turn) + 0.08 * math.sin(5 * angle + 2 * turn))

    def covers(self, x: float, y: float) -> bool:
        """Tell whether a place lies in it (for drawing; matching is the broker's)."""
        dx, dy = (x - self.x) * math.cos(math.radians(self.y)), y - self.y
        return math.hypot(dx, dy) <= self.reach(math.atan2(dy, dx))

    @property
    def area(self) -> Region:
        """The storm's outline: a star-shaped polygon, so never a crossing one."""
        stretch = 1 / math.cos(math.radians(self.y))
        angles = [2 * math.pi * i / _VERTICES for i in range(_VERTICES)]
        return Region(
            [
                (
                    round(self.x + stretch * self.reach(angle) * math.cos(angle), 4),
                    round(self.y + self.reach(angle) * math.sin(angle), 4),
                )
                for angle in angles
            ]
        )

    @property
    def category(self) -> int:
        """Saffir-Simpson: 0 is a tropical storm."""
        return sum(self.wind >= limit for limit in (119, 154, 178, 209, 252))

    def notification(self) -> dict[str, Any]:
        """Return what is published of it."""
        return {"storm": self.name, "wind": round(self.wind), "category": self.category, "area": self.area}


STORMS = (
    Storm("Ines", 0.00, 0.80, ((-78.9, 23.9), (-81.2, 26.3), (-84.6, 31.6)), 168, 0.95),
    Storm("Teo", 0.22, 0.95, ((-88.3, 28.2), (-84.6, 29.2), (-79.7, 30.6)), 138, 0.80),
    Storm("Ada", 0.45, 1.00, ((-83.6, 23.8), (-82.3, 26.9), (-80.9, 29.4)), 195, 0.60),
)


def load_counties() -> list[County]:
    """Read the counties that come with the package."""
    text = resources.files("contrada.client.demo").joinpath("florida.json").read_text()
    return [County(item["name"], Region(item["ring"])) for item in json.loads(text)["counties"]]


def facilities(counties: list[County], rng: Random) -> list[Subscriber]:
    """Invent two facilities of different kinds for each county."""
    found = []
    for county in counties:
        for kind, base in rng.sample(_FACILITIES, 2):
            bears = base + rng.randint(-8, 8)
            asks = attr("area").intersects(county.region) & (attr("wind") > bears)
            found.append(Subscriber(f"{county.name} {kind}", kind, county, asks))
    return found


def rivers(counties: list[County], rng: Random) -> list[Subscriber]:
    """Invent a river authority for some counties."""
    return [
        Subscriber(
            f"{county.name} river authority",
            "river",
            county,
            attr("gauge").inside(county.region) & (attr("rain") > rng.randint(70, 80)),
        )
        for county in rng.sample(counties, 25)
    ]


def desks(counties: list[County], rng: Random) -> list[Subscriber]:
    """Invent a desk that reads posts for some counties."""
    return [
        Subscriber(
            f"{county.name} desk", "desk", county, attr("post").matches(rng.choice(_DESK_WORDS), within=county.region)
        )
        for county in rng.sample(counties, 40)
    ]


def post(counties: list[County], storms: list[StormState], rng: Random) -> dict[str, Any]:
    """Invent a post from somewhere; more often from where a storm is."""
    x, y = _somewhere(counties, rng)
    if storms and rng.random() < 0.7:
        storm = rng.choice(storms)
        x, y = storm.x + rng.gauss(0, storm.radius), storm.y + rng.gauss(0, storm.radius)
    text = rng.choice(_CHATTER)
    return {"post": GeoText(text, at=(round(x, 4), round(y, 4))), "text": text}


def gauge(counties: list[County], storms: list[StormState], rng: Random) -> dict[str, Any]:
    """Read a rain gauge somewhere; it rains where a storm is."""
    x, y = _somewhere(counties, rng)
    wet = any(storm.covers(x, y) for storm in storms)
    rain = min(100.0, rng.gammavariate(6, 11)) if wet else rng.expovariate(0.2)
    return {"gauge": Point(round(x, 4), round(y, 4)), "rain": round(rain, 1)}


def _somewhere(counties: list[County], rng: Random) -> tuple[float, float]:
    x1, y1, x2, y2 = rng.choice(counties).region.bounds
    return rng.uniform(x1, x2), rng.uniform(y1, y2)
