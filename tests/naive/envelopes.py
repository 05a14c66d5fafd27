"""Envelopes in a list, each compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class NaiveEnvelopes:
    """What `EnvelopeIndex` answers, the obvious way: (low, high, least, most) by number."""

    def __init__(self) -> None:
        self.envelopes: dict[int, Sequence[Sequence[float]]] = {}

    def around(self, a: Sequence[float], b: Sequence[float]) -> list[int]:
        return [n for n, (low, high, _, _) in self.envelopes.items() if _below(low, a) and _below(b, high)]

    def within(self, a: Sequence[float], b: Sequence[float]) -> list[int]:
        return [n for n, (_, _, least, most) in self.envelopes.items() if _below(a, least) and _below(most, b)]


def _below(a: Sequence[float], b: Sequence[float]) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True))
