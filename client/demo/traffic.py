"""Endless traffic for the live map: storms, vehicles and posts over Florida, and those who subscribe to them.

Storms and posts are the demo's (`scenario`); vehicles drive from county to county. Unlike the demo it never ends and
checks nothing: it is for looking.
"""

from __future__ import annotations

import asyncio
import math
import time
from random import Random
from typing import TYPE_CHECKING, Any, Final

from contrada.client.async_client import connect
from contrada.client.demo import scenario
from contrada.forwarding.language.attr import attr
from contrada.spatial.geometry.point import Point

if TYPE_CHECKING:
    from contrada.client.demo.scenario import County

STEP: Final = 0.25  # seconds between reports
SEASON: Final = 60.0  # seconds in which all storms of the demo pass
VEHICLES: Final = 60
_POSTS: Final = 3  # at each step
_SPEED: Final = 0.12  # degrees at each step, at most


class Vehicle:
    """Drives to one county after another."""

    def __init__(self, number: int, counties: list[County], rng: Random) -> None:
        self._number = number
        self._counties = counties
        self._rng = rng
        self._x, self._y = self._somewhere()
        self._goal = self._somewhere()

    def _somewhere(self) -> tuple[float, float]:
        x1, y1, x2, y2 = self._rng.choice(self._counties).region.bounds
        return self._rng.uniform(x1, x2), self._rng.uniform(y1, y2)

    def drive(self) -> dict[str, Any]:
        """Go a step, and report."""
        dx, dy = self._goal[0] - self._x, self._goal[1] - self._y
        distance = math.hypot(dx, dy)
        step = min(distance, _SPEED * self._rng.uniform(0.1, 1.0))
        if distance < _SPEED:
            self._goal = self._somewhere()
        else:
            self._x += dx / distance * step
            self._y += dy / distance * step
        place = Point(round(self._x, 4), round(self._y, 4))
        return {"vehicle": f"truck {self._number}", "position": place, "speed": round(step / _SPEED * 110)}


def subscribers(counties: list[County], rng: Random) -> dict[str, list[Any]]:
    """Who wants what, by the name of the client."""
    dispatch = [attr("position").inside(county.region) & (attr("speed") > 80) for county in rng.sample(counties, 20)]
    return {
        "facilities": [each.filter for each in scenario.facilities(counties, rng)],
        "desks": [each.filter for each in scenario.desks(counties, rng)],
        "dispatch": dispatch,
    }


async def play(url: str, stop: asyncio.Event, seed: int = scenario.SEED) -> None:
    """Publish, and receive, until told to stop."""
    rng = Random(seed)
    counties = scenario.load_counties()
    wanted = subscribers(counties, rng)
    vehicles = [Vehicle(number, counties, rng) for number in range(1, VEHICLES + 1)]
    async with asyncio.TaskGroup() as group:
        listening = [group.create_task(_listen(url, name, filters)) for name, filters in wanted.items()]
        async with connect(url, name="weather and traffic") as publisher:
            began = time.monotonic()
            step = 0
            while not stop.is_set():
                now = (time.monotonic() - began) % SEASON / SEASON
                storms = [state for storm in scenario.STORMS if (state := storm.at(now)) is not None]
                batch = [state.notification() for state in storms]
                batch += [vehicle.drive() for vehicle in vehicles]
                batch += [scenario.post(counties, storms, rng) for _ in range(_POSTS)]
                await publisher.publish_many(batch)
                step += 1
                pause = max(0.0, began + step * STEP - time.monotonic())
                waiting = asyncio.ensure_future(stop.wait())
                await asyncio.wait([waiting], timeout=pause)
                waiting.cancel()
        for task in listening:
            task.cancel()


async def _listen(url: str, name: str, filters: list[Any]) -> None:
    """A client that takes whatever comes."""
    async with connect(url, name=name) as client:

        async def take(subscription: Any) -> None:
            async for _ in subscription:
                pass

        async with asyncio.TaskGroup() as group:
            for each in filters:
                group.create_task(take(await client.subscribe(each)))
