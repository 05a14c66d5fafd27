"""The slow twin of the forwarding table: every filter evaluated by its definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.forwarding.language.filter import as_filters

if TYPE_CHECKING:
    from collections.abc import Hashable

    from contrada.forwarding.language.filter import Expression, Filter
    from contrada.forwarding.language.operands import Roads
    from contrada.forwarding.language.values import Notification
    from contrada.spatial.relations.relate import Discretization


class NaiveTable:
    def __init__(self, discretization: Discretization | None = None, roads: Roads | None = None) -> None:
        self.discretization = discretization
        self.roads = roads
        self.filters: dict[int, tuple[Hashable, Filter]] = {}

    def add(self, interface: Hashable, expression: Expression, ids: list[int]) -> None:
        """Add under the ids that the table under test gave."""
        filters = as_filters(expression)
        assert len(ids) == len(filters)
        for id, each in zip(ids, filters, strict=True):
            assert id not in self.filters
            self.filters[id] = (interface, each)

    def remove(self, id: int) -> None:
        del self.filters[id]

    def remove_interface(self, interface: Hashable) -> None:
        self.filters = {id: pair for id, pair in self.filters.items() if pair[0] != interface}

    def match_filters(self, notification: Notification) -> list[int]:
        return sorted(
            id
            for id, (_, each) in self.filters.items()
            if each.matches(notification, discretization=self.discretization, roads=self.roads)
        )

    def match(self, notification: Notification) -> set[Hashable]:
        return {self.filters[id][0] for id in self.match_filters(notification)}
