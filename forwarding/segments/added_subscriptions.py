"""Which filters that were added to a SegmentedTable are of which subscription."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Sequence


class AddedSubscriptions:
    """Ids of filters by subscription, and back. Filters that were added without a subscription are not in it."""

    def __init__(self) -> None:
        self._subscription_of: dict[int, str] = {}
        self._filters_of: dict[str, list[int]] = {}

    def add(self, subscription: str, ids: Sequence[int]) -> None:
        """Filters, which are new, are of a subscription, which is new."""
        self._filters_of[subscription] = list(ids)
        self._subscription_of.update(dict.fromkeys(ids, subscription))

    def of(self, id: int) -> str | None:
        """The subscription of a filter, if it has one."""
        return self._subscription_of.get(id)

    def filters_of(self, subscription: str) -> list[int]:
        """The filters of a subscription; none when it is not here."""
        return list(self._filters_of.get(subscription, ()))

    def forget(self, id: int) -> None:
        """A filter is no more; with its last one, its subscription is not either."""
        subscription = self._subscription_of.pop(id, None)
        if subscription is not None:
            self._filters_of[subscription].remove(id)
            if not self._filters_of[subscription]:
                del self._filters_of[subscription]

    def keep(self, present: Container[int]) -> None:
        """Forget the filters that are not present."""
        for id in [id for id in self._subscription_of if id not in present]:
            self.forget(id)

    def _check(self, present: Container[int]) -> None:
        """Assert every invariant."""
        assert all(id in present for id in self._subscription_of)
        pairs = {(id, subscription) for subscription, ids in self._filters_of.items() for id in ids}
        assert pairs == set(self._subscription_of.items())
