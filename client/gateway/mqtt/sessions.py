"""MQTT sessions: what outlives a connection, and for how long.

A session is what its client subscribed to, and the numbers of what it was sent and has not acknowledged. Subscriptions
of quality 1 are durable ones at the broker, which keeps what matches while the client is away:

    mqtt/VISITOR/CLIENT/HASH      the hash is that of topic filter and filter; HASH of CLIENT where it is long or odd

The session itself is in the memory of this gateway. After a restart a client hears that there is none, subscribes again
as the standard has it, and finds what has waited under that name; what there is of such names is looked up at the
start, so that a client that begins anew can have it removed. A session that is over takes its subscriptions at the
broker along.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from contrada.broker.protocol.wire import Code
from contrada.client.gateway.problems import Problem
from contrada.errors import ContradaError, Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contrada.client.gateway.gateway import Gateway
    from contrada.client.gateway.mqtt.outgoing import Sent
    from contrada.client.gateway.mqtt.session import Asked, LastWill

log = logging.getLogger("contrada.gateway")
_PLAIN: Final = re.compile(r"[\w.\-]{1,200}")
_ROOM: Final = "mqtt/"

Key = tuple[str, str]
"""A visitor's name and a client id: nobody takes up what is another visitor's."""


def prefix_of(key: Key) -> str:
    """What the names of a client's durable subscriptions begin with."""
    visitor, client = key
    return f"{_ROOM}{visitor}/{client if _PLAIN.fullmatch(client) else '=' + _hash(client)}/"


def durable_name(key: Key, asked: Asked) -> str:
    """The name at the broker of a subscription of quality 1."""
    return prefix_of(key) + _hash(f"{asked.pattern}\n{asked.query.filter}")


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=12).hexdigest()


