"""examples/operations: the units' commands exist, and the dashboard asks for metrics that are there."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from tests.client.reference import make_broker
from tests.docker.test_docker import SERVICES, parse_contrada

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[2] / "examples" / "operations"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.service")), ids=lambda path: path.name)
def test_units_start_commands_that_exist(path: Path) -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read_string(path.read_text())
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    assert program.endswith("/contrada")
    parse_contrada(words)
    assert unit["Service"]["User"] == "contrada"
    assert unit["Service"]["NoNewPrivileges"] == "yes"


def expressions(panels: list[dict[str, object]]) -> Iterator[str]:
    for panel in panels:
        for target in panel["targets"]:
            yield target["expr"]


def test_the_dashboard_asks_for_metrics_that_exist() -> None:
    pytest.importorskip("aiohttp", reason="the gateway's libraries are not installed: contrada[gateway]")
    from contrada.client.gateway.gateway import Gateway
    from contrada.client.gateway.metrics import GatewayMetrics
    from contrada.client.gateway.settings import GatewaySettings

    dashboard = json.loads((FOLDER / "grafana.json").read_text())
    asked = {name for each in expressions(dashboard["panels"]) for name in re.findall(r"contrada_\w+", each)}
    with make_broker(metrics="127.0.0.1:0") as broker:
        with urlopen(broker.metrics_url, timeout=30) as answer:
            served = answer.read().decode()
        gateway = Gateway.__new__(Gateway)
        gateway.settings = GatewaySettings(http="127.0.0.1:0")
        gateway.streams, gateway.connections = {}, 0
        gateway.health = lambda: "not there"
        served += GatewayMetrics(gateway).text().decode()
    there = set(re.findall(r"^# TYPE (\S+)", served, re.MULTILINE))
    there |= {f"{name}_bucket" for name in there}
    assert asked <= there, asked - there
    assert len(asked) > 15


def test_the_gateway_of_compose_is_watched_by_its_own_check() -> None:
    gateway = SERVICES["gateway"]
    check = gateway["healthcheck"]["test"]
    assert check[0] == "CMD"
    assert "/healthz" in " ".join(check)
    compile(check[-1], "compose.yaml", "exec")
