"""Standing requests as the application holds them: made once, until `close` or the end of a block; and advertisements.

The state is the core's (`standing`). These are its handles, one for the blocking and one for the asyncio client.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from contrada.client.engine.standing import Promise, Standing
from contrada.client.patience import Patience, in_time

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Self

    from contrada.client.async_client import AsyncClient
    from contrada.client.blocking import Client
    from contrada.client.engine.core import Core

_S = TypeVar("_S", bound=Standing)


class Held(Generic[_S]):
    """A standing request of a blocking client, which the broker has taken."""

    def __init__(self, client: Client, standing: _S) -> None:
        self._client = client
        self._standing = standing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self, timeout: float | None = None) -> None:
        """End it. What has already arrived for a subscription can still be taken."""
        with self._client._changed:
            ticket = self._client._core.withdraw(self._standing)
            self._client._wake()
            self._client._finished(ticket, Patience(timeout))


class AsyncHeld(ABC, Generic[_S]):
    """A standing request of an asyncio client: made with `async with` or `await`."""

    def __init__(self, client: AsyncClient, timeout: float | None) -> None:
        self._client = client
        self._timeout = timeout
        self._standing: _S | None = None

    @abstractmethod
    def _request(self, core: Core) -> _S:
        """Ask the core for it."""

    async def __aenter__(self) -> Self:
        self._client._require_open()
        core = self._client._core
        standing = self._standing = self._request(core)
        self._client._step()
        try:
            await in_time(self._client._finished(standing.opening), self._timeout, self._client.url)
        except BaseException:
            core.withdraw(standing)
            self._client._step()
            raise
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def close(self, timeout: float | None = None) -> None:
        """End it. What has already arrived for a subscription can still be taken."""
        if self._standing is not None:
            ticket = self._client._core.withdraw(self._standing)
            self._client._step()
            await in_time(self._client._finished(ticket), timeout, self._client.url)


class Advertisement(Held[Promise]):
    """What a client may publish, until `close` or the end of a `with` block."""


class AsyncAdvertisement(AsyncHeld[Promise]):
    """What a client may publish, until `close` or the end of an `async with` block."""

    def __init__(self, client: AsyncClient, filters: tuple[bytes, ...], timeout: float | None) -> None:
        super().__init__(client, timeout)
        self._filters = filters

    def _request(self, core: Core) -> Promise:
        return core.advertise(self._filters)
