"""Subscriptions and advertisements as the application holds them, until `close` or the end of a block.

Their state is the core's (`engine.kept_requests`, `engine.inbox`); waiting is the client's (`base`). Each comes in two
kinds, for the blocking client and for the asyncio client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from contrada.client.engine.inbox import Inbox
from contrada.client.engine.kept_requests import KeptAdvertisement, KeptRequest
from contrada.errors import ContradaError, Disconnected

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import Self

    from contrada.broker.protocol.messages import NotificationId
    from contrada.client.async_client import AsyncClient
    from contrada.client.blocking import Client
    from contrada.client.notification import Notification

_K = TypeVar("_K", bound=KeptRequest)


class Kept(Generic[_K]):
    """A request of a blocking client, which the broker has taken."""

    def __init__(self, client: Client, kept: _K) -> None:
        self._client = client
        self._state = kept

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None:
            self._leaving()
        self.close()

    def _leaving(self) -> None:
        """The block has come to its end."""

    def close(self, timeout: float | None = None) -> None:
        """End it. What has already arrived for a subscription can still be taken."""
        self._client._run(self._client._withdraw(self._state), timeout)


class AsyncKept(Generic[_K]):
    """A request of an asyncio client: made with `async with` or `await`."""

    def __init__(self, client: AsyncClient, make: Callable[[], _K], timeout: float | None) -> None:
        self._client = client
        self._make = make
        self._timeout = timeout
        self._kept: _K | None = None

    async def __aenter__(self) -> Self:
        self._kept = await self._client._run(self._client._keep(self._make), self._timeout)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None:
            self._leaving()
        await self.close()

    def _leaving(self) -> None:
        """The block has come to its end."""

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def close(self, timeout: float | None = None) -> None:
        """End it. What has already arrived for a subscription can still be taken."""
        if self._kept is not None:
            await self._client._run(self._client._withdraw(self._kept), timeout)

    @property
    def _state(self) -> _K:
        if self._kept is None:
            raise Disconnected("not subscribed yet: use `async with client.subscribe(...)`, or await it")
        return self._kept


class _Subscribed:
    """What both kinds of subscriptions tell of themselves."""

    _state: Any  # an attribute of one kind, a property of the other

    @property
    def _inbox(self) -> Inbox:
        inbox: Inbox = self._state
        return inbox

    @property
    def id(self) -> int:
        """The subscription's number in its session."""
        return self._inbox.id

    @property
    def known(self) -> bool:
        """Whether the broker's index had the name that was attached to. Another index may bring it, or take it away."""
        return self._inbox.known

    @property
    def first(self) -> NotificationId:
        """What would be the id of the broker's next notification when it began; 1 of a durable one that was there."""
        return self._inbox.first

    def is_last_value(self, notification: Notification) -> bool:
        """Whether a notification was there before the subscription: the last value of a key (`publish(retain=…)`)."""
        (broker, sequence), first = notification.id, self._inbox.first
        return sequence < first.sequence and broker == first.broker

    @property
    def pending(self) -> int:
        """Notifications that have arrived and were not taken."""
        return len(self._inbox.buffer)

    @property
    def dropped(self) -> int:
        """Notifications that the broker dropped because this subscriber was too slow."""
        return self._inbox.dropped

    @property
    def interruptions(self) -> int:
        """How often the subscription was restored on a new connection; what was published in between is missing."""
        return self._inbox.interruptions

    def _ended(self) -> ContradaError:
        """Why `get` will return nothing more."""
        return self._inbox.error or Disconnected(
            "the subscription is closed, and everything it received has been taken"
        )


class Subscription(_Subscribed, Kept[Inbox]):
    """A subscription: iterate it, or `get` one notification at a time. `close` it, or use it as a context manager.

    With `ack="auto"`, what was taken from a durable one is acknowledged when the next is asked for, or the block ends.
    """

    def _leaving(self) -> None:
        self._client._done(self._state)

    def get(self, timeout: float | None = None) -> Notification:
        """Take the next notification; TimeoutError if none came in time, Disconnected once the subscription ended."""
        notification = self._next(timeout)
        if notification is None:
            raise self._ended()
        return notification

    def to_geodataframe(
        self, *, n: int | None = None, seconds: float | None = None, geometry: str | None = None
    ) -> Any:
        """Wait for `n` notifications, or for so many `seconds`, and return a GeoDataFrame (extra contrada[notebook]).

        Its geometry is the attribute `geometry`, or the first that has a place.
        """
        from contrada.client.frames import Collecting, geodataframe

        collecting = Collecting(n, seconds)
        while collecting.wanting:
            try:
                collecting.found.append(self.get(collecting.left))
            except TimeoutError:
                break
        return geodataframe(collecting.found, geometry)

    def __iter__(self) -> Iterator[Notification]:
        return self

    def __next__(self) -> Notification:
        notification = self._next(None)
        if notification is not None:
            return notification
        raise self._state.error or StopIteration

    def _next(self, timeout: float | None) -> Notification | None:
        client, inbox = self._client, self._state
        if inbox.handed:
            client._done(inbox)
        with client._lock:
            if inbox.buffer:  # the usual case, without an operation
                return client._take(inbox)
        return client._run(client._next(inbox), timeout, "no notification")


class AsyncSubscription(_Subscribed, AsyncKept[Inbox]):
    """A subscription: iterate it, or `get` one notification at a time.

    With `ack="auto"`, what was taken from a durable one is acknowledged when the next is asked for, or the block ends.
    """

    def _leaving(self) -> None:
        self._client._done(self._state)

    async def get(self, timeout: float | None = None) -> Notification:
        """Take the next notification; TimeoutError if none came in time, Disconnected once the subscription ended."""
        client, inbox = self._client, self._state
        if inbox.handed:
            client._done(inbox)
        if inbox.buffer:  # the usual case, without an operation
            return client._take(inbox)
        notification = await client._run(client._next(inbox), timeout, "no notification")
        if notification is None:
            raise self._ended()
        return notification

    def _take_some(self, most: int) -> list[Notification]:
        """Take what has arrived, at most so many, without waiting."""
        return self._client._take_some(self._inbox, most)

    async def to_geodataframe(
        self, *, n: int | None = None, seconds: float | None = None, geometry: str | None = None
    ) -> Any:
        """Wait for `n` notifications, or for so many `seconds`, and return a GeoDataFrame (extra contrada[notebook]).

        Its geometry is the attribute `geometry`, or the first that has a place.
        """
        from contrada.client.frames import Collecting, geodataframe

        collecting = Collecting(n, seconds)
        while collecting.wanting:
            try:
                collecting.found.append(await self.get(collecting.left))
            except TimeoutError:
                break
        return geodataframe(collecting.found, geometry)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Notification:
        client, inbox = self._client, self._state
        if inbox.handed:
            client._done(inbox)
        if inbox.buffer:
            return client._take(inbox)
        notification = await client._run(client._next(inbox))
        if notification is not None:
            return notification
        raise inbox.error or StopAsyncIteration


class Advertisement(Kept[KeptAdvertisement]):
    """What a client may publish, until `close` or the end of a `with` block."""


class AsyncAdvertisement(AsyncKept[KeptAdvertisement]):
    """What a client may publish, until `close` or the end of an `async with` block."""
