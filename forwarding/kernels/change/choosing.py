"""Which of its constraints a filter is posted under: the one expected to make the least work.

Judged by the table's own contents: how many constraints share the operand, how many speak of the name; and for
plugged-in types by the share of values that the type expects to satisfy it (forwarding/types/shares.py).
"""

from __future__ import annotations

from contrada.forwarding.kernels.memory.bits import tag_kind, tag_name, tag_of, word_operand, word_operator
from contrada.forwarding.kernels.memory.interning import find_scalar
from contrada.forwarding.kernels.memory.layout import (
    ABSENT,
    CELL,
    CONTAINS,
    EQ,
    GE,
    GT,
    IN,
    KINDS,
    LE,
    LIKE,
    LT,
    N_USES,
    NUMBER,
    O_KEY,
    O_LEN,
    O_REFS,
    O_TAG,
    PATTERN_PREFIX,
    PLUG,
    PREFIX,
    SHARES,
    STRING,
    SUFFIX,
    TIME,
    Index,
)
from contrada.spatial.storage.jit import bare_kernel

_WIDEST_CELL = 61
_LATE = 2.0  # what deciding a constraint of a plugged-in type costs, in filters met, when most fail by their boxes
_NEVER = 1e18  # of what nothing that is there leads to; more than any other
_COUNTED = 0.28  # what counting a constraint costs, in filters looked at
_ANY_LATE = 8.0  # and what a notification costs for which some are left to be decided, however few


@bare_kernel
def value_kind(operand_kind: int) -> int:
    """The kind of the values that an operand of that kind is compared with."""
    return STRING if operand_kind >= PATTERN_PREFIX else operand_kind


@bare_kernel
def word_span(word: int) -> int:
    """How many words the constraint that begins with this one takes."""
    return 1 + word_operand(word) if word_operator(word) == IN else 1


@bare_kernel
def cells_of(index: Index, code: int, size: int, at: int) -> tuple[int, int, int]:
    """The dyadic cells of the range that the `>` word at `at` opens and a `<` word closes: level, first, last.

    The level is -1 when there is no such range or it is too wide to be worth a cell.
    """
    words, operands = index.words, index.operands
    tag = operands[word_operand(words[at]), O_TAG]
    kind = tag_kind(tag)
    if kind != NUMBER and kind != TIME:
        return -1, 0, 0
    bottom = operands[word_operand(words[at]), O_KEY]
    for i in range(code, code + size):
        op = word_operator(words[i])
        if op == IN:
            return -1, 0, 0
        if LT <= op <= LE and operands[word_operand(words[i]), O_TAG] == tag:
            top = operands[word_operand(words[i]), O_KEY]
            if top < bottom or (bottom < 0 and top >= 0):
                return -1, 0, 0
            level = 0
            while level <= _WIDEST_CELL and (1 << level) < top - bottom:
                level += 1
            if level > _WIDEST_CELL:
                return -1, 0, 0
            return level, bottom >> level, top >> level
    return -1, 0, 0


@bare_kernel
def expected_hits(index: Index, code: int, size: int, at: int) -> float:
    """How many filters are expected to be looked at for a notification, were all like this posted under `at`."""
    words, operands, fields = index.words, index.operands, index.fields
    op = word_operator(words[at])
    if op == IN:
        total = 0.0
        for i in range(at + 1, at + 1 + word_operand(words[at])):
            total += 1.0 + operands[word_operand(words[i]), O_REFS]
        return total
    operand = word_operand(words[at])
    tag = operands[operand, O_TAG]
    if op == ABSENT:
        return _NEVER
    shared = float(operands[operand, O_REFS])
    uses = float(fields[tag_name(tag) * KINDS + value_kind(tag_kind(tag)), N_USES])
    if op == EQ:
        return shared
    if PREFIX <= op <= SUFFIX:
        return shared + uses / 64.0
    if op == CONTAINS:
        return shared + uses / 32.0 + 2.0
    if op == PLUG:
        share = operands[operand, O_LEN]
        if share == 0:
            return shared + uses / 8.0 + 4.0
        return shared + uses * share / SHARES
    if GT <= op <= GE:
        level, first, last = cells_of(index, code, size, at)
        if level >= 0:
            total = 1.0 + uses / 64.0
            for cell in range(first, last + 1):
                o = find_scalar(index, tag_of(tag_name(tag), CELL), cell, level << 8 | tag_kind(tag))
                if o != 0:
                    total += operands[o, O_REFS]
            return total
    if LT <= op <= GE:
        return uses / 2.0 + 1.0
    return uses + 2.0


