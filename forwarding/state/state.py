"""What a forwarding table is made of, and what it tells about itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.state.matching import MATCHING
from contrada.forwarding.state.memory import Memory
from contrada.forwarding.state.numbering import NameNumbering, Numbering

if TYPE_CHECKING:
    from contrada.forwarding.types.plugged import PluggedType, Settings


@dataclass(slots=True)
class TableState:
    """What one table is: those that change it, match with it and save it share it."""

    settings: Settings
    simplify: bool
    memory: Memory = field(default_factory=Memory)
    names: NameNumbering = field(default_factory=NameNumbering)
    interfaces: Numbering[Any] = field(default_factory=Numbering)  # hashable; the table knows their type
    types: dict[int, PluggedType] = field(default_factory=dict)  # by kind


@dataclass(frozen=True, slots=True)
class TableStats:
    """What a table holds."""

    filters: int
    active: int  # posted
    counted: int  # of these, under each of their constraints
    covered: int  # by another filter of the same interface (rule 3)
    unsatisfiable: int  # (rule 1)
    constraints: int  # to be verified: without the redundant ones (rule 2)
    operands: int  # different (name, value) pairs that constraints compare with
    names: int
    interfaces: int
    postings: int
    bytes: int  # in use by the table's own arrays, without plugged-in types
    matching: str  # one of MATCHING; of tables that differ, those of all


def table_stats(state: TableState) -> TableStats:
    """Read off how much a table holds."""
    counts = state.memory.state
    return TableStats(
        filters=int(counts[layout.S_FILTER_COUNT]),
        active=int(counts[layout.S_ACTIVE]),
        counted=int(counts[layout.S_COUNTED]),
        covered=int(counts[layout.S_COVERED]),
        unsatisfiable=int(counts[layout.S_VOID]),
        constraints=int(counts[layout.S_CONSTRAINTS]),
        operands=int(counts[layout.S_OPERAND_COUNT]),
        names=len(state.names),
        interfaces=len(state.interfaces),
        postings=int(counts[layout.S_POSTING_COUNT] + counts[layout.S_THRESHOLD_COUNT]),
        bytes=state.memory.nbytes,
        matching=MATCHING[min(int(counts[layout.S_MATCHING]), layout.AUTO)],
    )
