"""What the suites of tables share: each is run for every way to match."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contrada.forwarding.state.matching import DEFAULT_MATCHING, MATCHING
from contrada.forwarding.table.table import ForwardingTable

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", params=MATCHING)
def every_matching(request: pytest.FixtureRequest) -> Iterator[str]:
    """Tables that are not told how to match do it this way."""
    init, packed, columns = (
        ForwardingTable.__init__,
        ForwardingTable.packed.__func__,
        ForwardingTable.packed_columns.__func__,
    )
    kept = init.__defaults__, packed.__kwdefaults__, columns.__kwdefaults__
    assert kept[0] is not None
    assert kept[0].count(DEFAULT_MATCHING) == 1
    init.__defaults__ = tuple(request.param if each == DEFAULT_MATCHING else each for each in kept[0])
    packed.__kwdefaults__ = {**kept[1], "matching": request.param}
    columns.__kwdefaults__ = {**kept[2], "matching": request.param}
    yield request.param
    init.__defaults__, packed.__kwdefaults__, columns.__kwdefaults__ = kept
