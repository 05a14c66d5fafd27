"""What a broker should deliver, written the obvious way: filters are functions, queues are lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgpack

from contrada.broker.protocol.wire import Policy
from contrada.errors import CodecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class NaiveTable:
    """The broker's view of a forwarding table: an interface is a list of (id, attribute, value)."""

    def __init__(self) -> None:
        self.interfaces: dict[int, list[tuple[int, str, Any]]] = {}
        self.next_id = 1

    def add(self, interface: int, expression: tuple[str, Any]) -> list[int]:
        if expression[0] == "no":
            raise CodecError("no such attribute, ever")
        self.interfaces.setdefault(interface, []).append((self.next_id, *expression))
        self.next_id += 1
        return [self.next_id - 1]

    def adding(self, interface: int, expression: tuple[str, Any], start: int = 0) -> Iterator[list[int]]:
        if not start:
            yield self.add(interface, expression)

    def alike(self) -> NaiveTable:
        return NaiveTable()

    def remove_interface(self, interface: int) -> None:
        del self.interfaces[interface]

    def remove(self, id: int) -> None:
        for interface, filters in list(self.interfaces.items()):
            filters[:] = [each for each in filters if each[0] != id]
            if not filters:
                del self.interfaces[interface]

    def filter(self, id: int) -> tuple[str, Any]:
        return next((name, value) for filters in self.interfaces.values() for i, name, value in filters if i == id)

    def match_bodies(self, bodies: Sequence[bytes]) -> tuple[list[set[int]], dict[int, CodecError]]:
        answers: list[set[int]] = []
        refused = {}
        for place, body in enumerate(bodies):
            try:
                n = read_notification(body)
            except CodecError as error:
                n = {}
                refused[place] = error
            answers.append(
                {i for i, rows in self.interfaces.items() if any(holds(n, name, value) for _, name, value in rows)}
            )
        return answers, refused

    def explain(self, notification: dict[str, Any], filter_id: int) -> dict[str, Any]:
        for filters in self.interfaces.values():
            for id, name, value in filters:
                if id == filter_id:
                    return {"constraint": f"{name} = {value}", "held": holds(notification, name, value)}
        raise KeyError(filter_id)

    def stats(self) -> dict[str, int]:
        return {"interfaces": len(self.interfaces)}


def holds(notification: dict[str, Any], name: str, value: Any) -> bool:
    return name in notification and notification[name] == value


def read_notification(body: bytes) -> dict[str, Any]:
    try:
        document = msgpack.unpackb(body)
    except ValueError as error:
        raise CodecError(f"not msgpack: {error}") from error
    if not isinstance(document, dict):
        raise CodecError("a notification is a map")
    return document


def read_filter(encoded: bytes) -> tuple[str, Any]:
    try:
        name, value = msgpack.unpackb(encoded)
    except (ValueError, TypeError) as error:
        raise CodecError(f"not a filter: {error}") from error
    return name, value


@dataclass
class ModelSubscription:
    """One subscription, delivery by delivery."""

    name: str
    value: Any
    policy: Policy
    credit: int
    limit: int
    queue: list[int] = field(default_factory=list)
    delivered: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)

    def offer(self, sequence: int, *, congested: bool) -> bool:
        """Take one matching notification; whether the queue is over its limit because of it."""
        if self.credit and not self.queue and not congested:
            self.credit -= 1
            self.delivered.append(sequence)
            return False
        self.queue.append(sequence)
        if len(self.queue) > self.limit and self.policy is Policy.DROP_OLDEST:
            self.lost.append(self.queue.pop(0))
        return len(self.queue) > self.limit

    def drain(self) -> None:
        while self.credit and self.queue:
            self.credit -= 1
            self.delivered.append(self.queue.pop(0))
