"""What the router asks of the broker around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contrada.broker.core.ports import EncodedFilter
    from contrada.broker.protocol.peer_messages import PeerMessage
    from contrada.forwarding.language.filter import Filter


@dataclass(frozen=True, slots=True)
class Send:
    """Send this to a neighbour."""

    neighbour: str
    message: PeerMessage


@dataclass(frozen=True, slots=True)
class Install:
    """The neighbour wants what matches this filter."""

    neighbour: str
    key: bytes
    filter: Filter


@dataclass(frozen=True, slots=True)
class Uninstall:
    """The neighbour no longer wants it."""

    neighbour: str
    key: bytes


@dataclass(frozen=True, slots=True)
class StandDown:
    """Another broker has this one's id, started later, and knows of it: leave the overlay to it."""

    rival: int


@dataclass(frozen=True, slots=True)
class InstallDurable:
    """What matches this filter and was published durably is kept for the neighbour, until it has it on disk."""

    neighbour: str
    filter: EncodedFilter


@dataclass(frozen=True, slots=True)
class UninstallDurable:
    """Nothing more is kept for the neighbour because of this filter."""

    neighbour: str
    key: bytes


Action = Send | Install | Uninstall | InstallDurable | UninstallDurable | StandDown
