"""The text language of filters: `parse` turns text into a Filter, or a Predicate when there is an `or`.

    expression = term { "or" term } ;
    term       = factor { "and" factor } ;
    factor     = "(" expression ")" | constraint ;
    constraint = name ( compare scalar | "exists" | "in" "[" scalar { "," scalar } "]" | ( "prefix" | "suffix" ) string
               | "contains" ( string | region ) | relation region | "matches" keywords [ "within" region ]
               | "similar" keywords "at" point "alpha" number "tau" number ) ;

`docs/filters.md` has the whole grammar. Words are recognised in any case; names and strings are taken as written. The
scanner cuts tokens on demand; the parser is a recursive descent that builds disjunctive normal form as it goes.

Input may be hostile. Parentheses nest at most `MAX_DEPTH` deep, and distributing `and` over `or` gives at most
`MAX_FILTERS` filters with `MAX_EXPANSION` constraints together. Whatever is wrong with a text, the error is a
FilterSyntaxError that shows the line, a caret, and what was expected.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, TypeVar

from contrada.errors import FilterSyntaxError, InvalidValue
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.filter import MAX_FILTERS, Filter, Predicate
from contrada.forwarding.language.formatting import PLAIN_NAME, RESERVED
from contrada.forwarding.language.operands import Similar, TextMatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from contrada.forwarding.language.operands import Scalar
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Region

_T = TypeVar("_T")

MAX_DEPTH: Final = 64
MAX_EXPANSION: Final = 65_536

_JSON: Final = json.JSONDecoder()
_SPACE: Final = re.compile(r"\s*")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d[\w:.+-]*", re.ASCII)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE)
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_SYMBOL: Final = re.compile(r"[<>!=]=|<>|&&|\|\||[^\w\s]")
_FOREIGN: Final = {"==": "=", "<>": "!=", "&&": "and", "&": "and", "||": "or", "|": "or", "!": "!="}
_COMPARE: Final = ("=", "!=", "<", "<=", ">", ">=")
_WORDS: Final = tuple(op.value for op in Operator if op.value not in _COMPARE)
_TEXT: Final = (Operator.PREFIX, Operator.SUFFIX)


def parse(text: str) -> Filter | Predicate:
    """The filter or predicate that a text describes.

    >>> parse('stock = "MTK" and price < 100 or stock = "DYS"')
    <Predicate price < 100 and stock = "MTK" or stock = "DYS">
    """
    if not isinstance(text, str):
        raise FilterSyntaxError(f"a filter's text is a string, not {type(text).__name__}")
    predicate = Predicate(Filter(constraints) for constraints in _Parser(text).parse())
    return predicate if len(predicate) > 1 else predicate.filters[0]


class _Token(NamedTuple):
    """A piece of the text: `kind` is one of name, string, number, time, symbol, end."""

    kind: str
    start: int
    end: int
    text: str
    value: str | int | float | datetime | None = None

    @property
    def word(self) -> str:
        """Its text for comparing with the language's words, or nothing if it is a literal."""
        return self.text.lower() if self.kind in ("name", "symbol") else ""


