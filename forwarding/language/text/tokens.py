"""Tokens of the text language: one regular expression cuts a text, and functions read what a token stands for.

Two scanners: `EXACT` knows words, strings, numbers, times and symbols; `ORDINARY` also takes a whole `POLYGON((…))` or
`BOX(…)` of numbers for one token, which is then read in a few calls. Between them tokens leave only white space out.
Every repetition is possessive, so that a text is cut in time proportional to its length: a string without its closing
quote is one token up to the end.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Final, TypeAlias

Scanner: TypeAlias = re.Pattern[str]

_NUMBERS: Final = r"[-+.,0-9eE\s]*+"
_SHAPE: Final = rf"(?i:POLYGON\s*+\(\s*+\({_NUMBERS}\)\s*+\)|BOX\s*+\({_NUMBERS}\))"
_DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[0-9A-Za-z_:.+-]*+"
_NUMBER: Final = r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
_NAME: Final = r"[^\W\d][\w.-]*+"
_STRING: Final = r'"(?:[^"\\]++|\\.)*+"?'
_SYMBOL: Final = r"[<>!=~]=|<>|&&|\|\||\S"

EXACT: Final = re.compile("|".join((_NAME, _STRING, _DATE, _NUMBER, _SYMBOL)), re.DOTALL)
ORDINARY: Final = re.compile("|".join((_SHAPE, _NAME, _STRING, _DATE, _NUMBER, _SYMBOL)), re.DOTALL)
NUMERIC: Final = frozenset("0123456789+-.")
"""What a number or a time begins with."""

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE)
_is_name: Final = re.compile(_NAME).fullmatch
_is_number: Final = re.compile(_NUMBER).fullmatch
_JSON: Final = json.JSONDecoder()
_FOREIGN: Final = {"==": "=", "<>": "!=", "&&": "and", "&": "and", "||": "or", "|": "or", "!": "!="}
_INFINITE: Final = (float("inf"), float("-inf"))


class Unreadable(Exception):
    """A token that stands for nothing: why, and where in it the fault is."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


def is_name(token: str) -> bool:
    """Whether a token is a plain word."""
    return token.isidentifier() or _is_name(token) is not None


def is_time(token: str) -> bool:
    """Whether a token that begins like a number is a time, or meant to be one."""
    return len(token) >= 10 and token[4] == "-" and not _is_number(token)


def read_string(token: str) -> str:
    """The string in quotes; escapes are JSON's."""
    if "\\" not in token and token[-1] == '"' and len(token) > 1 and token.isascii() and token.isprintable():
        return token[1:-1]
    try:
        value: str = _JSON.decode(token)
        value.encode()
    except json.JSONDecodeError as error:
        why = f"expected a string in double quotes, with escapes as in JSON: {error.msg}"
        raise Unreadable(why, min(error.pos, len(token))) from None
    except UnicodeEncodeError:
        raise Unreadable("expected a string without lone surrogates") from None
    return value


def read_time(token: str) -> datetime:
    """The moment that a time with its offset is."""
    if not _TIME.fullmatch(token):
        raise Unreadable(expected("a time such as 2026-11-16T09:30:00Z, with Z or an offset such as +01:00", token))
    try:
        return datetime.fromisoformat(token.upper())
    except ValueError as error:
        raise Unreadable(expected(f"a time that exists: {error}", token)) from None


def read_number(token: str) -> int | float:
    """The integer, if it has neither point nor exponent, or the float."""
    if token.isdigit() and len(token) < 19:
        return int(token)
    if not _is_number(token):
        raise Unreadable(expected("a number", token))
    if token.lstrip("+-").isdigit():
        if len(token.lstrip("+-0")) > 19 or not -(2**63) <= int(token) < 2**63:
            raise Unreadable(expected("an integer of 64 bits, or a float written with a point or exponent", token))
        return int(token)
    return read_float(token)


def read_float(token: str) -> float:
    """The float, however its number is written."""
    value = float(token)
    if value in _INFINITE:
        raise Unreadable(expected("a number that a 64-bit float can hold", token))
    return value


def read_corners(shape: str) -> tuple[float, float, float, float]:
    """The coordinates of an ordinary `BOX(x y, x y)`."""
    (x1, y1), (x2, y2) = _positions(shape[shape.index("(") + 1 : -1])
    return x1, y1, x2, y2


def read_ring(shape: str) -> list[tuple[float, float]]:
    """The positions of an ordinary `POLYGON((x y, …))`."""
    return _positions(shape[shape.rindex("(") + 1 : shape.index(")")])


def _positions(numbers: str) -> list[tuple[float, float]]:
    try:
        return [(float(x), float(y)) for x, y in map(str.split, numbers.split(","))]
    except ValueError:
        raise Unreadable("not pairs of numbers") from None


def expected(what: str, token: str) -> str:
    """The message that something else than this token was expected."""
    found = "the end" if not token else f'"{token}"' if len(token) <= 30 else f'"{token[:30]}…"'
    message = f"expected {what}, found {found}"
    if token in _FOREIGN:
        return f'{message} (write "{_FOREIGN[token]}")'
    return f"{message} (strings are written in double quotes)" if token == "'" else message


def position(text: str, number: int) -> int:
    """Where a token of `EXACT` begins, by its place in the list; the end of the text beyond the last."""
    for place, found in enumerate(EXACT.finditer(text)):
        if place == number:
            return found.start()
    return len(text)


def show(text: str, position: int, message: str) -> str:
    """The message, the line it is about (or its neighbourhood, when that is long), and a caret."""
    line_start = text.rfind("\n", 0, position) + 1
    line_end = text.find("\n", position)
    line_end = len(text) if line_end < 0 else line_end
    number = text.count("\n", 0, position) + 1
    first, last = max(line_start, position - 60), min(line_end, position + 40)
    before, after = "…" if first > line_start else "", "…" if last < line_end else ""
    shown = "".join(c if c.isprintable() else " " for c in text[first:last])
    caret = " " * (len(before) + position - first) + "^"
    column = position - line_start + 1
    return f"line {number}, column {column}: {message}\n  {before}{shown}{after}\n  {caret}"
