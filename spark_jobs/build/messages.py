"""What the tasks of a build tell each other and the driver: one type for each message.

stage     from a task              to a part                  from there to the driver
parse     PartParsed               (passed on)                PartParsed
IdRecords                by hash of the id          RepeatedIds
CoverRecords             by hash of the interface   Covered
count     PartCounted              (passed on)                PartCounted
TokenCounts              by hash of the keyword     TokensCounted
build     SegmentRows              of the segment             SegmentWritten
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections import Counter

    import pyarrow as pa

    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.forwarding.segments.manifest import SegmentInfo


@dataclass(frozen=True, slots=True)
class PartParsed:
    """What a task has staged."""

    number: int
    path: str
    rows: int  # that were parsed, good and bad
    good: int
    unsatisfiable: int
    redundant: int
    quarantine: str | None
    lost: int  # bytes of input that could not be read
    centres: Floats  # of some of the places


@dataclass(frozen=True, slots=True)
class IdRecords:
    """What tells whether an id comes twice (build/cover/repeated_ids.py)."""

    table: pa.Table


@dataclass(frozen=True, slots=True)
class CoverRecords:
    """What tells whether a filter covers another (build/cover/coverers.py)."""

    table: pa.Table


@dataclass(frozen=True, slots=True)
class RepeatedIds:
    """Subscriptions whose id comes again: refs, ascending, and REPEATED or CLASHING."""

    refs: Ints
    faults: Ints


@dataclass(frozen=True, slots=True)
class Covered:
    """Who seems to be covered by whom, and of how many interfaces that was asked."""

    pairs: pa.Table
    interfaces: int


@dataclass(frozen=True, slots=True)
class PartCounted:
    """Of a part: how many subscriptions each bucket has and each (attribute, operator); where refused rows are."""

    buckets: Ints
    counts: Ints
    uses: Counter[tuple[str, str]]
    quarantine: str | None


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """(token, documents) of a part."""

    table: pa.Table


@dataclass(frozen=True, slots=True)
class TokensCounted:
    """The most frequent of the keywords that were added up and written, and where to."""

    most: list[dict[str, Any]]
    path: str


@dataclass(frozen=True, slots=True)
class SegmentRows:
    """Some subscriptions of a segment."""

    segment: int
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class SegmentWritten:
    """A segment, and how many of its filters others cover."""

    info: SegmentInfo
    covered: int
