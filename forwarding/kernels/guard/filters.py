"""Filters of a loaded table: their constraints, and where they say that they are posted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.forwarding.kernels.change.adding import I_COUNT, I_FIRST
from contrada.forwarding.kernels.change.choosing import value_kind, word_span
from contrada.forwarding.kernels.guard import marks as m
from contrada.forwarding.kernels.guard.relatives import guard_relatives, is_filter
from contrada.forwarding.kernels.match.masks import bits_needed
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.kernels.memory.bits import (
    high_half,
    low_half,
    status_now,
    status_rest,
    tag_kind,
    tag_name,
    word_operand,
    word_operator,
)
from contrada.forwarding.kernels.memory.layout import F_ACCESS, F_BACK, F_CODE, F_INTERFACE, F_SIZE, F_STATE
from contrada.spatial.storage.jit import bare_inline_kernel, bare_kernel

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Index, Ints


@bare_kernel
def _fits(op: int, kind: int) -> bool:
    """Whether an operator compares with operands of a kind."""
    if op <= layout.GE:
        return layout.NUMBER <= kind <= layout.POINT
    if op == layout.EXISTS:
        return kind == layout.ANY
    if op == layout.IS:
        return kind == layout.WHOLE_KIND
    if op <= layout.CONTAINS:
        return kind == layout.PATTERN_PREFIX + op - layout.PREFIX
    if op == layout.NOT:
        return kind in (layout.PATTERN_SUFFIX, layout.PATTERN_CONTAINS, layout.PATTERN_LIKE)
    if op == layout.LIKE:
        return kind == layout.PATTERN_LIKE
    if op == layout.ABSENT:
        return kind == layout.ANY
    return op == layout.PLUG and layout.PLUGGED <= kind < layout.KINDS


@bare_inline_kernel
def _count_holder(holders: Ints, uses: Ints, word: int) -> int:
    """The tag of the operand of a constraint's word, which is one hold less to find; -1 when it is none."""
    o = word_operand(word)
    if o < 1 or o >= holders.shape[0] or low_half(holders[o]) == 0:
        return -1
    tag = high_half(holders[o])
    if not _fits(word_operator(word), tag_kind(tag)):
        return -1
    holders[o] -= 1
    kind = value_kind(tag_kind(tag))
    uses[tag_name(tag) * layout.KINDS + kind] += 1
    if kind != layout.ANY:
        uses[tag_name(tag) * layout.KINDS] += 1
    return tag


@bare_inline_kernel
def _guard_code(index: Index, f: int, marks: m.Marks) -> bool:
    """A filter's constraints."""
    words, row = index.words, index.filters[f]
    code, active, total = row[F_CODE], low_half(row[F_SIZE]), high_half(row[F_SIZE])
    if active > total or total > index.state[layout.S_LARGEST] or not m.take_piece(marks.words, code, total):
        return False
    at = code
    end = code + total
    mask = 0
    plugs = 0
    while at < end:
        span = 1
        first = at
        if word_operator(words[at]) == layout.IN:
            span = 1 + word_operand(words[at])
            first = at + 1
            if span < 2 or span > end - at:
                return False
        if at < code + active < at + span:
            return False
        if word_operator(words[at]) == layout.PLUG and at < code + active:
            plugs += 1
        tag = 0
        for i in range(first, at + span):
            if first > at and (word_operator(words[i]) != layout.EQ or (i > first and words[i] <= words[i - 1])):
                return False
            tag = _count_holder(marks.holders, marks.uses, words[i])
            if tag < 0:
                return False
            if i == first and at < code + active:
                mask |= bits_needed(tag_name(tag), word_operator(words[at]), word_operand(words[i]))
                marks.sums[m.M_CONSTRAINTS] += 1
        at += span
    return (
        plugs <= index.state[layout.S_PLUGS] and row[layout.F_MASK] & ~mask == 0
    )  # a bit too many would hide the filter


@bare_inline_kernel
def _claim(owners: Ints, sums: Ints, place: int, owner: int) -> bool:
    """Note down that a posting is in a list, as a filter says; whether nobody else says so."""
    if place < 1 or place >= owners.shape[0] or owners[place] != 0:
        return False
    owners[place] = owner
    sums[m.M_CLAIMS] += 1
    return True


@bare_inline_kernel
def _claim_several(index: Index, f: int, marks: m.Marks) -> bool:
    words = index.words
    back, code = index.filters[f, F_BACK], index.filters[f, F_CODE]
    if back < 1 or back >= marks.words.shape[0]:
        return False
    count = words[back]
    if count < 1 or count > marks.words.shape[0] or not m.take_piece(marks.words, back, 1 + 2 * count):
        return False
    members = word_operator(words[code]) == layout.IN
    if members and count != word_operand(words[code]):
        return False
    for i in range(count):
        o = words[back + 1 + 2 * i]
        if members:
            if o != word_operand(words[code + 1 + i]):
                return False
        else:
            if not m.is_operand(marks.holders, o) or low_half(marks.holders[o]) == 0:
                return False
            if tag_kind(high_half(marks.holders[o])) != layout.CELL:
                return False
            marks.holders[o] -= 1
        if not _claim(marks.owners, marks.sums, words[back + 2 + 2 * i], o):
            return False
    return True


