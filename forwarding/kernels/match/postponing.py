"""Counted filters whose constraints of plugged-in types are decided last, not searched for (types/postponing.py)."""

from __future__ import annotations

from contrada.forwarding.kernels.memory.bits import low_half, status_now, status_rest, word_operator
from contrada.forwarding.kernels.memory.layout import (
    F_ACCESS,
    F_CODE,
    F_SIZE,
    PLUG,
    POSTED_ALL,
    POSTED_OPERAND,
    S_FILTERS,
    Index,
    Ints,
)
from contrada.spatial.storage.jit import bare_inline_kernel, bare_kernel


@bare_inline_kernel
def plugs_of(filters: Ints, words: Ints, f: int) -> int:
    """How many of the constraints that a filter is verified by are of plugged-in types."""
    count = 0
    code = filters[f, F_CODE]
    for at in range(code, code + low_half(filters[f, F_SIZE])):
        count += word_operator(words[at]) == PLUG
    return count


@bare_kernel
def must_search(index: Index) -> bool:
    """Whether a filter is posted under constraints of plugged-in types alone: without a search nothing leads to it."""
    filters, words = index.filters, index.words
    for f in range(1, index.state[S_FILTERS]):
        access = status_now(filters[f, F_ACCESS])
        if access == POSTED_OPERAND and word_operator(words[filters[f, F_CODE]]) == PLUG:
            return True
        if access == POSTED_ALL and plugs_of(filters, words, f) == status_rest(filters[f, F_ACCESS]):
            return True
    return False
