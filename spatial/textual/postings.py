"""Inverted lists under the key (node, token): the textual half of every baseline and of the R^t family.

    table  int64 (c, 3)   open addressing, linear probing; a row is  key | start | length + capacity * 2**32
    pool   int32 (p,)     the lists, each with room for its length at least
    head   int64 (3,)     rows in use, pool used, pool dead

key = node * 2**32 + token, or -1 in an empty row; c is a power of two, at most two thirds used. A list that outgrows
its room moves to the end of the pool, and its old room is dead; a list that becomes empty gives up its row. When the
pool is full it is copied without the dead parts, into twice the room that the lists need. So n postings take O(n)
memory and O(1) amortised time to add; to remove one costs a scan of its list from the end.

`hang` and `unhang` also keep the list of (node, DIRECTORY): the tokens that have a list at the node. A walk can then
intersect a node's tokens with a message's from whichever side is the smaller, by `shorter_side`.

Kernels that add return the postings, since arrays may have been replaced: `postings = post(postings, ...)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contrada.spatial.storage.hashing import home
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LENGTH = 0xFFFFFFFF
DIRECTORY = 2**31 - 1


class Postings(NamedTuple):
    """Inverted lists of int32 values."""

    table: NDArray[np.int64]
    pool: NDArray[np.int32]
    head: NDArray[np.int64]


def empty_postings() -> Postings:
    """Return postings without a list."""
    return Postings(np.full((16, 3), -1, np.int64), np.zeros(16, np.int32), np.zeros(3, np.int64))


def bulk_postings(keys: NDArray[np.int64], values: NDArray[np.int32], *, directories: bool = False) -> Postings:
    """Return the lists of all pairs of a key and a value, one after another by key and without spare room.

    Far quicker than posting one by one, since sorting is kinder to the caches than hashing. With `directories`, as if
    by `hang`.
    """
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if keys.size else np.empty(0, np.int64)
    if directories:
        distinct = keys[starts]
        own = (distinct >> 32 << 32) | DIRECTORY
        return bulk_postings(
            np.concatenate([keys, own]), np.concatenate([values, (distinct & _LENGTH).astype(np.int32)])
        )
    size = 16
    while 2 * size < 3 * starts.size:
        size *= 2
    table = np.full((size, 3), -1, np.int64)
    _enter_lists(table, keys, starts)
    return Postings(table, values, np.array([starts.size, values.size, 0]))


@kernel
def _enter_lists(table: NDArray[np.int64], keys: NDArray[np.int64], starts: NDArray[np.int64]) -> None:
    for i in range(starts.size):
        end = starts[i + 1] if i + 1 < starts.size else keys.size
        length = end - starts[i]
        row = home(keys[starts[i]], table.shape[0])
        while table[row, 0] >= 0:
            row = (row + 1) & (table.shape[0] - 1)
        table[row, 0] = keys[starts[i]]
        table[row, 1] = starts[i]
        table[row, 2] = length | (length << 32)


@kernel
def find_list(table: NDArray[np.int64], node: int, token: int) -> int:
    """Return the row of a list, or -1 when it is empty."""
    return _find_key(table, (np.int64(node) << 32) | np.int64(token))


@kernel
def _find_key(table: NDArray[np.int64], key: np.int64) -> int:
    mask = table.shape[0] - 1
    row = home(key, mask + 1)
    while table[row, 0] >= 0:
        if table[row, 0] == key:
            return row
        row = (row + 1) & mask
    return -1


@kernel
def list_bounds(table: NDArray[np.int64], row: int) -> tuple[int, int]:
    """Return the first and one past the last position of a list in the pool."""
    start = table[row, 1]
    return start, start + (table[row, 2] & _LENGTH)


@kernel
def _with_larger_table(p: Postings) -> Postings:
    size = 2 * p.table.shape[0]
    table = np.full((size, 3), -1, np.int64)
    for i in range(p.table.shape[0]):
        if p.table[i, 0] >= 0:
            row = home(p.table[i, 0], size)
            while table[row, 0] >= 0:
                row = (row + 1) & (size - 1)
            table[row] = p.table[i]
    return Postings(table, p.pool, p.head)


@kernel
def _with_larger_pool(p: Postings, more: np.int64) -> Postings:
    alive = p.head[1] - p.head[2] + more
    pool = np.zeros(2 * alive + 16, np.int32)
    used = 0
    for i in range(p.table.shape[0]):
        if p.table[i, 0] >= 0:
            start, room = p.table[i, 1], p.table[i, 2] >> 32
            pool[used : used + room] = p.pool[start : start + room]
            p.table[i, 1] = used
            used += room
    p.head[1] = used
    p.head[2] = 0
    return Postings(p.table, pool, p.head)


@kernel
def post(p: Postings, node: int, token: int, value: int) -> Postings:
    """Append a value to the list of (node, token)."""
    return _post(p, (np.int64(node) << 32) | np.int64(token), np.int32(value))


# One version of each is compiled, whatever widths of integers the callers have.
@kernel
def _post(p: Postings, key: np.int64, value: np.int32) -> Postings:
    row = _find_key(p.table, key)
    if row < 0:
        if 3 * (p.head[0] + 1) > 2 * p.table.shape[0]:
            p = _with_larger_table(p)
        mask = p.table.shape[0] - 1
        row = home(key, mask + 1)
        while p.table[row, 0] >= 0:
            row = (row + 1) & mask
        if p.head[1] + 1 > p.pool.size:
            p = _with_larger_pool(p, np.int64(1))
        p.table[row, 0] = key
        p.table[row, 1] = p.head[1]
        p.table[row, 2] = 1 << 32
        p.head[0] += 1
        p.head[1] += 1
    length, room = p.table[row, 2] & _LENGTH, p.table[row, 2] >> 32
    if length == room:
        if p.head[1] + 2 * room > p.pool.size:
            p = _with_larger_pool(p, 2 * room)
        start, fresh = p.table[row, 1], p.head[1]
        p.pool[fresh : fresh + length] = p.pool[start : start + length]
        p.table[row, 1] = fresh
        p.head[1] += 2 * room
        p.head[2] += room
        room *= 2
    p.pool[p.table[row, 1] + length] = value
    p.table[row, 2] = (length + 1) | (room << 32)
    return p


@kernel
def unpost(p: Postings, node: int, token: int, value: int) -> bool:
    """Take a value out of the list of (node, token); the last one takes its place. False when it is not there."""
    return _unpost(p, (np.int64(node) << 32) | np.int64(token), np.int32(value))


@kernel
def _unpost(p: Postings, key: np.int64, value: np.int32) -> bool:
    hole = _find_key(p.table, key)
    if hole < 0:
        return False
    start, last = list_bounds(p.table, hole)
    last -= 1
    at = last
    while at >= start and p.pool[at] != value:
        at -= 1
    if at < start:
        return False
    p.pool[at] = p.pool[last]
    p.table[hole, 2] -= 1
    if last > start:
        return True
    p.head[0] -= 1
    p.head[2] += p.table[hole, 2] >> 32
    mask = p.table.shape[0] - 1
    row = (hole + 1) & mask
    while p.table[row, 0] >= 0:
        # A row may move back into the hole unless its home lies cyclically after the hole.
        if (row - home(p.table[row, 0], mask + 1)) & mask >= (row - hole) & mask:
            p.table[hole] = p.table[row]
            hole = row
        row = (row + 1) & mask
    p.table[hole, 0] = -1
    return True


@kernel
def hang(p: Postings, node: int, token: int, value: int) -> Postings:
    """Append a value to the list of (node, token), and a token new to the node to its directory."""
    if find_list(p.table, node, token) < 0:
        p = post(p, node, DIRECTORY, token)
    return post(p, node, token, value)


@kernel
def unhang(p: Postings, node: int, token: int, value: int) -> None:
    """Undo `hang`."""
    if unpost(p, node, token, value) and find_list(p.table, node, token) < 0:
        unpost(p, node, DIRECTORY, token)


@kernel
def drop_list(p: Postings, node: int, token: int) -> None:
    """Empty the list of (node, token) and take it off the directory."""
    row = find_list(p.table, node, token)
    if row >= 0:
        p.table[row, 2] = (p.table[row, 2] >> 32 << 32) | 1
        unhang(p, node, token, p.pool[p.table[row, 1]])


@kernel
def shorter_side(
    table: NDArray[np.int64], pool: NDArray[np.int32], node: int, tokens: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return the tokens of the node or the given ones, whichever are fewer; both contain what they have in common."""
    row = find_list(table, node, DIRECTORY)
    if row < 0:
        return tokens[:0]
    first, last = list_bounds(table, row)
    return pool[first:last] if last - first < tokens.size else tokens


