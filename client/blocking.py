"""The blocking client: `with Client(url) as c`, `sub = c.subscribe(...)`, `sub.get(timeout=1.0)`.

The same core as the async client, driven by one background thread: it alone touches the socket, answers heartbeats and
reconnects while the application computes. The lock `_changed` guards the core; every event notifies it, and whoever
waits looks again at what it waits for. All methods may be called from any thread.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from contrada.broker.protocol.wire import Policy
from contrada.client.blocking_subscription import Subscription
from contrada.client.engine.core import Core
from contrada.client.engine.encoding import encode_filters, encode_notification, encode_predicate
from contrada.client.engine.events import Connect, Hangup, Phase, Send
from contrada.client.engine.standing import Standing
from contrada.client.holding import Advertisement
from contrada.client.options import OptionNames, Options, takes_options
from contrada.client.patience import FOREVER, Patience
from contrada.client.settle import as_id, check_name, check_subscription, encoded_chunks
from contrada.errors import ContradaError, Disconnected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType
    from typing import Self, Unpack

    from contrada.broker.protocol.messages import NotificationId
    from contrada.client.engine.events import Query
    from contrada.client.engine.outbox import Parcel, Ticket
    from contrada.client.transport import Transport
    from contrada.forwarding.language.filter import Expression

_S = TypeVar("_S", bound=Standing)

log = logging.getLogger("contrada.client")

_TURN = 64  # messages read before the lock is given to others


class _Changed(threading.Condition):
    """A condition of the process that made it. A forked one has no thread that would ever notify it."""

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


@takes_options
class Client:
    """A connection to a broker, made when the object is.

    `timeout` bounds a whole call: `TimeoutError` when it is over.
    """

    def __init__(self, url: str, **options: Unpack[OptionNames]) -> None:
        from contrada.client.transport import Transport

        random = Random()
        self.url = url
        self._core = Core(Options.of(options), random=random)
        self._transport: Transport = Transport(url, self._core.options, random)
        self._changed = _Changed()
        self._failure: BaseException | None = None  # of the background thread
        self._wake_reader, self._wake_writer = os.pipe()
        self._woken = False
        self._thread = threading.Thread(target=self._run, name=f"contrada client {url}", daemon=True)
        self._core.start(time.monotonic())
        self._thread.start()
        try:
            with self._changed:
                self._until(lambda: self._core.phase not in (Phase.GREETING, Phase.WAITING))
                if self._core.phase is not Phase.OPEN:
                    raise self._failure or self._core.error or Disconnected(f"{url}: closed while connecting")
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
        if self._changed.foreign:
            return  # it is for the process that opened it to close it
        try:
            with self._changed:
                self._wake()
                if not self._wait_for(self._settled, self._core.options.close_timeout):
                    log.warning("closing with publications that the broker has not acknowledged")
                self._core.close(time.monotonic())
                self._wake()
                self._wait_for(lambda: self._core.phase is Phase.CLOSED, None)
        finally:
            self._abort()
        self._raise_failure()

    def _abort(self) -> None:
        with self._changed:
            self._core.abort()
            self._wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()

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

    def publish(
        self, notification: Mapping[str, object], *, ack: bool = True, timeout: float | None = None
    ) -> NotificationId | None:
        """Publish one notification and return its id once the broker has accepted and queued it for its subscribers.

        With `ack=False`, return None as soon as it is handed over; at most `outstanding` may be unacknowledged. A
        failure then surfaces in the next `publish`, in `flush` or in `close`.
        """
        body = encode_notification(notification)
        patience = Patience(timeout)
        with self._changed:
            self._room(patience)
            parcel = self._core.publish([body], streamed=not ack)
            self._wake()
            if not ack:
                return None
            try:
                self._until(lambda: parcel.done, patience)
            except BaseException:
                self._core.outbox.disown(parcel)
                raise
            self._finished(parcel, patience)
            return parcel.ids[0]

    def publish_many(
        self, notifications: Iterable[Mapping[str, object]], *, ack: bool = True, timeout: float | None = None
    ) -> list[NotificationId]:
        """Publish in batches, in order; return the ids (none with `ack=False`).

        If one fails, or is invalid, those before it stand and the error names it.
        """
        parcels: list[Parcel] = []
        patience = Patience(timeout)
        try:
            for bodies, fault in encoded_chunks(notifications):
                with self._changed:
                    self._room(patience)
                    parcels.append(self._core.publish(bodies, streamed=not ack))
                    self._wake()
                if fault is not None:
                    raise fault
            if not ack:
                return []
            with self._changed:
                for parcel in parcels:
                    self._finished(parcel, patience)
        except BaseException:
            with self._changed:
                for parcel in parcels:
                    if not parcel.done:
                        self._core.outbox.disown(parcel)
            raise
        return [id for parcel in parcels for id in parcel.ids if id is not None]

    def flush(self, timeout: float | None = None) -> None:
        """Wait until the broker has acknowledged everything streamed; raise if any of it failed."""
        with self._changed:
            self._wake()
            self._until(self._settled, Patience(timeout))
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
    ) -> Subscription:
        """Subscribe, and return once the broker has taken it. See `docs/client.md` for policy, window and queue."""
        return self._subscribe(encode_filters(filter), policy, window, queue, timeout)

    def attach(
        self,
        name: str,
        *,
        policy: Policy | str = Policy.DROP_OLDEST,
        window: int = 1000,
        queue: int = 0,
        timeout: float | None = None,
    ) -> Subscription:
        """Receive what an interface of the broker's index matches. See `docs/client.md`."""
        return self._subscribe(check_name("name", name), policy, window, queue, timeout)

    def _subscribe(
        self, wanted: tuple[bytes, ...] | str, policy: Policy | str, window: int, queue: int, timeout: float | None
    ) -> Subscription:
        request = (wanted, *check_subscription(policy, window, queue))
        return Subscription(self, self._taken(lambda: self._core.subscribe(*request), timeout))

    def advertise(self, filter: Expression | str, *, timeout: float | None = None) -> Advertisement:
        """Say what this client may publish, and return once the broker has taken it. See `docs/routing.md`."""
        filters = encode_filters(filter)
        return Advertisement(self, self._taken(lambda: self._core.advertise(filters), timeout))

    def _taken(self, request: Callable[[], _S], timeout: float | None) -> _S:
        """Ask the core for something standing, and wait until the broker has taken it."""
        with self._changed:
            standing = request()
            self._wake()
            try:
                self._finished(standing.opening, Patience(timeout))
            except BaseException:
                self._core.withdraw(standing)
                self._wake()
                raise
        return standing

    # ------------------------------------------------------------------ asking

    def status(self, timeout: float | None = None) -> dict[str, Any]:
        """Ask the broker what it is doing (role admin)."""
        return self._reply(self._core.status, timeout)

    def explain(
        self,
        notification: NotificationId | str,
        subscription: Subscription | int,
        session: int = 0,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Ask why a notification did or did not reach a subscription; of another session with the role admin."""
        number = subscription if isinstance(subscription, int) else subscription.id
        id = as_id(notification)
        return self._reply(lambda: self._core.explain(id, session, number), timeout)

    def index_load(self, path: str | os.PathLike[str], shard: str = "", timeout: float | None = None) -> dict[str, Any]:
        """Have the broker match by an index of its machine, or a shard "k/n" of it, from now on (role admin)."""
        return self._reply(lambda: self._core.index_load(os.fspath(path), shard), timeout)

    def index_add(
        self, id: str, interface: str, filter: Expression | str, timeout: float | None = None
    ) -> dict[str, Any]:
        """Put a subscription into the broker's index, in place of any of the same id (role admin)."""
        names = check_name("id", id), check_name("interface", interface)
        encoded = encode_predicate(filter)
        return self._reply(lambda: self._core.index_add(*names, encoded), timeout)

    def index_remove(self, id: str, timeout: float | None = None) -> dict[str, Any]:
        """Take a subscription out of the broker's index (role admin)."""
        return self._reply(lambda: self._core.index_remove(check_name("id", id)), timeout)

    def _reply(self, ask: Callable[[], Query], timeout: float | None) -> dict[str, Any]:
        with self._changed:
            query = ask()
            self._wake()
            self._finished(query, Patience(timeout))
        return dict(query.result)

    # ------------------------------------------------------------------ the background thread

    def _run(self) -> None:
        try:
            while True:
                with self._changed:
                    self._woken = False
                    self._core.flush()
                    self._step()
                    if self._core.phase is Phase.CLOSED:
                        return
                    deadline = self._core.deadline()
                self._poll(deadline)
                with self._changed:
                    self._read()
                    self._core.tick(time.monotonic())
        except BaseException as error:
            with self._changed:
                self._failure = error
                self._core.abort()
                self._changed.notify_all()
            if not isinstance(error, ContradaError):
                raise
        finally:
            with self._changed:
                self._transport.hangup(linger=True)
                os.close(self._wake_reader)
                os.close(self._wake_writer)
                self._wake_writer = -1

    def _poll(self, deadline: float | None) -> None:
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        self._transport.wait(self._wake_reader, timeout)

    def _read(self) -> None:
        now = time.monotonic()
        for _ in range(_TURN):
            frames = self._transport.receive()
            if frames is None:
                break
            self._core.receive(frames, now)
        while (report := self._transport.report()) is not None:
            while (frames := self._transport.receive()) is not None:  # what came before the end still counts
                self._core.receive(frames, now)
            self._core.failed(*report, now)

    def _step(self) -> None:
        while self._core.has_actions:
            for action in self._core.take_actions():
                if type(action) is Send:
                    self._transport.send(action.frames)
                elif type(action) is Connect:
                    try:
                        self._transport.connect()
                    except Disconnected as error:
                        self._core.unreachable(error)
                        break  # the rest was for that connection
                elif type(action) is Hangup:
                    self._transport.hangup(linger=action.linger)
        if self._core.take_events():
            self._changed.notify_all()

    # ------------------------------------------------------------------ waiting; the lock is held

    def _wake(self) -> None:
        """Have the background thread look at the core."""
        if not self._woken and self._wake_writer >= 0:
            self._woken = True
            os.write(self._wake_writer, b"!")

    def _wait_for(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        done = self._changed.wait_for(lambda: condition() or self._failure is not None, timeout)
        if self._failure is not None and not condition():
            raise self._failure
        return done

    def _until(self, condition: Callable[[], bool], patience: Patience = FOREVER) -> None:
        if not self._wait_for(condition, patience.left):
            raise patience.error(self.url)

    def _settled(self) -> bool:
        return self._core.outbox.empty or self._core.phase is Phase.CLOSED

    def _room(self, patience: Patience) -> None:
        self._raise_failure()
        core = self._core
        self._until(lambda: core.outbox.has_room or core.phase is Phase.CLOSED, patience)
        self._raise_failure()

    def _finished(self, ticket: Ticket, patience: Patience) -> None:
        self._until(lambda: ticket.done, patience)
        if ticket.error is not None:
            raise ticket.error

    def _raise_failure(self) -> None:
        failure = self._core.outbox.take_failure()
        if failure is not None:
            raise failure
