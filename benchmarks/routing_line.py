"""How fast a line of brokers is: end to end by the clock, and broker by broker.

A line of three brokers with its publisher and subscriber keeps five processes busy. With fewer cores, its rate end to
end is at most cores over the processor time of all five, which is printed beside it. So each broker of the line is also
measured by itself, by the same clock and on the same cores as one broker alone: its neighbours are played by processes
that only send and count frames, in portions of the size that the broker before it sent. A line that has a core for
every broker runs at the rate of its slowest. The broker alone and the line have the same publisher and subscriber.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.broker import (
    EVERYTHING,
    Party,
    child,
    encode_all,
    filters,
    notifications,
    processor_time,
    publish_all,
    receive,
    run_subscriber,
    send_all,
)
from contrada import Client
from contrada.broker.overlay.neighbour import WINDOW
from contrada.broker.protocol.frames import decode, encode
from contrada.broker.protocol.messages import Credit, Grant, Link, Ping, Pong, Welcome
from contrada.broker.protocol.peer_frames import decode_peer, encode_peer
from contrada.broker.protocol.peer_messages import Change, Flow, Forward, LinkState, LinkStates, Run
from tests.broker.overlay.clusters import await_overlay, cluster, reaches

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from benchmarks.harness import Report
    from tests.broker.overlay.clusters import BrokerProcess

CORES = os.cpu_count() or 1
CHANCES = 3  # of each measurement the best: whatever else the machine does only makes it slower


class StandIn(Party):
    """Plays a neighbour of a broker with raw frames."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__(url, name=name)
        welcome = decode(self.greeting)
        assert isinstance(welcome, Welcome)
        self.socket.send_multipart(encode(Link(name, False, 1)))
        self.tell(LinkStates((LinkState(name, 1, frozenset((welcome.broker,))),)))

    def tell(self, message: LinkStates | Change | Forward) -> None:
        """Send a message, and wait until the broker has read it."""
        self.socket.send_multipart(encode_peer(message))
        self.socket.send_multipart(encode(Ping(1)))
        while not isinstance(decode_peer(self.socket.recv_multipart()), Pong):
            pass


def run_sink(pipe: Connection, url: str, expected: int, encoded: list[bytes]) -> None:
    """The neighbour that wants everything: report when the first and last came, and in which portions."""
    sink = StandIn(url, "sink")
    sink.tell(Change(Flow.SUBSCRIPTIONS, (EVERYTHING, *encoded), ()))
    pipe.send("ready")
    left, owed, first = expected, 0, 0.0
    portions = []
    while left > 0:
        message = decode_peer(sink.socket.recv_multipart())
        if isinstance(message, Forward):
            first = first or time.perf_counter()
            portions.append(sum(len(run.bodies) for run in message.runs))
            left -= portions[-1]
            owed += portions[-1]
            if owed >= WINDOW // 8:
                sink.socket.send_multipart(encode(Credit((Grant(0, owed),))))
                owed = 0
    pipe.send((first, time.perf_counter(), portions))
    pipe.recv()


def forward_all(source: StandIn, bodies: list[bytes], portions: list[int], before: int) -> None:
    """Forward as fast as credit allows, in the given portions; `before` so many have been numbered already."""
    frames = []
    at = 0
    for count in portions:
        sequences = tuple(range(before + at + 1, before + at + count + 1))
        run = Run("source", "publisher", 1, sequences, tuple(bodies[at : at + count]))
        frames.append((count, encode_peer(Forward((run,)))))
        at += count
    credit = WINDOW
    for count, message in frames:
        while credit < count or source.socket.poll(0):
            heard = decode_peer(source.socket.recv_multipart())
            if isinstance(heard, Credit):
                credit += sum(grant.credit for grant in heard.grants)
        source.socket.send_multipart(message)
        credit -= count


@contextmanager
def line_of(length: int) -> Iterator[list[BrokerProcess]]:
    """Brokers linked in a line."""
    names = [f"b{number}" for number in range(length)]
    with tempfile.TemporaryDirectory() as directory, cluster(Path(directory)) as start:
        brokers: list[BrokerProcess] = []
        for name in names:
            brokers.append(start(name, peers=[brokers[-1].url] if brokers else [], heartbeat=5.0))
        with Client(brokers[0].url) as client:
            await_overlay(client, reaches(*names))
        yield brokers


