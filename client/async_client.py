"""The asyncio client: `async with connect(url) as c`, `async with c.subscribe(...) as sub`, `async for n in sub`.

A thin driver around `core.Core`. It reads the socket when the event loop says so and never otherwise waits, so that
everything here runs between two awaits and needs no locks. Cancelling is safe everywhere: a notification leaves a
subscription only when `get` returns it, and a publication is either not handed over yet or runs to its end on its own.
"""

from __future__ import annotations

import asyncio
import logging
import os
from random import Random
from typing import TYPE_CHECKING, Any

from contrada.broker.protocol.wire import Policy
from contrada.client.async_subscription import AsyncSubscription
from contrada.client.engine.core import Core
from contrada.client.engine.encoding import encode_filters, encode_notification, encode_predicate
from contrada.client.engine.events import Connect, Finished, Hangup, Moved, Phase, Ready, Room, Send
from contrada.client.holding import AsyncAdvertisement
from contrada.client.options import OptionNames, Options, takes_options
from contrada.client.patience import in_time
from contrada.client.settle import as_id, check_name, check_subscription, encoded_chunks
from contrada.client.waiting import wait_in, wake
from contrada.errors import ContradaError, Disconnected

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping
    from types import TracebackType
    from typing import Self, Unpack

    from contrada.broker.protocol.messages import NotificationId
    from contrada.client.engine.events import Query
    from contrada.client.engine.outbox import Parcel, Ticket
    from contrada.client.transport import Transport
    from contrada.forwarding.language.filter import Expression

log = logging.getLogger("contrada.client")

_TURN = 64  # messages read before other tasks get a turn


@takes_options
def connect(url: str, **options: Unpack[OptionNames]) -> AsyncClient:
    """Make a client of a broker, to be entered or awaited: `async with contrada.connect(url) as c`."""
    return AsyncClient(url, **options)


