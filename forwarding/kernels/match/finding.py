"""Finding the prefixes, suffixes, substrings and intervals that a value hits; patterns.py says how they are filed.

Each function appends operands to `room` from place `count` on and returns the new count, or -1 when there is no room.
"""

from __future__ import annotations

import numpy as np

from contrada.forwarding.kernels.match.patterns import DIGITS, POSTED_PREFIXES
from contrada.forwarding.kernels.memory.bits import halves, high_half, low_half, tag_of
from contrada.forwarding.kernels.memory.interning import find_scalar, find_text
from contrada.forwarding.kernels.memory.keys import FNV_PRIME, FNV_SEED
from contrada.forwarding.kernels.memory.layout import (
    CELL,
    KINDS,
    N_PREFIXES,
    N_SUFFIXES,
    N_TRIES,
    NODE,
    O_HASH,
    O_KEY,
    O_LEN,
    O_LOW,
    O_NEXT,
    O_POSTED,
    O_REFS,
    O_TAG,
    PATTERN_CONTAINS,
    PATTERN_PREFIX,
    PATTERN_SUFFIX,
    S_BASE,
    S_BUCKET_MASK,
    S_BUCKETS,
    S_INVERSE,
    STRING,
    Bytes,
    Index,
    Ints,
)
from contrada.forwarding.kernels.memory.words import same_bytes
from contrada.forwarding.kernels.substrings.fingerprints import fill_hashes, high_bit, times, window
from contrada.forwarding.kernels.substrings.tries import LARGEST_TOP, fattest, node_at, salt_of
from contrada.spatial.storage.jit import bare_inline_kernel, bare_kernel

# Places in Scratch.cursor (verifying.py has the others).
C_PASS = 10  # searches for substrings there have been; a node is marked with the last that found it
C_STEPS = 11  # probes of the tries' hash and rows met there: what tests hold the worst case to

_RUN = 64  # windows of a text that are hashed before any is looked up
_GUESSES = 16  # tops for which the search remembers where it ended
_NEAR = 4  # nodes that are tried one after another from there
_FIRST_REACH = 16  # how much longer extents a search looks for before it looks for all
HASHES_BESIDE = 3 * _RUN + _GUESSES + 1  # room that a search needs in `hashes`, besides one for each byte of the text


@bare_kernel
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
            found = find_text(index, tag_of(name, PATTERN_PREFIX), h, text, start, size)
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
            found = find_text(index, tag_of(name, PATTERN_SUFFIX), h, text, start + length - size, size)
            if found != 0 and index.operands[found, O_POSTED] != 0:
                room[count] = found
                count += 1
    return count


@bare_inline_kernel
def _stands(operands: Ints, hashes: Ints, at: int, unshift: int, rest: int, node: int) -> bool:
    """Whether a node's extent stands at `at`, where `rest` bytes are left."""
    length = operands[node, O_LEN]
    return length <= rest and window(hashes, at, at + length, unshift) == operands[node, O_KEY]


@bare_inline_kernel
def _near(
    operands: Ints, hashes: Ints, text: Bytes, start: int, at: int, unshift: int, rest: int, node: int
) -> tuple[int, bool]:
    """From a node that stands at `at` towards the deepest that does, a few steps; and whether that was reached."""
    reached = False
    steps = 0
    while not reached and steps < _NEAR:
        length = operands[node, O_LEN]
        child = high_half(operands[node, O_POSTED])
        if child == 0 or length == rest:
            reached = True
        else:
            byte = 1 + np.int64(text[start + at + length])
            while child != 0 and operands[child, O_REFS] != byte and steps < _NEAR:
                child = low_half(operands[child, O_POSTED])
                steps += 1
            if child == 0:
                reached = True
            elif operands[child, O_REFS] == byte:
                if _stands(operands, hashes, at, unshift, rest, child):
                    node = child
                    steps += 1
                else:
                    reached = True
    return node, reached


