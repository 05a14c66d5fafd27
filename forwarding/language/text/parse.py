"""The text language of filters: `parse` turns text into a Filter, or a Predicate when there is an `or`.

    expression = term { "or" term } ;
    term       = factor { "and" factor } ;
    factor     = { "not" } ( "(" expression ")" | "true" | constraint ) ;
    constraint = name { "not" } ( compare scalar | "exists" | "in" "[" scalar { "," scalar } "]"
               | "between" scalar "and" scalar | ( "prefix" | "suffix" | "like" | "~=" ) string
               | "has" ( scalar | ( "any" | "all" ) "[" scalar { "," scalar } "]" )
               | "contains" ( string | region | point ) | relation { "or" relation } ( region | point )
               | ( "within" | "beyond" ) number [ "m" | "km" ] "of" ( point | region )
               | "matches" keywords [ "within" region ]
               | "similar" keywords "at" point "alpha" number "tau" number ) ;

`docs/filters.md` has the whole grammar. Words are recognised in any case; names and strings are taken as written. The
text is cut into tokens by one regular expression in one call (`tokens`), and a recursive descent over their list builds
disjunctive normal form as it goes. `not` is handed down to the constraints (`negation`), where it gives others.

The commonest filters of machines are read by one regular expression each (`usual`). Of the others,
most texts are right and written in the ordinary way, so the first reading takes a whole `POLYGON((…))` or `BOX(…)` for
one token and knows nothing of positions. Whatever it does not understand is read again token by token: that reading
decides, and says what is wrong and where.

Input may be hostile. Parentheses nest at most `MAX_DEPTH` deep, and distributing `and` over `or` gives a
bounded number of filters. Whatever is wrong with a text, the error is a
FilterSyntaxError that shows the line, a caret, and what was expected.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar, cast

from contrada.errors import FilterSyntaxError, InvalidValue
from contrada.forwarding.language.constraint import Constraint, Operator, between, relations_operator
from contrada.forwarding.language.distance import UNITS, Distance
from contrada.forwarding.language.filter import Filter, Predicate
from contrada.forwarding.language.lonlat import LONLAT, PLANE, box_in_degrees, check_crs
from contrada.forwarding.language.negation import all_of, negate_constraint
from contrada.forwarding.language.operands import Similar, TextMatch
from contrada.forwarding.language.operators import relations_to_point
from contrada.forwarding.language.text import tokens
from contrada.forwarding.language.text.formatting import EVERYTHING, RESERVED
from contrada.forwarding.language.text.usual import read_usual
from contrada.forwarding.language.values import Kind, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from contrada.forwarding.language.negation import Alternatives
    from contrada.forwarding.language.operands import Scalar
    from contrada.forwarding.language.values import Value
    from contrada.spatial.geometry.point import Point
    from contrada.spatial.geometry.region import Region
    from contrada.spatial.lines.line import Line

_T = TypeVar("_T")

MAX_DEPTH: Final = 64

_OPERATORS: Final = {op.value: op for op in Operator} | {"crosses": Operator.OVERLAPS}  # as is said of lines
_MASKED: Final = frozenset(op for op in Operator if op.mask)
_COMPARE: Final = ("=", "!=", "<", "<=", ">", ">=")
_WORDS: Final = tuple(op.value for op in Operator if op.value not in _COMPARE and " " not in op.value)
_AFTER_TRUE: Final = frozenset(("", ")", "and", "or"))


def parse(text: str, crs: str = PLANE) -> Filter | Predicate:
    """The filter or predicate that a text describes. With `crs="lonlat"` a box may cross the 180th meridian.

    >>> parse('stock = "MTK" and price < 100 or stock = "DYS"')
    <Predicate price < 100 and stock = "MTK" or stock = "DYS">
    """
    if not isinstance(text, str):
        raise FilterSyntaxError(f"a filter's text is a string, not {type(text).__name__}")
    if crs == PLANE and (usual := read_usual(text)) is not None:
        return usual
    check_crs(crs)
    try:
        return _Parser(text, tokens.ORDINARY, crs).parse()
    except (_Unusual, tokens.Unreadable):
        return _Parser(text, tokens.EXACT, crs).parse()


@cache
def _region_type() -> type[Region]:
    """The class of regions, loaded when it is first needed: the compiler comes with it."""
    from contrada.spatial.geometry.region import Region

    return Region


class _Unusual(Exception):
    """The first reading has met something that it does not understand."""


class _Parser:
    """One pass over the tokens of one text. `_tokens` ends with the empty token."""

    __slots__ = ("_at", "_box", "_depth", "_exact", "_text", "_tokens")

    def __init__(self, text: str, scanner: tokens.Scanner, crs: str) -> None:
        self._box: Callable[[float, float, float, float], Region] = box_in_degrees if crs == LONLAT else _box
        self._text = text
        self._exact = scanner is tokens.EXACT
        self._tokens: list[str] = scanner.findall(text)
        self._tokens.append("")
        self._at = 0
        self._depth = 0

    def parse(self) -> Filter | Predicate:
        filters = self._expression(False)
        if self._tokens[self._at]:
            self._fail('"and", "or" or the end')
        if not filters:
            self._show("not true: nothing matches that", 0)
        if len(filters) == 1:
            return Filter(filters[0])
        predicate = Predicate(map(Filter, filters))
        return predicate if len(predicate) > 1 else predicate.filters[0]

    # Expressions, as lists of conjunctions.

    def _expression(self, negated: bool) -> Alternatives:
        start = self._at
        terms = [self._term(negated)]
        while self._accept("or"):
            terms.append(self._term(negated))
        return self._join(terms, start, conjunction=negated)

    def _term(self, negated: bool) -> Alternatives:
        start = self._at
        factors = [self._factor(negated)]
        while self._accept("and"):
            factors.append(self._factor(negated))
        return self._join(factors, start, conjunction=not negated)

    def _join(self, parts: list[Alternatives], start: int, *, conjunction: bool) -> Alternatives:
        """The alternatives of a conjunction or of a disjunction."""
        if len(parts) == 1:
            return parts[0]
        if not conjunction:
            return [each for part in parts for each in part]
        try:
            return all_of(parts)
        except InvalidValue as error:
            self._refuse(error, start)

    def _factor(self, negated: bool) -> Alternatives:
        while self._accept("not"):
            negated = not negated
        token = self._tokens[self._at]
        if token != "(":
            if token.lower() == EVERYTHING and self._tokens[self._at + 1].lower() in _AFTER_TRUE:
                self._at += 1
                return [] if negated else [()]
            return self._constraint(negated)
        self._at += 1
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail(f"at most {MAX_DEPTH} parentheses inside one another")
        filters = self._expression(negated)
        self._expect(")")
        self._depth -= 1
        return filters

    def _constraint(self, negated: bool) -> Alternatives:
        at = self._at
        name = self._tokens[at]
        if name[:1] == '"':
            name = self._string()
        elif not tokens.is_name(name) or name.lower() in RESERVED:
            reserved = name.lower() in RESERVED
            self._fail("an attribute's name" + (" (in quotes if it is this word)" if reserved else ""))
        self._at = at + 1
        while self._accept("not"):
            negated = not negated
        at = self._at
        word = self._tokens[at]
        op = _OPERATORS.get(word) or _OPERATORS.get(word.lower())
        if op is None:
            if self._accept("between"):
                return self._between(name, negated)
            self._fail(f"an operator ({' '.join(_COMPARE)} {' '.join(_WORDS)} between)")
        self._at = at + 1
        if op is Operator.HAS:
            return self._has(name, negated)
        if op in _MASKED and self._tokens[at + 1].lower() == "or":
            op = self._relations(op)
        value = _READERS[op](self, op) if op in _READERS else self._shape()
        try:
            if negated and op is Operator.LIKE:
                return [(Constraint(name, Operator.NOT_LIKE, value),)]
            if op.mask and kind_of(cast("Value", value)) is Kind.POINT:
                return self._at_point(name, op, cast("Point", value), negated)
            constraint = Constraint(name, op, value)
            return negate_constraint(constraint) if negated else [(constraint,)]
        except InvalidValue as error:
            self._refuse(error, at + 1 if self._tokens[at + 1] else at)

    def _relations(self, op: Operator) -> Operator:
        """The rest of a set of relations, `inside or covered-by`."""
        mask = op.mask
        while self._accept("or"):
            other = _OPERATORS.get(self._tokens[self._at].lower())
            if other is None or not other.mask:
                self._fail("a relation of regions")
            mask |= other.mask
            self._at += 1
        return relations_operator(mask)

    def _has(self, name: str, negated: bool) -> Alternatives:
        start = self._at
        each = self._accept("all")
        members = self._list("[", self._scalar, "]") if each or self._accept("any") else [self._scalar()]
        wanted = [[member] for member in members] if each else [members]
        try:
            found = tuple(Constraint(name, Operator.HAS, some) for some in wanted)
        except InvalidValue as error:
            self._refuse(error, start)
        return [(constraint.opposite,) for constraint in found] if negated else [found]

    def _at_point(self, name: str, op: Operator, point: Point, negated: bool) -> Alternatives:
        """The alternatives of relations to a point."""
        found = relations_to_point(op.mask, point, negated=negated)
        return [(Constraint(name, word, operand),) for word, operand in found]

    def _between(self, name: str, negated: bool) -> Alternatives:
        start = self._at
        low = self._scalar()
        self._expect("and")
        high = self._scalar()
        try:
            bounds = between(name, low, high)
        except InvalidValue as error:
            self._refuse(error, start)
        return [*negate_constraint(bounds[0]), *negate_constraint(bounds[1])] if negated else [bounds]

    # Operands.

    def _nothing(self, op: Operator) -> None:
        return None

    def _members(self, op: Operator) -> list[Scalar]:
        return self._list("[", self._scalar, "]")

    def _matches(self, op: Operator) -> TextMatch:
        start = self._at
        keywords = self._list("{", self._string, "}")
        within = self._region() if self._accept("within") else None
        try:
            return TextMatch.of(keywords, within)
        except InvalidValue as error:
            self._refuse(error, start)

    def _similar(self, op: Operator) -> Similar:
        start = self._at
        keywords = frozenset(self._list("{", self._string, "}"))
        self._expect("at")
        at = self._point()
        self._expect("alpha")
        alpha = self._number()
        self._expect("tau")
        tau = self._number()
        return self._make(lambda: Similar(keywords, at, alpha, tau), start)

    def _distance(self, op: Operator) -> Distance:
        start = self._at
        length = self._number()
        unit = self._tokens[self._at].lower()
        if unit in UNITS:
            self._at += 1
        self._expect("of")
        of = self._shape()
        return self._make(lambda: Distance(length, of, unit if unit in UNITS else ""), start)

    def _scalar(self, op: Operator | None = None) -> Scalar:
        token = self._tokens[self._at]
        first = token[:1]
        if first == '"':
            return self._string()
        if first in tokens.NUMERIC:
            if tokens.is_time(token):
                return self._literal(tokens.read_time)
            return self._literal(tokens.read_number)
        word = token.lower()
        if word in ("true", "false"):
            self._at += 1
            return word == "true"
        if word == "point":
            return self._point()
        return self._fail("a value (a number, a string in double quotes, true, false, a time or POINT)")

    def _string(self, op: Operator | None = None) -> str:
        if self._tokens[self._at][:1] != '"':
            self._fail("a string in double quotes")
        return self._literal(tokens.read_string)

    def _number(self) -> float:
        token = self._tokens[self._at]
        if token[:1] not in tokens.NUMERIC or tokens.is_time(token):
            self._fail("a number")
        return self._literal(tokens.read_float)

    def _literal(self, read: Callable[[str], _T]) -> _T:
        """The value of this token."""
        try:
            value = read(self._tokens[self._at])
        except tokens.Unreadable as error:
            self._show(error.message, self._at, error.offset)
        self._at += 1
        return value

    def _point(self) -> Point:
        from contrada.spatial.geometry.point import Point

        start = self._at
        self._expect("point")
        self._expect("(")
        x, y = self._position()
        self._expect(")")
        return self._make(lambda: Point(x, y), start)

    def _text_or_region(self, op: Operator) -> str | Region | Point | Line:
        if self._tokens[self._at][:1] == '"':
            return self._string()
        return self._shape(expected="a string, POINT, POLYGON or BOX")

    def _shape(self, op: Operator | None = None, expected: str = "POINT, POLYGON or BOX") -> Region | Point | Line:
        shape = self._tokens[self._at].lower()
        if shape == "point":
            return self._point()
        return self._line() if shape.endswith("linestring") else self._region(expected=expected)

    def _line(self) -> Line:
        from contrada.spatial.lines.line import Line

        start = self._at
        if self._accept("multilinestring"):
            parts = self._list("(", lambda: self._list("(", self._position, ")"), ")")
        else:
            self._expect("linestring")
            parts = [self._list("(", self._position, ")")]
        return self._make(lambda: Line.of_parts(parts), start)

    def _region(self, op: Operator | None = None, expected: str = "POLYGON or BOX") -> Region:
        Region = _region_type()
        start = self._at
        shape = self._tokens[start]
        if shape[-1:] == ")" and len(shape) > 1:
            self._at += 1
            try:
                return self._box(*tokens.read_corners(shape)) if shape[0] in "bB" else Region(tokens.read_ring(shape))
            except InvalidValue as error:
                self._refuse(error, start)
        if self._accept("box"):
            self._expect("(")
            x1, y1 = self._position()
            self._expect(",")
            x2, y2 = self._position()
            self._expect(")")
            return self._make(lambda: self._box(x1, y1, x2, y2), start)
        if self._accept("multipolygon"):
            parts = self._list("(", self._rings, ")")
            return self._make(lambda: Region({"type": "MultiPolygon", "coordinates": parts}), start)
        if not self._accept("polygon"):
            self._fail(expected)
        shell, *holes = self._rings()
        return self._make(lambda: Region(shell, holes), start)

    def _rings(self) -> list[list[tuple[float, float]]]:
        return self._list("(", lambda: self._list("(", self._position, ")"), ")")

    def _position(self) -> tuple[float, float]:
        return self._number(), self._number()

    def _list(self, opening: str, item: Callable[[], _T], closing: str) -> list[_T]:
        self._expect(opening)
        items = [item()]
        while self._tokens[self._at] == ",":
            self._at += 1
            items.append(item())
        if self._tokens[self._at] != closing:
            self._fail(f'"," or "{closing}"')
        self._at += 1
        return items

    # Tokens.

    def _accept(self, word: str) -> bool:
        token = self._tokens[self._at]
        if token != word and token.lower() != word:
            return False
        self._at += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            self._fail(f'"{word}"')

    # Errors.

    def _make(self, build: Callable[[], _T], start: int) -> _T:
        try:
            return build()
        except InvalidValue as error:
            self._refuse(error, start)

    def _refuse(self, error: InvalidValue, at: int) -> NoReturn:
        self._show(str(error), at)

    def _fail(self, expected: str, at: int | None = None) -> NoReturn:
        at = self._at if at is None else at
        self._show(tokens.expected(expected, self._tokens[at]), at)

    def _show(self, message: str, at: int, offset: int = 0) -> NoReturn:
        """Raise the error of a token, or have the text read again where its position is not known."""
        if not self._exact:
            raise _Unusual
        raise FilterSyntaxError(tokens.show(self._text, tokens.position(self._text, at) + offset, message)) from None


def _box(x1: float, y1: float, x2: float, y2: float) -> Region:
    from contrada.spatial.geometry.region import Box

    return Box(x1, y1, x2, y2)


_READERS: Final[dict[Operator, Callable[[_Parser, Operator], object]]] = {
    Operator.EXISTS: _Parser._nothing,
    Operator.IN: _Parser._members,
    Operator.PREFIX: _Parser._string,
    Operator.SUFFIX: _Parser._string,
    Operator.LIKE: _Parser._string,
    Operator.FOLDED: _Parser._string,
    Operator.CONTAINS: _Parser._text_or_region,
    Operator.MATCHES: _Parser._matches,
    Operator.SIMILAR: _Parser._similar,
    Operator.WITHIN: _Parser._distance,
    Operator.BEYOND: _Parser._distance,
    **{_OPERATORS[word]: _Parser._scalar for word in _COMPARE},
    **{op: _Parser._shape for op in _MASKED if op is not Operator.CONTAINS},
}
