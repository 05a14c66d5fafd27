"""The examples of docs/client.md run, and importing the client loads nothing heavy."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from contrada.broker.node.server import Broker

EXAMPLES = re.findall(r"```python\n(.*?)```", (Path(__file__).parents[2] / "docs" / "client.md").read_text(), re.S)


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_documentation_run(example: str, broker: Broker) -> None:
    assert "tcp://127.0.0.1:7400" in example
    exec(compile(example.replace("tcp://127.0.0.1:7400", broker.url), "docs/client.md", "exec"), {})


_BLOCKED = """
import sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ImportError(f"{{name}} must not be loaded here")

sys.meta_path.insert(0, Block())
import contrada
{code}
"""


def blocked(code: str, *modules: str, argument: str = "") -> None:
    program = _BLOCKED.format(blocked=set(modules), code=code)
    result = subprocess.run([sys.executable, "-c", program, argument], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr


def test_importing_the_client_loads_no_engine_and_no_sockets() -> None:
    code = "import contrada.client\nfrom contrada import connect, Client\nimport contrada.client.cli.main"
    blocked(code, "numba", "shapely", "pyspark", "zmq", "numpy")


def test_a_client_of_numbers_and_strings_never_loads_the_engine(broker: Broker) -> None:
    code = """
with contrada.Client(sys.argv[1]) as c:
    sub = c.subscribe('hazard > 3 and warning prefix "leak"')
    c.publish({"hazard": 4, "warning": "leak at the plant"})
    assert sub.get(timeout=30)["hazard"] == 4
"""
    blocked(code, "numba", "shapely", "pyspark", argument=broker.url)
