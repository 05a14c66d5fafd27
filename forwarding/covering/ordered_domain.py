r"""Domains of numbers, strings and times: a half-open interval, less some values, with some string patterns.

Each of the three kinds is a chain in which every value but the last has an immediate successor: a string's is itself
with U+0000 appended; a time's is a microsecond later; a number's is the next double or the next 64-bit integer,
whichever comes first. So every order constraint is a half-open interval [lo, hi) of *keys*, without open and closed
ends to tell apart, and `x > "a" and x < "a\0"` is seen to be empty. A prefix is an interval too: strings with prefix p
are those from p up to, not including, p with its last character incremented. Suffixes and substrings, wanted or
not, are kept as they are.

Keys are the values themselves for numbers, microseconds for times, and (0, string) for strings, with (1,) as the top.
"""

from __future__ import annotations

import math
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from contrada.forwarding.covering.domains import listed_domain
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.like import read_pattern
from contrada.forwarding.language.values import INT_MAX, INT_MIN, Kind, from_microseconds, microseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contrada.forwarding.covering.budget import CoveringBudget
    from contrada.forwarding.covering.domains import Domain


_FEW: Final = 3
"""How many values an interval may have to be listed one by one: `x >= 5 and x <= 5` is `x = 5`."""


_PATTERNS: Final = (Operator.PREFIX, Operator.SUFFIX, Operator.CONTAINS)
_UNWANTED: Final = (Operator.NOT_SUFFIX, Operator.NOT_CONTAINS, Operator.NOT_LIKE, Operator.NOT_FOLDED)
_WHOLE: Final = (Operator.LIKE, Operator.NOT_LIKE, Operator.FOLDED, Operator.NOT_FOLDED)


class _Chain(NamedTuple):
    """A kind's order: the least key, a key above all, and how values and keys correspond."""

    bottom: Any
    top: Any
    key: Callable[[Any], Any]
    value: Callable[[Any], Any]
    after: Callable[[Any], Any]  # the key of the value after the one with this key, or the top


class _Interval(NamedTuple):
    lo: Any
    hi: Any


class OrderedDomain:
    """The values of a chain in [lo, hi) that also satisfy the constraints: `!=`, and string patterns."""

    __slots__ = ("_chain", "_constraints", "_interval")

    def __init__(self, chain: _Chain, interval: _Interval, constraints: list[Constraint]) -> None:
        self._chain = chain
        self._interval = interval
        self._constraints = constraints

    def implies(self, constraint: Constraint, budget: CoveringBudget) -> bool:
        """Whether every value of the domain satisfies the constraint."""
        budget.spend(1)
        op, value = constraint.op, constraint.value
        lo, hi = self._interval
        interval = _interval(self._chain, constraint)
        if interval is not None:
            return bool(interval.lo <= lo and hi <= interval.hi)
        if op is Operator.NE:
            key = self._chain.key(value)
            return not lo <= key < hi or not all(mine.holds(cast("Any", value)) for mine in self._constraints)
        if op is Operator.SUFFIX:
            return value == "" or any(suffix.endswith(cast("str", value)) for suffix in self._patterns(op))
        if op is Operator.CONTAINS:
            patterns = self._patterns(*_PATTERNS)
            return value == "" or any(cast("str", value) in pattern for pattern in patterns)
        if op in (Operator.NOT_SUFFIX, Operator.NOT_CONTAINS):
            return self._excludes(op, cast("str", value))
        if op in _WHOLE:
            return any(mine.op is op and mine.value == value for mine in self._constraints) or (
                op is Operator.NOT_FOLDED and any(text != value for text in self._patterns(Operator.FOLDED))
            )
        return False  # = and in: a domain that is not known to be finite holds more than they allow

    def _excludes(self, op: Operator, text: str) -> bool:
        """Whether no string of the domain ends with, or contains, a text."""
        if any(unwanted in text for unwanted in self._patterns(Operator.NOT_CONTAINS)):
            return True
        if op is Operator.NOT_CONTAINS:
            return False
        if any(text.endswith(unwanted) for unwanted in self._patterns(Operator.NOT_SUFFIX)):
            return True
        return not all(_compatible([text, suffix]) for suffix in self._patterns(Operator.SUFFIX))

    def _patterns(self, *ops: Operator) -> list[str]:
        return [cast("str", mine.value) for mine in self._constraints if mine.op in ops]


