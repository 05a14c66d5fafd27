"""Entries from Python into the inner kernels of the forwarding table, for tests: they have none of their own."""

from __future__ import annotations

from contrada.forwarding.kernels.match.finding import find_affixes, find_cells, find_long_affixes, find_substrings
from contrada.forwarding.kernels.match.patterns import (
    POSTED_PREFIXES,
    POSTED_SUBSTRINGS,
    drop_pattern,
    file_operand,
    keep_pattern,
    unfile_operand,
)
from contrada.forwarding.kernels.match.thresholds import FIRST_BLOCK, cut_thresholds, insert_threshold, remove_threshold
from contrada.forwarding.kernels.memory.interning import (
    find_scalar,
    find_text,
    free_operand,
    intern_scalar,
    intern_text,
)
from contrada.forwarding.kernels.memory.keys import float_key, int_low, reversed_hash, text_hash, text_key
from contrada.forwarding.kernels.memory.layout import (
    CELL,
    KINDS,
    N_TRIES,
    O_LEN,
    O_LOW,
    O_POSTED,
    O_REFS,
    PATTERN_SUFFIX,
    STRING,
    Bytes,
    Floats,
    Index,
    Ints,
)
from contrada.forwarding.kernels.memory.postings import COUNT, drop_posting, push_posting
from contrada.forwarding.kernels.memory.words import compare_bytes, give_words, same_bytes, sort_run, take_words
from contrada.forwarding.kernels.substrings.fingerprints import fingerprint
from contrada.forwarding.kernels.substrings.searching import has_bytes
from contrada.spatial.storage.jit import bare_kernel


@bare_kernel
def number_keys(ints: Ints, floats: Floats, out: Ints) -> None:
    """The (key, low) pairs of integers, then of floats."""
    for i in range(ints.shape[0]):
        out[i, 0] = float_key(float(ints[i]))
        out[i, 1] = int_low(ints[i])
    for i in range(floats.shape[0]):
        out[ints.shape[0] + i, 0] = float_key(floats[i])
        out[ints.shape[0] + i, 1] = 0


@bare_kernel
def text_facts(text: Bytes, lengths: Ints, out: Ints) -> None:
    """Of the strings that stand one after another, padded by eight bytes each: key, three hashes, order to the next."""
    start = 0
    for i in range(lengths.shape[0]):
        length = lengths[i]
        out[i, 0] = text_key(text, start, length)
        out[i, 1] = text_hash(text, start, length)
        out[i, 2] = reversed_hash(text, start, length)
        out[i, 3] = fingerprint(text, start, 1, length, 1_000_003)
        following = start + length + 8
        if i + 1 < lengths.shape[0]:
            out[i, 4] = compare_bytes(text, start, length, text, following, lengths[i + 1])
            out[i, 5] = 1 if length == lengths[i + 1] and same_bytes(text, start, text, following, length) else 0
        start = following


@bare_kernel
def sorted_run(numbers: Ints, first: int, last: int) -> None:
    sort_run(numbers, first, last)


@bare_kernel
def take(index: Index, count: int) -> int:
    return take_words(index, count)


@bare_kernel
def give(index: Index, place: int, count: int) -> None:
    give_words(index, place, count)


@bare_kernel
def push(index: Index, head: int, payload: int, out: Ints) -> None:
    """New head and place."""
    out[0], out[1] = push_posting(index, head, payload + 1, payload)


@bare_kernel
def drop(index: Index, head: int, place: int, out: Ints) -> None:
    """New head, the place that moved and whose it was."""
    out[0], out[1], out[2] = drop_posting(index, head, place)


@bare_kernel
def listed(index: Index, head: int, out: Ints) -> int:
    """The payloads of a posting list; -1 where a mask is not its payload's."""
    count = 0
    while head != 0:
        for entry in range(head + 1, head + 1 + (index.postings[head, 1] & COUNT)):
            right = index.postings[entry, 0] == index.postings[entry, 1] + 1
            out[count] = index.postings[entry, 1] if right else -1
            count += 1
        head = index.postings[head, 0]
    return count


@bare_kernel
def number_operand(index: Index, tag: int, key: int, low: int, make: bool) -> int:
    return intern_scalar(index, tag, key, low) if make else find_scalar(index, tag, key, low)


@bare_kernel
def text_operand(index: Index, tag: int, text: Bytes, length: int, make: bool) -> int:
    """The operand of a string or pattern, hashed as its kind is."""
    state = reversed_hash(text, 0, length) if tag & 255 == PATTERN_SUFFIX else text_hash(text, 0, length)
    if make:
        return intern_text(index, tag, state, text_key(text, 0, length), text, 0, length)
    return find_text(index, tag, state, text, 0, length)


@bare_kernel
def free(index: Index, operand: int) -> None:
    free_operand(index, operand)


@bare_kernel
def file(index: Index, operand: int, events: Ints, on: bool) -> None:
    """Make searches find an operand, or stop."""
    if on:
        index.operands[operand, O_REFS] = 1
        keep_pattern(index, operand)
        file_operand(index, operand, events)
        index.operands[operand, O_POSTED] = 1
    else:
        unfile_operand(index, operand, events)
        index.operands[operand, O_POSTED] = 0
        drop_pattern(index, operand)


@bare_kernel
def search_text(
    index: Index, name: int, text: Bytes, length: int, hashes: Ints, marks: Ints, cursor: Ints, room: Ints
) -> int:
    """The operands of the patterns of a text, into `room`; how many, or -1 when there is no room."""
    count = find_affixes(index, name, text, 0, length, room, 0)
    tries = index.fields[name * KINDS + STRING, N_TRIES]
    if count >= 0 and tries >> POSTED_PREFIXES & 3:
        count = find_long_affixes(index, name, text, 0, length, hashes, marks, cursor, room, count)
    if count >= 0 and tries >> POSTED_SUBSTRINGS & 1:
        count = find_substrings(index, name, text, 0, length, hashes, marks, cursor, room, count, True)
    return count


@bare_kernel
def contains(index: Index, text: Bytes, length: int, pattern: int) -> bool:
    return has_bytes(index, text, 0, length, index.operands[pattern, O_LOW], index.operands[pattern, O_LEN])


@bare_kernel
def search_cells(index: Index, name: int, kind: int, key: int, room: Ints) -> int:
    return find_cells(index, name, kind, key, room, 0)


@bare_kernel
def cell_operand(index: Index, name: int, kind: int, cell: int, level: int) -> int:
    return intern_scalar(index, name << 8 | CELL, cell, level << 8 | kind)


@bare_kernel
def change_threshold(index: Index, directory: int, operand: int, tie: int, payload: int, on: bool) -> int:
    """Insert a threshold, or remove it; the directory."""
    if on:
        return insert_threshold(index, directory, operand, tie, -1, payload)
    return remove_threshold(index, directory, operand, tie, payload)


@bare_kernel
def satisfied(index: Index, directory: int, above: bool, value: Ints, text: Bytes, out: Ints) -> int:
    """The payloads of the run that a value, (key, low, length), satisfies; length -1 of a number."""
    cut, place = cut_thresholds(index, directory, value[0], value[1], text, 0, value[2])
    count = 0
    blocks = index.words[directory + 1]
    for rank in range(0 if above else max(cut, 0), cut + 1 if above else blocks):
        block = index.words[directory + FIRST_BLOCK + rank]
        start = block + 1
        end = block + 1 + index.thresholds[block, 0]
        if rank == cut:
            if above:
                end = block + place
            else:
                start = block + place
        for row in range(start, end):
            out[count] = index.thresholds[row, 2]
            count += 1
    return count
