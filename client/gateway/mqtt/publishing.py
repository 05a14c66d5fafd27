"""What one MQTT client publishes, on its way to the broker, in order.

Messages of quality 0 wait until there are some, and are published together while more are read; what is refused of them
ends the connection, which is how MQTT says it. One of quality 1, or to be retained, is published by itself and waited
for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from contrada.broker.protocol.messages import NotificationId
    from contrada.client.gateway.gateway import Gateway
    from contrada.client.gateway.mqtt.session import Publish
    from contrada.client.notification import Encoded

_TOGETHER: Final = 256  # notifications published together
_OUTSTANDING: Final = 4  # publications of quality 0 on their way to the broker; reading waits for room
_OWN: Final = 10_000  # ids of what it published, for subscriptions that are not to get it


class Publishing:
    """The publications of one connection; `refused` is told why one of quality 0 was not taken."""

    def __init__(self, gateway: Gateway, refused: Callable[[str], None], *, stores: bool) -> None:
        self._gateway = gateway
        self._refused = refused
        self._stores = stores
        self._waiting: list[dict[str, Any] | Encoded] = []
        self._outstanding: deque[asyncio.Task[None]] = deque()
        self._alone = asyncio.Lock()  # held while one is published by itself
        self._own: dict[NotificationId, None] | None = None

    def add(self, notification: dict[str, Any] | Encoded) -> bool:
        """Have one published by quality 0, with others; whether it is time to `flush`."""
        self._waiting.append(notification)
        return len(self._waiting) >= _TOGETHER

    async def flush(self) -> None:
        """Hand over what waits."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        try:
            publishing = await self._gateway.begin_publishing(waiting)
        except (ContradaError, TimeoutError) as error:
            self._refused(str(error))
            return
        self._outstanding.append(asyncio.create_task(self._answered(publishing)))
        while len(self._outstanding) > _OUTSTANDING or (self._outstanding and self._outstanding[0].done()):
            await self._outstanding.popleft()

    async def _answered(self, publishing: asyncio.Task[list[NotificationId]]) -> None:
        try:
            self._remember(await publishing)
        except (ContradaError, TimeoutError) as error:
            self._refused(str(error))

    async def publish(self, action: Publish) -> None:
        """Publish by itself, on disk where the broker stores; what is refused is raised."""
        retained = action.retain and self._stores
        key = f"mqtt/{action.notification['topic']}"
        async with self._alone:
            if retained and not action.empty:
                self._remember([await self._gateway.retain(action.notification, key)])
            else:
                self._remember(await self._gateway.publish([action.notification], durable=self._stores))
        if retained and action.empty:
            await self._gateway.publisher.forget(key, timeout=self._gateway.settings.timeout)

    async def finish(self) -> None:
        """Wait for what the broker says of the last."""
        if self._outstanding:
            await asyncio.wait(self._outstanding, timeout=self._gateway.settings.shutdown_timeout)

    def watch(self) -> None:
        """Remember from now on what is published."""
        if self._own is None:
            self._own = {}

    async def own(self) -> Container[NotificationId]:
        """What was published here: also what is on its way to the broker now, when that has answered."""
        for each in list(self._outstanding):
            await asyncio.wait((each,))
        async with self._alone:
            return self._own or ()

    def _remember(self, ids: Iterable[NotificationId]) -> None:
        if self._own is not None:
            self._own.update(dict.fromkeys(ids))
            while len(self._own) > _OWN:
                del self._own[next(iter(self._own))]
