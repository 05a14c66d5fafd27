"""A journal in memory, whose commits can be made to fail, and a core on a table top that keeps its state there."""

from __future__ import annotations

from typing import Any, NamedTuple

from contrada.broker.protocol.messages import (
    Ack,
    Acknowledge,
    Acknowledgement,
    DeliverDurable,
    Error,
    Hello,
    Keep,
    Store,
    SubscribeDurable,
)
from contrada.errors import ContradaError
from tests.broker.table_top import TableTop, body, equals


class FakeEntry(NamedTuple):
    sequence: int
    payload: bytes


class FakeJournal:
    """Entries in a list. What is committed survives `crash`."""

    def __init__(self) -> None:
        self.entries: dict[int, bytes] = {}
        self.pending: list[FakeEntry] = []
        self.next = 1
        self.first = 1
        self.failing = ""
        self.commits = 0

    @property
    def on_disk(self) -> int:
        return max(self.entries, default=self.first - 1)

    @property
    def size(self) -> int:
        return sum(map(len, self.entries.values()))

    def append(self, kind: int, payload: bytes) -> int:
        self.pending.append(FakeEntry(self.next, payload))
        self.next += 1
        return self.next - 1

    def commit(self) -> int:
        pending, self.pending = self.pending, []
        if self.failing:
            raise ContradaError(self.failing)
        self.commits += 1
        self.entries.update(pending)
        return self.on_disk

    def read(self, start: int = 1, stop: int | None = None) -> Any:
        for sequence in sorted(self.entries):
            if sequence >= start and (stop is None or sequence < stop):
                yield FakeEntry(sequence, self.entries[sequence])

    def drop_before(self, sequence: int) -> None:
        for each in [each for each in self.entries if each < sequence]:
            del self.entries[each]
        self.first = max(self.first, sequence)

    def crash(self) -> FakeJournal:
        """What is found after a restart."""
        self.pending = []
        self.next = self.on_disk + 1
        return self

    def close(self) -> None:
        pass


class DurableTop(TableTop):
    """A core with a journal. `restart` is a kill and a new life; `hold` lets commits wait until `commit`."""

    def __init__(self, journal: FakeJournal | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.settings = settings
        self.journal = journal or FakeJournal()
        self.wall = 1_000_000.0
        self.jobs: list[Any] = []
        self.core.durable.open(self.journal, lambda: self.wall)

    def hold(self) -> None:
        self.core.durable.store.beside = lambda job, done: self.jobs.append((job, done))

    def commit(self) -> None:
        """Let the disk do what it was asked to, and what follows from that."""
        while self.jobs:
            job, done = self.jobs.pop(0)
            job()
            done()
            self.turn()

    def restart(self) -> DurableTop:
        after = DurableTop(self.journal.crash(), **self.settings)
        after.wall = self.wall + 1
        return after

    def connect(self, *clients: bytes, user: str | None = None) -> None:
        for client in clients:
            self.say(client, Hello(1, 2, client.decode()), user=user)
            self.heard(client)

    def store(self, client: bytes, request: int, *values: Any, key: str = "", retain: str = "") -> None:
        bodies = tuple(body(a=value, n=n) for n, value in enumerate(values))
        self.say(client, Store(request, bodies, key, retain))

    def follow(
        self,
        client: bytes,
        id: int,
        name: str,
        value: Any,
        credit: int = 1000,
        since: Any = None,
        keep: Keep = Keep(),  # noqa: B008  # an immutable tuple
    ) -> list[Any]:
        """Make or take up a durable subscription; what the client hears."""
        self.say(client, SubscribeDurable(2_000_000 + id, id, name, equals("a", value), "", credit, since, keep))
        return self.heard(client)

    def done(self, client: bytes, id: int, first: int, last: int) -> None:
        self.say(client, Acknowledge((Acknowledgement(id, first, last),)))


def stored(messages: list[Any]) -> list[Any]:
    """Every notification of a durable subscription, in order."""
    return [entry for m in messages if isinstance(m, DeliverDurable) for entry in m.entries]


def answers(messages: list[Any]) -> dict[int, Any]:
    """What each request was answered with: a sequence number, or the code of the refusal."""
    found: dict[int, Any] = {}
    for m in messages:
        if isinstance(m, Ack):
            found.update({entry.request: entry.sequence for entry in m.entries})
        elif isinstance(m, Error):
            found[m.request] = m.code
    return found
