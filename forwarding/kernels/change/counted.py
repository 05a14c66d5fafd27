"""Filters posted under all of their constraints, to be counted: the algorithm of SFF, which [SIENA-2D] builds on.

Siena Fast Forwarding ([SFF]; [SIENA-2D], section 2.2) finds every constraint that a notification satisfies in one index
of all, and counts for each filter how many of its own there were; a filter whose count is reached matches. So each word
of a filter has a posting: `in` one for each member, of which a value equals at most one, so that it counts once; `!=`
and what else holds on most values in the list of all values of its type, which is why a filter looks at these once more
when the count is reached (`finish` in match/verifying.py), and at what should be absent, which nothing leads to.

F_BACK leads to as many words as the filter has, each with the place of that word's posting: 0 for a threshold, which
is found by its value, for the word that begins an `in` and for absence. A filter of one constraint is posted as ever:
it matches when that holds.
"""

from __future__ import annotations

from contrada.forwarding.kernels.change.choosing import value_kind, word_span
from contrada.forwarding.kernels.change.listing import drop, drop_operand, payload_of, push_operand
from contrada.forwarding.kernels.match.thresholds import insert_threshold, remove_threshold
from contrada.forwarding.kernels.memory.bits import low_half, status_of, tag_kind, tag_name, word_operand, word_operator
from contrada.forwarding.kernels.memory.layout import (
    ABSENT,
    EXISTS,
    F_ACCESS,
    F_BACK,
    F_CODE,
    F_MASK,
    F_SIZE,
    GE,
    GT,
    IN,
    IS,
    KINDS,
    LE,
    LIKE,
    LT,
    N_ABOVE,
    N_BELOW,
    N_WIDE,
    NE,
    NOT,
    O_TAG,
    POSTED_ALL,
    S_COUNTED,
    Index,
    Ints,
)
from contrada.forwarding.kernels.memory.postings import push_posting
from contrada.forwarding.kernels.memory.words import give_words, take_words
from contrada.spatial.storage.jit import bare_kernel


@bare_kernel
def count_constraints(index: Index, code: int, size: int) -> int:
    """How many constraints in a run of words can be counted: all that ask for something to be there."""
    count = 0
    at = code
    while at < code + size:
        count += word_operator(index.words[at]) != ABSENT
        at += word_span(index.words[at])
    return count


@bare_kernel
def _post_word(index: Index, f: int, word: int, events: Ints) -> int:
    """Post a filter under one of its words; the posting's place, 0 if it has none."""
    operands, fields = index.operands, index.fields
    op, operand = word_operator(word), word_operand(word)
    if op in (IN, ABSENT):
        return 0
    tag = operands[operand, O_TAG]
    field = tag_name(tag) * KINDS + value_kind(tag_kind(tag))
    mask, payload = index.filters[f, F_MASK], payload_of(index, f)
    if LT <= op <= LE:
        fields[field, N_BELOW] = insert_threshold(index, fields[field, N_BELOW], operand, op - LT, mask, payload)
        return 0
    if GT <= op <= GE:
        fields[field, N_ABOVE] = insert_threshold(index, fields[field, N_ABOVE], operand, GE - op, mask, payload)
        return 0
    if op in (NE, IS, EXISTS, NOT, LIKE):
        fields[field, N_WIDE], place = push_posting(index, fields[field, N_WIDE], mask, payload)
        return place
    return push_operand(index, f, operand, events)


@bare_kernel
def post_counted(index: Index, f: int, constraints: int, events: Ints) -> None:
    """Post a filter of so many constraints under each of them."""
    words, filters = index.words, index.filters
    code, size = filters[f, F_CODE], low_half(filters[f, F_SIZE])
    filters[f, F_ACCESS] = status_of(constraints, POSTED_ALL)
    back = take_words(index, size)
    filters[f, F_BACK] = back
    index.state[S_COUNTED] += 1
    for i in range(size):
        words[back + i] = 0  # what moves meanwhile looks for places here
    for i in range(size):
        words[back + i] = _post_word(index, f, words[code + i], events)


@bare_kernel
def unpost_counted(index: Index, f: int, events: Ints) -> None:
    """Undo `post_counted`."""
    words, filters, operands, fields = index.words, index.filters, index.operands, index.fields
    code, size, back = filters[f, F_CODE], low_half(filters[f, F_SIZE]), filters[f, F_BACK]
    payload = payload_of(index, f)
    for i in range(size):
        op, operand = word_operator(words[code + i]), word_operand(words[code + i])
        if op in (IN, ABSENT):
            continue
        tag = operands[operand, O_TAG]
        field = tag_name(tag) * KINDS + value_kind(tag_kind(tag))
        place = words[back + i]
        words[back + i] = 0
        if LT <= op <= LE:
            fields[field, N_BELOW] = remove_threshold(index, fields[field, N_BELOW], operand, op - LT, payload)
        elif GT <= op <= GE:
            fields[field, N_ABOVE] = remove_threshold(index, fields[field, N_ABOVE], operand, GE - op, payload)
        elif op in (NE, IS, EXISTS, NOT, LIKE):
            fields[field, N_WIDE] = drop(index, fields[field, N_WIDE], place, 0)
        else:
            drop_operand(index, operand, place, events)
    give_words(index, back, size)
    index.state[S_COUNTED] -= 1
