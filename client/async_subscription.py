"""A subscription of the asyncio client: taking, waiting, leaving."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from contrada.client.engine.inbox import Inbox
from contrada.client.engine.standing import Stage
from contrada.client.holding import AsyncHeld
from contrada.client.settle import subscription_failure
from contrada.client.waiting import wait_in
from contrada.errors import Disconnected

if TYPE_CHECKING:
    from typing import Self

    from contrada.broker.protocol.wire import Policy
    from contrada.client.async_client import AsyncClient
    from contrada.client.engine.core import Core
    from contrada.client.notification import Notification


class AsyncSubscription(AsyncHeld[Inbox]):
    """A subscription: iterate it, or `get` one notification at a time."""

    def __init__(
        self,
        client: AsyncClient,
        wanted: tuple[bytes, ...] | str,
        settings: tuple[Policy, int, int],
        timeout: float | None,
    ) -> None:
        super().__init__(client, timeout)
        self._wanted = (wanted, *settings)

    def _request(self, core: Core) -> Inbox:
        inbox = core.subscribe(*self._wanted)
        inbox.waiter = set()
        return inbox

    @property
    def id(self) -> int:
        """The subscription's number in its session."""
        return self._state.id

    @property
    def pending(self) -> int:
        """Notifications that have arrived and were not taken."""
        return len(self._state.buffer)

    @property
    def dropped(self) -> int:
        """Notifications that the broker dropped because this subscriber was too slow."""
        return self._state.dropped

    @property
    def interruptions(self) -> int:
        """How often the subscription was restored on a new connection; what was published in between is missing."""
        return self._state.interruptions

    async def get(self, timeout: float | None = None) -> Notification:
        """Take the next notification; TimeoutError if none came in time, Disconnected once the subscription ended."""
        inbox = self._state
        if not inbox.buffer:
            if timeout is None:
                await self._arrival(inbox)
            else:
                try:
                    async with asyncio.timeout(timeout):
                        await self._arrival(inbox)
                except TimeoutError:
                    raise TimeoutError(f"no notification in {timeout:g} s") from None
        notification = self._client._core.take(inbox)
        if self._client._core.has_actions:
            self._client._step()
        return notification

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Notification:
        inbox = self._state
        while not inbox.buffer and inbox.stage is not Stage.ENDED and inbox.closing is None:
            self._client._require_open()
            await wait_in(inbox.waiter)
        if not inbox.buffer:
            if inbox.error is not None:
                raise inbox.error
            raise StopAsyncIteration
        return await self.get()

    async def _arrival(self, inbox: Inbox) -> None:
        while not inbox.buffer:
            if inbox.stage is Stage.ENDED or inbox.closing is not None:
                raise subscription_failure(inbox)
            self._client._require_open()
            await wait_in(inbox.waiter)

    @property
    def _state(self) -> Inbox:
        if self._standing is None:
            raise Disconnected("not subscribed yet: use `async with client.subscribe(...)`, or await it")
        return self._standing
