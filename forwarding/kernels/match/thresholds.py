"""Order constraints, sorted: the filters posted under `<` and `<=`, or under `>` and `>=`, of one name and kind.

A directory in `words` is (piece size, blocks, entries, block, block, ...); blocks are 64 rows of `thresholds`, of
which the first is (entries, 0, 0, 0) and the rest are entries in ascending order:

    key       of the threshold, see kernels/memory/keys.py
    mask, payload   as in a posting
    order     operand << 16 | (low + 1024) << 1 | tie, where tie orders the two operators at one threshold

Entries are ordered by (threshold, tie, filter). `x < 5` sorts before `x <= 5`, so the entries that a value satisfies
are a suffix of the list; `x >= 5` sorts before `x > 5`, so there they are a prefix. Matching reads that run of blocks
from end to end. Insertion moves at most one block and, when a block splits, the directory: a few microseconds at a
million entries. A block that runs low joins its neighbour.
"""

from __future__ import annotations

from contrada.forwarding.kernels.memory.bits import tag_kind
from contrada.forwarding.kernels.memory.layout import (
    O_KEY,
    O_LEN,
    O_LOW,
    O_TAG,
    S_THRESHOLD_COUNT,
    S_THRESHOLD_FREE,
    S_THRESHOLDS,
    STRING,
    Bytes,
    Index,
    Ints,
)
from contrada.forwarding.kernels.memory.words import compare_bytes, give_words, take_words
from contrada.spatial.storage.jit import bare_inline_kernel, bare_kernel

ROWS = 64  # of a block, its header among them
_FULL = ROWS - 1
FIRST_BLOCK = 3  # its place in a directory
_ORDER = (1 << 16) - 1


@bare_kernel
def order_word(index: Index, operand: int, tie: int) -> int:
    """The `order` of an entry."""
    low = 0 if tag_kind(index.operands[operand, O_TAG]) == STRING else index.operands[operand, O_LOW]
    return operand << 16 | (low + 1024) << 1 | tie


@bare_inline_kernel
def compare_entry(index: Index, row: int, key: int, order: int, text: Bytes, start: int, length: int) -> int:
    """The order of the entry in `row` to a threshold (key, order, string): -1, 0 or 1; `length` < 0 for numbers."""
    other = index.thresholds[row, 0]
    if other != key:
        return -1 if other < key else 1
    theirs = index.thresholds[row, 3]
    if length >= 0 and theirs >> 16 != order >> 16:
        o = theirs >> 16
        c = compare_bytes(index.text, index.operands[o, O_LOW], index.operands[o, O_LEN], text, start, length)
        if c != 0:
            return c
    a = theirs & _ORDER
    b = order & _ORDER
    if a == b:
        return 0
    return -1 if a < b else 1


@bare_inline_kernel
def _precedes(index: Index, row: int, key: int, order: int, payload: int, text: Bytes, start: int, length: int) -> bool:
    """Whether the entry in `row` sorts before (key, order, string, payload)."""
    c = compare_entry(index, row, key, order, text, start, length)
    return c < 0 or (c == 0 and index.thresholds[row, 2] < payload)


@bare_kernel
def seek(
    index: Index, directory: int, key: int, order: int, payload: int, text: Bytes, start: int, length: int
) -> tuple[int, int]:
    """The block (its rank in the directory) and the row in it of the first entry that does not sort before.

    The row is one past the block's last when all the list sorts before.
    """
    words, thresholds = index.words, index.thresholds
    low = 0
    high = words[directory + 1] - 1  # the last block whose first entry sorts before, by bisection
    while low < high:
        middle = (low + high + 1) >> 1
        if _precedes(index, words[directory + FIRST_BLOCK + middle] + 1, key, order, payload, text, start, length):
            low = middle
        else:
            high = middle - 1
    rank = low
    block = words[directory + FIRST_BLOCK + rank]
    low = 1
    high = thresholds[block, 0] + 1
    while low < high:
        middle = (low + high) >> 1
        if _precedes(index, block + middle, key, order, payload, text, start, length):
            low = middle + 1
        else:
            high = middle
    if low > thresholds[block, 0] and rank + 1 < words[directory + 1]:
        return rank + 1, 1
    return rank, low


@bare_kernel
def cut_thresholds(
    index: Index, directory: int, key: int, low: int, text: Bytes, start: int, length: int
) -> tuple[int, int]:
    """Where a value cuts a list: the rank of the last block that begins at or before it (or -1), and a row in it.

    Entries before the cut are those of lower thresholds, and those of the same with tie 0. Among `>` and `>=` that is
    exactly what the value satisfies; among `<` and `<=` it is exactly what it does not.
    """
    words, thresholds = index.words, index.thresholds
    order = (low + 1024) << 1 if length < 0 else 1024 << 1
    first = 0
    last = words[directory + 1]
    while first < last:
        middle = (first + last) >> 1
        if compare_entry(index, words[directory + FIRST_BLOCK + middle] + 1, key, order, text, start, length) <= 0:
            first = middle + 1
        else:
            last = middle
    cut = first - 1
    row = 1
    if cut >= 0:
        block = words[directory + FIRST_BLOCK + cut]
        end = thresholds[block, 0] + 1
        while row < end:
            middle = (row + end) >> 1
            if compare_entry(index, block + middle, key, order, text, start, length) <= 0:
                row = middle + 1
            else:
                end = middle
    return cut, row


