"""A broker for the client's tests: in this process, on a free port, fresh for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contrada.broker.server import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(listen="tcp://127.0.0.1:*") as running:
        yield running


@pytest.fixture
def url(broker: Broker) -> str:
    return broker.url