@bare_kernel
def _passing(index: Index, at: int) -> float:
    """A rough share of values that satisfy a constraint that is not of a plugged-in type."""
    words, operands = index.words, index.operands
    op = word_operator(words[at])
    if LT <= op <= GE:
        return 0.5
    if PREFIX <= op <= CONTAINS or op == LIKE:
        return 0.0625
    if op not in (EQ, IN):
        return 1.0
    operand = word_operand(words[at + 1]) if op == IN else word_operand(words[at])
    tag = operands[operand, O_TAG]
    hits = 0.0
    for i in range(at + 1 if op == IN else at, at + word_span(words[at])):
        hits += operands[word_operand(words[i]), O_REFS]
    return min(hits / index.fields[tag_name(tag) * KINDS + tag_kind(tag), N_USES], 1.0)


@bare_kernel
def late_share(index: Index, code: int, size: int) -> float:
    """The share of filters like this that pass all its constraints of the table's own types; -1 if it has no others."""
    words = index.words
    share = 1.0
    plugged = False
    at = code
    while at < code + size:
        if word_operator(words[at]) == PLUG:
            plugged = True
        else:
            share *= _passing(index, at)
        at += word_span(words[at])
    return share if plugged else -1.0


@bare_kernel
def access_cost(index: Index, code: int, size: int, at: int, late: float) -> float:
    """How much work the access that begins at `at` is expected to make; `late` is what `late_share` says.

    A filter found by a plugged-in type's search has had its most expensive constraint decided. Of those found otherwise
    only what passes all the other constraints comes to that.
    """
    expected = expected_hits(index, code, size, at)
    if late < 0.0 or word_operator(index.words[at]) == PLUG:
        return expected
    rest = min(late / max(_passing(index, at), 1e-9), 1.0)
    return _ANY_LATE + expected * (1.0 + _LATE * rest) / (1.0 + _LATE)


@bare_kernel
def counting_pays(index: Index, code: int, size: int, best: int, fewest: float) -> bool:
    """Whether a filter whose best access is at `best`, and makes so much work, is better posted under all constraints.

    It is not where that asks for a value: such a value is among the bits that a notification must have (masks.py), and
    hardly a filter is looked at in vain. Two thresholds of a range are met one by one, and not by the cells between.
    """
    words = index.words
    if word_operator(words[best]) in (EQ, IN, PLUG):
        return False
    total = 0.0
    at = code
    while at < code + size:
        op = word_operator(words[at])
        if LT <= op <= GE:
            tag = index.operands[word_operand(words[at]), O_TAG]
            total += index.fields[tag_name(tag) * KINDS + tag_kind(tag), N_USES] / 2.0 + 1.0
        else:
            total += expected_hits(index, code, size, at)
        at += word_span(words[at])
    return _COUNTED * total < fewest


@bare_kernel
def best_access(index: Index, code: int, size: int, late: float) -> tuple[int, float]:
    """Where the constraint begins that is expected to make the least work as access, and how much."""
    best = code
    fewest = -1.0
    at = code
    while at < code + size:
        cost = access_cost(index, code, size, at, late)
        if fewest < 0.0 or cost < fewest:
            best = at
            fewest = cost
        at += word_span(index.words[at])
    return best, fewest
