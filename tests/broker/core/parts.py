"""Fakes with which a part of the broker is tested without the others."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from contrada.broker.core.delivery import Delivery
from contrada.broker.core.matching import Matching
from contrada.broker.core.newcomers import OpenTable
from contrada.broker.node.settings import Settings
from contrada.broker.protocol.frames import decode
from contrada.broker.protocol.wire import Role
from contrada.broker.sessions.batch import deliver_frames
from contrada.broker.sessions.session import Sent, SessionKind
from contrada.broker.sessions.sessions import Identity, Sessions
from contrada.broker.turn.clock import Clock
from contrada.broker.turn.mishaps import Mishaps
from contrada.broker.turn.turns import Turns
from tests.naive.delivery import NaiveTable

if TYPE_CHECKING:
    from contrada.broker.core.publication import Publication

CLIENT = SessionKind(decode=decode, encode_batches=deliver_frames, handlers={}, timeout=10.0, counter="delivered")


class FakeSource:
    """Notes what becomes of its publications."""

    interface = 0
    joins = True

    def __init__(self, session: Any) -> None:
        self.session = session
        self.acknowledged: list[int] = []
        self.refused: list[int] = []

    def number(self, publication: Publication) -> tuple[str, str, int, Any]:
        publication.sequence = publication.request
        return "b", "p", 0, range(publication.request, publication.request + len(publication.bodies))

    def acknowledge(self, publication: Publication) -> None:
        self.acknowledged.append(publication.request)
        publication.settled = True

    def refuse(self, publication: Publication, _wrong: Any, _matched: Any) -> Any:
        self.refused.append(publication.request)
        publication.bodies = ()
        return ()


class FakeInterest:
    """Notes what is wanted."""

    def __init__(self, *, awake: bool = True) -> None:
        self.awake = awake
        self.woken: list[Any] = []
        self.wanted: Counter[bytes] = Counter()
        self.wanted_durably: Counter[bytes] = Counter()

    def interest_changed(self, added: Any, removed: Any) -> None:
        self.wanted = _changed(self.wanted, added, removed)

    def durable_interest_changed(self, added: Any, removed: Any) -> None:
        self.wanted_durably = _changed(self.wanted_durably, added, removed)


def _changed(wanted: Counter[bytes], added: Any, removed: Any) -> Counter[bytes]:
    wanted.update(each.key for each in added)
    wanted.subtract(removed)
    assert all(count >= 0 for count in wanted.values())
    return +wanted


class Bench:
    """Sessions and a delivery, alone."""

    def __init__(self, **options: Any) -> None:
        self.settings = Settings(**options)
        self.clock = Clock()
        self.counters: Counter[str] = Counter()
        self.mishaps = Mishaps(self.counters)
        self.sessions = Sessions(
            self.settings,
            self.clock,
            self.counters,
            self.mishaps,
            id="b",
            identify=lambda _user: Identity("", frozenset(Role)),
        )
        self.table = OpenTable(NaiveTable())
        self.delivery = Delivery(self.sessions, self.clock, self.mishaps, id="b")
        self.matching = Matching(self.table, self.delivery, self.mishaps, Turns())
        self.sent: dict[bytes, list[Any]] = {}
        self.full: set[bytes] = set()

    def open(self, connection: bytes) -> Any:
        return self.sessions.open(connection, connection.decode(), "p", frozenset(Role), None, CLIENT)

    def send(self, connection: bytes, frames: Any) -> Sent:
        if connection in self.full:
            return Sent.FULL
        self.sent.setdefault(connection, []).append(decode(frames))
        return Sent.OK

    def flush(self) -> dict[bytes, list[Any]]:
        self.sessions.flush(self.send)
        sent, self.sent = self.sent, {}
        return sent
