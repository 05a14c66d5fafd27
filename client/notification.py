"""What a subscriber receives: a mapping of names to values that knows its id and its publisher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contrada.broker.protocol.messages import NotificationId


class Notification(Mapping[str, Any]):
    """A delivered notification: `n["hazard"]`, `n.id`, `n.publisher`. Decoded at the first look inside."""

    __slots__ = ("_body", "_values", "id", "publisher")

    id: NotificationId
    publisher: str

    def __init__(self, id: NotificationId, publisher: str, body: bytes) -> None:
        self.id = id
        self.publisher = publisher
        self._body: bytes = body
        self._values: Mapping[str, Any] | None = None

    @property
    def values_by_name(self) -> Mapping[str, Any]:
        """All attributes as a plain mapping."""
        if self._values is None:
            from contrada.forwarding.codec.msgpack import decode_notification

            self._values = decode_notification(self._body)
        return self._values

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

    def __repr__(self) -> str:
        return f"<Notification {self.id} from {self.publisher or 'unnamed'!r}: {dict(self.values_by_name)!r}>"
