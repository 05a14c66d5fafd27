"""What this broker keeps of one neighbour: the link while it is up, and what outlives it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contrada.broker.core.session import Session
    from contrada.broker.core.subscription import Subscription
    from contrada.broker.overlay.dial import Dial


@dataclass
class Interest:
    """A neighbour's interface in the forwarding table. Outlives the link, until the router lets go of its filters."""

    handle: int
    filters: dict[bytes, list[int]] = field(default_factory=dict)  # the table's ids of each, by the router's key
    totals: Counter[str] = field(default_factory=Counter)


@dataclass(eq=False)
class Neighbour:
    """One link: a session whose other end is a broker.

    `outlet` is the neighbour's end of the forwarding table: a subscription whose deliveries are FORWARDs, and whose
    credit the neighbour gives. It is among the switchboard's subscriptions while the tree uses the link.
    """

    id: str
    session: Session
    outlet: Subscription
    totals: Counter[str]
    dial: Dial | None = None  # None: the neighbour dialled
    incarnation: int = 0  # of the broker at the other end, once it has said LINK
    up: bool = False
    credit: int = 0  # to be given back to the neighbour
