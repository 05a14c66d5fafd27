"""Covers between filters in the table, for constraints of its own types: [SIENA-2D], section 4.2, rule 3, on words.

Sound, and complete where one constraint of the covered filter implies each constraint of the coverer; what several
imply together (covering.py weighs that too) is not looked for here. Constraints of plugged-in types are only
compared for being the same; `covers_filter` answers "perhaps" when theirs is the last word.
"""

from __future__ import annotations

from contrada.forwarding.kernels.change.choosing import value_kind, word_span
from contrada.forwarding.kernels.memory.bits import low_half, tag_kind, tag_name, word_operand, word_operator
from contrada.forwarding.kernels.memory.layout import (
    ABSENT,
    CONTAINS,
    EQ,
    EXISTS,
    F_CODE,
    F_SIZE,
    GE,
    GT,
    IN,
    IS,
    LE,
    LIKE,
    LT,
    NE,
    NOT,
    O_KEY,
    O_LEN,
    O_LOW,
    O_TAG,
    PATTERN_PREFIX,
    PLUG,
    PREFIX,
    STRING,
    SUFFIX,
    WHOLE_KIND,
    Index,
)
from contrada.forwarding.kernels.memory.words import compare_bytes, same_bytes
from contrada.forwarding.kernels.substrings.searching import has_bytes
from contrada.spatial.storage.jit import bare_kernel

NO = 0
YES = 1
PERHAPS = 2


@bare_kernel
def first_operand(index: Index, at: int) -> int:
    """An operand of the constraint at `words[at]`; its name is the constraint's."""
    return word_operand(index.words[at + 1]) if word_operator(index.words[at]) == IN else word_operand(index.words[at])


@bare_kernel
def compare_operands(index: Index, a: int, b: int) -> int:
    """The order of two operands that are values of one kind, or strings: -1, 0 or 1."""
    if a == b:
        return 0
    one, two = index.operands[a], index.operands[b]
    if value_kind(tag_kind(one[O_TAG])) == STRING:
        return compare_bytes(index.text, one[O_LOW], one[O_LEN], index.text, two[O_LOW], two[O_LEN])
    if one[O_KEY] != two[O_KEY]:
        return -1 if one[O_KEY] < two[O_KEY] else 1
    if one[O_LOW] == two[O_LOW]:
        return 0
    return -1 if one[O_LOW] < two[O_LOW] else 1


@bare_kernel
def has_pattern(index: Index, text: int, op: int, pattern: int) -> bool:
    """Whether an operand's string has another's as prefix, suffix or substring."""
    size = index.operands[pattern, O_LEN]
    begin = index.operands[text, O_LOW]
    spare = index.operands[text, O_LEN] - size
    if spare < 0:
        return False
    at = index.operands[pattern, O_LOW]
    if op == CONTAINS:
        return has_bytes(index, index.text, begin, spare + size, at, size)
    return same_bytes(index.text, begin + (spare if op == SUFFIX else 0), index.text, at, size)


@bare_kernel
def _pattern_operator(index: Index, pattern: int) -> int:
    """The operator that asks for a pattern: what NOT refuses."""
    return PREFIX + tag_kind(index.operands[pattern, O_TAG]) - PATTERN_PREFIX


@bare_kernel
def _refuses_as_much(index: Index, a: int, b: int) -> bool:
    """Whether strings without the pattern b are without the pattern a."""
    wider, narrower = _pattern_operator(index, b), _pattern_operator(index, a)
    return narrower <= CONTAINS and wider in (narrower, CONTAINS) and has_pattern(index, a, wider, b)


@bare_kernel
def value_satisfies(index: Index, value: int, at: int) -> bool:
    """Whether the constraint at `words[at]` holds on an operand that is a value, of the same name."""
    word = index.words[at]
    op = word_operator(word)
    operand = word_operand(word)
    kind = tag_kind(index.operands[value, O_TAG])
    if op == EQ:
        return value == operand
    if op == EXISTS:
        return True
    if op == IN:
        low, high = at + 1, at + operand
        while low < high:
            middle = (low + high) >> 1
            if word_operand(index.words[middle]) < value:
                low = middle + 1
            else:
                high = middle
        return word_operand(index.words[low]) == value
    if op == PLUG:
        return False
    if op >= IS:
        if kind != STRING or op in (ABSENT, LIKE):
            return False
        if op == NOT:
            pattern = _pattern_operator(index, operand)
            return pattern <= CONTAINS and not has_pattern(index, value, pattern, operand)
        return op == IS or has_pattern(index, value, op, operand)
    if kind != tag_kind(index.operands[operand, O_TAG]):
        return False
    if op == NE:
        return value != operand
    c = compare_operands(index, value, operand)
    return (c < 0 and op <= LE) or (c > 0 and op >= GT) or (c == 0 and (op in (LE, GE)))


