"""The slow twin of an index of subscriptions: a list of them, each filter evaluated by its definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.forwarding.language.filter import as_filters

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from contrada.forwarding.language.filter import Expression, Filter
    from contrada.forwarding.language.values import Notification


class NaiveSubscriptions:
    def __init__(self, rows: Iterable[tuple[str, Hashable, Expression]] = ()) -> None:
        self.rows: dict[str, tuple[Hashable, tuple[Filter, ...]]] = {}
        for id, interface, expression in rows:
            self.add(id, interface, expression)

    def add(self, id: str, interface: Hashable, expression: Expression) -> None:
        assert id not in self.rows
        self.rows[id] = (interface, tuple(as_filters(expression)))

    def remove(self, id: str) -> None:
        del self.rows[id]

    def remove_interface(self, interface: Hashable) -> None:
        self.rows = {id: row for id, row in self.rows.items() if row[0] != interface}

    def match_subscriptions(self, notification: Notification) -> list[tuple[Hashable, str]]:
        return [
            (interface, id)
            for id, (interface, filters) in sorted(self.rows.items())
            if any(each.matches(notification) for each in filters)
        ]

    def match(self, notification: Notification) -> set[Hashable]:
        return {interface for interface, _ in self.match_subscriptions(notification)}

    def __len__(self) -> int:
        return sum(len(filters) for _, filters in self.rows.values())
