"""The text language read character by character, without limits or messages: the slow twin of `parse`."""

from __future__ import annotations

import json
from datetime import datetime

from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.distance import Distance
from contrada.forwarding.language.filter import Filter, Predicate
from contrada.forwarding.language.operands import Similar, TextMatch
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box, Region
from contrada.spatial.lines.line import Line

SYMBOLS = ("<=", ">=", "!=", "~=", *"<>=()[]{},")


class Refused(Exception):
    """The text is no filter."""


def cut(text: str) -> list[str]:
    """The tokens: strings keep their quotes, all else ends at white space or a symbol."""
    found, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        end = at + 1
        symbol = next((symbol for symbol in SYMBOLS if text.startswith(symbol, at)), "")
        if symbol:
            end = at + len(symbol)
        elif text[at] == '"':
            while end < len(text) and text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            end += 1
        else:
            while end < len(text) and not text[end].isspace() and text[end] not in '"<>=!~()[]{},':
                end += 1
        found.append(text[at:end])
        at = end
    return found


class Reader:
    def __init__(self, text: str) -> None:
        self.tokens = [*cut(text), ""]

    def take(self, wanted: str | None = None) -> str:
        if wanted is not None and self.tokens[0].lower() != wanted:
            raise Refused(self.tokens[0])
        return self.tokens.pop(0)

    def next(self, *words: str) -> bool:
        return self.tokens[0].lower() in words

    def either(self) -> list[Filter]:
        found = self.both()
        while self.next("or"):
            self.take()
            found += self.both()
        return found

    def both(self) -> list[Filter]:
        found = self.one()
        while self.next("and"):
            self.take()
            others = self.one()
            found = [Filter((*a, *b)) for a in found for b in others]
        return found

    def one(self) -> list[Filter]:
        if self.next("("):
            self.take()
            found = self.either()
            self.take(")")
            return found
        if self.next("true") and self.tokens[1].lower() in ("", ")", "and", "or"):
            self.take()
            return [Filter(())]
        name = self.string() if self.tokens[0].startswith('"') else self.take()
        negated = "not " if self.next("not") else ""
        if negated:
            self.take()
        words = [negated + self.take().lower()]
        while self.next("or"):  # a set of relations, written in the order in which it is printed
            self.take()
            words.append(self.take().lower())
        op = Operator(" or ".join(words))
        return [Filter(Constraint(name, op, self.operand(op)))]

    def operand(self, op: Operator) -> object:
        if op in (Operator.EXISTS, Operator.NOT_EXISTS):
            return None
        if op in (Operator.HAS, Operator.NOT_HAS):
            if not self.next("any"):
                return [self.scalar()]
            self.take()
            return self.many("[", self.scalar, "]")
        if op is Operator.IN:
            return self.many("[", self.scalar, "]")
        if op in (Operator.MATCHES, Operator.NOT_MATCHES):
            keywords = frozenset(self.many("{", self.string, "}"))
            if not self.next("within"):
                return TextMatch(keywords)
            self.take()
            return TextMatch(keywords, self.region())
        if op in (Operator.SIMILAR, Operator.NOT_SIMILAR):
            keywords = frozenset(self.many("{", self.string, "}"))
            self.take("at")
            at = self.scalar()
            self.take("alpha")
            alpha = float(self.take())
            self.take("tau")
            return Similar(keywords, at, alpha, float(self.take()))
        if op in (Operator.WITHIN, Operator.BEYOND):
            length = float(self.take())
            self.take("of")
            return Distance(length, self.shape())
        shapes = ("polygon", "multipolygon", "box", "linestring", "multilinestring")
        return self.shape() if self.next(*shapes) else self.scalar()

    def shape(self) -> object:
        if self.next("linestring"):
            self.take()
            return Line(self.many("(", self.pair, ")"))
        if self.next("multilinestring"):
            self.take()
            return Line.of_parts(self.many("(", lambda: self.many("(", self.pair, ")"), ")"))
        return self.scalar() if self.next("point") else self.region()

    def region(self) -> Region:
        word = self.take().lower()
        if word == "box":
            return Box(*(number for pair in self.many("(", self.pair, ")") for number in pair))
        if word == "multipolygon":
            return Region.of({"type": "MultiPolygon", "coordinates": self.many("(", self.rings, ")")})
        shell, *holes = self.rings()
        return Region(shell, holes)

    def rings(self) -> list[list[tuple[float, float]]]:
        return self.many("(", lambda: self.many("(", self.pair, ")"), ")")

    def scalar(self) -> object:
        if self.tokens[0].startswith('"'):
            return self.string()
        word = self.take()
        if word.lower() in ("true", "false"):
            return word.lower() == "true"
        if word.lower() == "point":
            return Point(*self.many("(", self.pair, ")")[0])
        if ":" in word:
            return datetime.fromisoformat(word)
        return int(word) if word.lstrip("+-").isdigit() else float(word)

    def string(self) -> str:
        return json.loads(self.take())

    def pair(self) -> tuple[float, float]:
        return float(self.take()), float(self.take())

    def many(self, opening: str, item: object, closing: str) -> list:
        self.take(opening)
        found = [item()]
        while self.next(","):
            self.take()
            found.append(item())
        self.take(closing)
        return found


def parse(text: str) -> Filter | Predicate:
    reader = Reader(text)
    filters = reader.either()
    reader.take("")
    return Predicate(filters)
