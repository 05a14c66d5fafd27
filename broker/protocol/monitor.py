"""What a monitor of a ZeroMQ socket saw: pyzmq's own reader brings asyncio along, which a command need not wait for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def event_number(frames: Sequence[bytes]) -> int:
    """The event of a monitor's message: 16 bits, in the order of this machine, before its value."""
    return int.from_bytes(frames[0][:2], sys.byteorder)
