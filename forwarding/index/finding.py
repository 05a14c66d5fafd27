"""Finding the prefixes, suffixes, substrings and intervals that a value hits; patterns.py says how they are filed.

Each function appends operands to `room` from place `count` on and returns the new count, or -1 when there is no room.
"""

from __future__ import annotations

import numpy as np

from contrada.forwarding.index.keys import FNV_PRIME, FNV_SEED, ROLL, mix
from contrada.forwarding.index.layout import (
    CELL,
    GRAM,
    KINDS,
    N_GRAMS,
    N_PREFIXES,
    N_SUFFIXES,
    O_HASH,
    O_LEN,
    O_LOW,
    O_NEXT,
    O_POSTED,
    O_TAG,
    PATTERN_PREFIX,
    PATTERN_SUFFIX,
    S_BUCKET_MASK,
    S_BUCKETS,
    STRING,
    Bytes,
    Index,
    Ints,
)
from contrada.forwarding.index.operands import find_scalar, find_text
from contrada.forwarding.index.postings import COUNT
from contrada.forwarding.index.words import same_bytes, sort_run
from contrada.spatial._jit import inner_kernel

_RUN = 64  # windows of a text that are hashed before any is looked up


@inner_kernel
def find_affixes(index: Index, name: int, text: Bytes, start: int, length: int, room: Ints, count: int) -> int:
    """Look up each prefix and suffix of a string whose length occurs among the patterns."""
    if count + 128 > room.shape[0]:
        return -1
    lengths = index.fields[name * KINDS + STRING, N_PREFIXES]
    h = FNV_SEED
    size = 0
    while lengths >> (size + 1) != 0 and size < length:
        h = (h ^ np.int64(text[start + size])) * FNV_PRIME
        size += 1
        if lengths >> size & 1:
            found = find_text(index, name << 8 | PATTERN_PREFIX, h, text, start, size)
            if found != 0 and index.operands[found, O_POSTED] != 0:
                room[count] = found
                count += 1
    lengths = index.fields[name * KINDS + STRING, N_SUFFIXES]
    h = FNV_SEED
    size = 0
    while lengths >> (size + 1) != 0 and size < length:
        h = (h ^ np.int64(text[start + length - 1 - size])) * FNV_PRIME
        size += 1
        if lengths >> size & 1:
            found = find_text(index, name << 8 | PATTERN_SUFFIX, h, text, start + length - size, size)
            if found != 0 and index.operands[found, O_POSTED] != 0:
                room[count] = found
                count += 1
    return count


@inner_kernel
def find_substrings(index: Index, name: int, text: Bytes, start: int, length: int, room: Ints, count: int) -> int:
    """Collect the patterns filed under grams that occur in a text, each once.

    Windows are hashed a run at a time, and only then looked at: the processor fetches a run's chains together, where
    one after the other would wait for memory at every window. The end of `room` holds the run.
    """
    operands, postings, heads = index.operands, index.postings, index.heads
    mask, buckets = index.state[S_BUCKET_MASK], index.state[S_BUCKETS]
    grams = index.fields[name * KINDS + STRING, N_GRAMS]
    begin = count
    tag = name << 8 | GRAM
    spreads = room.shape[0] - 2 * _RUN
    chains = room.shape[0] - _RUN
    if count > spreads:
        return -1
    for power in range(6):
        size = 1 << power
        if not grams >> power & 1 or size > length:
            continue
        h = 0
        leaving = 1
        for i in range(size):
            h = h * ROLL + np.int64(text[start + i])
            leaving *= ROLL
        last = start + length - size
        for first in range(start, last + 1, _RUN):
            run = min(_RUN, last + 1 - first)
            for i in range(run):
                at = first + i
                if at > start:
                    h = h * ROLL + np.int64(text[at + size - 1]) - leaving * np.int64(text[at - 1])
                spread = mix(h, tag)
                bucket = spread & mask
                if bucket >= buckets:
                    bucket = spread & (mask >> 1)
                room[spreads + i] = spread
                room[chains + i] = heads[bucket]
            for i in range(run):
                spread = room[spreads + i]
                o = room[chains + i]
                while o != 0 and (operands[o, O_HASH] != spread or operands[o, O_TAG] != tag):
                    o = operands[o, O_NEXT]
                head = operands[o, O_POSTED] if o != 0 else 0
                while head != 0:
                    for entry in range(head + 1, head + 1 + (postings[head, 1] & COUNT)):
                        pattern = postings[entry, 1]
                        place = first + i - postings[entry, 0]
                        if occurs(operands[pattern], index.text, text, start, length, place):
                            if count >= spreads:
                                return -1
                            room[count] = pattern
                            count += 1
                    head = postings[head, 0]
    if count > begin + 1:
        sort_run(room, begin, count)
        unique = begin + 1
        for i in range(begin + 1, count):
            if room[i] != room[unique - 1]:
                room[unique] = room[i]
                unique += 1
        count = unique
    return count


@inner_kernel
def occurs(pattern: Ints, patterns: Bytes, text: Bytes, start: int, length: int, at: int) -> bool:
    """Whether a pattern stands at `at` in a text, and that is where its kind must stand."""
    size = pattern[O_LEN]
    if at < start or at + size > start + length:
        return False
    kind = pattern[O_TAG] & 255
    if (kind == PATTERN_PREFIX and at != start) or (kind == PATTERN_SUFFIX and at + size != start + length):
        return False
    return same_bytes(text, at, patterns, pattern[O_LOW], size)


@inner_kernel
def find_cells(index: Index, name: int, kind: int, key: int, room: Ints, count: int) -> int:
    """Look up the cell of a number at each size that occurs."""
    if count + 64 > room.shape[0]:
        return -1
    levels = index.fields[name * KINDS + kind, N_PREFIXES]
    level = 0
    while levels >> level != 0:
        if levels >> level & 1:
            found = find_scalar(index, name << 8 | CELL, key >> level, level << 8 | kind)
            if found != 0:
                room[count] = found
                count += 1
        level += 1
    return count
