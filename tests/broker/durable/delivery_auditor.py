"""What was promised to publishers and subscribers of a simulated world, and what was done.

acknowledged ⊆ delivered    to every durable subscription that was confirmed before and matches
no phantoms                 what is delivered was published, as it is
order                       of one publisher at one subscription: that in which it was published
one id                      however often a notification is delivered, and the id that its publisher was told
drops = counted             what a subscription with limits did not get, its broker says it has dropped
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from contrada.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.broker.durable.simulated_parties import SimulatedClient


class Auditor:
    """Notifications are told apart by a number `x` that ascends as they are published."""

    def __init__(self) -> None:
        self.published: dict[int, tuple[str, int]] = {}  # x: publisher and value
        self.owed: dict[int, set[str]] = {}  # x: the subscriptions that were confirmed when it was published
        self.ids: dict[int, Any] = {}  # x: what its publisher was told, when it was acknowledged
        self.delivered: dict[str, list[tuple[int, Any]]] = defaultdict(list)
        self.refused: set[int] = set()

    def hear(self, publishers: Iterable[SimulatedClient]) -> None:
        """Publishers hear what became of what they published."""
        for publisher in publishers:
            for x, submission in list(publisher.submissions.items()):
                if submission.done:
                    del publisher.submissions[x]
                    if submission.error is None:
                        self.ids[x] = submission.ids[0]
                    elif isinstance(submission.error, Refused):
                        self.refused.add(x)

    def check(self, wants: dict[str, int], dropped: dict[str, int], *, ordered: bool = True) -> None:
        """Assert all of it. `wants` has the value that each subscription asks for."""
        for name, found in self.delivered.items():
            first: dict[int, Any] = {}
            for x, id in found:
                assert x in self.published, f"{name} got {x}, which nobody has published"
                assert self.published[x][1] == wants[name], f"{name} got {x}, which it does not match"
                assert first.setdefault(x, id) == id, f"{name} got {x} under two ids"
                assert self.ids.get(x, id) == id, f"{name} got {x} as {id}, acknowledged as {self.ids[x]}"
            by_publisher: dict[str, list[int]] = defaultdict(list)
            for x in first:
                by_publisher[self.published[x][0]].append(x)
            for publisher, order in by_publisher.items():
                assert not ordered or order == sorted(order), (
                    f"{name} got what {publisher} published in another order: {order}"
                )
        for name, value in wants.items():
            got = {x for x, _ in self.delivered[name]}
            missing = [x for x in self.ids if self.published[x][1] == value and name in self.owed[x] and x not in got]
            assert len(missing) <= dropped[name], f"{name} never got {missing}; {dropped[name]} were counted as dropped"
