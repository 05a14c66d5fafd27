"""How a table is made: what all tables of an index have in common, and what its manifest tells of them.

What has its own bytes, a road network, comes beside the options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from contrada.errors import InvalidValue, shown
from contrada.forwarding.language.lonlat import PLANE, check_crs
from contrada.forwarding.state.matching import DEFAULT_MATCHING, matching_number
from contrada.spatial.relations.discretization import EXACT, Discretization
from contrada.spatial.textual.registry import DEFAULT, NAMES


@dataclass(frozen=True, slots=True)
class TableOptions:
    """How a table matches; `InvalidValue` for what is none. `ForwardingTable` says what each option does."""

    geotext_index: str = DEFAULT
    matching: str = DEFAULT_MATCHING
    discretization: Discretization = EXACT
    simplify: bool = True
    crs: str = PLANE

    def __post_init__(self) -> None:
        """Refuse what no table could be made with."""
        if not isinstance(self.discretization, Discretization):
            raise InvalidValue(f"discretization is EXACT or a Uniform, not {shown(self.discretization)}")
        if self.geotext_index not in NAMES:
            told = shown(self.geotext_index)
            raise InvalidValue(f"no geotext index is called {told}; choose one of: {', '.join(NAMES)}")
        if not isinstance(self.simplify, bool):
            raise InvalidValue(f"simplify is True or False, not {shown(self.simplify)}")
        matching_number(self.matching)
        check_crs(self.crs)


DEFAULT_OPTIONS: Final = TableOptions()
