"""How relations of regions are decided: exactly, or by sampling boundaries; and the names of both in settings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Final, cast

from contrada.errors import InvalidValue, shown


@dataclass(frozen=True, slots=True)
class Exact:
    """Decide exactly: no sampling, no epsilon."""


@dataclass(frozen=True, slots=True)
class Uniform:
    """Sample boundaries: every vertex, and at least `density` points to a unit of length ([SIENA-2D], section 3.3).

    With `halo`, a sample meets the other boundary already when it is within half its distance to the next sample:
    a smoother passage from disjoint to overlaps by way of meets. A density of 0 samples the vertices alone.
    """

    density: float
    halo: bool = False

    def __post_init__(self) -> None:
        density: object = self.density
        try:
            number = math.nan if isinstance(density, bool) or not isinstance(density, Real) else float(density)
        except OverflowError:
            number = math.inf
        if not 0 <= number < math.inf:
            raise InvalidValue(
                f"density is {shown(density)}; expected points per unit length, a finite number from 0 up"
            )
        halo: object = self.halo
        if not isinstance(halo, bool):
            raise InvalidValue(f"halo is {shown(halo)}; expected True or False")
        object.__setattr__(self, "density", number)


Discretization = Exact | Uniform

EXACT: Final = Exact()


def make_discretization(name: object, density: object = None, halo: object = False) -> Discretization:
    """EXACT for "exact", a `Uniform` for "uniform" with its density: how settings and options name them."""
    if isinstance(name, Exact | Uniform):
        if density is not None or halo:
            raise InvalidValue(f"discretization is {name!r}: density and halo are said there already")
        return name
    if name == "uniform":
        if density is None:
            raise InvalidValue("discretization uniform needs a density: points per unit length")
        return Uniform(cast("float", density), cast("bool", halo))
    if name != "exact":
        raise InvalidValue(f"discretization is exact or uniform, not {shown(name)}")
    if density is not None or halo:
        raise InvalidValue("density and halo belong to discretization uniform, and it is exact")
    return EXACT


def describe_discretization(discretization: Discretization) -> str:
    """One text for one discretization, by which brokers compare theirs: `exact`, `uniform 2.0 halo`."""
    if isinstance(discretization, Exact):
        return "exact"
    return f"uniform {discretization.density!r}{' halo' if discretization.halo else ''}"
