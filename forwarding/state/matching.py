"""How a table matches: the names that users give, in the order of the numbers that its arrays have (S_MATCHING).

    selective   a filter is posted under one constraint, which few notifications satisfy; the rest is verified
    counting    it is posted under all, and matches when as many were met as it has: SFF's, and [SIENA-2D]'s
    auto        each filter in the way that is expected to make less work

Answers are the same. docs/forwarding.md says where which is quicker.
"""

from __future__ import annotations

from typing import Final

from contrada.errors import InvalidValue, shown

MATCHING: Final = ("selective", "counting", "auto")
DEFAULT_MATCHING: Final = "auto"


def matching_number(matching: object) -> int:
    """The number of a way to match; `InvalidValue` if there is none of that name."""
    if not isinstance(matching, str) or matching not in MATCHING:
        raise InvalidValue(f"no way to match is called {shown(matching)}; choose one of: {', '.join(MATCHING)}")
    return MATCHING.index(matching)
