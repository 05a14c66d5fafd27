"""What a replay tells: the summary that `contrada replay --json` prints and OUT/summary.json holds."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SubscriptionCounts:
    """How many subscriptions there are and how many had no delivery; the busiest, and some that had none."""

    subscriptions: int
    dead: int
    top_subscriptions: list[dict[str, Any]]
    dead_subscriptions: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class TriedOut(SubscriptionCounts):
    """What filters that nobody has subscribed to yet would have received."""

    deliveries: int
    rejected_filters: int


@dataclass(frozen=True, slots=True)
class Differences:
    """How many deliveries are missing from a replay and how many are extra in it, and the first of them."""

    missing: int
    extra: int
    differences: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Replayed(SubscriptionCounts):
    """What a replay did."""

    events: int
    deliveries: int
    rejected: int
    first_event: str | None
    last_event: str | None
    problems: list[str]
    seconds: float
    stages: list[dict[str, Any]] = field(default_factory=list)  # what each cost (metrics.py)
    folder: str | None = None  # of OUT in a store: where all but the summary is
    compare: Differences | None = None
    what_if: TriedOut | None = None

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it: without what was not asked for."""
        return {name: value for name, value in asdict(self).items() if name not in _ASKED or value is not None}


_ASKED = ("compare", "what_if", "folder")
