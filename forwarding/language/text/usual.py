"""The commonest filters of machines, each read by one regular expression: what `parse` tries first.

    name matches {"word", …} within BOX(x1 y1, x2 y2)
    name relation POLYGON((x y, …))          name relation BOX(x1 y1, x2 y2)

Plain printable ASCII without escapes, and nothing before or behind. Whatever is not just so, or is not valid, gives
None and is left to `parse`, which says what is wrong: the two never differ (tests compare them). A third of the time
that the parser takes for such a text.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from contrada.errors import InvalidValue
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.language.operands import TextMatch
from contrada.forwarding.language.text.formatting import RESERVED
from contrada.forwarding.language.text.tokens import Unreadable, read_corners, read_ring

if TYPE_CHECKING:
    from contrada.spatial.geometry.region import Box, Region

_NUMBERS: Final = r"[-+.,0-9eE ]*+"
_BOX: Final = rf"BOX ?\({_NUMBERS}\)"
_STRING: Final = r'"[^"\\]*+"'
_NAME: Final = r"([A-Za-z_][A-Za-z0-9_.-]*+)"
_RELATIONS: Final = {op.value: op for op in Operator if op.mask and " " not in op.value}
_read: Final = re.compile(
    rf"{_NAME} +(?:matches *+\{{ *+({_STRING}(?: *+, *+{_STRING})*+) *+\}} *+within +({_BOX})"
    rf"|({'|'.join(_RELATIONS)}) +({_BOX}|POLYGON ?\(\({_NUMBERS}\)\)))",
).fullmatch


@cache
def _shapes() -> tuple[type[Box], type[Region]]:
    """The classes of boxes and regions, loaded when they are first needed: the compiler comes with them."""
    from contrada.spatial.geometry.region import Box, Region

    return Box, Region


def read_usual(text: str) -> Filter | None:
    """The filter, if the text is one of these; else None."""
    found = _read(text)
    if found is None or not text.isascii() or not text.isprintable():
        return None
    name, words, box, word, shape = found.groups()
    if name.lower() in RESERVED:
        return None
    made, ring = _shapes()
    try:
        if word is None:
            within = made(*read_corners(box))
            return Filter((Constraint(name, Operator.MATCHES, TextMatch.of(words.split('"')[1::2], within)),))
        region = made(*read_corners(shape)) if shape[0] == "B" else ring(read_ring(shape))
        return Filter((Constraint(name, _RELATIONS[word], region),))
    except (InvalidValue, Unreadable, ValueError):
        return None