def end_to_end(length: int, bodies: list[bytes], encoded: list[bytes], batch: int) -> dict[str, Any]:
    """Publish at one end of a line of brokers, subscribe at the other: the rate, and what each process spends."""
    chances = []
    with line_of(length) as brokers, Client(brokers[0].url) as client:
        pids = [broker.popen.pid for broker in brokers]
        for _ in range(CHANCES):
            with child(run_subscriber, brokers[-1].url, len(bodies), encoded, 1) as (receiver, subscriber):
                assert receive(receiver, 120.0) == "ready"
                if length > 1:
                    await_overlay(client, lambda overlay: any(link["held"] for link in overlay["links"]))
                publisher = Party(brokers[0].url, name="publisher")
                frames = encode_all(publisher, bodies, batch)
                everybody = [os.getpid(), *pids, subscriber.pid]
                before = [processor_time(pid) for pid in everybody]
                send_all(publisher, frames, batch, acks=True)
                first, last, _ = receive(receiver)
                spent = [1e6 * (processor_time(pid) - b) for pid, b in zip(everybody, before, strict=True)]
                receiver.send("done")
                publisher.socket.close()
            chances.append((len(bodies) / (last - first), [each / len(bodies) for each in spent]))
    rate, spent = max(chances)
    return {
        "brokers": length,
        "batch": batch,
        "notifications/s": rate,
        "publisher": spent[0],
        "each broker": ", ".join(f"{each:.1f}" for each in spent[1:-1]),
        "subscriber": spent[-1],
        "all": sum(spent),
        "busiest broker": max(spent[1:-1]),
        "at most, by processor time": CORES * 1e6 / sum(spent),
    }


def stage(place: str, bodies: list[bytes], encoded: list[bytes], batch: int, portions: list[int]) -> tuple[float, Any]:
    """Rate of one broker of the line, its neighbours played; and the portions in which it forwards."""
    receiver = run_subscriber if place == "last" else run_sink
    arguments = (encoded, 1) if place == "last" else (encoded,)
    chances = []
    with line_of(1) as (broker,):
        for chance in range(CHANCES):
            with child(receiver, broker.url, len(bodies), *arguments) as (pipe, _):
                assert receive(pipe, 120.0) == "ready"
                if place == "first":
                    party = Party(broker.url, name="publisher")
                    publish_all(party, bodies, batch, acks=True)
                else:
                    party = StandIn(broker.url, "source")
                    forward_all(party, bodies, portions, chance * len(bodies))
                first, last, sent = receive(pipe)
                pipe.send("done")
                party.socket.close()
            chances.append((len(bodies) / (last - first), sent))
    return max(chances)


def line(report: Report) -> None:
    """One broker alone, the line of three end to end, and each broker of it by itself."""
    some, encoded = notifications(60_000), filters(200)
    rows, stages = [], []
    for batch, rounds in ((1, 1), (32, 4)):
        bodies = some * rounds
        alone, three = (
            max(
                (end_to_end(length, bodies, encoded, batch) for _ in range(CHANCES)), key=lambda r: r["notifications/s"]
            )
            for length in (1, 3)
        )
        rows += [alone, three]
        found: dict[str, Any] = {"batch": batch, "alone": alone["notifications/s"]}
        portions: list[int] = []
        for place in ("first", "middle", "last"):
            rate, sent = stage(place, bodies, encoded, batch, portions)
            found[place] = rate
            portions = sent if place != "last" else []
        stages.append(found)
        slowest = min(found[place] for place in ("first", "middle", "last"))
        what = f"3-broker line over one broker, batch {batch}"
        measured = three["notifications/s"] / alone["notifications/s"]
        report.target(f"{what}, end to end on {CORES} cores", measured, 0.7)
        report.target(f"{what}, by its slowest broker", slowest / alone["notifications/s"], 0.7)
        cost = "busiest broker"
        report.target(f"{what}, by processor time", alone[cost] / three[cost], 0.7)
    report.table("A line of brokers end to end, 200 filters and one that takes everything; µs per notification", rows)
    report.table("Each broker of the line by itself, notifications/s", stages)
