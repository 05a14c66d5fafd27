"""Set values: lists of strings and numbers, `{"tags": ["ice", "snow", 3]}`, of which filters ask what they have.

A set has no order and no repeats; `1` and `1.0` are the same member, bools are none. It may be empty. Members stand in
canonical order, so that equal sets are equal objects, on the wire and as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_MEMBERS: Final = 4096


class SetValue:
    """Strings and numbers, each once. `in`, `len` and iteration are those of a tuple of its members."""

    __slots__ = ("_members", "members")

    members: tuple[str | int | float, ...]
    _members: frozenset[str | int | float]

    def __init__(self, members: Iterable[object]) -> None:
        from contrada.forwarding.language.operands import check_scalar
        from contrada.forwarding.language.values import Kind

        found: set[str | int | float] = set()
        for member in members:
            if isinstance(member, list | tuple | set | frozenset | dict | SetValue) or member is None:
                raise InvalidValue(f"a list holds strings and numbers, not {type(member).__name__}")
            kind, scalar = check_scalar(member)
            if kind not in (Kind.STRING, Kind.NUMBER):
                raise InvalidValue(f"a list holds strings and numbers, not a {kind.name.lower()}")
            found.add(scalar)  # type: ignore[arg-type]  # the kind says what it is
        if len(found) > MOST_MEMBERS:
            raise InvalidValue(f"a list of {len(found)} different members, more than {MOST_MEMBERS}")
        _set_members(self, frozenset(found))
        _set_ordered(self, tuple(sorted(found, key=lambda member: (isinstance(member, str), member))))

    def has_any(self, wanted: Iterable[object]) -> bool:
        """Whether one of these, strings and numbers in canonical form, is a member."""
        return not self._members.isdisjoint(wanted)

    def __contains__(self, member: object) -> bool:
        return type(member) is not bool and member in self._members

    def __iter__(self) -> Iterator[str | int | float]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)

    def __eq__(self, other: object) -> bool:
        return self._members == other._members if isinstance(other, SetValue) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._members)

    def __repr__(self) -> str:
        return f"SetValue({list(self.members)!r})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a SetValue cannot be changed")

    def __reduce__(self) -> tuple[object, ...]:
        return (SetValue, (self.members,))


_set_members = SetValue.__dict__["_members"].__set__
_set_ordered = SetValue.__dict__["members"].__set__
