"""A ZeroMQ context per test, closed with everything in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import zmq

from tests.broker.processes import OPEN

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def context() -> Iterator[zmq.Context[Any]]:
    with zmq.Context() as context:
        yield context
        for dealer in OPEN:
            dealer.close()
        OPEN.clear()