class KeptSession:
    """What a client asked for, and what it was sent."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.asked: dict[str, Asked] = {}  # by topic filter
        self.sent: Sent = {}
        self.will: LastWill | None = None
        self.timers: list[asyncio.TimerHandle] = []
        self.kept_size = 0  # bytes of it when its client left

    @property
    def size(self) -> int:
        """Bytes that it takes, about: what of it a client can make large."""
        return sum(map(_size, self.asked.values())) + (0 if self.will is None else self.will.size)

    def check_room(self, asked: Asked, most: int) -> None:
        """Refuse a subscription with which topic filters and filters would be longer than `most`."""
        size = self.size + _size(asked) - (_size(self.asked[asked.pattern]) if asked.pattern in self.asked else 0)
        if size > most:
            raise Problem("limit", f"the filters of a session have at most {most} bytes together; these have {size}")

    def names(self) -> list[str]:
        """Its durable subscriptions."""
        return [durable_name(self.key, asked) for asked in self.asked.values() if asked.quality]


def _size(asked: Asked) -> int:
    return len(asked.pattern) + len(asked.query.filter)


class Sessions:
    """The sessions of clients that are away, and what becomes of them."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._away: dict[Key, KeptSession] = {}  # those that are away longest first
        self._sizes: Counter[str] = Counter()  # bytes of them, by visitor
        self._counts: Counter[str] = Counter()
        self._left_over: dict[str, list[str]] = {}  # names at the broker of sessions before our time, by prefix
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._away)

    async def open(self) -> None:
        """Look up what an earlier gateway left at the broker."""
        after, more = _ROOM, True
        while more:
            page = await self._gateway.subscriber.durable_subscriptions(after, timeout=self._gateway.settings.timeout)
            names = [each["name"] for each in page["subscriptions"]]
            ours = [name for name in names if name.startswith(_ROOM)]
            for name in ours:
                self._left_over.setdefault(name.rpartition("/")[0] + "/", []).append(name)
            more = bool(page["more"]) and len(ours) == len(names)
            after = names[-1] if names else after

    async def close(self) -> None:
        """Publish the wills that wait. What sessions have at the broker stays there."""
        for kept in list(self._away.values()):
            _cancel(kept)
            await self.publish_will(kept)
        self._away.clear()
        self._sizes.clear()
        self._counts.clear()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._gateway.settings.shutdown_timeout)

    async def take_up(self, key: Key, *, clean: bool) -> tuple[KeptSession, bool]:
        """The session of a client that has come, and whether it was there before."""
        kept = self._forget(key)
        left_over = self._left_over.pop(prefix_of(key), ()) if clean else ()
        if kept is not None:
            _cancel(kept)
            if not clean:
                kept.will = None
                return kept, True
            await self.publish_will(kept)
            await self._remove(kept.names())
        await self._remove(left_over)
        return KeptSession(key), False

    async def put_down(self, kept: KeptSession, expiry: int, will: LastWill | None) -> None:
        """A client has gone: keep its session for so many seconds, and publish its will when it is time."""
        kept.will = will
        if will is not None and (will.delay == 0 or expiry == 0):
            await self.publish_will(kept)
        if not expiry:
            await self._remove(kept.names())
            return
        loop = asyncio.get_running_loop()
        kept.timers = [loop.call_later(expiry, self._begin, kept)]
        if kept.will is not None and kept.will.delay < expiry:
            kept.timers.append(loop.call_later(kept.will.delay, self._begin_will, kept))
        self._remember(kept)
        while (visitor := self._over(kept.key[0])) is not None:
            oldest = next(each for (owner, _), each in self._away.items() if owner == visitor)
            _cancel(oldest)
            await self._expire(oldest)

    def _over(self, visitor: str) -> str | None:
        """Who must lose a session: who has too many, or most where all have: nobody loses for another."""
        settings = self._gateway.settings
        if visitor and self._counts[visitor] > settings.token_sessions:
            return visitor
        for taken, most in ((self._counts, settings.connections), (self._sizes, settings.session_bytes)):
            if taken.total() > most:
                return taken.most_common(1)[0][0]
        return None

    def _remember(self, kept: KeptSession) -> None:
        self._away[kept.key] = kept
        kept.kept_size = kept.size
        self._counts[kept.key[0]] += 1
        self._sizes[kept.key[0]] += kept.kept_size

    def _forget(self, key: Key) -> KeptSession | None:
        kept = self._away.pop(key, None)
        if kept is not None:
            for counter, number in ((self._counts, 1), (self._sizes, kept.kept_size)):
                counter[key[0]] -= number
                if not counter[key[0]]:
                    del counter[key[0]]
        return kept

    async def publish_will(self, kept: KeptSession) -> None:
        """Publish a session's will, if it has one that was not published."""
        will, kept.will = kept.will, None
        if will is None:
            return
        try:
            if will.retain:
                await self._gateway.retain(will.notification, f"mqtt/{will.notification['topic']}")
            else:
                await self._gateway.publish([will.notification], durable=will.durable)
        except (ContradaError, TimeoutError) as error:
            log.warning("the will of %s was not published: %s", kept.key[1], error)

    async def end_subscription(self, key: Key, asked: Asked) -> None:
        """A client has unsubscribed."""
        if asked.quality:
            await self._remove([durable_name(key, asked)])

    # ------------------------------------------------------------------ when it is time

    def _begin(self, kept: KeptSession) -> None:
        self._keep_task(asyncio.create_task(self._expire(kept)))

    def _begin_will(self, kept: KeptSession) -> None:
        self._keep_task(asyncio.create_task(self.publish_will(kept)))

    def _keep_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _expire(self, kept: KeptSession) -> None:
        """A session is over, unless its client has come back."""
        if self._away.get(kept.key) is kept:
            self._forget(kept.key)
            await self.publish_will(kept)
            await self._remove(kept.names())

    async def _remove(self, names: Iterable[str]) -> None:
        """End durable subscriptions, but those that somebody uses: the client may be at another gateway now."""
        for name in names:
            try:
                await self._gateway.subscriber.durable_remove(name, unused=True, timeout=self._gateway.settings.timeout)
            except Refused as error:
                if error.code != Code.UNKNOWN:
                    log.info("%s is left at the broker: %s", name, error)
            except (ContradaError, TimeoutError) as error:
                log.warning("%s is left at the broker: %s", name, error)


def _cancel(kept: KeptSession) -> None:
    for timer in kept.timers:
        timer.cancel()
    kept.timers = []
