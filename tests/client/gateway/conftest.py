"""A gateway for tests: in this process, on free ports, before a broker of its own."""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from tests.client.reference import make_broker

aiohttp = pytest.importorskip("aiohttp", reason="the gateway's libraries are not installed: contrada[gateway]")

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from contrada.client.gateway.gateway import Gateway


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
