"""A broker for the client's tests: in this process, on a free port, fresh for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.client.reference import make_broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contrada.broker.node.server import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    with make_broker() as running:
        yield running


@pytest.fixture
def url(broker: Broker) -> str:
    return broker.url
