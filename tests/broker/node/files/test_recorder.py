"""A broker that records: what it acknowledged survives its death, and what it recorded is what it did."""

from __future__ import annotations

import errno
import os
import signal
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from contrada import Broker, Client
from contrada.broker.node.files.recorder import Recorder
from contrada.broker.node.settings import Settings
from contrada.broker.protocol.messages import NotificationId, Unsubscribe
from contrada.broker.protocol.wire import Policy, Sync
from contrada.errors import ContradaError, InvalidValue
from contrada.forwarding.codec.msgpack import decode_filter, decode_notification
from contrada.forwarding.recording.reader import (
    Accepted,
    Dropped,
    Fault,
    Gap,
    Recording,
    Started,
    Stopped,
    Subscribed,
    Unsubscribed,
)
from tests.broker.processes import PATIENCE, Dealer, Process, broker
from tests.naive.delivery import holds, read_filter, read_notification

if TYPE_CHECKING:
    from pathlib import Path

    import zmq


def replay(
    recording: Recording, filter: Any = read_filter, notification: Any = read_notification, holds: Any = holds
) -> dict[int, list[int]]:
    """The numbers that went to each interface; asserts that what is recorded follows from what was subscribed."""
    live: dict[int, list[Any]] = {}
    routed: dict[int, list[int]] = {}
    for record in recording:
        if isinstance(record, Started):
            live.clear()
        elif isinstance(record, Subscribed):
            live[record.interface] = [filter(each) for each in record.filters]
            routed[record.interface] = []
        elif isinstance(record, Unsubscribed):
            del live[record.interface]
        elif isinstance(record, Accepted):
            attributes = notification(record.body)
            expected = {i for i, filters in live.items() if any(holds(attributes, *each) for each in filters)}
            assert set(record.interfaces) == expected
            for interface in record.interfaces:
                routed[interface].append(record.number)
    return routed


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, context: zmq.Context[Any]) -> None:
    directory = tmp_path / "log"
    process = Process(tmp_path / "broker.log", {"record": str(directory), "id": "nörd"})
    try:
        subscriber, publisher = Dealer(context, process.url), Dealer(context, process.url)
        subscriber.subscribe(1, "città")
        acknowledged = []
        for _ in range(200):  # a backlog that is on its way when the broker dies
            publisher.publish("città", "elsewhere", wait=False)
        for _ in range(100):
            ack = publisher.publish("città")
            acknowledged.append(ack.entries[-1].sequence)
        for _ in range(1000):
            publisher.publish("città", wait=False)
        subscriber.until_delivered(250)
        process.popen.send_signal(signal.SIGKILL)
        process.popen.wait(PATIENCE)
    finally:
        process.popen.kill()
        process.popen.wait()
        process.popen.stdout.close()
    recording = Recording(directory)
    (routed,) = replay(recording).values()
    accepted = {record.number for record in recording if isinstance(record, Accepted)}
    assert set(acknowledged) <= accepted
    assert {sequence for sequence, _ in subscriber.delivered} <= set(routed)
    assert not any(isinstance(record, Stopped) for record in recording)
    assert {problem.fault for problem in recording.problems} in ({Fault.TORN}, {Fault.OPEN})
    before = recording.end()
    with broker(tmp_path, record=str(directory), id="nörd") as again:
        client = Dealer(context, again.url)
        client.subscribe(1, "città")
        client.publish("città")
    records = list(Recording(directory))
    assert [record.sequence for record in records] == list(range(1, len(records) + 1))
    life = records[before - 1 :]
    assert [type(each) for each in life] == [Started, Subscribed, Accepted, Unsubscribed, Stopped]
    assert life[0].broker == "nörd"
    replay(Recording(directory))


