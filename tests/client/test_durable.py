"""Durable publishing and subscriptions of both clients at brokers with real journals, killed and started again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import contrada
from contrada import Broker, Client, Keep
from contrada.broker.durable.replay import ALL
from contrada.errors import ContradaError, Disconnected, InvalidValue, Refused

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 30.0


def waiting(client: Client) -> dict[str, int]:
    return {each["name"]: each["waiting"] for each in client.durable_subscriptions()["subscriptions"]}


def test_without_data_it_is_refused(tmp_path: Path) -> None:
    with Broker() as broker, Client(broker.url) as c:
        with pytest.raises(Refused, match="--data") as refused:
            c.publish({"x": 1}, durable=True)
        assert refused.value.code == "storage"
        with pytest.raises(Refused, match="--data"):
            c.subscribe("x > 0", durable="desk")
        with pytest.raises(Refused, match="--data"):
            c.publish({"x": 1}, retain="k")
        assert c.publish({"x": 1}) is not None


def test_the_directory_belongs_to_one_broker_at_a_time_and_keeps_its_id(tmp_path: Path) -> None:
    with Broker(data=tmp_path / "data") as first, pytest.raises(ContradaError, match="another broker"):
        Broker(data=tmp_path / "data")
    with Broker(data=tmp_path / "data") as second:
        assert second.id == first.id
    with pytest.raises(ContradaError, match=f"--id {first.id}"):
        Broker(data=tmp_path / "data", id="other")


def test_what_is_published_while_nobody_is_there_waits_on_disk(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as broker, Client(broker.url, name="p") as c:
        c.subscribe("x > 0", durable="desk").close()
        ids = c.publish_many(({"x": x} for x in range(5)), durable=True)
        volatile = c.publish({"x": 9})
    with Broker(data=tmp_path) as broker, Client(broker.url) as c:
        with c.subscribe("x > 0", durable="desk") as desk:
            found = [desk.get(timeout=PATIENCE) for _ in range(5)]
            assert [n.id for n in found] == [*ids[1:], volatile]
            assert [n["x"] for n in found] == [1, 2, 3, 4, 9]
            assert not any(n.redelivered for n in found)
            assert found[0].publisher == "p"
            assert abs(found[0].time - datetime.now(UTC)) < timedelta(minutes=5)
        assert waiting(c) == {"desk": 0}  # the end of the block acknowledges the last


def test_an_exception_in_the_body_leaves_it_unacknowledged(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as broker, Client(broker.url) as c:

        def work() -> None:
            with c.subscribe("x >= 0", durable="desk") as desk:
                c.publish_many([{"x": 1}, {"x": 0}], durable=True)
                for n in desk:
                    1 / n["x"]

        with pytest.raises(ZeroDivisionError):
            work()
        assert waiting(c) == {"desk": 1}
        with c.subscribe("x >= 0", durable="desk") as desk:
            n = desk.get(timeout=PATIENCE)
            assert (n["x"], n.redelivered, n.attempt) == (0, True, 2)


def test_manual_acknowledgement_one_by_one_and_in_runs(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as broker, Client(broker.url) as c:
        desk = c.subscribe("x >= 0", durable="desk", ack="manual")
        c.publish_many(({"x": x} for x in range(6)), durable=True)
        found = [desk.get(timeout=PATIENCE) for _ in range(6)]
        found[4].ack()
        found[2].ack(run=True)
        desk.close()
        desk = c.subscribe("x >= 0", durable="desk", ack="manual")
        assert [desk.get(timeout=PATIENCE)["x"] for _ in range(2)] == [3, 5]
        with pytest.raises(TimeoutError):
            desk.get(timeout=0.01)


def test_asyncio_has_the_same(tmp_path: Path) -> None:
    async def main(url: str) -> list[Any]:
        found = []
        async with contrada.connect(url) as c:
            first = await c.publish({"x": 1}, durable=True, id="k")
            assert await c.publish({"x": 1}, durable=True, id="k") == first
            async with c.subscribe("x > 0", durable="desk", since="all") as desk:
                await c.publish({"x": 2}, durable=True)
                async for n in desk:
                    found.append(n["x"])
                    if len(found) == 2:
                        break
            async with c.subscribe("x > 0", durable="desk", ack="manual") as desk:
                await c.publish({"x": 3}, durable=True)
                n = await desk.get(timeout=PATIENCE)
                await n.ack()
                found.append(n["x"])
            (row,) = (await c.durable_subscriptions())["subscriptions"]
            assert row["waiting"] == 0
            assert (await c.durable_dead("desk"))["letters"] == []
            assert (await c.durable_remove("desk"))["name"] == "desk"
            assert (await c.durable_subscriptions())["subscriptions"] == []
        return found

    with Broker(data=tmp_path) as broker:
        assert asyncio.run(main(broker.url)) == [1, 2, 3]


def test_since_a_time_an_id_and_all(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as broker, Client(broker.url) as c:
        first = c.publish({"x": 1}, durable=True)
        for name, since in (("a", ALL), ("b", first), ("c", str(first)), ("d", 0.0), ("e", datetime.now(UTC))):
            c.subscribe("x > 0", durable=name, since=since).close()
        c.publish({"x": 2}, durable=True)
        assert waiting(c) == {"a": 2, "b": 1, "c": 1, "d": 2, "e": 1}


def test_two_clients_of_one_name_the_later_gets_it(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as broker, Client(broker.url) as one, Client(broker.url) as two:
        before = one.subscribe("x > 0", durable="desk")
        after = two.subscribe("x > 0", durable="desk")
        with pytest.raises(Refused, match="taken over"):
            before.get(timeout=PATIENCE)
        one.publish({"x": 1}, durable=True)
        assert after.get(timeout=PATIENCE)["x"] == 1


def test_last_values_come_first(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as broker, Client(broker.url) as c:
        for speed in (1, 2):
            c.publish({"vehicle": 17, "speed": speed}, retain="vehicle-17")
        c.publish({"vehicle": 18, "speed": 5}, retain="vehicle-18")
        with c.subscribe("vehicle = 17") as road:
            assert road.get(timeout=PATIENCE)["speed"] == 2
        with c.subscribe("vehicle = 18", durable="desk") as desk:
            assert desk.get(timeout=PATIENCE)["speed"] == 5


def test_last_values_are_told_from_news_and_can_be_forgotten(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as broker, Client(broker.url) as c:
        c.publish({"vehicle": 17, "speed": 1}, retain="vehicle-17")
        for durable in (None, "desk"):
            with c.subscribe("vehicle = 17", durable=durable) as road:
                last = road.get(timeout=PATIENCE)
                assert (last["speed"], road.is_last_value(last)) == (1, True)
                c.publish({"vehicle": 17, "speed": 2}, durable=True)
                news = road.get(timeout=PATIENCE)
                assert (news["speed"], road.is_last_value(news)) == (2, False)
        with c.subscribe("vehicle = 17", durable="desk") as road:  # it was there before
            c.publish({"vehicle": 17, "speed": 3}, durable=True)
            assert not road.is_last_value(road.get(timeout=PATIENCE))
            with pytest.raises(Refused, match="in use"):
                c.durable_remove("desk", unused=True)
        assert c.forget("vehicle-17")
        assert not c.forget("vehicle-17")
        c.publish({"vehicle": 18}, retain="vehicle-18")
    with Broker(data=tmp_path) as broker, Client(broker.url) as c, c.subscribe("vehicle exists") as road:
        assert road.get(timeout=PATIENCE)["vehicle"] == 18
        assert c.durable_remove("desk", unused=True)["name"] == "desk"


def test_an_index_has_durable_subscribers_too(tmp_path: Path) -> None:
    from contrada.forwarding.segments.index_directory import write_index

    write_index(tmp_path / "standing", [("s1", "harbour", "wind > 90")])
    for _ in range(2):
        with (
            Broker(data=tmp_path / "data", index=tmp_path / "standing") as broker,
            Client(broker.url) as c,
            c.attach("harbour", durable="desk") as desk,
        ):
            c.publish({"wind": 91}, durable=True)
            assert desk.get(timeout=PATIENCE)["wind"] == 91


def test_a_durable_subscriber_of_an_index_gets_what_another_broker_was_told_while_it_was_away(tmp_path: Path) -> None:
    from contrada.forwarding.segments.index_directory import write_index

    write_index(tmp_path / "standing", [("s1", "harbour", "wind > 90")])
    far_options = {"data": tmp_path / "far", "index": tmp_path / "standing"}
    with Broker(data=tmp_path / "near") as near, Client(near.url) as publisher:
        with Broker(**far_options, peers=[near.url]) as far, Client(far.url) as c:
            c.attach("harbour", durable="desk").close()  # confirmed: the other broker keeps what matches
            publisher.publish({"wind": 91}, durable=True)
        publisher.publish({"wind": 92}, durable=True)
        publisher.publish({"wind": 5}, durable=True)
        with (
            Broker(**far_options, peers=[near.url]) as far,
            Client(far.url) as c,
            c.attach("harbour", durable="desk") as desk,
        ):
            assert [desk.get(timeout=PATIENCE)["wind"] for _ in range(2)] == [91, 92]


def test_one_at_a_time_does_not_use_up_the_attempts_of_the_next(tmp_path: Path) -> None:
    with Broker(data=tmp_path) as broker, Client(broker.url) as c:
        c.subscribe("x >= 0", durable="desk").close()
        for x in range(3):
            c.publish({"x": x}, durable=True)
        for attempt in range(1, 4):
            desk = c.subscribe("x >= 0", durable="desk", ack="manual", window=1)
            n = desk.get(timeout=PATIENCE)
            assert (n["x"], n.attempt) == (0, attempt)
            desk.close()
        with c.subscribe("x >= 0", durable="desk", window=1) as desk:
            assert [(n["x"], n.attempt) for _, n in zip(range(3), desk, strict=False)] == [(0, 4), (1, 1), (2, 1)]


def test_limits_of_a_subscription(tmp_path: Path) -> None:
    with Broker(data=tmp_path, durable={"attempts": 1}) as broker, Client(broker.url) as c:
        c.subscribe("x > 0", durable="desk", keep=Keep(notifications=1)).close()
        c.publish({"x": 1}, durable=True)
        with pytest.raises(Refused, match="'desk' has its 1 notifications") as refused:
            c.publish({"x": 2}, durable=True)
        assert refused.value.code == "limit"
        desk = c.subscribe("x > 0", durable="desk", ack="manual")
        desk.get(timeout=PATIENCE)
        desk.close()
        c.subscribe("x > 0", durable="desk").close()
        c.publish({"x": 0}, durable=True)  # when this is on disk, so is what came before
        (letter,) = c.durable_dead("desk")["letters"]
        assert '"x"' in letter["notification"]


def test_damage_is_reported_and_what_is_intact_is_served(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Broker(data=tmp_path) as broker, Client(broker.url) as c:
        c.subscribe("x >= 0", durable="desk").close()
        for x in range(20):
            c.publish({"x": x, "text": "a" * 100}, durable=True)
    (file,) = (tmp_path / "journal").glob("*.rec")
    content = bytearray(file.read_bytes())
    content[content.index(b"a" * 100, len(content) // 2) + 50] ^= 1
    file.write_bytes(content)
    with Broker(data=tmp_path) as broker, Client(broker.url) as c:
        (damage,) = {record.reason for record in caplog.records if record.message == "journal damaged"}
        assert file.name in damage
        with c.subscribe("x >= 0", durable="desk") as desk:
            found = [desk.get(timeout=PATIENCE)["x"] for _ in range(19)]
            with pytest.raises(TimeoutError):
                desk.get(timeout=0.05)
    assert len(set(range(20)) - set(found)) == 1
    assert found == sorted(found)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"durable": ""}, "durable must be a string"),
        ({"durable": "d", "since": "yesterday"}, "not a notification id"),
        ({"durable": "d", "since": datetime(2026, 1, 1)}, "time zone"),
        ({"durable": "d", "since": -1.0}, "since must be"),
        ({"durable": "d", "ack": "later"}, "ack must be"),
        ({"durable": "d", "keep": 5}, "Keep"),
        ({"durable": "d", "keep": Keep(age=-1)}, r"keep\.age"),
        ({"durable": "d", "keep": Keep(when_age="refuse")}, "refused for its age"),
        ({"durable": "d", "keep": Keep(when_bytes="burn")}, "when_bytes"),
        ({"since": "all"}, "durable subscriptions"),
    ],
)
def test_mistakes_are_named(wrong: dict[str, Any], why: str, tmp_path: Path) -> None:
    with Broker() as broker, Client(broker.url) as c:
        with pytest.raises(InvalidValue, match=why):
            c.subscribe("x > 0", **wrong)
        with pytest.raises(InvalidValue, match="durable=True"):
            c.publish({"x": 1}, id="k")


class Killed:
    """A broker process that is killed and started again on the same address and data."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.url = "tcp://127.0.0.1:*"
        self.popen: subprocess.Popen[str] | None = None

    def start(self) -> str:
        command = [sys.executable, "-m", "contrada", "broker", "--listen", self.url, "--data", "data"]
        self.popen = subprocess.Popen(command, cwd=self.directory, stderr=subprocess.PIPE, text=True)
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            if " listens on " in line:
                self.url = line.split(" listens on ")[1].split(";")[0]
                return self.url
        raise AssertionError("the broker did not start")

    def kill(self) -> None:
        if self.popen is not None:
            self.popen.send_signal(signal.SIGKILL)
            self.popen.wait(PATIENCE)
            assert self.popen.stderr is not None
            self.popen.stderr.close()
            self.popen = None


