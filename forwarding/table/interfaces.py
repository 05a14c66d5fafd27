"""The type of a table's interfaces, for type checkers: whatever can be hashed, unless a table says more."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # A default for a type variable came with Python 3.13 (PEP 696). Type checkers know it from typing_extensions, which
    # they bring along, so that it need not be installed.
    from typing_extensions import TypeVar

    InterfaceT = TypeVar("InterfaceT", bound=Hashable, default=Hashable)
else:
    from typing import TypeVar

    InterfaceT = TypeVar("InterfaceT", bound=Hashable)
