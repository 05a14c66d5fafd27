"""Geotext: a set of keywords with a place, which is a point or a box.

`tokenise` is the one place where it is decided what a word is, for messages and for those who wait for them: Unicode
compatibility normalisation and case folding (so `iPad`, `IPAD` and full-width `ｉＰａｄ` are one word), then the
maximal runs of letters, digits, combining marks and underscores. No stemming and no stop words: a publisher who wants
them gives another function, or keywords instead of a text.

Keywords given one by one are read in the same way, each as a short text: `AT&T` is the words `at` and `t`, on both
sides. So every keyword of a `GeoText` and of a constraint is a word that `tokenise` leaves as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeAlias
from unicodedata import category, combining, is_normalized, normalize

from contrada.errors import InvalidValue
from contrada.spatial.geometry.point import Point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from contrada.spatial.geometry.region import Box

    Tokeniser: TypeAlias = Callable[[str], Iterable[str]]

MAX_KEYWORD: Final = 255
MOST_MARKS: Final = 30  # combining marks on one character, as in Unicode's stream-safe text format
_ASCII_WORD: Final = re.compile(r"[0-9a-z_]+")
_WORDS_AND_BREAKS: Final = b"0123456789_abcdefghijklmnopqrstuvwxyz\n"
_BLOCK: Final = (MAX_KEYWORD + 1) // 2
_REMEMBERED: Final = 1 << 16  # characters; hostile texts would fill memory with what each of a million is


class _Separators(dict[int, int]):
    """What each character is replaced by: itself if words have it, else a space. For `str.translate`."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        # `\w` leaves out combining marks, and so would cut words of Hindi or Thai in pieces.
        of_word = character.isalnum() or character == "_" or category(character)[0] == "M"
        if len(self) < _REMEMBERED:
            self[code] = code if of_word else 32
        return code if of_word else 32


class _Marks(dict[int, int]):
    """`m` for characters that normalisation sorts, being marks on another; `.` for all others."""

    def __missing__(self, code: int) -> int:
        sign = ord("m" if combining(normalize("NFKD", chr(code))[0]) else ".")
        if len(self) < _REMEMBERED:
            self[code] = sign
        return sign


_SEPARATORS: Final = _Separators()
_MARKS: Final = _Marks()
_TOO_MANY_MARKS: Final = re.compile(f"m{{{MOST_MARKS + 1},}}")


def fold(text: str) -> str:
    """Normalise for comparison: NFKC and case folding, repeated until nothing changes (a few characters need two)."""
    if text.isascii():
        return text.lower()
    while True:
        folded = normalize("NFKC", _normalise(text).casefold())
        if folded == text:
            return folded
        text = folded


def _normalise(text: str) -> str:
    """NFKC, in time linear in the text: of more than `MOST_MARKS` marks in a row, which Python sorts, the rest goes."""
    if is_normalized("NFKC", text):
        return text
    kept, end = [], 0
    for run in _TOO_MANY_MARKS.finditer(text.translate(_MARKS)):
        kept.append(text[end : run.start() + MOST_MARKS])
        end = run.end()
    return normalize("NFKC", "".join((*kept, text[end:])))


def _words(text: str) -> list[str]:
    """The words of a text, in order, folded, of whatever length."""
    folded = fold(text)
    return _ASCII_WORD.findall(folded) if folded.isascii() else folded.translate(_SEPARATORS).split()


def tokenise(text: str) -> list[str]:
    """The words of a text, in order, folded. Words too long to be asked for are left out.

    >>> tokenise("iPad on SALE: 50% off!")
    ['ipad', 'on', 'sale', '50', 'off']
    """
    return [word for word in _words(text) if len(word) <= MAX_KEYWORD]


def check_keywords(keywords: str | Iterable[str], tokenise: Tokeniser = tokenise) -> frozenset[str]:
    """The words that a message has, of a text or of keywords given one by one. `InvalidValue` for what is neither.

    What `tokenise` gives is read like keywords given one by one. Those without a word in them are left out.

    >>> sorted(check_keywords(["AT&T", "wi-fi", "!"]))
    ['at', 'fi', 't', 'wi']
    """
    listed = _listed(tokenise(keywords) if isinstance(keywords, str) else keywords)
    plain = _plain(listed)
    if plain is not None:
        return plain
    _refuse_unreadable(listed)
    return _short_enough(_words("\n".join(listed)))


def wanted_keywords(keywords: str | Iterable[str]) -> frozenset[str]:
    """The words that a constraint asks for, as `check_keywords` reads them; but here each must have a word.

    >>> sorted(wanted_keywords(["New York", "hotel"]))
    ['hotel', 'new', 'york']
    """
    listed = _listed([keywords] if isinstance(keywords, str) else keywords)
    plain = _plain(listed)
    if plain is not None:
        return plain
    _refuse_unreadable(listed)
    words: list[str] = []
    for keyword in listed:
        its = _words(keyword)
        if not its:
            raise InvalidValue(
                f"keyword {keyword[:MAX_KEYWORD]!r} has neither letters nor digits, and no text is read as having it: "
                "leave it out"
            )
        words += its
    return _short_enough(words)


def _listed(keywords: Iterable[str]) -> list[str]:
    try:
        return list(keywords)
    except TypeError:
        raise InvalidValue(f"keywords are a text or strings, not {type(keywords).__name__}") from None


def _plain(listed: list[str]) -> frozenset[str] | None:
    """The keywords if each is a word as it is. Those that our encoder wrote nearly always are, and come in thousands.

    So all are looked at together.
    """
    try:
        text = "\n".join(listed)
    except TypeError:
        return None
    if not text or not text.isascii() or text.encode().translate(None, _WORDS_AND_BREAKS):
        return None
    if "\n\n" in text or text[:1] == "\n" or text[-1:] == "\n" or text.count("\n") + 1 != len(listed):
        return None  # one is empty, or holds a line break
    # A word that is too long has a block of half its length to itself: blocks are far fewer than words.
    crowded = all("\n" in text[at : at + _BLOCK] for at in range(0, len(text) - _BLOCK + 1, _BLOCK))
    return frozenset(listed) if crowded or max(map(len, listed)) <= MAX_KEYWORD else None


def _refuse_unreadable(listed: list[str]) -> None:
    """As `_plain`, all together: there may be thousands."""
    wrong = next((keyword for keyword in listed if not isinstance(keyword, str)), "")
    if not isinstance(wrong, str):
        raise InvalidValue(f"a keyword is a string, not {type(wrong).__name__}")
    if "" in listed or any(map(str.isspace, listed)):
        raise InvalidValue("a keyword must not be blank")
    try:
        "\n".join(listed).encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(f"a keyword holds a lone surrogate, which is no character: {error}") from None


def _short_enough(words: list[str]) -> frozenset[str]:
    longest = max(map(len, words), default=0)
    if longest > MAX_KEYWORD:
        raise InvalidValue(f"a keyword has at most {MAX_KEYWORD} characters; this one has {longest}")
    return frozenset(words)


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
    from contrada.spatial.geometry.region import (
        Box,  # loads the compiler, which a client that only sends points can do without
    )

    if isinstance(within, Box):
        return within
    raise InvalidValue(f"geotext lies within a Box, not a {type(within).__name__}; Box(*region.bounds) is one")


def _rebuild(keywords: list[str], place: Point | Box) -> GeoText:
    return GeoText(keywords, at=place) if isinstance(place, Point) else GeoText(keywords, within=place)
