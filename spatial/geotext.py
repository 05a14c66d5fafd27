"""Geotext: a set of keywords with a place, which is a point or a box.

A message's text becomes keywords through `tokenise`, the one place where that is decided: Unicode compatibility
normalisation and case folding (so `iPad`, `IPAD` and full-width `ｉＰａｄ` are one word), then the maximal runs of
letters, digits, combining marks and underscores. No stemming and no stop words: a publisher or subscriber who wants
them gives another function, or the keywords themselves. Keywords given one by one are normalised but not split.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias
from unicodedata import category, normalize

from contrada.errors import InvalidValue
from contrada.spatial.point import Point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from contrada.spatial.region import Box

    Tokeniser: TypeAlias = Callable[[str], Iterable[str]]

MAX_KEYWORD: Final = 255
_ASCII_WORD: Final = re.compile(r"[0-9a-z_]+")


def fold(text: str) -> str:
    """Normalise for comparison: NFKC and case folding, repeated until nothing changes (a few characters need two)."""
    if text.isascii():
        return text.lower()
    while True:
        folded = normalize("NFKC", normalize("NFKC", text).casefold())
        if folded == text:
            return folded
        text = folded


def tokenise(text: str) -> list[str]:
    """The words of a text, in order, folded. Words too long to be asked for are left out.

    >>> tokenise("iPad on SALE: 50% off!")
    ['ipad', 'on', 'sale', '50', 'off']
    """
    folded = fold(text)
    if folded.isascii():
        words = _ASCII_WORD.findall(folded)
    else:
        # `\w` leaves out combining marks, and so would cut words of Hindi or Thai in pieces.
        words = "".join(c if c.isalnum() or c == "_" or category(c)[0] == "M" else " " for c in folded).split()
    return [word for word in words if len(word) <= MAX_KEYWORD]


def check_keywords(keywords: str | Iterable[str], tokenise: Tokeniser = tokenise) -> frozenset[str]:
    """Keywords of a text, or keywords given one by one, folded; `InvalidValue` for what is not a keyword."""
    words = tokenise(keywords) if isinstance(keywords, str) else keywords
    checked = set()
    try:
        listed = list(words)
    except TypeError:
        raise InvalidValue(f"keywords are a text or strings, not {type(keywords).__name__}") from None
    for word in listed:
        if not isinstance(word, str):
            raise InvalidValue(f"a keyword is a string, not {type(word).__name__}")
        folded = fold(word).strip()
        if not folded:
            raise InvalidValue("a keyword must not be blank")
        if len(folded) > MAX_KEYWORD:
            raise InvalidValue(f"a keyword has at most {MAX_KEYWORD} characters; this one has {len(folded)}")
        if not folded.isascii() and any("\ud800" <= c <= "\udfff" for c in folded):
            raise InvalidValue(f"keyword {folded!r} holds a lone surrogate, which cannot be encoded as UTF-8")
        checked.add(folded)
    return frozenset(checked)


class GeoText:
    """Keywords at a point or within a box; immutable, and equal when keywords and place are.

    >>> GeoText("iPad on sale", at=(1, 2)) == GeoText(["sale", "on", "ipad"], at=Point(1, 2))
    True
    """

    __slots__ = ("keywords", "place")

    keywords: frozenset[str]
    place: Point | Box

    def __init__(
        self,
        text: str | Iterable[str],
        *,
        at: Point | tuple[float, float] | None = None,
        within: Box | None = None,
        tokenise: Tokeniser = tokenise,
    ) -> None:
        if (at is None) == (within is None):
            raise InvalidValue("geotext has one place: give at=(x, y) or within=Box(...)")
        place = Point.of(at) if at is not None else _as_box(within)
        object.__setattr__(self, "keywords", check_keywords(text, tokenise))
        object.__setattr__(self, "place", place)

    @property
    def box(self) -> tuple[float, float, float, float]:
        """The place as a closed box (x1, y1, x2, y2), degenerate for a point."""
        return self.place.bounds

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a GeoText cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a GeoText cannot be changed")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GeoText):
            return NotImplemented
        return self.keywords == other.keywords and self.place == other.place

    def __hash__(self) -> int:
        return hash((self.keywords, self.place))

    def __repr__(self) -> str:
        where = f"at={self.place!r}" if isinstance(self.place, Point) else f"within={self.place!r}"
        return f"GeoText({sorted(self.keywords)!r}, {where})"

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (sorted(self.keywords), self.place))


def _as_box(within: object) -> Box:
    from contrada.spatial.region import Box  # loads the compiler, which a client that only sends points can do without

    if isinstance(within, Box):
        return within
    raise InvalidValue(f"geotext lies within a Box, not a {type(within).__name__}; Box(*region.bounds) is one")


def _rebuild(keywords: list[str], place: Point | Box) -> GeoText:
    return GeoText(keywords, at=place) if isinstance(place, Point) else GeoText(keywords, within=place)
