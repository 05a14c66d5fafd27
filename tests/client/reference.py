"""A forwarding table that evaluates every filter: obviously right, and quick to start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contrada.broker.node.server import Broker
from contrada.forwarding.batches.bodies import decode_some
from contrada.forwarding.language.explain import Explanation, explain
from contrada.forwarding.language.filter import Filter, as_filters
from contrada.spatial.relations.relate import EXACT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contrada.errors import CodecError


class ReferenceTable:
    """What a broker asks of a table, without an index."""

    def __init__(self) -> None:
        self.filters: dict[int, tuple[int, Filter]] = {}
        self.last = 0

    def add(self, interface: int, expression: Any) -> list[int]:
        ids = []
        for each in as_filters(expression):
            self.last += 1
            self.filters[self.last] = (interface, each)
            ids.append(self.last)
        return ids

    def adding(self, interface: int, expression: Any, start: int = 0) -> Iterator[list[int]]:
        for each in as_filters(expression)[start:]:
            yield self.add(interface, each)

    def alike(self) -> ReferenceTable:
        return ReferenceTable()

    def remove(self, filter_id: int) -> None:
        del self.filters[filter_id]

    def filter(self, filter_id: int) -> Filter:
        return self.filters[filter_id][1]

    def remove_interface(self, interface: int) -> None:
        ids = [id for id, row in self.filters.items() if row[0] == interface]
        if not ids:
            raise KeyError(interface)
        for id in ids:
            del self.filters[id]

    def match_bodies(self, bodies: Sequence[bytes]) -> tuple[list[set[int]], dict[int, CodecError]]:
        notifications, refused = decode_some(bodies, range(len(bodies)))
        filters = self.filters.values()
        return [{interface for interface, each in filters if each.matches(n)} for n in notifications], refused

    def explain(self, notification: Mapping[str, Any], filter_id: int) -> Explanation:
        interface, each = self.filters[filter_id]
        return explain(each, interface, notification, EXACT, None)

    def stats(self) -> dict[str, int]:
        return {"filters": len(self.filters)}


def make_broker(listen: str = "tcp://127.0.0.1:*", **options: Any) -> Broker:
    """Make a broker in this process; on a free port unless told otherwise."""
    return Broker(listen=listen, table=ReferenceTable(), **options)
