"""Operands, interned: a hash over (name, kind, value) that grows one bucket at a time.

Linear hashing: there are `buckets` chains, `mask + 1` being the power of two they are growing towards. Each new
operand beyond one per bucket splits the next chain in two, so no insertion pays for a rehash of the whole and the
bucket array, reserved address space, is never copied. Chains run through the operands' own rows. O(1) expected.
"""

from __future__ import annotations

from contrada.forwarding.kernels.memory.bits import tag_kind
from contrada.forwarding.kernels.memory.keys import mix
from contrada.forwarding.kernels.memory.layout import (
    O_HASH,
    O_KEY,
    O_LEN,
    O_LOW,
    O_NEXT,
    O_POSTED,
    O_REFS,
    O_TAG,
    PATTERN_CONTAINS,
    PATTERN_LIKE,
    PATTERN_PREFIX,
    S_BUCKET_MASK,
    S_BUCKETS,
    S_OPERAND_COUNT,
    S_OPERAND_FREE,
    S_OPERANDS,
    STRING,
    Bytes,
    Index,
)
from contrada.forwarding.kernels.memory.words import give_words, same_bytes, take_words
from contrada.spatial.storage.jit import bare_inline_kernel, bare_kernel


@bare_kernel
def has_text(kind: int) -> bool:
    """Whether operands of this kind are strings."""
    return kind in (STRING, PATTERN_LIKE) or (PATTERN_PREFIX <= kind <= PATTERN_CONTAINS)


@bare_inline_kernel
def bucket_of(index: Index, h: int) -> int:
    """The chain a hash belongs to."""
    mask = index.state[S_BUCKET_MASK]
    bucket = h & mask
    if bucket >= index.state[S_BUCKETS]:
        bucket = h & (mask >> 1)
    return bucket


@bare_inline_kernel
def scalar_hash(tag: int, key: int, low: int) -> int:
    """Hash of an operand that is two integers."""
    return mix(key, mix(low, tag))


@bare_inline_kernel
def find_scalar(index: Index, tag: int, key: int, low: int) -> int:
    """The operand (name, kind, number), or 0."""
    h = scalar_hash(tag, key, low)
    operands = index.operands
    o = index.heads[bucket_of(index, h)]
    while o != 0:
        if (
            operands[o, O_HASH] == h
            and operands[o, O_TAG] == tag
            and operands[o, O_KEY] == key
            and (operands[o, O_LOW] == low)
        ):
            return o
        o = operands[o, O_NEXT]
    return 0


@bare_inline_kernel
def find_text(index: Index, tag: int, state: int, text: Bytes, start: int, length: int) -> int:
    """The operand (name, kind, string) of a string whose bytes hash to `state`, or 0."""
    h = mix(state, tag)
    operands = index.operands
    o = index.heads[bucket_of(index, h)]
    while o != 0:
        if (
            operands[o, O_HASH] == h
            and operands[o, O_TAG] == tag
            and operands[o, O_LEN] == length
            and (same_bytes(index.text, operands[o, O_LOW], text, start, length))
        ):
            return o
        o = operands[o, O_NEXT]
    return 0


@bare_kernel
def new_operand(index: Index, h: int, tag: int, key: int, low: int) -> int:
    """A new row, chained into its bucket, held by nobody yet."""
    operands, state, heads = index.operands, index.state, index.heads
    o = state[S_OPERAND_FREE]
    if o != 0:
        state[S_OPERAND_FREE] = operands[o, O_NEXT]
    else:
        o = state[S_OPERANDS]
        state[S_OPERANDS] = o + 1
    bucket = bucket_of(index, h)
    operands[o, O_HASH] = h
    operands[o, O_NEXT] = heads[bucket]
    operands[o, O_TAG] = tag
    operands[o, O_REFS] = 0
    operands[o, O_KEY] = key
    operands[o, O_LOW] = low
    operands[o, O_LEN] = 0
    operands[o, O_POSTED] = 0
    heads[bucket] = o
    state[S_OPERAND_COUNT] += 1
    if state[S_OPERAND_COUNT] > state[S_BUCKETS]:
        _split_bucket(index)
    return o


@bare_kernel
def _split_bucket(index: Index) -> None:
    operands, state, heads = index.operands, index.state, index.heads
    fresh = state[S_BUCKETS]
    mask = state[S_BUCKET_MASK]
    old = fresh & (mask >> 1)
    o = heads[old]
    stay = 0
    move = 0
    while o != 0:
        following = operands[o, O_NEXT]
        if operands[o, O_HASH] & mask == fresh:
            operands[o, O_NEXT] = move
            move = o
        else:
            operands[o, O_NEXT] = stay
            stay = o
        o = following
    heads[old] = stay
    heads[fresh] = move
    state[S_BUCKETS] = fresh + 1
    if fresh == mask:
        state[S_BUCKET_MASK] = mask * 2 + 1


@bare_kernel
def intern_scalar(index: Index, tag: int, key: int, low: int) -> int:
    """The operand (name, kind, number), made when it was not there."""
    o = find_scalar(index, tag, key, low)
    if o == 0:
        o = new_operand(index, scalar_hash(tag, key, low), tag, key, low)
    return o


@bare_kernel
def intern_text(index: Index, tag: int, state: int, key: int, text: Bytes, start: int, length: int) -> int:
    """The operand (name, kind, string), made when it was not there."""
    o = find_text(index, tag, state, text, start, length)
    if o == 0:
        place = take_words(index, (length + 7) // 8) * 8 if length else 0
        for i in range(length):
            index.text[place + i] = text[start + i]
        o = new_operand(index, mix(state, tag), tag, key, place)
        index.operands[o, O_LEN] = length
    return o


@bare_kernel
def _unchain(index: Index, o: int) -> None:
    operands, heads = index.operands, index.heads
    bucket = bucket_of(index, operands[o, O_HASH])
    if heads[bucket] == o:
        heads[bucket] = operands[o, O_NEXT]
    else:
        before = heads[bucket]
        while operands[before, O_NEXT] != o:
            before = operands[before, O_NEXT]
        operands[before, O_NEXT] = operands[o, O_NEXT]


@bare_kernel
def move_operand(index: Index, o: int, h: int) -> None:
    """File a row under another hash."""
    _unchain(index, o)
    bucket = bucket_of(index, h)
    index.operands[o, O_HASH] = h
    index.operands[o, O_NEXT] = index.heads[bucket]
    index.heads[bucket] = o


@bare_kernel
def free_operand(index: Index, o: int) -> None:
    """Unchain a row that nobody holds."""
    operands, state = index.operands, index.state
    _unchain(index, o)
    if has_text(tag_kind(operands[o, O_TAG])) and operands[o, O_LEN] > 0:
        give_words(index, operands[o, O_LOW] // 8, (operands[o, O_LEN] + 7) // 8)
    operands[o, O_NEXT] = state[S_OPERAND_FREE]
    operands[o, O_TAG] = 0
    operands[o, O_REFS] = 0
    state[S_OPERAND_FREE] = o
    state[S_OPERAND_COUNT] -= 1