class _Parser:
    """One pass over one text, one token ahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._depth = 0
        self._next = self._scan(0)

    def parse(self) -> list[tuple[Constraint, ...]]:
        filters = self._expression()
        if self._next.kind != "end":
            self._fail('"and", "or" or the end')
        return filters

    # Expressions, as lists of conjunctions.

    def _expression(self) -> list[tuple[Constraint, ...]]:
        filters = self._term()
        while self._accept("or"):
            filters += self._term()
        return filters

    def _term(self) -> list[tuple[Constraint, ...]]:
        start = self._next
        common: list[Constraint] = []
        choices: list[list[tuple[Constraint, ...]]] = []
        while True:
            factor = self._factor()
            if len(factor) == 1:
                common += factor[0]
            else:
                choices.append(factor)
            if not self._accept("and"):
                break
        filters = [tuple(common)]
        for choice in choices:
            size = len(filters) * len(choice)
            longest = max(map(len, filters)) + max(map(len, choice))
            if size > MAX_FILTERS or size * longest > MAX_EXPANSION:
                self._fail(f"fewer alternatives: these expand to {size} filters of up to {longest} constraints", start)
            filters = [left + right for left in filters for right in choice]
        return filters

    def _factor(self) -> list[tuple[Constraint, ...]]:
        if not self._accept("("):
            return [(self._constraint(),)]
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail(f"at most {MAX_DEPTH} parentheses inside one another", self._next)
        filters = self._expression()
        self._expect(")")
        self._depth -= 1
        return filters

    def _constraint(self) -> Constraint:
        name = self._next
        if name.kind not in ("name", "string") or name.word in RESERVED:
            self._fail("an attribute's name" + (" (in quotes if it is this word)" if name.word in RESERVED else ""))
        self._advance()
        word = self._next
        try:
            op = Operator(word.word)
        except ValueError:
            self._fail(f"an operator ({' '.join(_COMPARE)} {' '.join(_WORDS)})")
        self._advance()
        operand = self._next
        value = self._operand(op)
        return self._make(lambda: Constraint(str(name.value), op, value), word if operand.kind == "end" else operand)

    # Operands.

    def _operand(self, op: Operator) -> object:
        if op is Operator.EXISTS:
            return None
        if op is Operator.IN:
            return self._list("[", self._scalar, "]")
        if op is Operator.MATCHES:
            return self._matches()
        if op is Operator.SIMILAR:
            return self._similar()
        if op in _TEXT:
            return self._string()
        if op is Operator.CONTAINS and self._next.kind == "string":
            return self._string()
        if op.mask:
            return self._region("a string, POLYGON or BOX" if op is Operator.CONTAINS else "POLYGON or BOX")
        return self._scalar()

    def _matches(self) -> TextMatch:
        start = self._next
        keywords = frozenset(self._list("{", self._string, "}"))
        within = self._region("POLYGON or BOX") if self._accept("within") else None
        return self._make(lambda: TextMatch(keywords, within), start)

    def _similar(self) -> Similar:
        start = self._next
        keywords = frozenset(self._list("{", self._string, "}"))
        self._expect("at")
        at = self._point()
        self._expect("alpha")
        alpha = self._number()
        self._expect("tau")
        tau = self._number()
        return self._make(lambda: Similar(keywords, at, alpha, tau), start)

    def _scalar(self) -> Scalar:
        token = self._next
        if token.kind in ("string", "number", "time"):
            self._advance()
            return token.value  # type: ignore[return-value]  # the kind of token says so
        if token.word in ("true", "false"):
            self._advance()
            return token.word == "true"
        if token.word == "point":
            return self._point()
        return self._fail("a value (a number, a string in double quotes, true, false, a time or POINT)")

    def _string(self) -> str:
        token = self._next
        if token.kind != "string":
            self._fail("a string in double quotes")
        self._advance()
        return str(token.value)

    def _number(self) -> float:
        token = self._next
        if token.kind != "number":
            self._fail("a number")
        self._advance()
        return token.value  # type: ignore[return-value]  # the kind of token says so

    def _point(self) -> Point:
        from contrada.spatial.geometry.point import Point

        start = self._next
        self._expect("point")
        self._expect("(")
        x, y = self._position()
        self._expect(")")
        return self._make(lambda: Point(x, y), start)

    def _region(self, expected: str) -> Region:
        from contrada.spatial.geometry.region import Box, Region

        start = self._next
        if self._accept("box"):
            self._expect("(")
            x1, y1 = self._position()
            self._expect(",")
            x2, y2 = self._position()
            self._expect(")")
            return self._make(lambda: Box(x1, y1, x2, y2), start)
        if not self._accept("polygon"):
            self._fail(expected)
        self._expect("(")
        ring = self._list("(", self._position, ")")
        if self._next.text == ",":
            self._fail("one ring: holes are not supported")
        self._expect(")")
        return self._make(lambda: Region(ring), start)

    def _position(self) -> tuple[float, float]:
        return self._number(), self._number()

    def _list(self, opening: str, item: Callable[[], _T], closing: str) -> list[_T]:
        self._expect(opening)
        items = [item()]
        while self._accept(","):
            items.append(item())
        if self._next.text != closing:
            self._fail(f'"," or "{closing}"')
        self._advance()
        return items

    # Tokens.

    def _accept(self, word: str) -> bool:
        if self._next.word != word:
            return False
        self._advance()
        return True

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            self._fail(f'"{word}"')

    def _advance(self) -> None:
        self._next = self._scan(self._next.end)

    def _scan(self, position: int) -> _Token:
        text = self._text
        start = _SPACE.match(text, position).end()  # type: ignore[union-attr]  # it matches the empty text too
        if start == len(text):
            return _Token("end", start, start, "")
        if text[start] == '"':
            return self._scan_string(start)
        if found := _DATE.match(text, start):
            return self._scan_time(start, found.group())
        if found := _NUMBER.match(text, start):
            return self._scan_number(start, found.group())
        if found := PLAIN_NAME.match(text, start):
            return _Token("name", start, found.end(), found.group(), found.group())
        found = _SYMBOL.match(text, start)
        symbol = found.group() if found else text[start]
        return _Token("symbol", start, start + len(symbol), symbol)

    def _scan_string(self, start: int) -> _Token:
        try:
            value, end = _JSON.raw_decode(self._text, start)
            value.encode()
        except json.JSONDecodeError as error:
            where = _Token("string", min(error.pos, len(self._text)), len(self._text), "")
            self._fail(f"a string in double quotes, with escapes as in JSON: {error.msg}", where, found=False)
        except UnicodeEncodeError:
            self._fail("a string without lone surrogates", _Token("string", start, start, ""), found=False)
        return _Token("string", start, end, self._text[start:end], value)

    def _scan_time(self, start: int, text: str) -> _Token:
        token = _Token("time", start, start + len(text), text)
        if not _TIME.fullmatch(text):
            self._fail("a time such as 2026-11-16T09:30:00Z, with Z or an offset such as +01:00", token)
        try:
            return token._replace(value=datetime.fromisoformat(text.upper()))
        except ValueError as error:
            return self._fail(f"a time that exists: {error}", token)

    def _scan_number(self, start: int, text: str) -> _Token:
        token = _Token("number", start, start + len(text), text)
        if text.lstrip("+-").isdigit():
            if len(text.lstrip("+-0")) > 19 or not -(2**63) <= int(text) < 2**63:
                self._fail("an integer of 64 bits, or a float written with a point or exponent", token)
            return token._replace(value=int(text))
        value = float(text)
        if value in (float("inf"), float("-inf")):
            self._fail("a number that a 64-bit float can hold", token)
        return token._replace(value=value)

    # Errors.

    def _make(self, build: Callable[[], _T], where: _Token) -> _T:
        try:
            return build()
        except InvalidValue as error:
            raise FilterSyntaxError(self._show(where.start, str(error))) from None

    def _fail(self, expected: str, where: _Token | None = None, *, found: bool = True) -> NoReturn:
        token = self._next if where is None else where
        message = f"expected {expected}"
        if found:
            message += ", found " + (_shorten(token.text) if token.kind != "end" else "the end")
        if token.text in _FOREIGN:
            message += f' (write "{_FOREIGN[token.text]}")'
        elif token.text == "'":
            message += " (strings are written in double quotes)"
        raise FilterSyntaxError(self._show(token.start, message))

    def _show(self, position: int, message: str) -> str:
        """The message, the line it is about (or its neighbourhood, when that is long), and a caret."""
        line_start = self._text.rfind("\n", 0, position) + 1
        line_end = self._text.find("\n", position)
        line_end = len(self._text) if line_end < 0 else line_end
        number = self._text.count("\n", 0, position) + 1
        first, last = max(line_start, position - 60), min(line_end, position + 40)
        before, after = "…" if first > line_start else "", "…" if last < line_end else ""
        shown = "".join(c if c.isprintable() else " " for c in self._text[first:last])
        caret = " " * (len(before) + position - first) + "^"
        column = position - line_start + 1
        return f"line {number}, column {column}: {message}\n  {before}{shown}{after}\n  {caret}"


def _shorten(text: str) -> str:
    return f'"{text}"' if len(text) <= 30 else f'"{text[:30]}…"'
