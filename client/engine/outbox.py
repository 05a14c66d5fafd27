"""Publications on their way out: queued, sent in batches within the broker's window, acknowledged or failed.

    put ─▶ queue ──departures──▶ flying ──landed──▶ done
                                   │
                                   └── refused, lost ──▶ failed

A `Parcel` is what one call of the application handed over; it leaves in one or more PUBLISH messages ("flights").
Streamed notifications share a parcel until it departs, so that a loop of single publications becomes batches.

What was sent and not acknowledged when the connection broke may or may not have been accepted: sending it again could
publish it twice, so it fails with `Disconnected`, and the application decides. What was not sent stays queued.

Invariants (`_check`): `queued` counts the notifications of `queue` not yet sent; `flying_count` and `flying_bytes`
are the sums over `flights`, never above the broker's window; a parcel is finished exactly once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from contrada.broker.protocol.messages import Limits, NotificationId, Publish
from contrada.errors import ContradaError, Disconnected, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_HEAD_BYTES = 64  # of a PUBLISH besides its notifications
_ITEM_BYTES = 8  # of msgpack around each notification
COALESCE = 256  # streamed notifications that share a parcel


class Ticket:
    """A request of the application, finished exactly once with a result or an error. `waiter` belongs to the driver."""

    __slots__ = ("done", "error", "result", "waiter")

    def __init__(self) -> None:
        self.done = False
        self.error: ContradaError | None = None
        self.result: Any = None
        self.waiter: Any = None

    def finish(self, result: Any = None, error: ContradaError | None = None) -> None:
        """Set the outcome."""
        assert not self.done, "a ticket is finished once"
        self.done, self.result, self.error = True, result, error


class Parcel(Ticket):
    """Notifications that were handed over together. The result is the list of their ids."""

    __slots__ = ("bodies", "ids", "landed", "sent", "streamed")

    def __init__(self, bodies: Sequence[bytes], *, streamed: bool) -> None:
        super().__init__()
        self.bodies = list(bodies)
        self.sent = 0
        self.landed = 0
        self.ids: list[NotificationId | None] = [None] * len(self.bodies)
        self.streamed = streamed


class Flight(NamedTuple):
    """One PUBLISH that has not been answered."""

    parcel: Parcel
    start: int
    number: int
    size: int


class Outbox:
    """Everything published and not yet acknowledged."""

    __slots__ = ("capacity", "failed_count", "failure", "flights", "flying_bytes", "flying_count", "queue", "queued")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.queue: deque[Parcel] = deque()
        self.flights: dict[int, Flight] = {}
        self.queued = 0
        self.flying_count = 0
        self.flying_bytes = 0
        self.failed_count = 0  # streamed notifications that failed since the last `take_failure`
        self.failure: ContradaError | None = None

    @property
    def has_room(self) -> bool:
        """Whether the application may hand over more now."""
        return self.queued + self.flying_count < self.capacity

    @property
    def empty(self) -> bool:
        """Whether everything handed over has been answered."""
        return not self.queue and not self.flights

    def put(self, bodies: Sequence[bytes], *, streamed: bool) -> Parcel:
        """Hand over notifications. A streamed one may join the parcel before it."""
        self.queued += len(bodies)
        last = self.queue[-1] if self.queue else None
        if streamed and last is not None and last.streamed and last.sent == 0 and len(last.bodies) < COALESCE:
            last.bodies.extend(bodies)
            last.ids.extend([None] * len(bodies))
            return last
        parcel = Parcel(bodies, streamed=streamed)
        if bodies:
            self.queue.append(parcel)
        else:
            parcel.finish([])
        return parcel

    def departures(self, limits: Limits, number: Callable[[], int], failed: list[Parcel]) -> Iterator[Publish]:
        """Yield the PUBLISH messages that the window allows now. Parcels that no window could take go to `failed`."""
        while self.queue:
            parcel = self.queue[0]
            room = min(limits.batch, limits.window - self.flying_count, len(parcel.bodies) - parcel.sent)
            room_bytes = min(limits.window_bytes - self.flying_bytes, limits.message_bytes - _HEAD_BYTES)
            count = size = 0
            for body in parcel.bodies[parcel.sent : parcel.sent + max(room, 0)]:
                if (reason := _too_large(len(body), limits)) and not count:
                    self._fail(parcel, Refused(reason, code="limit"), failed)
                    break
                if reason or size + len(body) + _ITEM_BYTES * (count + 1) > room_bytes:
                    break
                count, size = count + 1, size + len(body)
            if parcel.done:
                continue
            if not count:
                return
            flight = Flight(parcel, parcel.sent, count, size)
            parcel.sent += count
            if parcel.sent == len(parcel.bodies):
                self.queue.popleft()
            request = number()
            self.flights[request] = flight
            self.queued -= count
            self.flying_count += count
            self.flying_bytes += size
            yield Publish(request, tuple(parcel.bodies[flight.start : flight.start + count]))

    def landed(self, request: int, broker: str, sequence: int) -> Parcel | None:
        """Note that the broker acknowledged a flight. Return its parcel, if that was the last part of it."""
        flight = self._ground(request)
        if flight is None or flight.parcel.done:
            return None
        parcel, start, count, _ = flight
        parcel.ids[start : start + count] = [NotificationId(broker, sequence + i) for i in range(count)]
        parcel.landed += count
        if parcel.landed < len(parcel.bodies) or parcel.sent < len(parcel.bodies):
            return None
        parcel.finish(parcel.ids)
        return parcel

    def refused(self, request: int, error: ContradaError) -> list[Parcel]:
        """Note that the broker refused a flight: its parcel fails with what is left of it."""
        flight = self._ground(request)
        failed: list[Parcel] = []
        if flight is not None and not flight.parcel.done:
            self._fail(flight.parcel, error, failed)
        return failed

    def lost(self, reason: str) -> list[Parcel]:
        """Note that the connection broke: whatever was on its way fails, with what is left of its parcel."""
        failed: list[Parcel] = []
        flights, self.flights = self.flights, {}
        self.flying_count = self.flying_bytes = 0
        for parcel, _, _, _ in flights.values():
            if not parcel.done:
                accepted = f"{parcel.landed} of {len(parcel.bodies)} were; " if len(parcel.bodies) > 1 else ""
                text = f"{reason}, before the broker acknowledged the publication"
                self._fail(parcel, Disconnected(f"{text} ({accepted}the rest may or may not be accepted)"), failed)
        return failed

    def abandon(self, error: ContradaError) -> list[Parcel]:
        """Fail everything that is left."""
        failed = self.lost(str(error))
        while self.queue:
            self._fail(self.queue[0], error, failed)
        return failed

    def disown(self, parcel: Parcel) -> None:
        """Nobody waits for a parcel any more: should it fail, `take_failure` tells."""
        if parcel.streamed:
            return
        parcel.streamed = True
        if parcel.error is not None:
            self.failure = self.failure or parcel.error
            self.failed_count += len(parcel.bodies) - parcel.landed

    def take_failure(self) -> ContradaError | None:
        """Take the error of what failed since the last call and nobody waited for, with the number of notifications."""
        if self.failure is None:
            return None
        text = f"{self.failed_count} streamed notification(s) failed: {self.failure}"
        error = Refused(text, code=self.failure.code) if isinstance(self.failure, Refused) else Disconnected(text)
        self.failure, self.failed_count = None, 0
        return error

    def _ground(self, request: int) -> Flight | None:
        flight = self.flights.pop(request, None)
        if flight is not None:
            self.flying_count -= flight.number
            self.flying_bytes -= flight.size
        return flight

    def _fail(self, parcel: Parcel, error: ContradaError, failed: list[Parcel]) -> None:
        if parcel.sent < len(parcel.bodies):
            self.queue.remove(parcel)
            self.queued -= len(parcel.bodies) - parcel.sent
        if parcel.streamed:
            self.failure = self.failure or error
            self.failed_count += len(parcel.bodies) - parcel.landed
        parcel.finish(parcel.ids, error)
        failed.append(parcel)

    def _check(self) -> None:
        assert self.queued == sum(len(p.bodies) - p.sent for p in self.queue)
        assert self.flying_count == sum(f.number for f in self.flights.values())
        assert self.flying_bytes == sum(f.size for f in self.flights.values())
        assert all(not p.done and p.sent < len(p.bodies) for p in self.queue)
        assert (self.failure is None) == (self.failed_count == 0)


def _too_large(size: int, limits: Limits) -> str:
    most = min(
        limits.notification_bytes, limits.window_bytes - _ITEM_BYTES, limits.message_bytes - _HEAD_BYTES - _ITEM_BYTES
    )
    return f"a notification of {size:,} bytes; the broker takes at most {most:,}" if size > most else ""
