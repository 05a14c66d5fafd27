"""Patterns in compacted tries whose nodes are found by hash: a text finds all patterns that begin at a place in O(log).

A node is a string that is a pattern or that patterns leave in different ways; its *extent* is that string, and its
edge is the lengths (extent of its parent, its own extent]. In each edge one length is the *fattest*, the multiple of
the highest power of two: the node is filed under the hash of that many bytes of its extent, its *handle*. To find the
deepest node whose extent stands at a place of a text, a binary search over lengths probes the fattest in what is left:

    patterns  "abcabcabc", "abcabcabx", "abcabcabcabcab"          text  … abcabcabcabcz …
    top       handle 8   "abcabcab"            is there: what is left are the lengths above 8
    leaf      handle 12  "abcabcabcabc"        is there, of extent 14, which does not stand here: its parent does
    fork      "abcabcabc" at length 9, the parent: a pattern, found

A probe that fails says that nothing longer stands here, as every node on the way there has its handle in that range.
Each pattern that begins at the place is then an ancestor of the node that was found. This is the z-fast trie of
Belazzougui, Boldi and Vigna ("Dynamic z-fast tries", SPIRE 2010), except that the first probe is not of the fattest
length: a pattern's trie is chosen by its first 1, 2, 4, 8, 16 or 32 bytes, as many as it has, and its top is filed
under those, so that a place of ordinary text is done with after one probe for each of these sizes that occurs.

Adding a pattern makes at most two nodes and moves one to another handle, O(log) probes; removing it undoes that, and
reads no text: an edge that two were joined to has the fatter of their two handles. Nothing is ever rebuilt.

A node is a row of `operands`, of kind NODE:

    O_HASH    fingerprint of its handle ^ salt of (name, kind of pattern)
    O_REFS    1 + the byte at which it leaves its parent
    O_KEY     fingerprint of its extent
    O_LOW     parent << 32 | pattern: 0 at the top, 0 where no pattern ends
    O_LEN     length of its extent
    O_POSTED  first child << 32 | next sibling

A pattern's O_KEY is its node. Suffixes are read backwards. The tries of `contains` have all patterns of a name, also
those that no filter is posted under, as filters are verified by what a search has found.
"""

from __future__ import annotations

from contrada.forwarding.kernels.memory.bits import halves, high_half, low_half, tag_kind, tag_name, tag_of
from contrada.forwarding.kernels.memory.interning import free_operand, move_operand, new_operand
from contrada.forwarding.kernels.memory.keys import mix
from contrada.forwarding.kernels.memory.layout import (
    NODE,
    O_HASH,
    O_KEY,
    O_LEN,
    O_LOW,
    O_NEXT,
    O_POSTED,
    O_REFS,
    O_TAG,
    PATTERN_SUFFIX,
    S_BASE,
    S_BUCKET_MASK,
    S_BUCKETS,
    Index,
    Ints,
)
from contrada.forwarding.kernels.substrings.fingerprints import fingerprint, high_bit
from contrada.spatial.storage.jit import bare_inline_kernel, bare_kernel

LARGEST_TOP = 5  # as a power of two


@bare_kernel
def top_power(length: int) -> int:
    """The power of two of the bytes that choose the trie of a pattern of that length."""
    return min(high_bit(length), LARGEST_TOP)


@bare_inline_kernel
def fattest(low: int, high: int) -> int:
    """The multiple of the highest power of two above `low` and not above `high`."""
    return high & (-1 << high_bit(low ^ high))


@bare_inline_kernel
def salt_of(index: Index, tag: int) -> int:
    """What sets the handles of one name and kind of pattern apart from others."""
    return mix(tag, index.state[S_BASE])


@bare_inline_kernel
def node_at(operands: Ints, heads: Ints, mask: int, buckets: int, tag: int, h: int) -> int:
    """The node whose handle has that hash, or 0."""
    bucket = h & mask
    if bucket >= buckets:
        bucket = h & (mask >> 1)
    o = heads[bucket]
    while o != 0 and (operands[o, O_HASH] != h or operands[o, O_TAG] != tag):
        o = operands[o, O_NEXT]
    return o


