"""Standing subscriptions: an index beside the table, loaded and changed under a running broker."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import Broker, Client, connect
from contrada.broker.node.settings import Settings
from contrada.broker.protocol.keys import generate
from contrada.errors import CorruptFile, InvalidValue, Refused
from contrada.forwarding.codec.msgpack import decode_filter, decode_notification
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.recording.reader import (
    Accepted,
    Added,
    Attached,
    Indexed,
    Recording,
    Removed,
    Standing,
    Subscribed,
    Unsubscribed,
)
from contrada.forwarding.segments.index_directory import write_index
from contrada.forwarding.segments.manifest import read_manifest
from contrada.spatial.textual.geotext import GeoText
from tests.broker.processes import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from contrada.broker.protocol.messages import NotificationId

ROWS = [
    ("s1", "città", "wind > 90"),
    ("s2", "città", 'place inside BOX(0 0, 5 5) or kind = "flood"'),
    ("s3", "porto", "wind > 100 and wind < 200"),
    ("s4", "porto", 'post matches {"storm"} within BOX(0 0, 9 9)'),
]


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("index") / "standing"
    write_index(path, ROWS)
    return path


@pytest.fixture
def broker(standing: Path) -> Iterator[Broker]:
    with Broker(index=standing) as running:
        yield running


def totals(client: Client) -> dict[str, int]:
    found: dict[str, int] = client.status(timeout=PATIENCE)["totals"]
    return found


def test_who_attaches_gets_what_the_interface_matches(broker: Broker) -> None:
    with Client(broker.url) as client, Client(broker.url) as other:
        client.publish({"wind": 150})
        assert totals(client)["standing_matches"] == totals(client)["unattended"] == 2
        city, port = client.attach("città"), client.attach("porto", policy="block")
        again = other.attach("porto")
        mine = client.subscribe("wind < 95")
        ids = client.publish_many([{"wind": 95}, {"wind": 91}, {"wind": 120}, {"wind": 10}, {"kind": "flood"}])
        assert [city.get(PATIENCE).id for _ in range(4)] == [ids[n] for n in (0, 1, 2, 4)]
        assert port.get(PATIENCE).id == again.get(PATIENCE).id == ids[2]
        assert [mine.get(PATIENCE).id for _ in range(2)] == [ids[1], ids[3]]
        assert totals(client)["unattended"] == 2
        status = client.status(timeout=PATIENCE)
        assert (status["index"]["filters"], status["index"]["attached"]) == (5, 3)
        port.close()
        client.publish({"wind": 130})
        assert again.get(PATIENCE)["wind"] == 130
        assert port.pending == 0
        explained = other.explain(ids[1], again)
        assert (explained["fate"], len(explained["filters"])) == ("no-match", 2)
        assert other.explain(ids[2], again)["fate"] == "delivered"


def test_any_name_may_be_attached_to_before_it_means_something(standing: Path) -> None:
    with Broker() as broker, Client(broker.url) as client:
        port, nothing = client.attach("porto"), client.attach("nessuno")
        client.publish({"wind": 150})
        document = client.index_load(standing, timeout=PATIENCE)
        assert (document["subscriptions"], document["path"]) == (4, str(standing))
        id = client.publish({"wind": 151})
        assert port.get(PATIENCE).id == id
        assert nothing.pending == port.pending == 0


def test_loading_replaces_at_once_while_notifications_pass(standing: Path, tmp_path: Path) -> None:
    """Each notification is matched by one index or the other, as a whole, in the order of the loads."""
    for at in range(2):
        write_index(tmp_path / f"{at}", [(f"{at}{n}", f"side {at}", "n >= 0") for n in range(3)])
    with Broker() as broker, Client(broker.url) as admin, Client(broker.url) as client:
        admin.index_load(tmp_path / "0", timeout=PATIENCE)
        sides = [client.attach(f"side {at}", policy="block", window=100_000) for at in range(2)]
        done = threading.Event()
        sent: list[NotificationId] = []

        def publish() -> None:
            with Client(broker.url) as publisher:
                number = 0
                while not done.is_set():
                    sent.extend(publisher.publish_many([{"n": number + each} for each in range(50)]))
                    number += 50

        thread = threading.Thread(target=publish)
        thread.start()
        for at in (1, 0, 1):
            admin.index_load(tmp_path / f"{at}", timeout=PATIENCE)
        done.set()
        thread.join()
        client.publish({"n": 1})  # behind everything
        seen = [[], []]
        for side, received in zip(sides, seen, strict=True):
            while side.pending:
                received.append(side.get(PATIENCE).id)
        assert sorted(seen[0] + seen[1][:-1]) == sorted(sent)


@pytest.mark.parametrize("fault", ["nowhere", "file", "half", "cut", "foreign", "shard"])
def test_a_bad_index_changes_nothing(broker: Broker, standing: Path, tmp_path: Path, fault: str) -> None:
    bad = tmp_path / "bad"
    write_index(bad, ROWS)
    shard = ""
    if fault == "nowhere":
        bad = tmp_path / "nowhere"
    elif fault == "file":
        bad = bad / "manifest.json"
    elif fault == "half":
        next(bad.glob("*.table")).unlink()
    elif fault == "cut":
        victim = next(bad.glob("*.table"))
        victim.write_bytes(victim.read_bytes()[:-64])
    elif fault == "foreign":
        document = json.loads((bad / "manifest.json").read_text())
        (bad / "manifest.json").write_text(json.dumps({**document, "segments": [{"file": "x"}]}))
    else:
        shard = "3/3"
    with Client(broker.url) as client, client.attach("porto") as port:
        with pytest.raises(Refused, match="shard" if fault == "shard" else str(bad)) as refused:
            client.index_load(bad, shard, timeout=PATIENCE)
        assert refused.value.code == "bad-index"
        client.publish({"wind": 150})
        assert port.get(PATIENCE)["wind"] == 150
        assert client.status(timeout=PATIENCE)["index"]["path"] == str(standing)


def test_no_broker_starts_with_a_bad_index(tmp_path: Path, standing: Path) -> None:
    with pytest.raises(CorruptFile, match="not an index"):
        Broker(index=tmp_path)
    with pytest.raises(InvalidValue, match="k/n"):
        Broker(index=standing, shard="1")
    with pytest.raises(InvalidValue, match="of no index"):
        Settings(shard="0/2")


def test_shards_are_parts_of_the_whole(standing: Path) -> None:
    found = []
    for shard in ("0/2", "1/2"):
        with Broker(index=standing, shard=shard) as broker, Client(broker.url) as client:
            found.append(client.status(timeout=PATIENCE)["index"]["filters"])
    assert sum(found) == 5


def test_single_subscriptions_come_and_go(broker: Broker) -> None:
    with Client(broker.url) as client, client.attach("porto") as port:
        with pytest.raises(Refused, match="no subscription 's9'"):
            client.index_remove("s9")
        with pytest.raises(InvalidValue):
            client.index_add("", "porto", "n > 1")
        assert client.index_add("s9", "porto", "n > 1 or n < -1") == {"id": "s9", "filters": 2, "replaced": False}
        client.publish({"n": 2})
        assert client.index_add("s9", "porto", "n > 10")["replaced"]
        client.publish({"n": 3})
        client.publish({"n": 11})
        assert client.index_remove("s3") == {"id": "s3", "filters": 1}  # one that was built in
        client.publish({"wind": 150})
        client.index_remove("s9")
        client.publish({"n": 12})
        assert [n["n"] for n in (port.get(PATIENCE), port.get(PATIENCE))] == [2, 11]
        assert port.pending == 0
    with Broker() as bare, Client(bare.url) as client, pytest.raises(Refused, match="has no index"):
        client.index_add("s9", "porto", "n > 1")


def test_roles(standing: Path, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    generate(keys, "broker", ())
    for role in ("publish", "subscribe", "admin"):
        generate(keys, role, (role,))

    def client(role: str) -> Client:
        return Client(broker.url, key=keys / f"{role}.secret.toml", server_key=keys / "broker.toml")

    with Broker(index=standing, keys=keys) as broker:
        with client("publish") as c, pytest.raises(Refused, match="role subscribe"):
            c.attach("porto")
        with client("subscribe") as c:
            c.attach("porto")
            with pytest.raises(Refused, match="role admin"):
                c.index_load(standing)
            with pytest.raises(Refused, match="role admin"):
                c.index_add("s9", "porto", "n > 1")
            with pytest.raises(Refused, match="role admin"):
                c.index_remove("s1")
        with client("admin") as c:
            assert c.index_load(standing, timeout=PATIENCE)["filters"] == 5


def test_an_async_client_attaches_and_finds_its_interface_again(standing: Path) -> None:
    async def main() -> None:
        first = Broker(index=standing).start()
        listen = first.url
        async with connect(listen, backoff=0.01, backoff_max=0.1) as client, client.attach("porto") as port:
            await client.publish({"wind": 150})
            assert (await port.get(PATIENCE))["wind"] == 150
            await asyncio.to_thread(first.stop)
            with Broker(listen=listen) as second:
                await client.publish({"wind": 151})  # nothing is standing yet
                assert port.interruptions == 1
                await client.index_load(standing)
                await client.publish({"wind": 152})
                assert (await port.get(PATIENCE))["wind"] == 152
                assert (await client.index_add("s9", "porto", "n > 1"))["filters"] == 1
                assert (await client.index_remove("s9"))["filters"] == 1
                await asyncio.to_thread(second.stop)

    asyncio.run(asyncio.wait_for(main(), 2 * PATIENCE))


def test_neighbours_learn_what_is_attached_to(standing: Path, tmp_path: Path) -> None:
    write_index(tmp_path / "newer", [("s1", "porto", "wind > 300")])
    with (
        Broker(id="a") as first,
        Broker(id="b", index=standing, peers=[first.url]) as second,
        Client(first.url) as near,
        Client(second.url) as far,
    ):

        def held() -> int:
            return sum(row["asked"] for row in near.status(timeout=PATIENCE)["overlay"]["links"])

        def until_held(count: int) -> None:
            while held() != count:
                pass

        while not near.status(timeout=PATIENCE)["overlay"]["links"]:
            pass
        assert held() == 0  # nobody is attached
        port = far.attach("porto")
        until_held(2)
        near.publish({"wind": 150})
        near.publish({"wind": 95})
        near.publish({"wind": 151})
        assert [port.get(PATIENCE)["wind"] for _ in range(2)] == [150, 151]
        far.index_add("s9", "porto", "n > 1")
        until_held(3)
        far.index_remove("s9")
        until_held(2)
        far.index_load(tmp_path / "newer", timeout=PATIENCE)
        until_held(1)
        near.publish({"wind": 301})
        assert port.get(PATIENCE)["wind"] == 301
        port.close()
        until_held(0)


def test_names_that_never_were_are_forgotten(broker: Broker) -> None:
    core = broker._node.core
    with Client(broker.url) as client:
        for n in range(50):
            client.attach(f"nessuno {n}").close()
        city = client.attach("città")
        client.publish({"wind": 95})
        city.close()
        client.publish({"wind": 95})
        assert totals(client)["unattended"] == 1
    broker.stop()
    assert set(core.index._names) == {"città"}
    core._check()


def test_a_damaged_index_is_not_loaded_live(broker: Broker, tmp_path: Path) -> None:
    write_index(tmp_path, ROWS)
    victim = next(tmp_path.glob("*.table"))
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    with Client(broker.url) as client, pytest.raises(Refused, match="damaged"):
        client.index_load(tmp_path, timeout=PATIENCE)


def test_damage_found_behind_a_quick_start_is_taken_out_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_index(tmp_path, ROWS)
    (segment,) = (each for each in read_manifest(tmp_path).segments if each.kind == "hash")
    victim = tmp_path / segment.file
    victim.write_bytes(victim.read_bytes().replace(b"porto", b"pOrto", 1))  # nothing that kernels follow
    with Broker(index=tmp_path) as broker, Client(broker.url) as client:
        while not client.status()["index"]["damaged"] or not totals(client).get("index_damaged"):
            pass  # the broker serves while it is verified
        (damage,) = client.status()["index"]["damaged"]
        assert victim.name in damage
        assert "checksum" in damage
        client.publish({"wind": 150})
        client.publish({"post": GeoText("storm", at=(1, 1))})
        found = totals(client)
        assert (found["index_damaged"], found["index_passed_over"], found["standing_matches"]) == (1, 1, 1)
        client.subscribe("wind > 0")
        client.publish({"wind": 150})  # of clients' own subscriptions nothing is lost
        assert totals(client)["delivered"] == 1
        assert client.status()["index"]["filters"] == 5
    assert "index damaged" in caplog.text


def test_what_stands_is_recorded(standing: Path, tmp_path: Path) -> None:
    with Broker(index=standing, record=tmp_path, record_file_bytes=2000) as broker, Client(broker.url, name="c") as c:
        c.publish({"wind": 150})
        with c.attach("porto") as port, c.subscribe("wind > 0"):
            for n in range(30):
                c.publish({"wind": 140 + n})
            port.get(PATIENCE)
            c.index_add("s9", "città", "n > 1")
            c.publish({"n": 2})
            c.index_remove("s3")
            c.publish({"wind": 170})
    recording = Recording(tmp_path)
    records = list(recording)
    assert recording.problems == []
    assert len(recording.files) > 1
    (loaded,) = (record for record in records if isinstance(record, Indexed))
    assert (loaded.path, loaded.subscriptions, loaded.filters) == (str(standing), 4, 5)
    (attached,) = (record for record in records if isinstance(record, Attached))
    assert (attached.client, attached.name) == ("c", "porto")
    names: dict[int, str] = {}
    index = {id: (name, parse(text)) for id, name, text in ROWS}
    live: dict[int, Any] = {}
    accepted = 0
    for record in records:
        if isinstance(record, Standing):
            names[record.interface] = record.name
        elif isinstance(record, Added):
            index[record.id] = (record.name, decode_filter(record.filter))
        elif isinstance(record, Removed):
            del index[record.id]
        elif isinstance(record, Subscribed):
            live[record.interface] = decode_filter(record.filters[0])
        elif isinstance(record, Unsubscribed):
            live.pop(record.interface, None)
        elif isinstance(record, Accepted):
            accepted += 1
            notification = decode_notification(record.body)
            standing_names = {name for name, f in index.values() if f.matches(notification)}
            assert {names[i] for i in record.interfaces if i in names} == standing_names
            assert {i for i in record.interfaces if i not in names} == {
                i for i, f in live.items() if f.matches(notification)
            }
    assert accepted == 33
    for path in recording.files[1:]:
        restated = [type(record) for record in Recording(path) if getattr(record, "restated", False)]
        assert restated[0] is Indexed


filters = st.sampled_from(["n > 2", "n < 1", "n = 1 or n = 3", 's prefix "a"', "n >= 0 and s exists"])
notifications = st.fixed_dictionaries({}, optional={"n": st.integers(0, 4), "s": st.sampled_from(["a", "ab", "b"])})


@settings(max_examples=15)
@given(
    built=st.lists(st.tuples(st.sampled_from("xyz"), filters), max_size=6),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 7), st.sampled_from("xyz"), filters),
            st.tuples(st.just("remove"), st.integers(0, 7)),
            st.tuples(st.just("publish"), notifications),
        ),
        max_size=12,
    ),
)
def test_an_index_that_changes_answers_as_its_filters_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, shared: tuple[Broker, Client], built: Any, steps: Any
) -> None:
    _, client = shared
    path = tmp_path_factory.mktemp("built")
    model = {f"s{n}": (name, parse(text)) for n, (name, text) in enumerate(built)}
    write_index(path, [(f"s{n}", name, text) for n, (name, text) in enumerate(built)])
    client.index_load(path, timeout=PATIENCE)
    inboxes = {name: client.attach(name, policy="block") for name in "xyz"}
    expected: dict[str, list[Any]] = {name: [] for name in "xyz"}
    for step, *given_ in steps:
        if step == "add":
            id, name, text = f"s{given_[0]}", given_[1], given_[2]
            client.index_add(id, name, text)
            model[id] = (name, parse(text))
        elif step == "remove":
            with suppress(Refused):
                client.index_remove(f"s{given_[0]}")
            model.pop(f"s{given_[0]}", None)
        else:
            id = client.publish(given_[0])
            for name in {name for name, f in model.values() if f.matches(given_[0])}:
                expected[name].append(id)
    for name, inbox in inboxes.items():
        assert [inbox.get(PATIENCE).id for _ in expected[name]] == expected[name]
        assert inbox.pending == 0
        inbox.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Broker, Client]]:
    with Broker() as broker, Client(broker.url) as client:
        yield broker, client