@bare_kernel
def _new_block(index: Index) -> int:
    state = index.state
    block = state[S_THRESHOLD_FREE]
    if block != 0:
        state[S_THRESHOLD_FREE] = index.thresholds[block, 1]
    else:
        block = state[S_THRESHOLDS]
        state[S_THRESHOLDS] = block + ROWS
    index.thresholds[block, 0] = 0
    return block


@bare_kernel
def _insert_block(index: Index, directory: int, rank: int, block: int) -> int:
    """Put a block at `rank`; the directory's place, which changes when it outgrows its piece."""
    words = index.words
    size = words[directory]
    blocks = words[directory + 1]
    if blocks + FIRST_BLOCK == size:
        larger = take_words(index, size * 2)
        for i in range(blocks + FIRST_BLOCK):
            words[larger + i] = words[directory + i]
        words[larger] = size * 2
        give_words(index, directory, size)
        directory = larger
    for i in range(directory + FIRST_BLOCK + blocks, directory + FIRST_BLOCK + rank, -1):
        words[i] = words[i - 1]
    words[directory + FIRST_BLOCK + rank] = block
    words[directory + 1] = blocks + 1
    return directory


@bare_kernel
def _remove_block(index: Index, directory: int, rank: int) -> None:
    words = index.words
    block = words[directory + FIRST_BLOCK + rank]
    index.thresholds[block, 1] = index.state[S_THRESHOLD_FREE]
    index.thresholds[block, 0] = 0
    index.state[S_THRESHOLD_FREE] = block
    words[directory + 1] -= 1
    for i in range(directory + FIRST_BLOCK + rank, directory + FIRST_BLOCK + words[directory + 1]):
        words[i] = words[i + 1]


@bare_inline_kernel
def _move(thresholds: Ints, source: int, target: int) -> None:
    thresholds[target, 0] = thresholds[source, 0]
    thresholds[target, 1] = thresholds[source, 1]
    thresholds[target, 2] = thresholds[source, 2]
    thresholds[target, 3] = thresholds[source, 3]


@bare_kernel
def insert_threshold(index: Index, directory: int, operand: int, tie: int, mask: int, payload: int) -> int:
    """Add an entry; the directory's place, 0 having been none."""
    words, thresholds, operands = index.words, index.thresholds, index.operands
    if directory == 0:
        directory = take_words(index, 4)
        words[directory] = 4
        words[directory + 1] = 1
        words[directory + 2] = 0
        words[directory + FIRST_BLOCK] = _new_block(index)
    key = operands[operand, O_KEY]
    order = order_word(index, operand, tie)
    length = operands[operand, O_LEN] if tag_kind(operands[operand, O_TAG]) == STRING else -1
    rank, row = seek(index, directory, key, order, payload, index.text, operands[operand, O_LOW], length)
    block = words[directory + FIRST_BLOCK + rank]
    if row == 1 and rank > 0:  # the end of the block before is as good, and may be less full
        before = words[directory + FIRST_BLOCK + rank - 1]
        if thresholds[before, 0] < thresholds[block, 0]:
            rank, block = rank - 1, before
            row = thresholds[block, 0] + 1
    if thresholds[block, 0] == _FULL:
        # Ascending thresholds leave full blocks behind; anything else halves.
        keep = _FULL if row > _FULL and rank + 1 == words[directory + 1] else _FULL // 2
        fresh = _new_block(index)
        for i in range(keep + 1, _FULL + 1):
            _move(thresholds, block + i, fresh + i - keep)
        thresholds[fresh, 0] = _FULL - keep
        thresholds[block, 0] = keep
        directory = _insert_block(index, directory, rank + 1, fresh)
        if row > keep:
            block = fresh
            row -= keep
    for i in range(block + thresholds[block, 0] + 1, block + row, -1):
        _move(thresholds, i - 1, i)
    thresholds[block, 0] += 1
    at = block + row
    thresholds[at, 0] = key
    thresholds[at, 1] = mask
    thresholds[at, 2] = payload
    thresholds[at, 3] = order
    words[directory + 2] += 1
    index.state[S_THRESHOLD_COUNT] += 1
    return directory


@bare_kernel
def remove_threshold(index: Index, directory: int, operand: int, tie: int, payload: int) -> int:
    """Take the entry of this threshold and payload out; the directory's place, 0 when it was the last."""
    words, thresholds, operands = index.words, index.thresholds, index.operands
    key = operands[operand, O_KEY]
    order = order_word(index, operand, tie)
    length = operands[operand, O_LEN] if tag_kind(operands[operand, O_TAG]) == STRING else -1
    rank, row = seek(index, directory, key, order, payload, index.text, operands[operand, O_LOW], length)
    block = words[directory + FIRST_BLOCK + rank]
    count = thresholds[block, 0]
    for i in range(block + row, block + count):
        _move(thresholds, i + 1, i)
    count -= 1
    thresholds[block, 0] = count
    words[directory + 2] -= 1
    index.state[S_THRESHOLD_COUNT] -= 1
    if words[directory + 2] == 0:
        _remove_block(index, directory, 0)
        give_words(index, directory, words[directory])
        return 0
    if count == 0:
        _remove_block(index, directory, rank)
    elif count < ROWS // 4 and rank + 1 < words[directory + 1]:
        after = words[directory + FIRST_BLOCK + rank + 1]
        if count + thresholds[after, 0] <= ROWS // 2:
            for i in range(1, thresholds[after, 0] + 1):
                _move(thresholds, after + i, block + count + i)
            thresholds[block, 0] = count + thresholds[after, 0]
            _remove_block(index, directory, rank + 1)
    return directory
