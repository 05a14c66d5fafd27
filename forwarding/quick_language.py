"""The commonest filters from text by one regular expression each, for jobs that read millions.

`parse` (language.py) says what a text means and what is wrong with it. Here are the shapes that machines write, read an
order of magnitude faster: a box with keywords, and one relation to a polygon or box. Whatever does not look exactly so,
or is not valid, is left to `parse`: the two never differ.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contrada.errors import InvalidValue
from contrada.forwarding.constraint import Constraint, Operator
from contrada.forwarding.filter import Filter
from contrada.forwarding.formatting import PLAIN_NAME, RESERVED
from contrada.forwarding.language import parse
from contrada.forwarding.operands import TextMatch
from contrada.forwarding.values import MAX_NAME
from contrada.spatial.geotext import MAX_KEYWORD
from contrada.spatial.region import Box, Region

if TYPE_CHECKING:
    from contrada.forwarding.filter import Predicate

_NAME: Final = f"(?P<name>{PLAIN_NAME.pattern})"
_NUMBER: Final = r"[+-]?(?:\d{1,18}(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_BOX: Final = rf"BOX\s*\(\s*({_NUMBER})\s+({_NUMBER})\s*,\s*({_NUMBER})\s+({_NUMBER})\s*\)"
_WORD: Final = rf'"[0-9a-z_]{{1,{MAX_KEYWORD}}}"'
_MATCH: Final = re.compile(
    rf"\s*{_NAME}\s+matches\s*\{{\s*(?P<words>{_WORD}(?:\s*,\s*{_WORD})*)\s*\}}\s*within\s+{_BOX}\s*", re.ASCII
)
_RELATIONS: Final = {op.value: op for op in Operator if op.mask}
_RELATION: Final = re.compile(
    rf"\s*{_NAME}\s+(?P<op>{'|'.join(sorted(_RELATIONS, key=len, reverse=True))})\s+"
    rf"(?:POLYGON\s*\(\s*\((?P<ring>[-+.,\seE0-9]+)\)\s*\)|{_BOX})\s*",
    re.ASCII,
)
_DIGITS: Final = 18  # of an integer that surely fits in 64 bits
_REMEMBERED: Final = 4096
_FAR: Final = 1e100
_NEAR: Final = 1e-100


class BoxMatch(NamedTuple):
    """`name matches keywords within box`: the keywords ascending, each once, and the box's corners."""

    name: str
    keywords: tuple[str, ...]
    x1: float
    y1: float
    x2: float
    y2: float


def read_box_match(text: str) -> BoxMatch | None:
    """The filter of a text that is one `matches` of plain keywords within a box; None when it is anything else."""
    found = _MATCH.fullmatch(text)
    if found is None:
        return None
    name, words, *corners = found.groups()
    # -0.0 becomes 0.0, as coordinates have it.
    x1, y1, x2, y2 = (float(corner) + 0.0 for corner in corners)
    if name.lower() in RESERVED or len(name) > MAX_NAME or not (x1 < x2 and y1 < y2):
        return None
    for c in (x1, y1, x2, y2):
        if not (c == 0.0 or _NEAR <= abs(c) <= _FAR):
            return None
    keywords = words.split('"')[1::2]
    return BoxMatch(name, tuple(sorted(set(keywords))) if len(keywords) > 1 else (keywords[0],), x1, y1, x2, y2)


def filter_of_box_match(match: BoxMatch) -> Filter:
    """The filter of a box match that was read before: nothing is checked again."""
    name, keywords, x1, y1, x2, y2 = match
    operand = TextMatch.trusted(frozenset(keywords), Box.trusted_corners(x1, y1, x2, y2))
    return Filter((Constraint(name, Operator.MATCHES, operand),))


def parse_quickly(text: str) -> Filter | Predicate:
    """What `parse` returns, or the error it raises."""
    found = _RELATION.fullmatch(text) if isinstance(text, str) else None
    if found is None or found["name"].lower() in RESERVED:
        return _parse_often(text)
    try:
        region = _polygon(found["ring"]) if found["ring"] is not None else Box(*map(float, found.groups()[3:]))
        return Filter((Constraint(found["name"], _RELATIONS[found["op"]], region),))
    except ValueError:  # of numbers, rings and boxes alike: `parse` shows where
        return parse(text)


@lru_cache(_REMEMBERED)
def _parse_often(text: str) -> Filter | Predicate:
    return parse(text)


def _polygon(ring: str) -> Region:
    numbers = [number for position in ring.split(",") for number in _pair(position)]
    if any(len(number) > _DIGITS and number.lstrip("+-").isdigit() for number in numbers):
        raise InvalidValue("a number that may be an integer beyond 64 bits")
    return Region(np.array([float(number) for number in numbers]).reshape(-1, 2))


def _pair(position: str) -> list[str]:
    pair = position.split()
    if len(pair) != 2:
        raise InvalidValue("a position has two numbers")
    return pair
