"""docs/routing.md lists every metric of a link, and the example cluster is one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from contrada import Broker
from contrada.broker.node.settings import Settings
from contrada.broker.overlay.report import COUNTERS, GAUGES
from contrada.client.cli.commands.cluster import read
from contrada.errors import InvalidValue

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "routing.md").read_text()
PROTOCOL = (ROOT / "broker" / "protocol" / "PROTOCOL.md").read_text()


def test_every_metric_of_a_link_is_listed():
    listed = set(re.findall(r"`(\w+)`", PAGE))
    assert {f"{name}_total" for name in COUNTERS} | set(GAUGES) <= listed


def test_the_example_runs():
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert "tcp://127.0.0.1:7400" in example
    with Broker(advertisements=True) as broker:
        exec(compile(example.replace("tcp://127.0.0.1:7400", broker.url), "docs/routing.md", "exec"), {})


def test_the_protocol_page_lists_every_message_between_brokers():
    from contrada.broker.protocol import wire

    for name in ("LINK", "LINK_STATES", "DIGEST", "REPLACE", "CHANGE", "FORWARD"):
        assert f"| {getattr(wire, name)} | {name} |" in PROTOCOL


def test_the_example_cluster_is_a_ring_of_five():
    brokers = read(ROOT / "examples" / "cluster.toml")
    assert len(brokers) == 5
    for name, options in brokers.items():
        settings = Settings.of(options)
        assert settings.id == name
        assert len(settings.peers) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("= no", "cannot read"),
        ("", "a table"),
        ("brokers = 3", "a table"),
        ("[brokers.a]", "needs listen"),
    ],
)
def test_mistakes_in_a_cluster_are_named(tmp_path, text, reason):
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(InvalidValue, match=reason):
        read(tmp_path / "c.toml")


def test_peers_are_named_by_their_keys(tmp_path):
    (tmp_path / "c.toml").write_text(
        '[brokers.a]\nlisten = "tcp://127.0.0.1:1"\nkeys = "k"\npeers = ["b", "x@tcp://h:1"]\n'
        '[brokers.b]\nlisten = "tcp://127.0.0.1:2"\n'
    )
    assert read(tmp_path / "c.toml")["a"]["peers"] == ["b@tcp://127.0.0.1:2", "x@tcp://h:1"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"peers": "tcp://127.0.0.1:1"}, "must be a list"),
        ({"peers": ["127.0.0.1:1"]}, "not the address of a peer"),
        ({"peers": ["north@tcp://127.0.0.1:1"]}, "do not go together"),
        ({"peers": ["tcp://127.0.0.1:1"], "keys": "k"}, "name its key"),
        ({"hop_limit": 0}, "at least 1"),
    ],
)
def test_bad_settings_of_links_are_named(options, reason):
    with pytest.raises(InvalidValue, match=reason):
        Settings.of(options)
