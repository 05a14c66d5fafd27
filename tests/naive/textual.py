"""The slow twin of every spatio-textual index: a dictionary and the definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from contrada.spatial.textual.protocol import Subscription

    Box = tuple[float, float, float, float]


def matches(subscription: Subscription, tokens: Collection[str], box: Box) -> bool:
    """All keywords among the tokens, and the closed boxes share a point."""
    x1, y1, x2, y2 = subscription.box
    return (
        set(subscription.keywords) <= set(tokens)
        and max(x1, box[0]) <= min(x2, box[2])
        and max(y1, box[1]) <= min(y2, box[3])
    )


class NaiveTextual:
    """Subscriptions by id."""

    def __init__(self, subscriptions: Iterable[Subscription] = ()) -> None:
        self.subscriptions = {s.id: s for s in subscriptions}

    def insert(self, subscription: Subscription) -> None:
        self.subscriptions[subscription.id] = subscription

    def remove(self, id: int) -> None:
        del self.subscriptions[id]

    def search(self, tokens: Collection[str], box: Box) -> list[int]:
        return sorted(s.id for s in self.subscriptions.values() if matches(s, tokens, box))
