"""Subscriptions that end at the gateway: one `Stream` for each, whoever listens to it and by which protocol.

All streams share one session at the broker, so that a notification for a thousand of them comes once. Each has credit
and a queue of its own: who is slow does not take, gets no credit, and loses by its policy at the broker. The gateway
keeps no more for it than its window.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from contrada.broker.protocol.wire import Policy
from contrada.client.gateway.problems import Problem
from contrada.client.gateway.streaming.resuming import SEARCH, Resuming
from contrada.client.gateway.streaming.views import View, Viewer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contrada.client.notification import Notification
    from contrada.client.subscriptions import AsyncSubscription

BATCH: Final = 256
DEFAULT_WINDOW: Final = 1000
_NAME: Final = 100  # characters of the name of a durable subscription


class Wish(NamedTuple):
    """What a subscriber asks for."""

    filter: str
    policy: Policy = Policy.DROP_OLDEST
    window: int = DEFAULT_WINDOW
    queue: int = 0
    view: View = View()
    durable: str = ""  # its name at the broker, which keeps what was not acknowledged
    since: str | None = None  # where a new durable one begins: None, or "all"

    @classmethod
    def of(cls, given: dict[str, Any], largest_window: int) -> Wish:
        """Check what was asked for, by query or message."""
        text = given.get("filter")
        if not isinstance(text, str) or not text.strip():
            raise Problem("bad-request", "a subscription needs a filter, as in filter=wind > 90")
        durable = given.get("durable") or ""
        if type(durable) is not str or len(durable) > _NAME or not durable.isprintable():
            raise Problem("bad-request", f"durable is a name of at most {_NAME} characters")
        since = given.get("since") or None
        if since not in (None, "all") or (since and not durable):
            raise Problem("bad-request", "since is `all`, of a durable subscription")
        try:
            policy = Policy(given.get("policy") or Policy.DROP_OLDEST)
        except ValueError:
            raise Problem("bad-request", f"policy is one of {', '.join(Policy)}, not {given['policy']!r:.40}") from None
        numbers = []
        for name, default, most in (
            ("window", min(DEFAULT_WINDOW, largest_window), largest_window),
            ("queue", 0, 2**31),
        ):
            value = given.get(name, default)
            try:
                number = int(value)
            except (TypeError, ValueError, OverflowError):
                raise Problem("bad-request", f"{name} is a whole number, not {value!r:.40}") from None
            least = 0 if name == "queue" else 1
            if number < least:
                raise Problem("bad-request", f"{name} is at least {least}, not {number:.6g}")
            if number > most:
                raise Problem("limit", f"{name} is at most {most} here, not {value!r:.40}")
            numbers.append(number)
        return cls(text, policy, numbers[0], numbers[1], View.of(given), durable, since)


class Stream:
    """A subscription, and what has gone through it."""

    def __init__(self, subscription: AsyncSubscription, wish: Wish, owner: str, door: str) -> None:
        self.subscription = subscription
        self.wish = wish
        self.owner = owner
        self.door = door
        self.since = time.time()
        self.delivered = 0
        self.idle = False  # whether nothing came while `batch` last waited
        self.viewer = Viewer(wish.view)
        self.resuming: Resuming | None = None  # of a durable one
        self._dropped = 0
        self._interruptions = 0

    async def batch(self, timeout: float | None = None) -> Sequence[Notification]:
        """Wait for notifications: at least one, and those that are there; none when time is up. Its view is applied."""
        subscription = self.subscription
        if self.resuming is not None and self.resuming.searching:
            timeout = SEARCH
        self.idle = False
        try:
            batch = [await subscription.get(timeout)]
        except TimeoutError:
            self.idle = True
            if self.resuming is not None:
                found = self.resuming.arrived(())
                self.delivered += len(found)
                return found
            return []
        batch += subscription._take_some(BATCH - 1)
        chosen = self.viewer.select(batch if self.resuming is None else self.resuming.arrived(batch))
        self.delivered += len(chosen)
        return chosen

    def news(self) -> list[tuple[str, dict[str, int]]]:
        """What to tell the subscriber beside notifications; a `Problem` if it asked to be cut off when slow."""
        news = self.viewer.news()
        dropped, interruptions = self.subscription.dropped, self.subscription.interruptions
        if dropped > self._dropped:
            if self.wish.policy is Policy.DISCONNECT:
                raise Problem(
                    "limit", f"slow consumer: {dropped} notifications were dropped, and its policy is disconnect"
                )
            news.append(("dropped", {"dropped": dropped - self._dropped, "total": dropped}))
        if interruptions > self._interruptions:
            news.append(("interrupted", {"interruptions": interruptions}))
        self._dropped, self._interruptions = dropped, interruptions
        return news

    def describe(self, session: int) -> dict[str, Any]:
        """What an operator sees of it."""
        return {
            "session": session,
            "subscription": self.subscription.id,
            "filter": self.wish.filter,
            "owner": self.owner,
            "door": self.door,
            "durable": self.wish.durable,
            "since": self.since,
            "delivered": self.delivered,
            "skipped": self.viewer.skipped,
            "pending": self.subscription.pending,
            "dropped": self.subscription.dropped,
        }
