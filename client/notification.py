"""What a subscriber receives: a mapping of names to values that knows its id and its publisher.

What a durable subscription receives also knows its time, whether it came before, and how to be acknowledged.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from types import ModuleType

    from contrada.broker.protocol.messages import NotificationId


@cache
def codec() -> ModuleType:
    """The codec: loaded when the first notification is looked into."""
    from contrada.forwarding.codec import msgpack

    return msgpack


class Notification(Mapping[str, Any]):
    """A delivered notification: `n["hazard"]`, `n.id`, `n.publisher`. Decoded at the first look inside."""

    __slots__ = ("_body", "_values", "id", "publisher")

    id: NotificationId
    publisher: str
    redelivered = False
    """Whether it may have been delivered before: only to a durable subscription."""

    def __init__(self, id: NotificationId, publisher: str, body: bytes) -> None:
        self.id = id
        self.publisher = publisher
        self._body: bytes = body
        self._values: Mapping[str, Any] | None = None

    @property
    def values_by_name(self) -> Mapping[str, Any]:
        """All attributes as a plain mapping."""
        if self._values is None:
            self._values = codec().decode_notification(self._body)
        return self._values

    @property
    def encoded(self) -> bytes:
        """As the codec wrote it."""
        return self._body

    @property
    def payload(self) -> Any:
        """What was published beside the attributes: bytes, or what JSON can say; None without one."""
        return codec().payload_of(self._body)

    def __getitem__(self, name: str) -> Any:
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Notification):
            return self.id == other.id
        return Mapping.__eq__(self, other)

    def __hash__(self) -> int:
        return hash(self.id)

    def _repr_html_(self) -> str:
        from contrada.forwarding.language.text.html import attributes_html

        return attributes_html(f"{self.id} from {self.publisher or 'unnamed'}", self.values_by_name)

    def __repr__(self) -> str:
        return f"<Notification {self.id} from {self.publisher or 'unnamed'!r}: {dict(self.values_by_name)!r}>"

    @property
    def time(self) -> datetime | None:
        """When the broker stored it: only of a durable subscription."""
        return None

    def ack(self, *, run: bool = False) -> Acknowledged:
        """Say that it need not be delivered again: for a durable subscription."""
        return Acknowledged()


class Draft(dict[str, Any]):
    """Attributes to be published with a payload: what `publish` and `publish_many` take like any mapping."""

    __slots__ = ("payload",)

    def __init__(self, attributes: Mapping[str, object], payload: object) -> None:
        super().__init__(attributes)
        self.payload = payload


class Encoded(bytes):
    """A notification to be published that was checked and encoded already."""

    __slots__ = ()


class Acknowledged:
    """What `ack` returns, so that it can be awaited: there is nothing to wait for."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


class DurableNotification(Notification):
    """A notification of a durable subscription: `n.ack()`, `n.time`, `n.redelivered`, `n.attempt`."""

    __slots__ = ("_acknowledge", "_time", "attempt", "position")

    def __init__(
        self,
        acknowledge: Callable[[int, bool], None],
        id: NotificationId,
        publisher: str,
        body: bytes,
        position: int,
        attempt: int,
        time: int,
    ) -> None:
        super().__init__(id, publisher, body)
        self._acknowledge = acknowledge
        self._time = time
        self.position = position  # in the broker's journal
        self.attempt = attempt  # how often the broker has sent it, this time included

    @property
    def time(self) -> datetime:
        """When the broker stored it, in UTC."""
        return datetime.fromtimestamp(self._time / 1e6, UTC)

    @property
    def redelivered(self) -> bool:  # type: ignore[override]  # a constant of those that are not durable
        """Whether it may have been delivered before."""
        return self.attempt > 1

    def ack(self, *, run: bool = False) -> Acknowledged:
        """Say that it need not be delivered again; with `run`, neither need all that came before it.

        It is sent at once, behind what is under way; awaiting it waits for nothing.
        """
        self._acknowledge(self.position, run)
        return Acknowledged()
