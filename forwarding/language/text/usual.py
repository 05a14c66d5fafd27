"""The commonest filters of machines, each read by one regular expression: what `parse` tries first.

    name matches {"word", …} within BOX(x1 y1, x2 y2)
    name relation POLYGON((x y, …))          name relation BOX(x1 y1, x2 y2)

Plain printable ASCII without escapes, and nothing before or behind. The expression has found pairs of what numbers are
made of; what a number is `float` says. Whatever is not just so, or is not valid, gives None and is left to `parse`,
which says what is wrong: the two never differ (tests compare them). A third of the time that the parser takes for such
a text, of which the half is for the objects themselves.
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

if TYPE_CHECKING:
    from contrada.spatial.geometry.region import Box, Region

_NUMBER: Final = r"[-+.0-9eE]++"
_PAIR: Final = rf" *+{_NUMBER} ++{_NUMBER} *+"
_BOX: Final = rf"BOX ?+\( *+({_NUMBER}) ++({_NUMBER}) *+, *+({_NUMBER}) ++({_NUMBER}) *+\)"
_STRING: Final = r'"[^"\\]*+"'
_NAME: Final = r"([A-Za-z_][A-Za-z0-9_.-]*+)"
_RELATIONS: Final = {op.value: op for op in Operator if op.mask and " " not in op.value}
_read: Final = re.compile(
    rf"{_NAME} ++(?:({'|'.join(_RELATIONS)}) ++"
    rf"|matches *+\{{ *+({_STRING}(?: *+, *+{_STRING})*+) *+\}} *+within ++(?=B))"
    rf"(?:{_BOX}|POLYGON ?+\(\(({_PAIR}(?:,{_PAIR})*+)\)\))",
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
    name, word, words, x1, y1, x2, y2, ring = found.groups()
    if name.lower() in RESERVED:
        return None
    box, region = _shapes()
    try:
        if ring is not None:
            numbers = [*map(float, ring.replace(",", " ").split())]
            return Filter((Constraint(name, _RELATIONS[word], region.through(numbers)),))
        area = box(float(x1), float(y1), float(x2), float(y2))
        if word is None:
            return Filter((Constraint(name, Operator.MATCHES, TextMatch.of(words.split('"')[1::2], area)),))
        return Filter((Constraint(name, _RELATIONS[word], area),))
    except (InvalidValue, ValueError):
        return None