@bare_inline_kernel
def _deepest(
    operands: Ints,
    heads: Ints,
    mask: int,
    buckets: int,
    tag: int,
    salt: int,
    hashes: Ints,
    at: int,
    unshift: int,
    rest: int,
    most: int,
    node: int,
    cursor: Ints,
) -> int:
    """The deepest node whose extent, of at most `most` bytes, stands at `at`, where `rest` bytes are left, or 0.

    `node` is one whose handle stands there, to begin with.
    """
    low, high = operands[node, O_LEN], min(rest, most)
    if high_half(operands[node, O_POSTED]) != 0:
        steps = 0
        while low < high:
            probe = fattest(low, high)
            h = window(hashes, at, at + probe, unshift) ^ salt
            bucket = h & mask
            if bucket >= buckets:
                bucket = h & (mask >> 1)
            o = heads[bucket]
            steps += 1
            while o != 0 and (operands[o, O_HASH] != h or operands[o, O_TAG] != tag):
                o = operands[o, O_NEXT]
                steps += 1
            if o != 0:
                node = o
                low = operands[o, O_LEN]
            else:
                high = probe - 1
        cursor[C_STEPS] += steps
    if not _stands(operands, hashes, at, unshift, rest, node):
        node = high_half(operands[node, O_LOW])  # whose extent begins the handle, which stands here
    return node


@bare_kernel
def _take(
    index: Index,
    marks: Ints,
    mark: int,
    text: Bytes,
    at: int,
    suffix: bool,
    node: int,
    room: Ints,
    count: int,
    collect: bool,
) -> int:
    """Mark a node that stands at `at`, or with `suffix` ends there, and those above it, up to one marked before.

    With `collect`, patterns among them that filters are posted under are appended to `room`.
    """
    operands = index.operands
    sure = False
    while node != 0 and marks[node] != mark:
        pattern = low_half(operands[node, O_LOW])
        if pattern != 0:
            size = operands[pattern, O_LEN]
            if not sure and not same_bytes(
                text, at - size if suffix else at, index.text, operands[pattern, O_LOW], size
            ):
                node = high_half(operands[node, O_LOW])  # another string of the same fingerprint: hardly ever
                continue
            sure = True
            if collect and operands[pattern, O_POSTED] != 0:
                if count >= room.shape[0]:
                    return -1
                room[count] = pattern
                count += 1
        marks[node] = mark
        node = high_half(operands[node, O_LOW])
    return count


@bare_kernel
def find_long_affixes(
    index: Index,
    name: int,
    text: Bytes,
    start: int,
    length: int,
    hashes: Ints,
    marks: Ints,
    cursor: Ints,
    room: Ints,
    count: int,
) -> int:
    """Collect the prefixes and suffixes of a text among the patterns that are too long for `find_affixes`."""
    operands, heads, state = index.operands, index.heads, index.state
    mask, buckets = state[S_BUCKET_MASK], state[S_BUCKETS]
    tries = index.fields[name * KINDS + STRING, N_TRIES]
    most = (2 << (high_bit(tries) - DIGITS)) - 1
    rest = min(length, most)
    size = 1 << LARGEST_TOP
    for suffix in range(2):
        if not tries >> (POSTED_PREFIXES + suffix) & 1 or rest < size or count < 0:
            continue
        salt = salt_of(index, tag_of(name, PATTERN_PREFIX + suffix))
        if suffix:
            fill_hashes(hashes, text, start + length - 1, -1, rest, state[S_BASE])
        else:
            fill_hashes(hashes, text, start, 1, rest, state[S_BASE])
        tag = tag_of(name, NODE)
        top = node_at(operands, heads, mask, buckets, tag, window(hashes, 0, size, 1) ^ salt)
        if top != 0:
            cursor[C_PASS] += 1
            at = start + length if suffix else start
            node = _deepest(operands, heads, mask, buckets, tag, salt, hashes, 0, 1, rest, most, top, cursor)
            count = _take(index, marks, cursor[C_PASS], text, at, suffix == 1, node, room, count, True)
    return count


@bare_inline_kernel
def _hash_windows(
    hashes: Ints, unshifts: int, first: int, size: int, run: int, salt: int, heads: Ints, mask: int, buckets: int
) -> None:
    """Hash a run of windows from `first` on, and look up where their chains begin: both behind `unshifts`."""
    for i in range(run):
        h = window(hashes, first + i, first + i + size, hashes[unshifts + i]) ^ salt
        bucket = h & mask
        if bucket >= buckets:
            bucket = h & (mask >> 1)
        hashes[unshifts + _RUN + i] = h
        hashes[unshifts + 2 * _RUN + i] = heads[bucket]


