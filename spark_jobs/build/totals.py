"""What the two passes of a build have told the driver, put together: the order in which tasks ended does not matter."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from contrada.spark_jobs.build.cover.cover_groups import COVERER_COLUMNS
from contrada.spark_jobs.build.messages import Covered, PartParsed, RepeatedIds, TokensCounted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.spark_jobs.build.messages import PartCounted


class AllParsed(NamedTuple):
    """What the first pass tells: all parts, which ids come again, and who is covered by whom."""

    parts: tuple[PartParsed, ...]
    repeated: dict[str, Ints]  # refs, ascending, and faults
    coverers: pa.Table
    interfaces: int

    @classmethod
    def of(cls, told: Sequence[PartParsed | RepeatedIds | Covered]) -> AllParsed:
        """Put together what tasks told."""
        parts = sorted((each for each in told if isinstance(each, PartParsed)), key=lambda part: part.number)
        repeated = [each for each in told if isinstance(each, RepeatedIds)]
        covered = [each for each in told if isinstance(each, Covered)]
        none = pa.table({name: pa.array([], pa.int64()) for name in COVERER_COLUMNS})
        coverers = pa.concat_tables([each.pairs for each in covered]) if covered else none
        refs, faults = (
            np.concatenate([np.zeros(0, np.int64), *(getattr(each, name) for each in repeated)])
            for name in ("refs", "faults")
        )
        order = np.argsort(refs)
        return cls(
            tuple(parts),
            {"refs": refs[order], "faults": faults[order]},
            coverers.sort_by("ref"),
            sum(each.interfaces for each in covered),
        )

    def total(self, name: str) -> int:
        """The sum of one of the parts' counts."""
        return sum(getattr(part, name) for part in self.parts)

    @property
    def quarantine(self) -> list[str]:
        """The files of rows that were refused."""
        return [part.quarantine for part in self.parts if part.quarantine is not None]

    @property
    def centres(self) -> Floats:
        """Of some of the places."""
        return np.concatenate([np.zeros((0, 2)), *(part.centres for part in self.parts)])


class AllCounted(NamedTuple):
    """What the second pass tells: how many subscriptions are where, and what they use."""

    places: dict[int, int]
    uses: Counter[tuple[str, str]]
    tokens: list[dict[str, Any]]
    refused: list[str]
    files: list[str]  # of the keywords

    @property
    def subscriptions(self) -> int:
        """How many stand."""
        return sum(self.places.values())

    @classmethod
    def of(cls, told: Sequence[PartCounted | TokensCounted]) -> AllCounted:
        """Add up what tasks told."""
        places: Counter[int] = Counter()
        uses: Counter[tuple[str, str]] = Counter()
        tokens: list[dict[str, Any]] = []
        refused, files = [], []
        for each in told:
            if isinstance(each, TokensCounted):
                tokens += each.most
                files.append(each.path)
                continue
            places.update(dict(zip(each.buckets.tolist(), each.counts.tolist(), strict=True)))
            uses.update(each.uses)
            if each.quarantine is not None:
                refused.append(each.quarantine)
        tokens.sort(key=lambda row: (-row["documents"], row["token"]))
        return cls(dict(places), uses, tokens, sorted(refused), sorted(files))
