"""The asyncio client: `async with connect(url) as c`, `async with c.subscribe(...) as sub`, `async for n in sub`.

It reads the socket when the event loop says so and never otherwise waits, so that everything here runs between two
awaits and needs no locks. Cancelling is safe everywhere: a notification leaves a subscription only when `get` returns
it, and a publication is either not handed over yet or runs to its end on its own.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from contrada.broker.protocol.wire import DurableAction
from contrada.client.arguments import check_name, encode_filters
from contrada.client.base import BaseClient, log
from contrada.client.engine.states import Phase
from contrada.client.options import (
    OptionNames,
    Options,
    SubscriptionOptionNames,
    SubscriptionOptions,
    takes_options,
)
from contrada.client.subscriptions import AsyncAdvertisement, AsyncSubscription
from contrada.errors import ContradaError, Disconnected

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
    from types import TracebackType
    from typing import Self, Unpack

    from contrada.broker.protocol.messages import NotificationId
    from contrada.client.base import Operation
    from contrada.client.notification import Encoded
    from contrada.forwarding.language.filter import Expression

_T = TypeVar("_T")


@takes_options(Options)
def connect(url: str, **options: Unpack[OptionNames]) -> AsyncClient:
    """Make a client of a broker, to be entered or awaited: `async with contrada.connect(url) as c`."""
    return AsyncClient(url, **options)


@takes_options(Options)
class AsyncClient(BaseClient):
    """A connection to a broker. Use it as a context manager, or `await` it and `close` it later.

    `timeout` bounds a whole call: `TimeoutError` when it is over. Cancelling a call does the same.
    """

    _lock = nullcontext()

    def __init__(self, url: str, **options: Unpack[OptionNames]) -> None:
        super().__init__(url, options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._readers: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timed: Phase | None = None  # the phase that the timer was set in, if its deadline only moves away
        self._flushing = False

    # ------------------------------------------------------------------ life

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise ContradaError(f"this client of {self.url} was entered before: make a new one with connect()")
        self._loop = asyncio.get_running_loop()
        self._core.start(self._now())
        try:
            self._perform()
            await self._run(self._open())
        except BaseException:
            self._abort()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.close()
        except ContradaError as failure:
            if error is None:
                raise
            log.error("while closing: %s", failure)

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def close(self) -> None:
        """Wait for streamed publications, say goodbye, close. Raises if a streamed publication failed."""
        if self._core.phase is Phase.IDLE:
            return
        if self._loop is not None and self._loop.is_closed():
            self._transport.hangup(linger=True)  # there is nobody left to wait in
            return
        self._require_open()
        try:
            try:
                await self._run(self._drain(), self._core.options.close_timeout)
            except TimeoutError:
                log.warning("closing with publications that the broker has not acknowledged")
            await self._run(self._leave())
        finally:
            self._abort()
        self._raise_failure()

    def _abort(self) -> None:
        self._core.abort()
        self._perform()

    # ------------------------------------------------------------------ publishing

    async def publish(
        self,
        notification: Mapping[str, object],
        *,
        ack: bool = True,
        durable: bool = False,
        id: str = "",
        retain: str = "",
        payload: object = None,
        timeout: float | None = None,
    ) -> NotificationId | None:
        """Publish one notification and return its id once the broker has accepted and queued it for its subscribers.

        With `ack=False`, return None as soon as it is handed over; at most `outstanding` may be unacknowledged. A
        failure then surfaces in the next `publish`, in `flush` or in `close`.

        With `durable`, it is acknowledged when it is on the broker's disk; an `id` makes it safe to repeat, and with
        `retain` it is durable and the last value of that key. See `docs/durability.md`.

        A `payload`, bytes or what JSON can say, travels with it and is not looked into: `n.payload` at the other end.
        """
        return await self._run(self._publish(notification, ack, durable, id, retain, payload), timeout)

    async def publish_many(
        self,
        notifications: Iterable[Mapping[str, object]],
        *,
        ack: bool = True,
        durable: bool = False,
        timeout: float | None = None,
    ) -> list[NotificationId]:
        """Publish in batches, in order; return the ids (none with `ack=False`).

        If one fails, or is invalid, those before it stand and the error names it.
        """
        return await self._run(self._publish_many(notifications, ack, durable), timeout)

    async def _begin_publishing(
        self,
        notifications: Iterable[Mapping[str, object] | Encoded],
        *,
        durable: bool = False,
        timeout: float | None = None,
    ) -> Coroutine[Any, Any, list[NotificationId]]:
        """Hand over as `publish_many` does, and return what to await for the ids: meanwhile more can be handed over.

        What is handed over first is published first, whatever is awaited first.
        """
        submissions = await self._run(self._hand_over(notifications, True, durable), timeout)
        return self._run(self._outcome(submissions), timeout)

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until the broker has acknowledged everything streamed; raise if any of it failed."""
        await self._run(self._flush(), timeout)

    # ------------------------------------------------------------------ subscribing

    @takes_options(SubscriptionOptions)
    def subscribe(
        self,
        filter: Expression | str,
        *,
        timeout: float | None = None,
        **options: Unpack[SubscriptionOptionNames],
    ) -> AsyncSubscription:
        """Subscribe, with `async with` or `await`."""
        make = self._wanted(encode_filters(filter), options)
        return AsyncSubscription(self, make, timeout)

    @takes_options(SubscriptionOptions)
    def attach(
        self, name: str, *, timeout: float | None = None, **options: Unpack[SubscriptionOptionNames]
    ) -> AsyncSubscription:
        """Receive what an interface of the broker's index matches, with `async with` or `await`."""
        make = self._wanted(check_name("name", name), options)
        return AsyncSubscription(self, make, timeout)

    def advertise(self, filter: Expression | str, *, timeout: float | None = None) -> AsyncAdvertisement:
        """Say what this client may publish, with `async with` or `await`. See `docs/routing.md`."""
        return AsyncAdvertisement(self, self._advertisement(filter), timeout)

    # ------------------------------------------------------------------ asking

    async def status(self, timeout: float | None = None) -> dict[str, Any]:
        """Ask the broker what it is doing (role admin)."""
        return await self._run(self._status(), timeout)

    async def explain(
        self,
        notification: NotificationId | str,
        subscription: AsyncSubscription | int,
        session: int = 0,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Ask why a notification did or did not reach a subscription; of another session with the role admin."""
        number = subscription if isinstance(subscription, int) else subscription.id
        return await self._run(self._explain(notification, number, session), timeout)

    async def list_subscriptions(self, after: int = 0, timeout: float | None = None) -> dict[str, Any]:
        """Ask for a page of everybody's subscriptions, those behind the interface `after` (role admin).

        `subscriptions` has them with their filters, and `next` what to ask for next: 0 at the end.
        """
        return await self._run(self._list_subscriptions(after), timeout)

    async def list_receivers(
        self, notifications: Iterable[NotificationId | str], timeout: float | None = None
    ) -> dict[str, Any]:
        """Ask which interfaces these notifications of late went to, by their ids (role admin)."""
        return await self._run(self._list_receivers(notifications), timeout)

    async def index_load(
        self, path: str | os.PathLike[str], shard: str = "", timeout: float | None = None
    ) -> dict[str, Any]:
        """Have the broker match by an index of its machine, or a shard "k/n" of it, from now on (role admin)."""
        return await self._run(self._index_load(path, shard), timeout)

    async def index_add(
        self, id: str, interface: str, filter: Expression | str, timeout: float | None = None
    ) -> dict[str, Any]:
        """Put a subscription into the broker's index, in place of any of the same id (role admin)."""
        return await self._run(self._index_add(id, interface, filter), timeout)

    async def index_remove(self, id: str, timeout: float | None = None) -> dict[str, Any]:
        """Take a subscription out of the broker's index (role admin)."""
        return await self._run(self._index_remove(id), timeout)

    async def durable_subscriptions(self, after: str = "", timeout: float | None = None) -> dict[str, Any]:
        """List the durable subscriptions that are this client's (role admin: all), by name, behind a name."""
        return await self._run(self._durable_query(DurableAction.LIST, after), timeout)

    async def durable_remove(self, name: str, *, unused: bool = False, timeout: float | None = None) -> dict[str, Any]:
        """End a durable subscription, with everything that waits for it; with `unused`, only if nobody uses it."""
        return await self._run(self._durable_query(DurableAction.REMOVE, name, int(unused)), timeout)

    async def durable_dead(self, name: str, behind: int = 0, timeout: float | None = None) -> dict[str, Any]:
        """Read the dead letters of a durable subscription, behind a position."""
        return await self._run(self._durable_query(DurableAction.DEAD, name, behind), timeout)

    async def durable_unlink(self, neighbour: str, timeout: float | None = None) -> dict[str, Any]:
        """Have the broker keep nothing more for a neighbour that is gone for good (role admin)."""
        return await self._run(self._durable_query(DurableAction.UNLINK, neighbour), timeout)

    async def forget(self, key: str, timeout: float | None = None) -> bool:
        """Let a key have no last value any more; whether it had one."""
        document = await self._run(self._durable_query(DurableAction.FORGET, key), timeout)
        return bool(document["forgotten"])

    # ------------------------------------------------------------------ running operations

    async def _run(self, operation: Operation[_T], timeout: float | None = None, missing: str = "") -> _T:
        """Run an operation to its end; TimeoutError says what was missing when time was up."""
        self._require_open()
        if timeout is not None:
            try:
                async with asyncio.timeout(timeout) as limit:
                    return await self._run(operation)
            except TimeoutError:
                if not limit.expired():
                    raise  # the application's own
                raise TimeoutError(f"{missing or f'{self.url}: no answer'} in {timeout:g} s") from None
        assert self._loop is not None
        try:
            while True:
                waited = next(operation)
                if waited.waiters is None:
                    waited.waiters = set()
                waiter = self._loop.create_future()
                waited.waiters.add(waiter)
                try:
                    await waiter
                finally:
                    waited.waiters.discard(waiter)
        except StopIteration as end:
            result: _T = end.value
            return result
        finally:
            operation.close()

    def _require_open(self) -> None:
        if self._loop is None:
            raise Disconnected("the client is not connected: use `async with connect(...)`, or await it")
        if asyncio.get_running_loop() is not self._loop:
            raise ContradaError(f"this client of {self.url} belongs to another event loop: make one in each")

    # ------------------------------------------------------------------ driving the core

    def _now(self) -> float:
        assert self._loop is not None
        return self._loop.time()

    def _perform(self) -> None:
        sent = self._perform_actions()
        for changed in self._core.take_changed():
            for waiter in changed.waiters or ():
                if not waiter.done():
                    waiter.set_result(None)
        if self._timed is not self._core.phase:
            self._schedule()
        # The socket's descriptor is edge-triggered, and sending may use up the edge: look again.
        if sent and self._transport.readable:
            self._soon(self._on_readable)

    def _watch(self) -> None:
        assert self._loop is not None
        socket, monitor = self._transport.socket, self._transport.monitor
        assert socket is not None
        assert monitor is not None
        self._readers = [int(socket.fd), int(monitor.fd)]
        self._loop.add_reader(self._readers[0], self._on_readable)
        self._loop.add_reader(self._readers[1], self._on_monitor)
        self._soon(self._on_monitor)

    def _unwatch(self) -> None:
        assert self._loop is not None
        for reader in self._readers:
            self._loop.remove_reader(reader)
        self._readers = []

    def _on_readable(self) -> None:
        if self._read_messages():
            self._soon(self._on_readable)
        self._perform()

    def _on_monitor(self) -> None:
        self._read_reports()
        self._perform()

    def _on_timer(self) -> None:
        self._timer = self._timed = None
        self._core.tick(self._now())
        self._perform()

    def _schedule(self) -> None:
        """Keep one timer that fires no later than the core's deadline; an early one costs a look, not a mistake."""
        deadline = self._core.deadline()
        self._timed = Phase.OPEN if self._core.phase is Phase.OPEN else None
        if self._timer is not None and (deadline is None or self._timer.when() > deadline):
            self._timer.cancel()
            self._timer = None
        if self._timer is None and deadline is not None:
            assert self._loop is not None
            self._timer = self._loop.call_at(deadline, self._on_timer)

    def _flush_soon(self) -> None:
        if self._core.actions:
            self._perform()
        if not self._flushing:
            self._flushing = True
            self._soon(self._flush_now)

    def _flush_now(self) -> None:
        self._flushing = False
        self._core.flush()
        self._perform()

    def _soon(self, callback: Callable[[], None]) -> None:
        assert self._loop is not None
        self._loop.call_soon(callback)
