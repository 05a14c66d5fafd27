"""Webhooks: what a durable subscription gets is posted to an address, signed, until it is taken.

    [[gateway.webhooks]]          in the settings: name, filter, url, secret
    POST URL                      {"id": …, "publisher": …, "notification": {…}}, one at a time and in order
    Contrada-Signature            t=SECONDS,v1=HEX: HMAC-SHA256 with the secret, of "SECONDS." and the body
    Contrada-Delivery             the notification's id: the same when it is sent again

An answer of 2xx acknowledges it. Any other, or none in time, is tried again after 1, 2, 4, … at most 60 seconds. After
ten attempts it is a dead letter, and it is the next one's turn: what was not taken is published again, durably, with
the attributes `webhook.dead` (the webhook's name) and `webhook.reason`, for whoever subscribes to that. Redirections
are not followed. What waits is at the broker, on disk: gateways may come and go.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import aiohttp

from contrada.client.notification import Draft
from contrada.errors import ContradaError, InvalidValue
from contrada.forwarding.language.text.parse import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contrada.client.gateway.gateway import Gateway
    from contrada.client.notification import Notification

log = logging.getLogger("contrada.gateway")
FIRST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 60.0
_TIMEOUT: Final = 10.0
_ATTEMPTS: Final = 10
DEAD: Final = "webhook.dead"
REASON: Final = "webhook.reason"
_REASON: Final = 300  # characters
_SECRET: Final = 16  # characters at least


class Hook(NamedTuple):
    """One webhook of the settings."""

    name: str
    filter: str
    url: str
    secret: str

    @classmethod
    def of(cls, given: object) -> Hook:
        """Check a table of the settings."""
        if not isinstance(given, dict) or set(given) != set(cls._fields):
            raise InvalidValue(f"a webhook is a table with {', '.join(cls._fields)}, not {given!r:.100}")
        wrong = [name for name in cls._fields if not isinstance(given[name], str) or not given[name]]
        if wrong:
            raise InvalidValue(f"{wrong[0]} of a webhook must be a text")
        hook = cls(**given)
        if not hook.url.startswith(("https://", "http://")):
            raise InvalidValue(f"the url of webhook {hook.name} must begin with https:// or http://")
        if len(hook.secret) < _SECRET:
            raise InvalidValue(f"the secret of webhook {hook.name} must have at least {_SECRET} characters")
        parse(hook.filter)
        return hook


def sign(secret: str, seconds: int, body: bytes) -> str:
    """What `Contrada-Signature` says of a body: who has the secret computes the same, and compares."""
    digest = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={seconds},v1={digest}"


class Webhooks:
    """The webhooks of a gateway, each with a task."""

    def __init__(self, gateway: Gateway, tables: Mapping[str, Any] | Any) -> None:
        self._gateway = gateway
        self._hooks = [Hook.of(each) for each in tables]
        self._tasks: list[asyncio.Task[None]] = []
        self._session: aiohttp.ClientSession | None = None
        if len({hook.name for hook in self._hooks}) < len(self._hooks):
            raise InvalidValue("two webhooks of one name")

    async def open(self) -> None:
        """Subscribe all of them, and begin; what the broker refuses is raised."""
        if not self._hooks:
            return
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT))
        for hook in self._hooks:
            await (await self._subscribe(hook)).close(timeout=self._gateway.settings.timeout)
            self._tasks.append(asyncio.create_task(self._serve(hook)))

    async def close(self) -> None:
        """Stop; what was not taken waits at the broker."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _subscribe(self, hook: Hook) -> Any:
        return await self._gateway.subscriber.subscribe(
            hook.filter,
            durable=f"webhook/{hook.name}",
            ack="manual",
            timeout=self._gateway.settings.timeout,
        )

    async def _serve(self, hook: Hook) -> None:
        wait = FIRST_WAIT
        while True:
            subscription = None
            try:
                subscription = await self._subscribe(hook)
                while True:
                    notification = await subscription.get()
                    await self._deliver(hook, notification)
                    notification.ack()
                    wait = FIRST_WAIT
            except (ContradaError, TimeoutError) as error:
                log.warning("webhook %s: %s", hook.name, error)
            finally:
                if subscription is not None:  # what was not acknowledged will be delivered again
                    await asyncio.shield(self._leave(subscription))
            await asyncio.sleep(wait)
            wait = min(_LONGEST_WAIT, 2 * wait)

    async def _deliver(self, hook: Hook, notification: Notification) -> None:
        """Post until it is taken, or a dead letter."""
        if notification.get(DEAD) == hook.name:
            return  # its own dead letter, which its filter takes too
        wait = FIRST_WAIT
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(wait)
                wait = min(_LONGEST_WAIT, 2 * wait)
            why = await self._post(hook, notification)
            if not why:
                return
            log.warning("webhook %s: %s was not taken: %s", hook.name, notification.id, why)
        letter = Draft({**notification, DEAD: hook.name, REASON: why[:_REASON]}, notification.payload)
        await self._gateway.publish([letter], durable=True)

    async def _leave(self, subscription: Any) -> None:
        try:
            await subscription.close(timeout=self._gateway.settings.timeout)
        except (ContradaError, TimeoutError) as error:
            log.info("while a webhook left: %s", error)

    async def _post(self, hook: Hook, notification: Notification) -> str:
        """Post once; why it was not taken, or nothing."""
        assert self._session is not None
        body = f"{{{self._gateway.renderer.text(notification)}}}".encode()
        headers = {
            "Content-Type": "application/json",
            "Contrada-Signature": sign(hook.secret, int(time.time()), body),
            "Contrada-Delivery": str(notification.id),
        }
        try:
            async with self._session.post(hook.url, data=body, headers=headers, allow_redirects=False) as answer:
                why = "" if 200 <= answer.status < 300 else f"answered {answer.status}"
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            why = str(error) or type(error).__name__
        self._gateway.metrics.webhooks.labels(hook.name, "failed" if why else "taken").inc()
        return why
