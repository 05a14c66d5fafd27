"""Linked brokers as processes, over real sockets: a line, a ring with a killed broker, keys, and a lossy network."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from contrada import Box, Client, Point, attr, connect
from contrada.broker.protocol.keys import generate, load_public
from tests.broker.overlay.clusters import PATIENCE, await_overlay, cluster, holds_filters, reaches

if TYPE_CHECKING:
    from pathlib import Path

    from contrada.client.blocking import Subscription


def values(subscription: Subscription, count: int) -> list[int]:
    return [subscription.get(timeout=PATIENCE)["x"] for _ in range(count)]


def test_a_line_of_three_delivers_as_one_broker_would(tmp_path):
    with cluster(tmp_path) as start:
        a = start("a", metrics="127.0.0.1:0")
        b = start("b", peers=[a.url])
        c = start("c", peers=[b.url])
        with Client(a.url) as at_a, Client(b.url) as at_b, Client(c.url) as at_c:
            for client in (at_a, at_b, at_c):
                await_overlay(client, reaches("a", "b", "c"))
            wide = at_c.subscribe(attr("place").inside(Box(0, 0, 10, 10)))
            narrow = at_c.subscribe(attr("place").inside(Box(2, 2, 5, 5)))
            middle = at_b.subscribe("x > 100")
            overlay = await_overlay(at_a, holds_filters(2))
            assert [link["neighbour"] for link in overlay["links"]] == ["b"]
            (to_b,) = [link for link in at_c.status()["overlay"]["links"] if link["neighbour"] == "b"]
            assert (to_b["wanted"], to_b["shown"], to_b["saved"]) == (2, 1, 1), "the wide box covers the narrow one"
            for x in range(200):
                at_a.publish({"x": x, "place": Point(3, 3) if x % 2 else Point(7, 7)})
            assert values(wide, 200) == list(range(200))
            assert values(narrow, 100) == list(range(1, 200, 2))
            assert values(middle, 99) == list(range(101, 200))
            wide.close()
            await_overlay(at_a, lambda overlay: [link["asked"] for link in overlay["links"]] == [2])
            at_a.publish({"x": 1, "place": Point(3, 3)})
            assert values(narrow, 1) == [1]
            (link,) = at_a.status()["overlay"]["links"]
            assert link["forwarded"] == 201
            assert not link["lost"]
            address = next(event["url"] for event in a.events() if event["event"] == "metrics")
            with urllib.request.urlopen(address, timeout=PATIENCE) as response:
                assert 'contrada_link_up{neighbour="b"} 1.0' in response.read().decode()


def test_a_ring_heals_around_a_killed_broker_and_takes_it_back(tmp_path):
    names = "abcde"
    with cluster(tmp_path) as start:
        brokers = {"a": start("a")}
        for before, name in pairwise(names):
            brokers[name] = start(name, peers=[brokers[before].url] + ([brokers["a"].url] if name == "e" else []))
        with Client(brokers["a"].url) as at_a, Client(brokers["c"].url) as at_c:
            for client in (at_a, at_c):
                await_overlay(client, reaches(*names))
            got = at_c.subscribe("x exists")
            await_overlay(at_a, holds_filters(1))
            at_a.publish({"x": 0})
            assert values(got, 1) == [0]
            brokers["b"].kill()
            for client in (at_a, at_c):
                await_overlay(client, reaches("a", "c", "d", "e"))
            await_overlay(at_a, holds_filters(1))
            at_a.publish({"x": 1})
            assert values(got, 1) == [1]
            brokers["b"].start()
            for client in (at_a, at_c):
                await_overlay(client, reaches(*names))
            with Client(brokers["b"].url) as at_b:
                await_overlay(at_b, reaches(*names))
                await_overlay(at_b, holds_filters(1))
                at_b.publish({"x": 2})
                assert values(got, 1) == [2]
            await_overlay(at_a, holds_filters(1))
            at_a.publish({"x": 3})
            assert values(got, 1) == [3]


def test_brokers_link_by_keys_with_the_role_peer_only(tmp_path):
    for name in ("north", "south", "stranger", "unknown"):
        generate(tmp_path / name, "broker", [])
    admit(tmp_path, "north", "south", ["peer"])
    admit(tmp_path, "south", "north", ["peer"])
    admit(tmp_path, "north", "stranger", ["publish"])
    admit(tmp_path, "stranger", "north", ["peer"])
    admit(tmp_path, "south", "stranger", ["peer"])
    admit(tmp_path, "unknown", "north", ["peer"])
    admin = generate(tmp_path / "north", "admin", ["publish", "subscribe", "admin"])[1]
    with cluster(tmp_path) as start:
        north = start("north", keys=str(tmp_path / "north"))
        start("south", keys=str(tmp_path / "south"), peers=[f"north@{north.url}"])
        stranger = start("stranger", keys=str(tmp_path / "stranger"), peers=[f"north@{north.url}"])
        mistaken = start("mistaken", keys=str(copy_with_wrong_key(tmp_path)), peers=[f"north@{north.url}"])
        unknown = start("unknown", keys=str(tmp_path / "unknown"), peers=[f"north@{north.url}"])
        key = load_public(tmp_path / "north" / "broker.secret.toml")
        with Client(north.url, key=str(admin), server_key=key) as client:
            await_overlay(client, reaches("north", "south"))
            until_logged(stranger, "cannot link", "role peer")
            until_logged(mistaken, "cannot link", "another key")
            until_logged(unknown, "cannot link", "refuses this broker's key")
            until_logged(north, "refused", "not in this broker's key directory")
            assert [link["neighbour"] for link in client.status()["overlay"]["links"]] == ["south"]


def test_two_brokers_of_one_id_are_noticed_and_the_later_one_stays(tmp_path):
    (tmp_path / "later").mkdir()
    with cluster(tmp_path) as start, cluster(tmp_path / "later") as start_later:
        m = start("m")
        n = start("n", peers=[m.url])
        old = start("x", peers=[m.url])
        with Client(m.url) as at_m:
            await_overlay(at_m, reaches("m", "n", "x"))
            new = start_later("x", peers=[n.url])
            until_logged(old, "two brokers of one id", "another broker has the id x too")
            with Client(new.url) as at_new:
                await_overlay(at_new, reaches("m", "n", "x"))
                got = at_m.subscribe("x exists")
                await_overlay(at_new, holds_filters(1))
                at_new.publish({"x": 1})
                assert values(got, 1) == [1]


def test_advertisements_steer_subscriptions(tmp_path):
    with cluster(tmp_path) as start:
        a = start("a", advertisements=True)
        b = start("b", peers=[a.url], advertisements=True)
        c = start("c", peers=[b.url], advertisements=True)
        with Client(a.url) as at_a, Client(b.url) as at_b, Client(c.url) as at_c:
            for client in (at_a, at_b, at_c):
                await_overlay(client, reaches("a", "b", "c"))
            storms = at_c.subscribe('kind = "storm" and wind > 90')
            quakes = at_c.subscribe('kind = "quake"')
            with at_a.advertise('kind = "storm" and wind > 60'):
                await_overlay(at_a, holds_filters(1))
                at_a.publish({"kind": "storm", "wind": 120, "x": 1})
                assert values(storms, 1) == [1]
                at_a.publish({"kind": "quake", "x": 2})  # not advertised: it stays at its broker
                at_a.publish({"kind": "storm", "wind": 121, "x": 3})
                assert values(storms, 1) == [3]
                assert quakes.pending == 0
            await_overlay(at_a, holds_filters(0))
            asyncio.run(advertise_and_publish(a.url, at_a))
            assert values(quakes, 1) == [4]


async def advertise_and_publish(url: str, watch: Client) -> None:
    async with connect(url) as client, client.advertise(attr("kind") == "quake"):
        await asyncio.to_thread(await_overlay, watch, holds_filters(1))
        await client.publish({"kind": "quake", "x": 4})


def admit(directory: Path, at: str, who: str, roles: list[str]) -> None:
    key = load_public(directory / who / "broker.secret.toml")
    listed = ", ".join(f'"{role}"' for role in roles)
    (directory / at / f"{who}.toml").write_text(f'public-key = "{key}"\nroles = [{listed}]\n')


def copy_with_wrong_key(directory: Path) -> Path:
    """South's twin, who believes that the stranger's key is north's."""
    shutil.copytree(directory / "south", directory / "mistaken")
    shutil.copy(directory / "mistaken" / "stranger.toml", directory / "mistaken" / "north.toml")
    return directory / "mistaken"


