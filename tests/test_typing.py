"""What a type checker says of a user's program: a misspelt import is an error, and tables know their interfaces."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[1]
PROGRAM = """
from pathlib import Path

import contrada
from contrada import AsyncClient, Client, Explanation, ForwardingTable, Notification, Policy, SegmentedTable
from contrada import Subscription, AsyncSubscription, TableStats, Verdict, NotificationId
from contrada import ForwardinTable  # error: attr-defined

table = ForwardingTable[str]()
table.add("ward", "x > 5")
table.add(7, "x > 5")  # error: arg-type
reveal_type(table.match({"x": 6}))  # set[str]
reveal_type(table.match_many([{"x": 6}]))  # list[set[str]]
reveal_type(table.interface(1))  # str
reveal_type(ForwardingTable().match({"x": 6}))  # set[Hashable]
unannotated = ForwardingTable()
unannotated.add(7, "x > 5")
reveal_type(unannotated.match({}))  # set[Hashable]
by_number: ForwardingTable[int] = ForwardingTable(simplify=False)
reveal_type(by_number.match({}))  # set[int]
reveal_type(ForwardingTable.packed([(7, contrada.Filter(contrada.attr("x") > 5))]).match({}))  # set[int]
reveal_type(ForwardingTable.load(Path("saved")).match({}))  # set[str]
reveal_type(SegmentedTable.open("index").match({}))  # set[str]
reveal_type(SegmentedTable().stats())  # TableStats
reveal_type(table.explain({}, 1).verdicts)  # tuple[Verdict, ...]

def told(client: Client, subscription: Subscription) -> Notification:
    id: NotificationId | None = client.publish({"x": 6}, timeout=5.0)
    reveal_type(client.subscribe("x > 5", policy=Policy.BLOCK))  # Subscription
    client.publich({})  # error: attr-defined
    return subscription.get()

async def heard(client: AsyncClient, subscription: AsyncSubscription) -> Notification:
    reveal_type(client.subscribe("x > 5"))  # AsyncSubscription
    reveal_type(contrada.connect("tcp://127.0.0.1:7400", name="a"))  # AsyncClient
    return await subscription.get()

contrada.nonsense  # error: attr-defined
"""


@pytest.mark.timeout(600)  # nothing is cached on a new machine
def test_a_user_program_is_checked(tmp_path, monkeypatch):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    monkeypatch.chdir(ROOT)
    said, trouble, _ = api.run(["--config-file", "pyproject.toml", "--no-pretty", "--hide-error-context", str(program)])
    assert not trouble
    told = {int(number): (kind, text) for number, kind, text in re.findall(r"program\.py:(\d+): (\w+): (.*)", said)}
    for number, line in enumerate(PROGRAM.splitlines(), 1):
        _, _, wanted = line.partition("  # ")
        if not wanted:
            assert number not in told, (line, told[number])
        elif wanted.startswith("error: "):
            assert told[number][0] == "error", line
            assert told[number][1].endswith(f"[{wanted.removeprefix('error: ')}]"), (line, told[number])
        else:
            revealed = re.sub(r"\b(?:[a-z_]+\.)+", "", told[number][1])
            assert revealed == f'Revealed type is "{wanted}"', (line, told[number])
    assert len(told) == PROGRAM.count("  # ")
