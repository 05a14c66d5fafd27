"""docs/broker.md lists every setting, limit, metric and role, and its example runs."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from contrada import Broker, Client
from contrada.broker.node.metrics import COUNTERS
from contrada.broker.node.settings import Settings
from contrada.broker.protocol import wire
from contrada.broker.protocol.messages import Limits
from contrada.broker.protocol.wire import Code, Policy, Role

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "broker.md").read_text()
PROTOCOL = (ROOT / "broker" / "protocol" / "PROTOCOL.md").read_text()


def test_everything_that_can_be_set_or_watched_is_listed():
    wanted = {f.name for f in fields(Settings)} | set(Limits._fields) | {f"{name}_total" for name in COUNTERS}
    wanted |= set(Policy) | set(Role)
    listed = set(re.findall(r"`([\w-]+)(?:\{policy\})?`", PAGE))
    assert wanted <= listed, wanted - listed


def test_the_protocol_page_lists_every_message_and_code():
    numbers = {name: value for name, value in vars(wire).items() if isinstance(value, int) and value < 32}
    for name, number in numbers.items():
        assert name.endswith("VERSION") or f"| {number} | {name} |" in PROTOCOL
    for code in Code:
        assert f"`{code}`" in PROTOCOL


def test_the_examples_run(capsys, tmp_path):
    example, recording = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(example, "docs/broker.md", "exec"), {})
    assert capsys.readouterr().out == "120\n"
    with Broker(record=tmp_path / "log") as broker, Client(broker.url, name="p") as client:
        id = client.publish({"wind": 120})
    exec(compile(recording.replace('"log"', repr(str(tmp_path / "log"))), "docs/broker.md", "exec"), {})
    assert capsys.readouterr().out == f"{id} p {{'wind': 120}} ()\n[]\n"
