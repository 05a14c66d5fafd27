"""Patterns of a loaded table: the nodes of its tries (kernels/substrings/tries.py), and each pattern that is in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contrada.forwarding.kernels.guard import marks as m
from contrada.forwarding.kernels.match import patterns
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.kernels.memory.bits import high_half, low_half, tag_kind, tag_name, tag_of
from contrada.forwarding.kernels.memory.layout import O_HASH, O_KEY, O_LEN, O_LOW, O_POSTED, O_REFS, O_TAG
from contrada.forwarding.kernels.substrings.fingerprints import fingerprint, high_bit
from contrada.forwarding.kernels.substrings.tries import fattest, salt_of, top_power
from contrada.spatial.storage.jit import bare_inline_kernel, bare_kernel

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Bytes, Index, Ints


@bare_kernel
def _in_trie(tag: int, length: int) -> bool:
    kind = tag_kind(tag)
    long = layout.PATTERN_PREFIX <= kind <= layout.PATTERN_SUFFIX and length > patterns.LONGEST_AFFIX
    return kind == layout.PATTERN_CONTAINS or long


@bare_kernel
def _is_node(holders: Ints, o: int, tag: int) -> bool:
    return 1 <= o < holders.shape[0] and high_half(holders[o]) == tag


@bare_kernel
def _is_kin(operands: Ints, holders: Ints, named: Bytes, o: int, tag: int, parent: int) -> bool:
    """Whether it is a child of that parent, named now for the first time; 0 is nobody."""
    if o == 0:
        return True
    if not _is_node(holders, o, tag) or high_half(operands[o, O_LOW]) != parent or named[o] != 0:
        return False
    named[o] = 1
    return True


@bare_kernel
def _pattern_below(operands: Ints, holders: Ints, node: int, tag: int) -> int:
    """A pattern that begins with a node's extent, 0 if there is none."""
    while low_half(operands[node, O_LOW]) == 0:
        child = high_half(operands[node, O_POSTED])
        if not _is_node(holders, child, tag) or operands[child, O_LEN] <= operands[node, O_LEN]:
            return 0
        node = child
    pattern = low_half(operands[node, O_LOW])
    if not m.is_operand(holders, pattern) or operands[pattern, O_KEY] != node:
        return 0
    row = operands[pattern]
    fits = row[O_LEN] == operands[node, O_LEN] and tag_name(row[O_TAG]) == tag_name(tag)
    return pattern if fits and _in_trie(row[O_TAG], row[O_LEN]) else 0


@bare_inline_kernel
def _guard_node(index: Index, node: int, marks: m.Marks) -> bool:
    """What a node points at; that it is filed under the hash of its handle, and has the fingerprint of its extent."""
    operands, holders, base = index.operands, marks.holders, index.state[layout.S_BASE]
    row = operands[node]
    tag, length, parent = row[O_TAG], row[O_LEN], high_half(row[O_LOW])
    if parent == 0 and low_half(row[O_POSTED]) != 0:
        return False
    if not _is_kin(operands, holders, marks.named, high_half(row[O_POSTED]), tag, node):
        return False
    if not _is_kin(operands, holders, marks.named, low_half(row[O_POSTED]), tag, parent):
        return False
    below = _pattern_below(operands, holders, node, tag)
    if below == 0:
        return False
    pattern = operands[below]
    first, step = pattern[O_LOW], 1
    if tag_kind(pattern[O_TAG]) == layout.PATTERN_SUFFIX:
        first, step = pattern[O_LOW] + pattern[O_LEN] - 1, -1
    handle = 1 << top_power(length)
    if parent != 0:
        if not _is_node(holders, parent, tag) or operands[parent, O_LEN] >= length:
            return False
        handle = fattest(operands[parent, O_LEN], length)
        if row[O_REFS] != 1 + index.text[first + operands[parent, O_LEN] * step]:
            return False
    if row[O_HASH] != fingerprint(index.text, first, step, handle, base) ^ salt_of(index, pattern[O_TAG]):
        return False
    return row[O_KEY] == fingerprint(index.text, first, step, length, base)


@bare_inline_kernel
def _guard_pattern(index: Index, o: int, marks: m.Marks) -> bool:
    """A pattern that is in a trie: its node knows it. What its field should say of it is noted down."""
    operands = index.operands
    tag, length, node = operands[o, O_TAG], operands[o, O_LEN], operands[o, O_KEY]
    name = tag_name(tag)
    if length < 1 or not _is_node(marks.holders, node, tag_of(name, layout.NODE)):
        return False
    if low_half(operands[node, O_LOW]) != o:
        return False
    field = name * layout.KINDS + layout.STRING
    posted = patterns.POSTED_SUBSTRINGS
    if tag_kind(tag) == layout.PATTERN_CONTAINS:
        marks.tries[field] |= 1 << top_power(length)
    elif tag_kind(tag) == layout.PATTERN_PREFIX:
        posted = patterns.POSTED_PREFIXES
    else:
        posted = patterns.POSTED_SUFFIXES
    marks.tries[field] |= 1 << (patterns.DIGITS + high_bit(length))
    if operands[o, O_POSTED] != 0:
        marks.tries[field] |= 1 << posted
    return True


@bare_kernel
def guard_tries(index: Index, marks: m.Marks) -> int:
    """Every node and every pattern. Operands have been looked at, each by itself."""
    operands = index.operands
    named, children = 0, 0
    for o in range(1, marks.holders.shape[0]):
        tag = operands[o, O_TAG]
        if tag_kind(tag) < layout.PATTERN_PREFIX or tag_kind(tag) > layout.NODE:
            continue
        if tag_kind(tag) == layout.NODE:
            if not _guard_node(index, o, marks):
                return m.TRIE
            children += 1 if high_half(operands[o, O_LOW]) != 0 else 0
            named += 1 if high_half(operands[o, O_POSTED]) != 0 else 0
            named += 1 if low_half(operands[o, O_POSTED]) != 0 else 0
        elif _in_trie(tag, operands[o, O_LEN]) and not _guard_pattern(index, o, marks):
            return m.TRIE
    # Siblings are one list: each is named once, by its parent or by the sibling before.
    return 0 if named == children else m.TRIE
