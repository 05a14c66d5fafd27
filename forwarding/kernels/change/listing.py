"""One posting of one filter: into an operand's list and out of it, and what a filter is told when its posting moves."""

from __future__ import annotations

from contrada.forwarding.kernels.match.patterns import file_operand, unfile_operand
from contrada.forwarding.kernels.memory.bits import (
    low_half,
    pack_payload,
    payload_filter,
    status_now,
    status_rest,
    word_operand,
    word_operator,
)
from contrada.forwarding.kernels.memory.layout import (
    ACTIVE,
    F_ACCESS,
    F_BACK,
    F_CODE,
    F_INTERFACE,
    F_MASK,
    F_SIZE,
    F_STATE,
    IN,
    O_POSTED,
    POSTED_ALL,
    POSTED_SEVERAL,
    Index,
    Ints,
)
from contrada.forwarding.kernels.memory.postings import drop_posting, push_posting
from contrada.spatial.storage.jit import bare_kernel

_FEW = 8  # postings of one filter that are searched one by one; more than a range has cells


@bare_kernel
def payload_of(index: Index, f: int) -> int:
    """What the postings of a filter carry, see kernels/memory/postings.py."""
    row = index.filters[f]
    if status_now(row[F_ACCESS]) == POSTED_ALL:
        return pack_payload(f, 0, 1, row[F_INTERFACE])
    alone = 1 if status_rest(row[F_ACCESS]) == low_half(row[F_SIZE]) and status_now(row[F_STATE]) == ACTIVE else 0
    return pack_payload(f, alone, 0, row[F_INTERFACE])


@bare_kernel
def push_operand(index: Index, f: int, operand: int, events: Ints) -> int:
    """Post `f` under an operand; the posting's place."""
    operands = index.operands
    if operands[operand, O_POSTED] == 0:
        file_operand(index, operand, events)
    operands[operand, O_POSTED], place = push_posting(
        index, operands[operand, O_POSTED], index.filters[f, F_MASK], payload_of(index, f)
    )
    return place


@bare_kernel
def drop_operand(index: Index, operand: int, place: int, events: Ints) -> None:
    """Undo `push_operand`."""
    operands = index.operands
    operands[operand, O_POSTED] = drop(index, operands[operand, O_POSTED], place, operand)
    if operands[operand, O_POSTED] == 0:
        unfile_operand(index, operand, events)


@bare_kernel
def drop(index: Index, head: int, place: int, operand: int) -> int:
    """Remove a posting from an operand's list (or from no operand's, 0); the list's new head.

    The filter whose posting took its place is told.
    """
    head, moved, payload = drop_posting(index, head, place)
    if moved != 0:
        g = payload_filter(payload)
        back = index.filters[g, F_BACK]
        access = status_now(index.filters[g, F_ACCESS])
        if access == POSTED_SEVERAL:
            index.words[back + 2 + 2 * _which(index, back, operand)] = place
        elif access == POSTED_ALL:
            index.words[back + _which_word(index, g, operand, moved)] = place
        else:
            index.filters[g, F_BACK] = place
    return head


@bare_kernel
def _which(index: Index, back: int, operand: int) -> int:
    """Which of a filter's several postings is under an operand. Those of `in` ascend; a range has few cells."""
    words = index.words
    count = words[back]
    if count <= _FEW:
        i = 0
        while words[back + 1 + 2 * i] != operand:
            i += 1
        return i
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) >> 1
        if words[back + 1 + 2 * middle] < operand:
            low = middle + 1
        else:
            high = middle
    return low


@bare_kernel
def _which_word(index: Index, f: int, operand: int, place: int) -> int:
    """Which word of a filter that is posted under all has its posting at `place`, in an operand's list or in none's.

    The members of an `in`, which may be thousands, ascend.
    """
    words = index.words
    code, back = index.filters[f, F_CODE], index.filters[f, F_BACK]
    i = 0
    while words[back + i] != place:
        if word_operator(words[code + i]) != IN:
            i += 1
            continue
        low, high = i + 1, i + word_operand(words[code + i])
        i = high + 1
        while low < high:
            middle = (low + high) >> 1
            if word_operand(words[code + middle]) < operand:
                low = middle + 1
            else:
                high = middle
        if words[back + low] == place:
            return low
    return i
