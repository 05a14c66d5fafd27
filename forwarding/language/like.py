r"""Patterns of `like`: `%` stands for any text, `_` for one character, `\` takes the meaning from the next.

Canonical form: of neighbouring wildcards `_` come first and `%` once, so that patterns of one meaning are one text.
What a plainer operator says is said by that (`simplest`): `like "a%"` is `prefix "a"`, `like "abc"` is `=`.

A pattern is an automaton of at most 64 states, one bit each, which reads a text in one pass, here by characters and in
the kernels by bytes of UTF-8: bit i says that the first i characters of the pattern, `%` not counted, are behind us.
Hence the two bounds: `MOST` bytes besides `%`, and texts of at most `LONGEST` bytes; a longer one is not like anything.
So a thousand such patterns cost a text milliseconds, whatever both are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from contrada.errors import InvalidValue
from contrada.forwarding.language.values import check_string

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST: Final = 62
LONGEST: Final = 4096
_ANY: Final = None  # what `_` is read as


class Pattern(NamedTuple):
    """A pattern, read: characters, None for `_`, and before which of them, or after the last, there is a `%`."""

    characters: tuple[str | None, ...]
    gaps: frozenset[int]

    @property
    def literals(self) -> list[tuple[int, str]]:
        """The runs of literal characters that no wildcard parts, and where they begin."""
        found: list[tuple[int, str]] = []
        for at, character in enumerate(self.characters):
            if character is None:
                continue
            if at and at not in self.gaps and self.characters[at - 1] is not None:
                start, text = found[-1]
                found[-1] = (start, text + character)
            else:
                found.append((at, character))
        return found

    @property
    def prefix(self) -> str:
        """What every text begins with."""
        return next((text for at, text in self.literals if at == 0 and 0 not in self.gaps), "")

    @property
    def suffix(self) -> str:
        """What every text ends with."""
        end = len(self.characters)
        return next((text for at, text in self.literals if at + len(text) == end and end not in self.gaps), "")


def read_pattern(text: str) -> Pattern:
    r"""The pattern of a text; `InvalidValue` for a `\` that nothing fit follows."""
    characters: list[str | None] = []
    gaps: set[int] = set()
    for character, wild in _parts(check_string(text)):
        if wild and character == "%":
            gaps.add(len(characters))
        else:
            characters.append(_ANY if wild else character)
            if wild and len(characters) - 1 in gaps:  # `_` before `%`
                gaps.remove(len(characters) - 1)
                gaps.add(len(characters))
    return Pattern(tuple(characters), frozenset(gaps))


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield characters and whether each is a wildcard."""
    escaped = False
    for character in text:
        if escaped:
            if character not in "%_\\":
                raise InvalidValue(f'in a like pattern, \\ stands before %, _ or \\, not before "{character}"')
            yield character, False
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            yield character, character in "%_"
    if escaped:
        raise InvalidValue("a like pattern ends with a single \\: write \\\\ for the character itself")


def write_pattern(pattern: Pattern) -> str:
    """The text that is read as the pattern: its canonical form."""
    found = []
    for at, character in enumerate((*pattern.characters, "")):
        if at in pattern.gaps:
            found.append("%")
        found.append("_" if character is _ANY else f"\\{character}" if character in ("%", "_", "\\") else character)
    return "".join(found)


def check_pattern(text: str) -> str:
    """The canonical form of a pattern that is not too long."""
    pattern = read_pattern(text)
    size = len("".join("_" if each is _ANY else each for each in pattern.characters).encode())
    if size > MOST:
        raise InvalidValue(f"a like pattern has at most {MOST} bytes besides %, and this one {size}")
    return write_pattern(pattern)


def simplest(text: str) -> tuple[str, str] | None:
    """The plainer operator and its operand, `=`, `prefix`, `suffix` or `contains`, if one says the same."""
    pattern = read_pattern(text)
    end = len(pattern.characters)
    if any(each is _ANY for each in pattern.characters) or any(0 < gap < end for gap in pattern.gaps):
        return None
    literal = "".join(each for each in pattern.characters if each is not None)
    if not pattern.gaps:
        return "=", literal
    if pattern.gaps == {0, end} and end:
        return "contains", literal
    return ("suffix" if 0 in pattern.gaps and end else "prefix"), literal


def is_like(value: str, text: str) -> bool:
    """Whether a value is like a pattern: the definition."""
    if len(value.encode()) > LONGEST:
        return False
    pattern = read_pattern(text)
    stay = sum(1 << gap for gap in pattern.gaps)
    wanted: dict[str, int] = {}
    anything = 0
    for at, each in enumerate(pattern.characters):
        if each is _ANY:
            anything |= 1 << at
        else:
            wanted[each] = wanted.get(each, 0) | 1 << at
    reached = 1
    for character in value:
        reached = (reached & (wanted.get(character, 0) | anything)) << 1 | reached & stay
    return bool(reached >> len(pattern.characters) & 1)
