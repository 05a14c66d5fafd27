"""What a forwarding table is made of, and what it tells about itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.table.memory import Store
from contrada.forwarding.table.numbering import NameRegister, Register

if TYPE_CHECKING:
    from contrada.forwarding.types.plugged import PluggedType, Settings


@dataclass(slots=True)
class Parts:
    """The parts of one table: those that change it, match with it and save it share them."""

    settings: Settings
    simplify: bool
    store: Store = field(default_factory=Store)
    names: NameRegister = field(default_factory=NameRegister)
    interfaces: Register[Any] = field(default_factory=Register)  # hashable; the table knows their type
    types: dict[int, PluggedType] = field(default_factory=dict)  # by kind


@dataclass(frozen=True, slots=True)
class TableStats:
    """What a table holds."""

    filters: int
    active: int  # posted
    covered: int  # by another filter of the same interface (rule 3)
    unsatisfiable: int  # (rule 1)
    constraints: int  # to be verified: without the redundant ones (rule 2)
    operands: int  # different (name, value) pairs that constraints compare with
    names: int
    interfaces: int
    postings: int
    bytes: int  # in use by the table's own arrays, without plugged-in types


def table_stats(parts: Parts) -> TableStats:
    """Read off how much a table holds."""
    state = parts.store.state
    return TableStats(
        filters=int(state[layout.S_FILTER_COUNT]),
        active=int(state[layout.S_ACTIVE]),
        covered=int(state[layout.S_COVERED]),
        unsatisfiable=int(state[layout.S_VOID]),
        constraints=int(state[layout.S_CONSTRAINTS]),
        operands=int(state[layout.S_OPERAND_COUNT]),
        names=len(parts.names),
        interfaces=len(parts.interfaces),
        postings=int(state[layout.S_POSTING_COUNT] + state[layout.S_THRESHOLD_COUNT]),
        bytes=parts.store.nbytes,
    )