@bare_kernel
def _reading(index: Index, pattern: int) -> tuple[int, int]:
    """Where reading a pattern begins, and the step."""
    row = index.operands[pattern]
    if tag_kind(row[O_TAG]) == PATTERN_SUFFIX:
        return row[O_LOW] + row[O_LEN] - 1, -1
    return row[O_LOW], 1


@bare_kernel
def _handle(index: Index, pattern: int, length: int) -> int:
    """The hash of a handle that is the first bytes of a pattern."""
    first, step = _reading(index, pattern)
    return fingerprint(index.text, first, step, length, index.state[S_BASE]) ^ salt_of(
        index, index.operands[pattern, O_TAG]
    )


@bare_kernel
def _below(index: Index, node: int) -> int:
    """A pattern that begins with a node's extent."""
    operands = index.operands
    while low_half(operands[node, O_LOW]) == 0:
        node = high_half(operands[node, O_POSTED])
    return low_half(operands[node, O_LOW])


@bare_kernel
def _common(index: Index, node: int, pattern: int) -> int:
    """How many bytes a node's extent and a pattern have in common."""
    a, step = _reading(index, _below(index, node))
    b, _ = _reading(index, pattern)
    most = min(index.operands[node, O_LEN], index.operands[pattern, O_LEN])
    same = 0
    while same < most and index.text[a + same * step] == index.text[b + same * step]:
        same += 1
    return same


@bare_kernel
def _new_node(index: Index, h: int, pattern: int, length: int, ends: bool, parent: int) -> int:
    """A node whose extent is the first bytes of a pattern, which ends there or not. It is no one's child yet."""
    operands = index.operands
    first, step = _reading(index, pattern)
    whole = fingerprint(index.text, first, step, length, index.state[S_BASE])
    tag = tag_of(tag_name(operands[pattern, O_TAG]), NODE)
    node = new_operand(index, h, tag, whole, halves(parent, pattern if ends else 0))
    operands[node, O_LEN] = length
    operands[node, O_REFS] = 1
    if ends:
        operands[pattern, O_KEY] = node
    return node


@bare_kernel
def _add_leaf(index: Index, pattern: int, parent: int) -> None:
    """Make a pattern the end of a new edge of a node that it begins with."""
    operands = index.operands
    low = operands[parent, O_LEN]
    length = operands[pattern, O_LEN]
    leaf = _new_node(index, _handle(index, pattern, fattest(low, length)), pattern, length, True, parent)
    first, step = _reading(index, pattern)
    operands[leaf, O_REFS] = 1 + index.text[first + low * step]
    operands[leaf, O_POSTED] = high_half(operands[parent, O_POSTED])
    operands[parent, O_POSTED] = halves(leaf, low_half(operands[parent, O_POSTED]))


@bare_kernel
def _put_in_place(index: Index, parent: int, old: int, new: int) -> None:
    """Make what points at `old` among the children of a node point at `new`, which may be 0."""
    operands = index.operands
    if parent == 0:
        return
    at = high_half(operands[parent, O_POSTED])
    if at == old:
        operands[parent, O_POSTED] = halves(new, low_half(operands[parent, O_POSTED]))
        return
    while low_half(operands[at, O_POSTED]) != old:
        at = low_half(operands[at, O_POSTED])
    operands[at, O_POSTED] = halves(high_half(operands[at, O_POSTED]), new)


