"""What the core wants its driver to do, in order."""

from __future__ import annotations

from typing import NamedTuple


class Connect(NamedTuple):
    """Connect a new socket."""


class Send(NamedTuple):
    """Send one multipart message on the socket."""

    frames: list[bytes]


class Hangup(NamedTuple):
    """Close the socket. With `linger`, let it first send what it was given."""

    linger: bool = False


Action = Connect | Send | Hangup