@bare_inline_kernel
def _deepest_from(
    index: Index,
    tag: int,
    salt: int,
    hashes: Ints,
    text: Bytes,
    start: int,
    at: int,
    unshift: int,
    rest: int,
    most: int,
    node: int,
    cursor: Ints,
) -> int:
    """The deepest node below one that stands in the text at a place, of at most so many bytes.

    Lengths just beyond are tried first: those far beyond are hardly ever there, and whether anything is below what was
    found, a look at its children tells.
    """
    operands, heads = index.operands, index.heads
    mask, buckets = index.state[S_BUCKET_MASK], index.state[S_BUCKETS]
    reach = min(most, operands[node, O_LEN] + _FIRST_REACH)
    while True:
        node, reached = _near(operands, hashes, text, start, at, unshift, rest, node)
        if reached:
            return node
        node = _deepest(operands, heads, mask, buckets, tag, salt, hashes, at, unshift, rest, reach, node, cursor)
        if reach >= most:
            return node
        reach = most


@bare_kernel
def find_substrings(
    index: Index,
    name: int,
    text: Bytes,
    start: int,
    length: int,
    hashes: Ints,
    marks: Ints,
    cursor: Ints,
    room: Ints,
    count: int,
    collect: bool,
) -> int:
    """Mark the nodes of all substrings that occur in a text with a new pass, once each however often they occur.

    With `collect`, those that filters are posted under are appended to `room`.

    Windows are hashed a run at a time, and only then looked at: the processor fetches a run's chains together, where
    one after the other would wait for memory at every window. The end of `hashes` holds the run.
    """
    operands, heads = index.operands, index.heads
    mask, buckets = index.state[S_BUCKET_MASK], index.state[S_BUCKETS]
    inverse = index.state[S_INVERSE]
    tries = index.fields[name * KINDS + STRING, N_TRIES]
    tag = tag_of(name, NODE)
    salt = salt_of(index, tag_of(name, PATTERN_CONTAINS))
    cursor[C_PASS] += 1
    fill_hashes(hashes, text, start, 1, length, index.state[S_BASE])
    guesses = hashes.shape[0] - _GUESSES
    unshifts = guesses - 3 * _RUN
    handles = unshifts + _RUN
    chains = handles + _RUN
    for i in range(_GUESSES):
        hashes[guesses + i] = 0
    even, odd = 1, inverse
    square = times(inverse, inverse)
    steps = 0
    for first in range(0, length, _RUN):
        for i in range(0, _RUN, 2):
            hashes[unshifts + i] = even
            hashes[unshifts + i + 1] = odd
            even = times(even, square)
            odd = times(odd, square)
        for power in range(LARGEST_TOP + 1):
            size = 1 << power
            run = min(_RUN, length - size + 1 - first)
            if not tries >> power & 1 or run <= 0:
                continue
            _hash_windows(hashes, unshifts, first, size, run, salt, heads, mask, buckets)
            steps += run
            most = (2 << (high_bit(tries) - DIGITS)) - 1 if power == LARGEST_TOP else 2 * size - 1
            for i in range(run):
                h = hashes[handles + i]
                o = hashes[chains + i]
                while o != 0 and (operands[o, O_HASH] != h or operands[o, O_TAG] != tag):
                    o = operands[o, O_NEXT]
                    steps += 1
                if o != 0:
                    at = first + i
                    unshift = hashes[unshifts + i]
                    rest = length - at
                    # In a text that repeats itself, where the search ended for this top is where it ends again.
                    seen = guesses + (o & (_GUESSES - 1))
                    node = low_half(hashes[seen]) if high_half(hashes[seen]) == o else 0
                    steps += 1
                    if node == 0 or not _stands(operands, hashes, at, unshift, rest, node):
                        node = o
                        if not _stands(operands, hashes, at, unshift, rest, o):
                            continue
                    if high_half(operands[o, O_POSTED]) != 0:
                        node = _deepest_from(
                            index, tag, salt, hashes, text, start, at, unshift, rest, most, node, cursor
                        )
                        hashes[seen] = halves(o, node)
                    if marks[node] != cursor[C_PASS]:
                        count = _take(index, marks, cursor[C_PASS], text, start + at, False, node, room, count, collect)
                        if count < 0:
                            return -1
    cursor[C_STEPS] += steps
    return count


@bare_kernel
def find_cells(index: Index, name: int, kind: int, key: int, room: Ints, count: int) -> int:
    """Look up the cell of a number at each size that occurs."""
    if count + 64 > room.shape[0]:
        return -1
    levels = index.fields[name * KINDS + kind, N_PREFIXES]
    level = 0
    while levels >> level != 0:
        if levels >> level & 1:
            found = find_scalar(index, tag_of(name, CELL), key >> level, level << 8 | kind)
            if found != 0:
                room[count] = found
                count += 1
        level += 1
    return count