@takes_options
class AsyncClient:
    """A connection to a broker. Use it as a context manager, or `await` it and `close` it later.

    `timeout` bounds a whole call: `TimeoutError` when it is over. Cancelling a call does the same.
    """

    def __init__(self, url: str, **options: Unpack[OptionNames]) -> None:
        from contrada.client.transport import Transport

        random = Random()
        self.url = url
        self._core = Core(Options.of(options), random=random)
        self._transport: Transport = Transport(url, self._core.options, random)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._readers: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self._flushing = False
        self._watchers: set[asyncio.Future[None]] = set()  # of room, phase: woken by any change

    # ------------------------------------------------------------------ life

    async def __aenter__(self) -> Self:
        await self._open()
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

    async def _open(self) -> None:
        if self._loop is not None:
            raise ContradaError(f"this client of {self.url} was entered before: make a new one with connect()")
        self._loop = asyncio.get_running_loop()
        self._core.start(self._loop.time())
        try:
            self._step()
            while self._core.phase in (Phase.GREETING, Phase.WAITING):
                await self._change()
        except BaseException:
            self._core.abort()
            self._step()
            raise
        if self._core.phase is not Phase.OPEN:
            raise self._core.error or Disconnected(f"the client of {self.url} was closed while it was connecting")

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
                async with asyncio.timeout(self._core.options.close_timeout):
                    await self._settled()
            except TimeoutError:
                log.warning("closing with publications that the broker has not acknowledged")
            self._core.close(self._now())
            self._step()
            while self._core.phase is not Phase.CLOSED:
                await self._change()
        finally:
            self._core.abort()
            self._step()
        self._raise_failure()

    @property
    def connected(self) -> bool:
        """Whether the broker is there at the moment."""
        return self._core.phase is Phase.OPEN

    @property
    def session(self) -> int:
        """The number of the current or last session at the broker."""
        return self._core.welcome.session if self._core.welcome else 0

    @property
    def broker(self) -> str:
        """The id of the broker."""
        return self._core.welcome.broker if self._core.welcome else ""

    @property
    def reconnects(self) -> int:
        """How often the connection was made again after it was lost."""
        return max(0, self._core.connections - 1)

    # ------------------------------------------------------------------ publishing

    async def publish(
        self, notification: Mapping[str, object], *, ack: bool = True, timeout: float | None = None
    ) -> NotificationId | None:
        """Publish one notification and return its id once the broker has accepted and queued it for its subscribers.

        With `ack=False`, return None as soon as it is handed over; at most `outstanding` may be unacknowledged. A
        failure then surfaces in the next `publish`, in `flush` or in `close`.
        """
        return await in_time(self._publish(encode_notification(notification), ack), timeout, self.url)

    async def _publish(self, body: bytes, ack: bool) -> NotificationId | None:
        await self._room()
        if not ack:
            self._core.publish([body], streamed=True)
            self._flush_soon()
            return None
        parcel = self._core.publish([body])
        self._step()
        try:
            await self._finished(parcel)
        except asyncio.CancelledError:
            self._core.outbox.disown(parcel)
            raise
        return parcel.ids[0]

    async def publish_many(
        self, notifications: Iterable[Mapping[str, object]], *, ack: bool = True, timeout: float | None = None
    ) -> list[NotificationId]:
        """Publish in batches, in order; return the ids (none with `ack=False`).

        If one fails, or is invalid, those before it stand and the error names it.
        """
        return await in_time(self._publish_many(notifications, ack), timeout, self.url)

    async def _publish_many(self, notifications: Iterable[Mapping[str, object]], ack: bool) -> list[NotificationId]:
        parcels: list[Parcel] = []
        try:
            for bodies, fault in encoded_chunks(notifications):
                await self._room()
                parcels.append(self._core.publish(bodies, streamed=not ack))
                self._core.flush()
                self._step()
                if fault is not None:
                    raise fault
            if not ack:
                return []
            for parcel in parcels:
                await self._finished(parcel)
        except BaseException:
            for parcel in parcels:
                if not parcel.done:
                    self._core.outbox.disown(parcel)
            raise
        return [id for parcel in parcels for id in parcel.ids if id is not None]

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until the broker has acknowledged everything streamed; raise if any of it failed."""
        await in_time(self._settled(), timeout, self.url)
        self._raise_failure()

    # ------------------------------------------------------------------ subscribing

    def subscribe(
        self,
        filter: Expression | str,
        *,
        policy: Policy | str = Policy.DROP_OLDEST,
        window: int = 1000,
        queue: int = 0,
        timeout: float | None = None,
    ) -> AsyncSubscription:
        """Subscribe, with `async with` or `await`. See `docs/client.md` for policy, window and queue."""
        return AsyncSubscription(self, encode_filters(filter), check_subscription(policy, window, queue), timeout)

    def attach(
        self,
        name: str,
        *,
        policy: Policy | str = Policy.DROP_OLDEST,
        window: int = 1000,
        queue: int = 0,
        timeout: float | None = None,
    ) -> AsyncSubscription:
        """Receive what an interface of the broker's index matches, with `async with` or `await`."""
        return AsyncSubscription(self, check_name("name", name), check_subscription(policy, window, queue), timeout)

    def advertise(self, filter: Expression | str, *, timeout: float | None = None) -> AsyncAdvertisement:
        """Say what this client may publish, with `async with` or `await`. See `docs/routing.md`."""
        return AsyncAdvertisement(self, encode_filters(filter), timeout)

    # ------------------------------------------------------------------ asking

    async def status(self, timeout: float | None = None) -> dict[str, Any]:
        """Ask the broker what it is doing (role admin)."""
        return await self._reply(self._core.status(), timeout)

    async def explain(
        self,
        notification: NotificationId | str,
        subscription: AsyncSubscription | int,
        session: int = 0,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Ask why a notification did or did not reach a subscription; of another session with the role admin."""
        number = subscription if isinstance(subscription, int) else subscription.id
        return await self._reply(self._core.explain(as_id(notification), session, number), timeout)

    async def index_load(
        self, path: str | os.PathLike[str], shard: str = "", timeout: float | None = None
    ) -> dict[str, Any]:
        """Have the broker match by an index of its machine, or a shard "k/n" of it, from now on (role admin)."""
        return await self._reply(self._core.index_load(os.fspath(path), shard), timeout)

    async def index_add(
        self, id: str, interface: str, filter: Expression | str, timeout: float | None = None
    ) -> dict[str, Any]:
        """Put a subscription into the broker's index, in place of any of the same id (role admin)."""
        names = check_name("id", id), check_name("interface", interface)
        return await self._reply(self._core.index_add(*names, encode_predicate(filter)), timeout)

    async def index_remove(self, id: str, timeout: float | None = None) -> dict[str, Any]:
        """Take a subscription out of the broker's index (role admin)."""
        return await self._reply(self._core.index_remove(check_name("id", id)), timeout)

    async def _reply(self, query: Query, timeout: float | None) -> dict[str, Any]:
        self._step()
        await in_time(self._finished(query), timeout, self.url)
        return dict(query.result)

    # ------------------------------------------------------------------ driving the core

    def _now(self) -> float:
        assert self._loop is not None
        return self._loop.time()

    def _step(self) -> None:
        """Perform what the core wants, and wake whom it names."""
        sent = False
        while self._core.has_actions:
            for action in self._core.take_actions():
                if type(action) is Send:
                    self._transport.send(action.frames)
                    sent = True
                elif type(action) is Connect:
                    try:
                        self._transport.connect()
                    except Disconnected as error:
                        self._core.unreachable(error)
                        break  # the rest was for that connection
                    self._watch()
                elif type(action) is Hangup:
                    self._unwatch()
                    self._transport.hangup(linger=action.linger)
        for event in self._core.take_events():
            if type(event) is Finished:
                wake(event.ticket.waiter)
            elif type(event) is Ready:
                wake(event.inbox.waiter)
            elif type(event) in (Room, Moved):
                wake(self._watchers)
        self._schedule()
        # The socket's descriptor is edge-triggered, and sending may use up the edge: look again.
        if sent and self._transport.readable:
            assert self._loop is not None
            self._loop.call_soon(self._on_readable)

    def _watch(self) -> None:
        assert self._loop is not None
        socket, monitor = self._transport.socket, self._transport.monitor
        assert socket is not None
        assert monitor is not None
        self._readers = [int(socket.fd), int(monitor.fd)]
        self._loop.add_reader(self._readers[0], self._on_readable)
        self._loop.add_reader(self._readers[1], self._on_monitor)
        self._loop.call_soon(self._on_monitor)

    def _unwatch(self) -> None:
        assert self._loop is not None
        for reader in self._readers:
            self._loop.remove_reader(reader)
        self._readers = []

    def _on_readable(self) -> None:
        now = self._now()
        for _ in range(_TURN):
            frames = self._transport.receive()
            if frames is None:
                break
            self._core.receive(frames, now)
        else:  # there may be more, but others want their turn
            assert self._loop is not None
            self._loop.call_soon(self._on_readable)
        self._step()

    def _on_monitor(self) -> None:
        now = self._now()
        while (report := self._transport.report()) is not None:
            while (frames := self._transport.receive()) is not None:  # what came before the end still counts
                self._core.receive(frames, now)
            self._core.failed(*report, now)
            self._step()

    def _on_timer(self) -> None:
        self._timer = None
        self._core.tick(self._now())
        self._step()

    def _schedule(self) -> None:
        """Keep one timer that fires no later than the core's deadline; an early one costs a look, not a mistake."""
        deadline = self._core.deadline()
        if deadline is None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        elif self._timer is None or self._timer.when() > deadline:
            if self._timer is not None:
                self._timer.cancel()
            assert self._loop is not None
            self._timer = self._loop.call_at(deadline, self._on_timer)

    def _flush_soon(self) -> None:
        if self._core.has_actions:
            self._step()
        if not self._flushing:
            self._flushing = True
            assert self._loop is not None
            self._loop.call_soon(self._flush_now)

    def _flush_now(self) -> None:
        self._flushing = False
        self._core.flush()
        self._step()

    # ------------------------------------------------------------------ waiting

    async def _change(self) -> None:
        await wait_in(self._watchers)

    async def _room(self) -> None:
        self._require_open()
        self._raise_failure()
        while not self._core.outbox.has_room and self._core.phase is not Phase.CLOSED:
            self._core.flush()
            self._step()
            await self._change()
            self._raise_failure()

    async def _settled(self) -> None:
        self._core.flush()
        self._step()
        while not self._core.outbox.empty and self._core.phase is not Phase.CLOSED:
            await self._change()

    async def _finished(self, ticket: Ticket) -> None:
        if not ticket.done:
            self._require_open()
            if ticket.waiter is None:
                ticket.waiter = set()
            await wait_in(ticket.waiter)
        if ticket.error is not None:
            raise ticket.error

    def _raise_failure(self) -> None:
        failure = self._core.outbox.take_failure()
        if failure is not None:
            raise failure

    def _require_open(self) -> None:
        if self._loop is None:
            raise Disconnected("the client is not connected: use `async with connect(...)`, or await it")
        if asyncio.get_running_loop() is not self._loop:
            raise ContradaError(f"this client of {self.url} belongs to another event loop: make one in each")