@bare_kernel
def _split(index: Index, node: int, same: int, pattern: int) -> int:
    """A new node in the edge to `node`, at length `same`, where a pattern leaves it; one of them needs a new handle."""
    operands = index.operands
    parent = high_half(operands[node, O_LOW])
    length = operands[node, O_LEN]
    handle = operands[node, O_HASH]
    lower = _below(index, node)
    if parent == 0 or fattest(operands[parent, O_LEN], length) <= same:
        move_operand(index, node, _handle(index, lower, fattest(same, length)))
    else:
        handle = _handle(index, lower, fattest(operands[parent, O_LEN], same))
    fork = _new_node(index, handle, pattern, same, operands[pattern, O_LEN] == same, parent)
    _put_in_place(index, parent, node, fork)
    operands[fork, O_REFS] = operands[node, O_REFS]
    operands[fork, O_POSTED] = halves(node, low_half(operands[node, O_POSTED]))
    first, step = _reading(index, lower)
    operands[node, O_REFS] = 1 + index.text[first + same * step]
    operands[node, O_LOW] = halves(fork, low_half(operands[node, O_LOW]))
    operands[node, O_POSTED] = halves(high_half(operands[node, O_POSTED]), 0)
    return fork


@bare_kernel
def insert_pattern(index: Index, pattern: int) -> None:
    """Put a pattern, of at least one byte, into its trie."""
    operands, heads, state = index.operands, index.heads, index.state
    length = operands[pattern, O_LEN]
    tag = tag_of(tag_name(operands[pattern, O_TAG]), NODE)
    h = _handle(index, pattern, 1 << top_power(length))
    node = node_at(operands, heads, state[S_BUCKET_MASK], state[S_BUCKETS], tag, h)
    if node == 0:
        top = _new_node(index, h, pattern, length, True, 0)
        operands[top, O_REFS] = 1
        return
    low, high = operands[node, O_LEN], length
    while low < high:
        probe = fattest(low, high)
        h = _handle(index, pattern, probe)
        met = node_at(operands, heads, state[S_BUCKET_MASK], state[S_BUCKETS], tag, h)
        if met != 0:
            node = met
            low = operands[met, O_LEN]
        else:
            high = probe - 1
    same = _common(index, node, pattern)
    if same == operands[node, O_LEN]:
        if same == length:
            operands[node, O_LOW] |= pattern
            operands[pattern, O_KEY] = node
            return
        first, step = _reading(index, pattern)
        byte = 1 + index.text[first + same * step]
        child = high_half(operands[node, O_POSTED])
        while child != 0 and operands[child, O_REFS] != byte:
            child = low_half(operands[child, O_POSTED])
        if child == 0:
            _add_leaf(index, pattern, node)
            return
        node = child
        same = _common(index, node, pattern)
    fork = _split(index, node, same, pattern)
    if same < length:
        _add_leaf(index, pattern, fork)


@bare_kernel
def remove_pattern(index: Index, pattern: int) -> None:
    """Take a pattern out of its trie."""
    operands = index.operands
    node = operands[pattern, O_KEY]
    parent = high_half(operands[node, O_LOW])
    operands[node, O_LOW] = halves(parent, 0)
    if high_half(operands[node, O_POSTED]) == 0:
        _put_in_place(index, parent, node, low_half(operands[node, O_POSTED]))
        free_operand(index, node)
        node = parent
        if node == 0 or low_half(operands[node, O_LOW]) != 0:
            return
        parent = high_half(operands[node, O_LOW])
    child = high_half(operands[node, O_POSTED])
    if low_half(operands[child, O_POSTED]) != 0:
        return
    # No pattern ends here and one edge leaves: it becomes one with the edge that leads here.
    handle = operands[child, O_HASH]
    if parent == 0 or fattest(operands[parent, O_LEN], operands[child, O_LEN]) <= operands[node, O_LEN]:
        handle = operands[node, O_HASH]
    _put_in_place(index, parent, node, child)
    operands[child, O_REFS] = operands[node, O_REFS]
    operands[child, O_LOW] = halves(parent, low_half(operands[child, O_LOW]))
    operands[child, O_POSTED] = halves(high_half(operands[child, O_POSTED]), low_half(operands[node, O_POSTED]))
    free_operand(index, node)
    if handle != operands[child, O_HASH]:
        move_operand(index, child, handle)