def until_logged(broker, event: str, reason: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not any(e["event"] == event and reason in e.get("reason", "") for e in broker.events()):
        assert time.monotonic() < deadline, broker.log.read_text()
        time.sleep(0.02)


# Network namespaces


@pytest.fixture(params=["clean", "lossy"])
def namespaces(request):
    """Two hosts on one cable, with or without delay and loss; the names of the hosts and of the cable's ends."""
    names = [f"contrada-{os.getpid()}-{end}" for end in "ab"]
    cable = [f"ct{os.getpid() % 100_000}{end}" for end in "ab"]
    if sys.platform != "linux" or shutil.which("ip") is None or shutil.which("tc") is None:
        pytest.skip("network namespaces need Linux with ip and tc")

    def run(*command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode:
            pytest.skip(f"network namespaces are not permitted here: {' '.join(command)}: {done.stderr.strip()}")

    try:
        for name in names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", cable[0], "type", "veth", "peer", "name", cable[1])
        for end, name in enumerate(names):
            run("ip", "link", "set", cable[end], "netns", name)
            run("ip", "-n", name, "addr", "add", f"10.213.7.{end + 1}/24", "dev", cable[end])
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "link", "set", cable[end], "up")
            if request.param == "lossy":
                run("tc", "-n", name, "qdisc", "add", "dev", cable[end], "root", "netem", "delay", "5ms", "loss", "2%")
        yield names, cable
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=PATIENCE, check=False)


def test_a_cable_that_is_unplugged_and_plugged_in_again(tmp_path, namespaces):
    names, cable = namespaces
    with cluster(tmp_path) as start:
        first, second = (
            start(
                id,
                prefix=("ip", "netns", "exec", names[end]),
                listen=f"ipc://{tmp_path}/{id}" if end else "tcp://10.213.7.1:7400",
                insecure=True,
                peers=["tcp://10.213.7.1:7400"] if end else [],
                heartbeat=0.5,
            )
            for end, id in enumerate(["first", "second"])
        )
        watch = start("watch", listen=f"ipc://{tmp_path}/watch", peers=[second.url])
        with Client(second.url) as at_second, Client(watch.url) as at_watch:
            await_overlay(at_second, reaches("first", "second", "watch"))
            got = at_watch.subscribe("x exists")
            await_overlay(at_second, holds_filters(1))
            subprocess.run(["ip", "-n", names[0], "link", "set", cable[0], "down"], check=True, timeout=PATIENCE)
            await_overlay(at_second, reaches("second", "watch"))
            at_second.publish({"x": 1})
            assert values(got, 1) == [1]
            subprocess.run(["ip", "-n", names[0], "link", "set", cable[0], "up"], check=True, timeout=PATIENCE)
            await_overlay(at_second, reaches("first", "second", "watch"))
        assert first.popen.poll() is None