@kernel
def posted(p: Postings, node: int, token: int, value: int) -> bool:
    """Whether a value is on the list of (node, token)."""
    row = find_list(p.table, node, token)
    if row < 0:
        return False
    first, last = list_bounds(p.table, row)
    for i in range(first, last):  # noqa: SIM110  # kernels have no generators
        if p.pool[i] == value:
            return True
    return False


def contents(p: Postings) -> dict[tuple[int, int], list[int]]:
    """Return every list by its (node, token), for `_check` and tests; directories are checked and left out."""
    rows = p.table[p.table[:, 0] >= 0]
    lists = {
        (key >> 32, key & _LENGTH): p.pool[start : start + (sizes & _LENGTH)].tolist()
        for key, start, sizes in rows.tolist()
    }
    directories = {node: lists.pop((node, token)) for node, token in list(lists) if token == DIRECTORY}
    if directories:
        assert {(node, token) for node, listed in directories.items() for token in listed} == lists.keys()
        assert sum(map(len, directories.values())) == len(lists), "a token is on a directory twice"
    return lists


def check_postings(p: Postings) -> None:
    """Assert every invariant."""
    rows = p.table[p.table[:, 0] >= 0]
    length, room = rows[:, 2] & _LENGTH, rows[:, 2] >> 32
    assert len(rows) == p.head[0]
    assert 3 * len(rows) <= 2 * len(p.table)
    assert ((length >= 1) & (length <= room)).all()
    assert room.sum() == p.head[1] - p.head[2], "dead room does not add up"
    assert p.head[1] <= p.pool.size
    order = np.argsort(rows[:, 1])
    assert (rows[order, 1][1:] >= (rows[:, 1] + room)[order][:-1]).all(), "lists overlap"
    for key in rows[:, 0].tolist():
        assert p.table[find_list(p.table, key >> 32, key & _LENGTH), 0] == key
