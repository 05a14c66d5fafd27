"""How a client behaves: names, patience, back-off, bounds and keys. Checked once, when the client is made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from contrada.broker.wire import NAME_BYTES
from contrada.errors import InvalidValue

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    Key = str | Path


class OptionNames(TypedDict, total=False):
    """The fields of `Options`, as keyword arguments."""

    name: str
    connect_timeout: float
    attempt_timeout: float
    close_timeout: float
    reconnect: bool
    give_up_after: float | None
    backoff: float
    backoff_max: float
    outstanding: int
    key: Key | None
    server_key: Key | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Keyword arguments of `connect` and `Client`. All times are seconds.

    name              shown in `contrada status`, and the publisher's name where keys do not name it
    connect_timeout   how long the first connection may take before it fails with the reason
    attempt_timeout   how long one attempt waits for the broker's WELCOME
    close_timeout     how long closing waits for streamed publications and the broker's goodbye
    reconnect         whether a lost connection is made again and the subscriptions restored
    give_up_after     how long reconnecting is tried; None: for ever
    backoff           pause after the first failed attempt; doubles up to `backoff_max`, then jittered to 50-100 %
    outstanding       notifications published and not yet acknowledged; publishing waits when they are so many
    key, server_key   CURVE: this client's secret key file, and the broker's public key (a file or its 40 characters)
    """

    name: str = ""
    connect_timeout: float = 5.0
    attempt_timeout: float = 3.0
    close_timeout: float = 5.0
    reconnect: bool = True
    give_up_after: float | None = None
    backoff: float = 0.05
    backoff_max: float = 5.0
    outstanding: int = 4096
    key: Key | None = None
    server_key: Key | None = None

    def __post_init__(self) -> None:
        for field in ("connect_timeout", "attempt_timeout", "close_timeout", "backoff", "backoff_max", "give_up_after"):
            value = getattr(self, field)
            if value is None and field == "give_up_after":
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or value <= 0:
                raise InvalidValue(f"{field} must be a positive number of seconds, not {value!r}")
        if not isinstance(self.name, str) or len(self.name.encode(errors="replace")) > NAME_BYTES:
            raise InvalidValue(f"name must be a string of at most {NAME_BYTES} bytes, not {self.name!r:.200}")
        if any(0xD800 <= ord(character) < 0xE000 for character in self.name):
            raise InvalidValue(f"name holds half a surrogate pair, which UTF-8 cannot write: {self.name!r}")
        if not isinstance(self.reconnect, bool):
            raise InvalidValue(f"reconnect must be true or false, not {self.reconnect!r}")
        if type(self.outstanding) is not int or self.outstanding < 1:
            raise InvalidValue(f"outstanding must be an integer of at least 1, not {self.outstanding!r}")
        if (self.key is None) != (self.server_key is None):
            missing = "server_key" if self.server_key is None else "key"
            raise InvalidValue(f"CURVE needs both keys: {missing} is missing (make a pair with `contrada keygen`)")

    def pause(self, attempt: int, random: Random) -> float:
        """How long to wait after failed attempt number `attempt`, counted from 0."""
        longest = min(self.backoff_max, self.backoff * 2.0 ** min(attempt, 60))
        return longest * random.uniform(0.5, 1.0)
