"""The blocking client: `with Client(url) as c`, `sub = c.subscribe(...)`, `sub.get(timeout=1.0)`.

One background thread drives the core: it alone touches the socket, answers heartbeats and reconnects while the
application computes. The lock guards the core; every change of it notifies the lock, and whoever waits looks again at
what it waits for. All methods may be called from any thread.
"""

from __future__ import annotations

import os
import threading
import time
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
from contrada.client.subscriptions import Advertisement, Subscription
from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType
    from typing import Self, Unpack

    from contrada.broker.protocol.messages import NotificationId
    from contrada.client.base import Operation
    from contrada.forwarding.language.filter import Expression

_T = TypeVar("_T")


class _Lock(threading.Condition):
    """A lock of the process that made it. A forked one has no thread that would ever notify it."""

    def __init__(self) -> None:
        super().__init__()
        self._process = os.getpid()

    @property
    def foreign(self) -> bool:
        return os.getpid() != self._process

    def __enter__(self) -> bool:
        if self.foreign:
            raise ContradaError(
                f"this client belongs to process {self._process}, from which this one was forked: make a new one here"
            )
        return super().__enter__()


@takes_options(Options)
class Client(BaseClient):
    """A connection to a broker, made when the object is.

    `timeout` bounds a whole call: `TimeoutError` when it is over.
    """

    _lock: _Lock

    def __init__(self, url: str, **options: Unpack[OptionNames]) -> None:
        super().__init__(url, options)
        self._lock = _Lock()
        self._wake_reader, self._wake_writer = os.pipe()
        self._woken = False
        self._thread = threading.Thread(target=self._serve, name=f"contrada client {url}", daemon=True)
        self._core.start(self._now())
        self._thread.start()
        try:
            self._run(self._open())
        except BaseException:
            self._abort()
            raise

    # ------------------------------------------------------------------ life

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except ContradaError as failure:
            if error is None:
                raise
            log.error("while closing: %s", failure)

    def close(self) -> None:
        """Wait for streamed publications, say goodbye, close. Raises if a streamed publication failed."""
        if self._lock.foreign:
            return  # it is for the process that opened it to close it
        try:
            try:
                self._run(self._drain(), self._core.options.close_timeout)
            except TimeoutError:
                log.warning("closing with publications that the broker has not acknowledged")
            self._run(self._leave())
        finally:
            self._abort()
        self._raise_failure()

    def _abort(self) -> None:
        with self._lock:
            self._core.abort()
            self._perform()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # ------------------------------------------------------------------ publishing

    def publish(
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
        return self._run(self._publish(notification, ack, durable, id, retain, payload), timeout)

    def publish_many(
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
        return self._run(self._publish_many(notifications, ack, durable), timeout)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until the broker has acknowledged everything streamed; raise if any of it failed."""
        self._run(self._flush(), timeout)

    # ------------------------------------------------------------------ subscribing

    @takes_options(SubscriptionOptions)
    def subscribe(
        self,
        filter: Expression | str,
        *,
        timeout: float | None = None,
        **options: Unpack[SubscriptionOptionNames],
    ) -> Subscription:
        """Subscribe, and return once the broker has taken it."""
        make = self._wanted(encode_filters(filter), options)
        return Subscription(self, self._run(self._keep(make), timeout))

    @takes_options(SubscriptionOptions)
    def attach(
        self, name: str, *, timeout: float | None = None, **options: Unpack[SubscriptionOptionNames]
    ) -> Subscription:
        """Receive what an interface of the broker's index matches."""
        make = self._wanted(check_name("name", name), options)
        return Subscription(self, self._run(self._keep(make), timeout))

    def advertise(self, filter: Expression | str, *, timeout: float | None = None) -> Advertisement:
        """Say what this client may publish, and return once the broker has taken it. See `docs/routing.md`."""
        return Advertisement(self, self._run(self._keep(self._advertisement(filter)), timeout))

    # ------------------------------------------------------------------ asking

    def status(self, timeout: float | None = None) -> dict[str, Any]:
        """Ask the broker what it is doing (role admin)."""
        return self._run(self._status(), timeout)

    def explain(
        self,
        notification: NotificationId | str,
        subscription: Subscription | int,
        session: int = 0,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Ask why a notification did or did not reach a subscription; of another session with the role admin."""
        number = subscription if isinstance(subscription, int) else subscription.id
        return self._run(self._explain(notification, number, session), timeout)

    def list_subscriptions(self, after: int = 0, timeout: float | None = None) -> dict[str, Any]:
        """Ask for a page of everybody's subscriptions, those behind the interface `after` (role admin).

        `subscriptions` has them with their filters, and `next` what to ask for next: 0 at the end.
        """
        return self._run(self._list_subscriptions(after), timeout)

    def list_receivers(
        self, notifications: Iterable[NotificationId | str], timeout: float | None = None
    ) -> dict[str, Any]:
        """Ask which interfaces these notifications of late went to, by their ids (role admin)."""
        return self._run(self._list_receivers(notifications), timeout)

    def index_load(self, path: str | os.PathLike[str], shard: str = "", timeout: float | None = None) -> dict[str, Any]:
        """Have the broker match by an index of its machine, or a shard "k/n" of it, from now on (role admin)."""
        return self._run(self._index_load(path, shard), timeout)

    def index_add(
        self, id: str, interface: str, filter: Expression | str, timeout: float | None = None
    ) -> dict[str, Any]:
        """Put a subscription into the broker's index, in place of any of the same id (role admin)."""
        return self._run(self._index_add(id, interface, filter), timeout)

    def index_remove(self, id: str, timeout: float | None = None) -> dict[str, Any]:
        """Take a subscription out of the broker's index (role admin)."""
        return self._run(self._index_remove(id), timeout)

    def durable_subscriptions(self, after: str = "", timeout: float | None = None) -> dict[str, Any]:
        """List the durable subscriptions that are this client's (role admin: all), by name, behind a name."""
        return self._run(self._durable_query(DurableAction.LIST, after), timeout)

    def durable_remove(self, name: str, *, unused: bool = False, timeout: float | None = None) -> dict[str, Any]:
        """End a durable subscription, with everything that waits for it; with `unused`, only if nobody uses it."""
        return self._run(self._durable_query(DurableAction.REMOVE, name, int(unused)), timeout)

    def durable_dead(self, name: str, behind: int = 0, timeout: float | None = None) -> dict[str, Any]:
        """Read the dead letters of a durable subscription, behind a position."""
        return self._run(self._durable_query(DurableAction.DEAD, name, behind), timeout)

    def durable_unlink(self, neighbour: str, timeout: float | None = None) -> dict[str, Any]:
        """Have the broker keep nothing more for a neighbour that is gone for good (role admin)."""
        return self._run(self._durable_query(DurableAction.UNLINK, neighbour), timeout)

    def forget(self, key: str, timeout: float | None = None) -> bool:
        """Let a key have no last value any more; whether it had one."""
        document = self._run(self._durable_query(DurableAction.FORGET, key), timeout)
        return bool(document["forgotten"])

    # ------------------------------------------------------------------ running operations

    def _run(self, operation: Operation[_T], timeout: float | None = None, missing: str = "") -> _T:
        """Run an operation to its end; TimeoutError says what was missing when time was up. It waits with the lock."""
        end = None if timeout is None else time.monotonic() + timeout
        try:
            while True:
                next(operation)
                if self._failure is not None:
                    raise self._failure
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError(f"{missing or f'{self.url}: no answer'} in {timeout:g} s")
                self._lock.wait(left)
        except StopIteration as stop:
            result: _T = stop.value
            return result
        finally:
            operation.close()

    # ------------------------------------------------------------------ the background thread

    def _serve(self) -> None:
        try:
            while True:
                with self._lock:
                    self._woken = False
                    self._core.flush()
                    self._perform_actions()
                    if self._core.take_changed():
                        self._lock.notify_all()
                    if self._core.phase is Phase.CLOSED:
                        return
                    deadline = self._core.deadline()
                timeout = None if deadline is None else max(0.0, deadline - self._now())
                self._transport.wait(self._wake_reader, timeout)
                with self._lock:
                    self._read_messages()
                    self._read_reports()
                    self._core.tick(self._now())
        except BaseException as error:
            with self._lock:
                self._failure = error
                self._core.abort()
                self._lock.notify_all()
            if not isinstance(error, ContradaError):
                raise
        finally:
            with self._lock:
                self._transport.hangup(linger=True)
                os.close(self._wake_reader)
                os.close(self._wake_writer)
                self._wake_writer = -1

    def _now(self) -> float:
        return time.monotonic()

    def _perform(self) -> None:
        """Have the background thread look at the core. The lock is held."""
        if not self._woken and self._wake_writer >= 0:
            self._woken = True
            os.write(self._wake_writer, b"!")

    _flush_soon = _perform

    def _watch(self) -> None:
        """The thread waits for whatever socket there is."""

    def _unwatch(self) -> None:
        """Likewise."""