@bare_kernel
def _claim_all(index: Index, f: int, constraints: int, marks: m.Marks) -> bool:
    """The postings of a filter that is posted under each of so many constraints."""
    words = index.words
    back, code, active = index.filters[f, F_BACK], index.filters[f, F_CODE], low_half(index.filters[f, F_SIZE])
    if not 1 < constraints < layout.MOST_COUNTED or not m.take_piece(marks.words, back, active):
        return False
    marks.sums[m.M_COUNTED] += 1
    members = 0
    for i in range(active):
        word, place = words[code + i], words[back + i]
        op = word_operator(word)
        if members > 0:
            members -= 1
        elif op != layout.ABSENT:
            constraints -= 1
        if op in (layout.IN, layout.ABSENT):
            members = word_operand(word) if op == layout.IN else 0
            if place != 0:
                return False
            continue
        tag = high_half(marks.holders[word_operand(word)])
        if layout.LT <= op <= layout.GE:
            marks.sums[m.M_CROSSING] += 1
            if place != 0:
                return False
        elif op in (layout.NE, layout.IS, layout.EXISTS, layout.NOT, layout.LIKE):
            field = tag_name(tag) * layout.KINDS + value_kind(tag_kind(tag))
            if not _claim(marks.owners, marks.sums, place, m.wide_owner(field)):
                return False
        elif not _claim(marks.owners, marks.sums, place, word_operand(word)):
            return False
    return constraints == 0


@bare_inline_kernel
def _cross(marks: m.Marks, f: int, field: int, side: int) -> None:
    marks.crossing[f] = m.crossing_of(field, side)
    marks.sums[m.M_CROSSING] += 1


@bare_inline_kernel
def _guard_access(index: Index, f: int, marks: m.Marks) -> bool:
    """Where a filter says that it is posted."""
    row = index.filters[f]
    access, skip = status_now(row[F_ACCESS]), status_rest(row[F_ACCESS])
    active, state = low_half(row[F_SIZE]), status_now(row[F_STATE])
    if skip < 0 or skip > active:
        return False
    if (access != layout.POSTED_NOWHERE) != (state in (layout.ACTIVE, layout.GHOST)):
        return False
    if access == layout.POSTED_NOWHERE:
        return skip == 0
    if access == layout.POSTED_ALL:
        return active > 0 and _claim_all(index, f, skip, marks)
    word = index.words[row[F_CODE]]
    op = word_operator(word)
    if access == layout.POSTED_ALWAYS:
        absent = active == 0 or op == layout.ABSENT
        return absent and skip == 0 and _claim(marks.owners, marks.sums, row[F_BACK], m.ALWAYS)
    if active == 0:
        return False
    if access == layout.POSTED_SEVERAL:
        spans = op == layout.IN and skip == word_span(word)
        return (spans or (layout.GT <= op <= layout.GE and skip == 0)) and _claim_several(index, f, marks)
    if op == layout.IN:
        return False
    tag = high_half(marks.holders[word_operand(word)])
    field = tag_name(tag) * layout.KINDS + value_kind(tag_kind(tag))
    if access == layout.POSTED_OPERAND:
        wanted = op == layout.EQ or layout.PREFIX <= op <= layout.PLUG
        return wanted and skip == 1 and _claim(marks.owners, marks.sums, row[F_BACK], word_operand(word))
    if access == layout.POSTED_WIDE:
        verified = op in (layout.NE, layout.NOT, layout.LIKE)
        wanted = (verified and skip == 0) or (op in (layout.IS, layout.EXISTS) and skip == 1)
        return wanted and _claim(marks.owners, marks.sums, row[F_BACK], m.wide_owner(field))
    if access == layout.POSTED_BELOW:
        _cross(marks, f, field, 0)
        return skip == 1 and layout.LT <= op <= layout.LE
    if access == layout.POSTED_ABOVE:
        _cross(marks, f, field, 1)
        return skip == 1 and layout.GT <= op <= layout.GE
    return False


@bare_kernel
def guard_filters(index: Index, interfaces: Ints, known: int, marks: m.Marks) -> int:
    """Each filter, and the list of each interface. There are `known` numbers of interfaces."""
    filters, state = index.filters, index.state
    for f in range(1, state[layout.S_FILTERS]):
        now = status_now(filters[f, F_STATE])
        if filters[f, F_STATE] < 0 or now > layout.GHOST:
            return m.CODE
        marks.sums[m.M_STATES + now] += 1
        if now == layout.FREE:
            continue
        if filters[f, F_INTERFACE] < 1 or filters[f, F_INTERFACE] >= known:
            return m.INTERFACE
        if not _guard_code(index, f, marks):
            return m.CODE
        if not _guard_access(index, f, marks):
            return m.POSTED
        fault = guard_relatives(index, interfaces, f, marks)
        if fault != 0:
            return fault
    for number in range(1, known):
        first, count = interfaces[number, I_FIRST], interfaces[number, I_COUNT]
        if count != marks.counts[number] or (first == 0) != (count == 0):
            return m.INTERFACE
        if count > 0:
            marks.sums[m.M_INTERFACES] += 1
        if first != 0:
            if not is_filter(filters, state[layout.S_FILTERS], first) or filters[first, F_INTERFACE] != number:
                return m.INTERFACE
            if filters[first, layout.F_PREVIOUS] != 0 or status_now(filters[first, F_STATE]) == layout.GHOST:
                return m.INTERFACE
    return 0