@pytest.mark.parametrize("sync", Sync)
def test_subscriptions_drops_and_ends_are_recorded(tmp_path: Path, context: zmq.Context[Any], sync: Sync) -> None:
    directory = tmp_path / "log"
    with broker(
        tmp_path, record=str(directory), record_sync=sync, record_file_bytes=400, shutdown_timeout=0.3
    ) as process:
        slow, brief, publisher = (Dealer(context, process.url) for _ in range(3))
        slow.subscribe(3, "x", Policy.DROP_OLDEST, credit=1, queue=2)
        brief.subscribe(4, "x", credit=0)
        first = publisher.publish(*"xxxxx").entries[0].sequence
        brief.ask(Unsubscribe(90, 4))
        publisher.publish("x")
    recording = Recording(directory)
    routed = replay(recording)
    assert len(recording.files) > 1
    subscribed = [record for record in recording if isinstance(record, Subscribed)]
    assert [(record.client, record.subscription) for record in subscribed] == [("dealer", 3), ("dealer", 4)]
    assert [len(routed[record.interface]) for record in subscribed] == [6, 5]
    dropped = [record for record in recording if isinstance(record, Dropped)]
    assert {record.reason for record in dropped} == {"drop-oldest", "ended"}
    lost = [number for record in dropped if record.reason == "drop-oldest" for _, number in record.notifications]
    assert lost == [first + 1, first + 2, first + 3]
    assert recording.problems == []


def test_neighbours_are_no_subscriptions_and_notifications_keep_their_ids(tmp_path: Path) -> None:
    with (
        Broker(id="a", record=tmp_path / "a") as first,
        Broker(id="b", record=tmp_path / "b", peers=[first.url]) as second,
        Client(first.url) as near,
        Client(second.url) as far,
    ):
        here, there = near.subscribe('città = "Siena"'), far.subscribe('città = "Siena" or n > 5')
        arrived = None
        while arrived is None:  # until the link is up and the interest has travelled
            published = far.publish({"città": "Siena", "n": 1})
            there.get(timeout=PATIENCE)
            with suppress(TimeoutError):
                arrived = here.get(timeout=0.1)
        far.publish({"n": 6})
    a, b = Recording(tmp_path / "a"), Recording(tmp_path / "b")
    for recording in (a, b):
        replay(recording, decode_filter_alone, decode_notification, lambda n, f: f.matches(n))
        assert recording.problems == []
    crossed = [record for record in a if isinstance(record, Accepted)]
    assert published in [NotificationId(record.broker, record.number) for record in crossed]
    assert all(record.broker == "b" and len(record.interfaces) == 1 for record in crossed)
    assert {record.id for record in crossed} < {record.id for record in b if isinstance(record, Accepted)}


def decode_filter_alone(encoded: bytes) -> tuple[Any]:
    return (decode_filter(encoded),)


def test_a_full_disk_stops_the_recording_and_not_the_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counters: Counter[str] = Counter()
    settings = Settings(record=tmp_path, record_sync="always")
    recorder = Recorder(settings, "b-1", counters)

    def full(file: int, data: Any, offset: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        recorder.writer.subscribed(1, "a", 1, 1, (b"\x90",))
        recorder.commit()
        recorder.commit()
        assert counters["record_failures"] == 1
        recorder.tick(100.0)
        assert recorder.writer.failed
    recorder.tick(102.0)  # too soon
    assert recorder.writer.failed
    recorder.tick(106.0)
    assert not recorder.writer.failed
    recorder.close()
    kinds = [type(record) for record in Recording(tmp_path)]
    assert kinds == [Started, Gap, Subscribed, Stopped]


def test_where_nothing_can_be_recorded_no_broker_starts(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ContradaError, match="cannot record in"):
        Recorder(Settings(record=tmp_path / "file"), "b", Counter())


@pytest.mark.parametrize(
    "options",
    [
        {"record_sync": "sometimes"},
        {"record_file_bytes": 0},
        {"record_file_seconds": -1},
        {"record_total_bytes": -1},
        {"record_total_bytes": 1.5},
    ],
)
def test_settings_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match=next(iter(options))):
        Settings(**options)