def test_nothing_acknowledged_is_lost_by_kills_of_the_broker(tmp_path: Path) -> None:
    """Publisher and subscriber stay, the broker is killed while they work: each key arrives exactly once, in order."""
    broker = Killed(tmp_path)
    url = broker.start()
    rounds, each = (3, 40) if os.environ.get("CI") else (6, 100)
    options = {"name": "p", "backoff": 0.01, "backoff_max": 0.1}
    try:
        with Client(url, **options) as p, Client(url, **options) as s, s.subscribe("x >= 0", durable="desk") as desk:
            acknowledged = []
            for turn in range(rounds):
                for number in range(each):
                    if number == each // 2:
                        broker.kill()
                        broker.start()
                    x = turn * each + number
                    acknowledged.append(p.publish({"x": x}, durable=True, id=f"key-{x}", timeout=PATIENCE))
            received = [desk.get(timeout=PATIENCE) for _ in range(rounds * each)]
            assert [n["x"] for n in received] == list(range(rounds * each))
            assert [n.id for n in received] == acknowledged
            with pytest.raises(TimeoutError):
                desk.get(timeout=0.2)
    finally:
        broker.kill()


def test_a_publication_without_a_key_is_left_to_the_application(tmp_path: Path) -> None:
    broker = Killed(tmp_path)
    url = broker.start()
    try:
        with Client(url, backoff=0.01, backoff_max=0.1) as c:
            c.publish({"x": 1}, durable=True)
            assert broker.popen is not None
            broker.popen.send_signal(signal.SIGSTOP)  # it hears, and does not answer
            with pytest.raises(TimeoutError):
                c.publish({"x": 2}, durable=True, timeout=0.2)
            broker.kill()
            broker.start()
            with pytest.raises(Disconnected, match="may or may not"):
                c.flush(timeout=PATIENCE)
            c.publish({"x": 3}, durable=True, timeout=PATIENCE)
    finally:
        broker.kill()
