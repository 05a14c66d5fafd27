"""A recording that believes nothing: what is accepted is matched again against what is subscribed by then."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.naive.delivery import holds, read_filter, read_notification

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


class NaiveRecording:
    """Who subscribes, and what of all that went to each was not dropped."""

    def __init__(self) -> None:
        self.live: dict[int, list[tuple[str, Any]]] = {}
        self.routed: dict[int, list[int]] = defaultdict(list)

    def subscribed(
        self, interface: int, client: str, session: int, subscription: int, filters: Sequence[bytes]
    ) -> None:
        assert interface not in self.live
        self.live[interface] = [read_filter(each) for each in filters]

    def standing(self, interface: int, name: str) -> None:
        assert interface not in self.live

    def attached(self, interface: int, client: str, session: int, subscription: int, name: str) -> None:
        assert interface not in self.live
        self.live[interface] = []  # of an index, which these tests do not have

    def unsubscribed(self, interface: int) -> None:
        del self.live[interface]

    def accepted(
        self, broker: str, number: int, publisher: str, bodies: Sequence[bytes], matched: Sequence[Collection[int]]
    ) -> None:
        assert len(bodies) == len(matched)
        for at, (body, interfaces) in enumerate(zip(bodies, matched, strict=True)):
            attributes = read_notification(body)
            assert set(interfaces) == {
                interface
                for interface, filters in self.live.items()
                if any(holds(attributes, name, value) for name, value in filters)
            }
            for interface in interfaces:
                self.routed[interface].append(number + at)

    def dropped(self, interface: int, reason: str, notifications: Sequence[tuple[str, int]]) -> None:
        for _, number in notifications:
            self.routed[interface].remove(number)

    def _check(self, core: Any) -> None:
        assert self.live.keys() == core.subscriptions.by_interface.keys()
        for interface, subscription in core.subscriptions.by_interface.items():
            assert len(self.routed[interface]) == subscription.delivered + len(subscription.queue)