@bare_kernel
def _implied_by_pattern(index: Index, op: int, operand: int, pattern_op: int, pattern: int) -> bool:
    """Whether every string with a pattern satisfies `op operand`, where the operand is a string or a pattern."""
    if op in (pattern_op, CONTAINS):
        return has_pattern(index, pattern, op, operand)
    if op == NE:
        return not has_pattern(index, operand, pattern_op, pattern)
    if pattern_op != PREFIX:
        return False
    # Strings with the prefix p begin at p itself and end before anything that is larger and does not begin with p.
    c = compare_operands(index, pattern, operand)
    if op == GT:
        return c > 0
    if op == GE:
        return c >= 0
    return LT <= op <= LE and c < 0 and not has_pattern(index, operand, PREFIX, pattern)


@bare_kernel
def covers_word(index: Index, a: int, b: int) -> int:
    """Whether whatever satisfies the constraint at `words[b]` satisfies that at `words[a]`, on the same name."""
    words, operands = index.words, index.operands
    one, two = words[a], words[b]
    op, other = word_operator(one), word_operator(two)
    if op == ABSENT or other == ABSENT:
        return YES if op == other else NO
    if op == EXISTS:
        return YES
    if other == EQ:
        return YES if value_satisfies(index, word_operand(two), a) else NO
    if other == IN:
        for i in range(b + 1, b + 1 + word_operand(two)):
            if not value_satisfies(index, word_operand(words[i]), a):
                return NO
        return YES
    if op in (IN, EQ) or other == EXISTS:
        return NO
    if op == PLUG or other == PLUG:
        if one == two:
            return YES
        same_type = op == other and operands[word_operand(one), O_TAG] == operands[word_operand(two), O_TAG]
        return PERHAPS if same_type else NO
    x, y = word_operand(one), word_operand(two)
    kind = tag_kind(operands[y, O_TAG])
    if op == IS:
        return YES if value_kind(kind) == STRING else NO
    if kind == WHOLE_KIND:
        return NO
    if op >= NOT or other >= NOT:
        if one == two:
            return YES
        return YES if op == NOT and other == NOT and _refuses_as_much(index, x, y) else NO
    if other >= PREFIX:
        string = value_kind(tag_kind(operands[x, O_TAG])) == STRING
        return YES if string and _implied_by_pattern(index, op, x, other, y) else NO
    if op >= PREFIX or tag_kind(operands[x, O_TAG]) != kind:
        return NO
    c = compare_operands(index, y, x)  # of the covered one's constant to the coverer's
    holds = False
    if op == NE:
        if other == NE:
            holds = c == 0
        elif other <= LE:  # y bounds from above: x must lie beyond
            holds = c < 0 or (c == 0 and other == LT)
        else:
            holds = c > 0 or (c == 0 and other == GT)
    elif other != NE:
        if op <= LE:
            holds = other <= LE and (c < 0 or (c == 0 and (op == LE or other == LT)))
        else:
            holds = other >= GT and (c > 0 or (c == 0 and (op == GE or other == GT)))
    return YES if holds else NO


@bare_kernel
def covers_filter(index: Index, g: int, f: int) -> int:
    """Whether filter g covers filter f: each constraint of g covers one of f's."""
    words, filters = index.words, index.filters
    if g == f:
        return NO
    a = filters[g, F_CODE]
    a_end = a + low_half(filters[g, F_SIZE])
    b_begin = filters[f, F_CODE]
    b_end = b_begin + low_half(filters[f, F_SIZE])
    answer = YES
    while a < a_end:
        name = tag_name(index.operands[first_operand(index, a), O_TAG])
        best = NO
        b = b_begin
        while b < b_end and best != YES:
            if tag_name(index.operands[first_operand(index, b), O_TAG]) == name:
                found = covers_word(index, a, b)
                if found != NO:
                    best = found
            b += word_span(words[b])
        if best == NO:
            return NO
        if best == PERHAPS:
            answer = PERHAPS
        a += word_span(words[a])
    return answer
