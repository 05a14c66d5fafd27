"""Operands of a loaded table, each by itself; and the hash over them, which leads to each once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.forwarding.kernels.guard import marks as m
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.kernels.memory.bits import halves, high_half, low_half, tag_kind, tag_name
from contrada.forwarding.kernels.memory.interning import bucket_of, has_text, scalar_hash
from contrada.forwarding.kernels.memory.keys import mix, reversed_hash, text_hash, text_key
from contrada.forwarding.kernels.memory.layout import O_HASH, O_KEY, O_LEN, O_LOW, O_NEXT, O_REFS, O_TAG
from contrada.spatial.storage.jit import bare_inline_kernel, bare_kernel

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Bytes, Index, Ints

_WIDEST_CELL: Final = 61
_BYTES: Final = 256


@bare_inline_kernel
def _hash_of(row: Ints, text: Bytes) -> int:
    """The hash that an operand should have; its string, if it has one, is in range."""
    kind = tag_kind(row[O_TAG])
    if not has_text(kind):
        return scalar_hash(row[O_TAG], row[O_KEY], row[O_LOW])
    if kind == layout.PATTERN_SUFFIX:
        return mix(reversed_hash(text, row[O_LOW], row[O_LEN]), row[O_TAG])
    return mix(text_hash(text, row[O_LOW], row[O_LEN]), row[O_TAG])


@bare_inline_kernel
def _guard_value(index: Index, o: int, handles: Ints, marks: m.Marks) -> int:
    """What an operand's kind says of its columns."""
    row = index.operands[o]
    kind, low, length = tag_kind(row[O_TAG]), row[O_LOW], row[O_LEN]
    if kind == layout.NODE:  # whose hash is looked at with its trie
        if low < 0 or row[layout.O_POSTED] < 0 or row[O_REFS] > _BYTES or length < 1:
            return m.TRIE
        return 0
    if layout.PLUGGED <= kind < layout.PATTERN_PREFIX:
        if kind >= layout.KINDS or row[O_KEY] < 0 or row[O_KEY] >= handles[kind]:
            return m.OPERAND
    elif kind == layout.CELL:
        if tag_kind(low) > layout.POINT or tag_name(low) < 0 or tag_name(low) > _WIDEST_CELL:
            return m.OPERAND
    elif kind == layout.GROUP:
        if length < 1 or length >= index.state[layout.S_FILTERS]:
            return m.OPERAND
    elif has_text(kind):
        if length < 0 or length > 8 * marks.words.shape[0] or low < 0 or low & 7 != 0 or (length == 0 and low != 0):
            return m.OPERAND
        if length > 0 and not m.take_piece(marks.words, low >> 3, (length + 7) >> 3):
            return m.PIECE
        if kind == layout.STRING and row[O_KEY] != text_key(index.text, low, length):
            return m.OPERAND
    return 0 if row[O_HASH] == _hash_of(row, index.text) else m.OPERAND


@bare_kernel
def guard_operands(index: Index, names: int, handles: Ints, marks: m.Marks) -> int:
    """Each operand by itself. There are `names` numbers of names and `handles[kind]` of each plugged-in type."""
    operands, state = index.operands, index.state
    top, buckets, mask = state[layout.S_OPERANDS], state[layout.S_BUCKETS], state[layout.S_BUCKET_MASK]
    if mask < 1 or mask & (mask + 1) != 0 or buckets <= mask >> 1 or buckets > mask:
        return m.CHAIN
    for o in range(1, top):
        row = operands[o]
        name, kind = tag_name(row[O_TAG]), tag_kind(row[O_TAG])
        if row[O_REFS] == 0:
            if row[O_TAG] != 0:
                return m.OPERAND
            continue
        if row[O_REFS] < 0 or low_half(row[O_REFS]) != row[O_REFS] or row[O_NEXT] < 0 or row[O_NEXT] >= top:
            return m.OPERAND
        if kind > layout.PATTERN_LIKE or (kind == layout.GROUP) != (name == 0) or name < 0 or name >= names:
            return m.OPERAND
        fault = _guard_value(index, o, handles, marks)
        if fault != 0:
            return fault
        marks.holders[o] = halves(row[O_TAG], row[O_REFS])
        marks.links[o] = halves(1 + bucket_of(index, row[O_HASH]), row[O_NEXT])
        marks.sums[m.M_LIVE] += 1
    return 0


@bare_kernel
def guard_chains(index: Index, marks: m.Marks) -> int:
    """Each operand is in the chain of its hash, or free. Uses up `Marks.links`, and nothing else of the marks."""
    state, links = index.state, marks.links
    top = state[layout.S_OPERANDS]
    chained = 0
    for bucket in range(state[layout.S_BUCKETS]):
        o = index.heads[bucket]
        while o != 0:
            if o < 0 or o >= top:
                return m.CHAIN
            link = links[o]
            if high_half(link) != 1 + bucket:
                return m.CHAIN
            links[o] = -1
            chained += 1
            o = low_half(link)
    if chained != marks.sums[m.M_LIVE] or chained != state[layout.S_OPERAND_COUNT]:
        return m.CHAIN
    o = state[layout.S_OPERAND_FREE]
    while o != 0:
        if o < 0 or o >= top or links[o] != 0:
            return m.FREED
        links[o] = -1
        chained += 1
        o = index.operands[o, O_NEXT]
    return 0 if chained + 1 == top else m.FREED
