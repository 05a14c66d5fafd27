"""A linear scan over constraints on regions: the twin of the CR-tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.spatial.relations.relate import EXACT, Discretization, relate

if TYPE_CHECKING:
    from contrada.spatial.geometry.region import Point, Region


class NaiveConstraints:
    """Constraints by id, each evaluated for every query."""

    def __init__(self, discretization: Discretization = EXACT) -> None:
        self.discretization = discretization
        self.constraints: dict[int, tuple[Region, int]] = {}

    def insert(self, id: int, region: Region, mask: int) -> None:
        assert id not in self.constraints
        self.constraints[id] = region, mask

    def remove(self, id: int) -> None:
        del self.constraints[id]

    def search(self, query: Region | Point) -> list[int]:
        """Return the ids of the constraints that the query satisfies, in order."""
        return sorted(
            id
            for id, (region, mask) in self.constraints.items()
            if mask & relate(query, region, self.discretization).mask
        )
