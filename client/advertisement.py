"""Advertisements as the application holds them, of the blocking and of the asyncio client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Self

    from contrada.client.async_client import AsyncClient
    from contrada.client.blocking import Client
    from contrada.client.standing import Promise


class Advertisement:
    """What a client may publish, until `close` or the end of a `with` block."""

    def __init__(self, client: Client, promise: Promise) -> None:
        self._client = client
        self._promise = promise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self, timeout: float | None = None) -> None:
        """Withdraw it."""
        with self._client._changed:
            ticket = self._client._core.withdraw(self._promise)
            self._client._wake()
            self._client._finished(ticket, timeout)


class AsyncAdvertisement:
    """What a client may publish: made with `async with` or `await`, until the end of the block or `close`."""

    def __init__(self, client: AsyncClient, filters: tuple[bytes, ...]) -> None:
        self._client = client
        self._filters = filters
        self._promise: Promise | None = None

    async def __aenter__(self) -> Self:
        self._client._require_open()
        core = self._client._core
        promise = self._promise = core.advertise(self._filters)
        self._client._step()
        try:
            await self._client._finished(promise.opening)
        except BaseException:
            core.withdraw(promise)
            self._client._step()
            raise
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def close(self) -> None:
        """Withdraw it."""
        if self._promise is not None:
            ticket = self._client._core.withdraw(self._promise)
            self._client._step()
            await self._client._finished(ticket)