def ordered_domain(kind: Kind, constraints: list[Constraint]) -> Domain | None:
    """The domain of constraints on numbers, strings or times, none of them `=` or `in`."""
    chain = _CHAINS[kind]
    constraints = [each for c in constraints for each in _with_implied(c)]
    lo, hi = chain.bottom, chain.top
    for constraint in constraints:
        interval = _interval(chain, constraint)
        if interval is not None:
            lo, hi = max(lo, interval.lo), min(hi, interval.hi)
    excluded = {chain.key(c.value) for c in constraints if c.op is Operator.NE}
    lo, hi = _tighten(chain, lo, hi, excluded)
    if not lo < hi or not _compatible([cast("str", c.value) for c in constraints if c.op is Operator.SUFFIX]):
        return None
    if any(_contradicts(one, other) for one in constraints if one.op in _UNWANTED for other in constraints):
        return None
    if len({c.value for c in constraints if c.op is Operator.FOLDED}) > 1:
        return None
    few = _few(chain, lo, hi)
    return OrderedDomain(chain, _Interval(lo, hi), constraints) if few is None else listed_domain(few, constraints)


def _few(chain: _Chain, lo: Any, hi: Any) -> list[Any] | None:
    """The values of an interval of at most `_FEW`; None for a longer one."""
    values: list[Any] = []
    while lo < hi:
        if len(values) == _FEW:
            return None
        values.append(chain.value(lo))
        lo = chain.after(lo)
    return values


def _interval(chain: _Chain, constraint: Constraint) -> _Interval | None:
    """The keys that an order or prefix constraint allows; None for other operators."""
    op, value = constraint.op, constraint.value
    if op is Operator.LT:
        return _Interval(chain.bottom, chain.key(value))
    if op is Operator.LE:
        return _Interval(chain.bottom, chain.after(chain.key(value)))
    if op is Operator.GT:
        return _Interval(chain.after(chain.key(value)), chain.top)
    if op is Operator.GE:
        return _Interval(chain.key(value), chain.top)
    if op is Operator.PREFIX:
        return _Interval(chain.key(value), _after_prefix(cast("str", value)))
    return None


def _tighten(chain: _Chain, lo: Any, hi: Any, excluded: set[Any]) -> tuple[Any, Any]:
    """Move the ends inwards past excluded values: `x >= 5 and x != 5` is `x > 5`."""
    while lo < hi and lo in excluded:
        lo = chain.after(lo)
    ends = {chain.after(key): key for key in excluded}
    while lo < hi and hi in ends:
        hi = ends[hi]
    return lo, hi


def _compatible(suffixes: list[str]) -> bool:
    """Whether one string can end with all of them: each must be a suffix of the longest."""
    longest = max(suffixes, key=len, default="")
    return all(longest.endswith(suffix) for suffix in suffixes)


def _with_implied(constraint: Constraint) -> Iterator[Constraint]:
    """Yield a constraint, and of `like` what its literal texts ask for."""
    yield constraint
    if constraint.op is Operator.LIKE:
        pattern, name = read_pattern(cast("str", constraint.value)), constraint.name
        yield Constraint(name, Operator.PREFIX, pattern.prefix)
        yield Constraint(name, Operator.SUFFIX, pattern.suffix)
        yield from (Constraint(name, Operator.CONTAINS, text) for _, text in pattern.literals)


def _contradicts(unwanted: Constraint, other: Constraint) -> bool:
    """Whether a pattern asks for what a negated one refuses."""
    text = cast("str", unwanted.value)
    if unwanted.op in _WHOLE:
        return other.op is unwanted.opposite.op and other.value == unwanted.opposite.value
    if unwanted.op is Operator.NOT_SUFFIX:
        return other.op is Operator.SUFFIX and cast("str", other.value).endswith(text)
    return other.op in _PATTERNS and text in cast("str", other.value)


def _after_number(number: float) -> float:
    nearest = float(number)
    above = nearest if nearest > number else math.nextafter(nearest, math.inf)
    if number >= INT_MAX:
        return above
    integer = max(math.floor(number) + 1, INT_MIN)
    return integer if integer < above else above


def _after_prefix(prefix: str) -> tuple[Any, ...]:
    """The key of the least string above all strings with this prefix. It need not be a string that can be sent."""
    while prefix:
        last = ord(prefix[-1])
        prefix = prefix[:-1]
        if last < sys.maxunicode:
            return (0, prefix + chr(last + 1))
    return (1,)


_CHAINS: Final = {
    Kind.NUMBER: _Chain(-sys.float_info.max, math.inf, lambda v: v, lambda k: k, _after_number),
    Kind.STRING: _Chain((0, ""), (1,), lambda v: (0, v), lambda k: k[1], lambda k: (0, k[1] + "\0")),
    Kind.TIME: _Chain(
        microseconds(datetime.min.replace(tzinfo=UTC)),
        microseconds(datetime.max.replace(tzinfo=UTC)) + 1,
        microseconds,
        from_microseconds,
        lambda k: k + 1,
    ),
}
