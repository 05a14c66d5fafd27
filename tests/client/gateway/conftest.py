"""A gateway for tests: in this process, on free ports, before a broker of its own."""

from __future__ import annotations

import shutil
import subprocess
import warnings
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.client.reference import make_broker

aiohttp = pytest.importorskip("aiohttp", reason="the gateway's libraries are not installed: contrada[gateway]")

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from contrada.client.gateway.gateway import Gateway

WEB = Path(__file__).parents[3] / "web"


def loudly_skip(reason: str) -> None:
    """Skip, and have it said at the end of the run even where nobody asks for reasons."""
    warnings.warn(pytest.PytestWarning(f"NOT TESTED: {reason}"), stacklevel=2)
    pytest.skip(reason)


def command(*words: str, timeout: float = 600, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, text=True, capture_output=True, timeout=timeout, check=False, **options)


@pytest.fixture(scope="session")
def node() -> str:
    """Node.js, with what web/ needs installed: of the tests that use it, all run at one worker (xdist's `browser`)."""
    found = shutil.which("node")
    if found is None or shutil.which("npm") is None:
        loudly_skip("the live map and MQTT.js: node and npm are not on this machine")
    if not (WEB / "node_modules" / ".package-lock.json").is_file():  # what npm writes last
        installed = command("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", cwd=WEB)
        if installed.returncode:
            loudly_skip(f"the live map and MQTT.js: npm ci failed: {installed.stderr[-300:]}")
    return str(found)


@asynccontextmanager
async def running(**settings: Any) -> AsyncIterator[tuple[Gateway, Any]]:
    """A broker, its gateway, and an aiohttp session whose paths are the gateway's."""
    from contrada.client.gateway.gateway import Gateway
    from contrada.client.gateway.settings import GatewaySettings

    settings.setdefault("http", "127.0.0.1:0")
    given = settings.pop("broker", None)
    with make_broker() if given is None else nullcontext(given) as broker:
        async with (
            Gateway(broker.url, GatewaySettings.of(settings)) as gateway,
            aiohttp.ClientSession(gateway.http_url or None) as session,
        ):
            yield gateway, session


@pytest.fixture
def gateway_running() -> Callable[..., Any]:
    return running
