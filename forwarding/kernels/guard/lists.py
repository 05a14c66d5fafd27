"""Postings, thresholds and free memory of a loaded table; and whether what is counted is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.forwarding.kernels.change.choosing import word_span
from contrada.forwarding.kernels.change.listing import payload_of
from contrada.forwarding.kernels.guard import marks as m
from contrada.forwarding.kernels.guard.relatives import is_filter
from contrada.forwarding.kernels.match.thresholds import FIRST_BLOCK, ROWS
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.kernels.memory.bits import (
    high_half,
    low_half,
    payload_filter,
    status_now,
    tag_kind,
    tag_name,
    word_operand,
    word_operator,
)
from contrada.forwarding.kernels.memory.postings import block_rows
from contrada.spatial.storage.jit import bare_kernel

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Index

_COUNTERS: Final = 256
_LARGEST_PIECE: Final = 40  # as a power of two


@bare_kernel
def _guard_list(index: Index, head: int, owner: int, marks: m.Marks) -> bool:
    """A posting list: of an operand, of a field, or of all."""
    postings, filters, top = index.postings, index.filters, index.state[layout.S_FILTERS]
    first = True
    while head != 0:
        if head < 1 or head >= marks.postings.shape[0]:
            return False
        size, count = high_half(postings[head, 1]), low_half(postings[head, 1])
        if size < 0 or size > 2 or count < 1 or count >= block_rows(size):
            return False
        if not m.take(marks.postings, head, block_rows(size)) or (not first and count + 1 != block_rows(size)):
            return False
        for place in range(head + 1, head + 1 + count):
            f = payload_filter(postings[place, 1])
            if not is_filter(filters, top, f) or postings[place, 1] != payload_of(index, f):
                return False
            if postings[place, 0] != (0 if owner == m.ALWAYS else filters[f, layout.F_MASK]):
                return False
            if marks.owners[place] != owner:
                return False
        marks.sums[m.M_ENTRIES] += count
        head = postings[head, 0]
        first = False
    return True


@bare_kernel
def _crossed(index: Index, f: int, field: int, side: int, operand: int, marks: m.Marks) -> bool:
    """Whether a filter says that it is posted under this threshold, and has not been met there before."""
    words, filters = index.words, index.filters
    at = filters[f, layout.F_CODE]
    if status_now(filters[f, layout.F_ACCESS]) != layout.POSTED_ALL:
        if marks.crossing[f] != m.crossing_of(field, side) or word_operand(words[at]) != operand:
            return False
        marks.crossing[f] = 0
        return True
    end = at + low_half(filters[f, layout.F_SIZE])
    low = layout.GT if side else layout.LT
    while at < end:
        op = word_operator(words[at])
        # A word belongs to one filter; marked twice, it has been met among the thresholds.
        if low <= op <= low + 1 and word_operand(words[at]) == operand and marks.words[at] == 1:
            tag = index.operands[operand, layout.O_TAG]
            if tag_name(tag) * layout.KINDS + tag_kind(tag) != field:
                return False
            marks.words[at] = 2
            return True
        at += word_span(words[at])
    return False


@bare_kernel
def _guard_directory(index: Index, directory: int, field: int, side: int, marks: m.Marks) -> int:
    """The thresholds of a field, on one side."""
    words, thresholds = index.words, index.thresholds
    filters, top = index.filters, index.state[layout.S_FILTERS]
    if directory < 1 or directory > marks.words.shape[0] - 4:
        return m.DIRECTORY
    size, blocks = words[directory], words[directory + 1]
    if size < 4 or size > marks.words.shape[0] or size & (size - 1) != 0 or blocks < 1 or blocks > size - FIRST_BLOCK:
        return m.DIRECTORY
    if not m.take(marks.words, directory, size):
        return m.PIECE
    met = 0
    for at in range(directory + FIRST_BLOCK, directory + FIRST_BLOCK + blocks):
        block = words[at]
        if not m.take(marks.thresholds, block, ROWS):
            return m.DIRECTORY
        count = thresholds[block, 0]
        if count < 1 or count >= ROWS:
            return m.DIRECTORY
        for row in range(block + 1, block + 1 + count):
            f = payload_filter(thresholds[row, 2])
            if not is_filter(filters, top, f) or thresholds[row, 2] != payload_of(index, f):
                return m.DIRECTORY
            if thresholds[row, 1] != filters[f, layout.F_MASK]:
                return m.DIRECTORY
            operand = thresholds[row, 3] >> 16
            if not _crossed(index, f, field, side, operand, marks):
                return m.DIRECTORY
            if thresholds[row, 0] != index.operands[operand, layout.O_KEY]:
                return m.DIRECTORY
            met += 1
    marks.sums[m.M_CROSSED] += met
    return 0 if met == words[directory + 2] else m.DIRECTORY


@bare_kernel
def _guard_field(index: Index, row: int, marks: m.Marks) -> int:
    """What is posted under a (name, kind), and its counters."""
    field = index.fields[row]
    if not _guard_list(index, field[layout.N_WIDE], m.wide_owner(row), marks):
        return m.LIST
    for side in range(2):
        directory = field[layout.N_ABOVE] if side else field[layout.N_BELOW]
        if directory != 0:
            fault = _guard_directory(index, directory, row, side, marks)
            if fault != 0:
                return fault
    if field[layout.N_PREFIXES] < 0 or field[layout.N_SUFFIXES] < 0 or field[layout.N_TRIES] != marks.tries[row]:
        return m.FIELD
    if field[layout.N_COUNTS] != 0 and not m.take_piece(marks.words, field[layout.N_COUNTS], _COUNTERS):
        return m.FIELD
    return 0 if field[layout.N_USES] == marks.uses[row] else m.SUM


@bare_kernel
def guard_lists(index: Index, names: int, marks: m.Marks) -> int:
    """Every list of postings and thresholds. Operands and filters have been looked at, and tries."""
    for o in range(1, index.state[layout.S_OPERANDS]):
        if marks.holders[o] == 0 or tag_kind(high_half(marks.holders[o])) == layout.NODE:
            continue
        if low_half(marks.holders[o]) != 0:  # more hold it, as it says, than there are
            return m.SUM
        if not _guard_list(index, index.operands[o, layout.O_POSTED], o, marks):
            return m.LIST
    if not _guard_list(index, index.state[layout.S_ALWAYS], m.ALWAYS, marks):
        return m.LIST
    for row in range(names * layout.KINDS):
        fault = _guard_field(index, row, marks)
        if fault != 0:
            return fault
    return 0


@bare_kernel
def guard_free(index: Index, marks: m.Marks) -> int:
    """Every free row and piece of memory; those in use have been looked at."""
    state, filters = index.state, index.filters
    free = 0
    f = state[layout.S_FILTER_FREE]
    while f != 0:
        if f < 1 or f >= state[layout.S_FILTERS] or status_now(filters[f, layout.F_STATE]) != layout.FREE:
            return m.FREED
        free += 1
        if free > marks.sums[m.M_STATES + layout.FREE]:
            return m.FREED
        f = filters[f, layout.F_FOLLOWING]
    if free != marks.sums[m.M_STATES + layout.FREE]:
        return m.FREED
    for size in range(3):
        block = state[layout.S_POSTING_FREE + size]
        while block != 0:
            if not m.take(marks.postings, block, block_rows(size)) or high_half(index.postings[block, 1]) != size:
                return m.FREED
            block = index.postings[block, 0]
    block = state[layout.S_THRESHOLD_FREE]
    while block != 0:
        if not m.take(marks.thresholds, block, ROWS):
            return m.FREED
        block = index.thresholds[block, 1]
    for power in range(state.shape[0] - layout.S_WORD_FREE):
        place = state[layout.S_WORD_FREE + power]
        while place != 0:
            if power > _LARGEST_PIECE or not m.take(marks.words, place, 1 << power):
                return m.FREED
            place = index.words[place]
    return 0


@bare_kernel
def guard_sums(index: Index, marks: m.Marks) -> int:
    """What the state counts is there."""
    state, sums = index.state, marks.sums
    active, covered = sums[m.M_STATES + layout.ACTIVE], sums[m.M_STATES + layout.COVERED]
    void, ghosts = sums[m.M_STATES + layout.VOID], sums[m.M_STATES + layout.GHOST]
    agree = (
        active + covered + void == state[layout.S_FILTER_COUNT]
        and active == state[layout.S_ACTIVE]
        and covered == state[layout.S_COVERED]
        and void == state[layout.S_VOID]
        and ghosts == state[layout.S_GHOSTS]
        and (state[layout.S_GHOST] == 0) == (ghosts == 0)
        and sums[m.M_CONSTRAINTS] == state[layout.S_CONSTRAINTS]
        and sums[m.M_ENTRIES] == state[layout.S_POSTING_COUNT]
        and sums[m.M_CLAIMS] == sums[m.M_ENTRIES]
        and 0 <= state[layout.S_LARGEST] <= state[layout.S_WORDS]
        and layout.SELECTIVE <= state[layout.S_MATCHING] <= layout.SEARCHING
        and sums[m.M_COUNTED] == state[layout.S_COUNTED]
        and sums[m.M_INTERFACES] == state[layout.S_INTERFACES]
        and sums[m.M_CROSSED] == state[layout.S_THRESHOLD_COUNT]
        and sums[m.M_CROSSING] == sums[m.M_CROSSED]
    )
    return 0 if agree else m.SUM
