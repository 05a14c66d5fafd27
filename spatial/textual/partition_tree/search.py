"""Matching a message against a partition tree ([AP-TREE], Algorithm 1), for points and boxes alike.

A keyword node sends the message to every cut that one of its remaining tokens falls into, with the position after
that token (at it, when the cut holds several words), to the dummy cut, and to the gap when a token lies in no cut. A
spatial node sends it to every cell that its box meets, and to the dummy cell.

Cells are half-open, [line, next line), for subscriptions and messages alike; the outermost reach to infinity.

A subscription may lie in several cells that a box visits. It is reported only where their common part begins: in the
cell that holds (max of both x1, max of both y1), which is exactly one. Going right to a cell whose lower line is
above the message's own x1, that means the subscription's x1 must not be below that line; `low` carries the line down.

The walk allocates nothing, so that no references are counted on the way: where the stack or the answer is too short
it returns, and `search_tree` calls it again with larger ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contrada.spatial.storage.jit import bare_inline_kernel, bare_kernel, inline_kernel, kernel
from contrada.spatial.textual.partition_tree.nodes import (
    DIRECTORY,
    HEADER,
    KEYWORD,
    MIRROR,
    QUERY,
    RECORD,
    ROOT,
    SHAPE,
    WEIGHT,
    Arena,
)
from contrada.spatial.textual.store import token_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.textual.store import Arrays

MANY = 512
TOP, MATCHED, NODES, VERIFIED, MORE_STACK, MORE_FOUND = range(6)  # the walk's state


class Message(NamedTuple):
    """What is searched for."""

    tokens: NDArray[np.int32]  # ascending as the tree's nodes write words
    table: NDArray[np.int32]  # the same as a hash set
    box: tuple[float, float, float, float]


class Stack(NamedTuple):
    """Nodes still to be visited."""

    nodes: NDArray[np.int32]  # (room, 2): pointer, position of the first token that is not used up on the way
    lows: NDArray[np.float32]  # (room, 2): a subscription's x1 and y1 must not be below these


@bare_inline_kernel
def _holds(table: NDArray[np.int32], token: int) -> bool:
    """As `store.has_token`."""
    mask = table.size - 1
    h = ((token * 2654435761) >> 13) & mask
    while table[h] >= 0 and table[h] != token:
        h = (h + 1) & mask
    return bool(table[h] == token)


@bare_inline_kernel
def _at_most(arena: Arena, first: int, count: int, word: int) -> int:
    """How many of an ascending run are at most `word`. Few are compared all, since that needs no branch."""
    n = 0
    while count > MANY:
        half = count >> 1
        if arena[first + half - 1] <= word:
            n += half
            first += half
            count -= half
        else:
            count = half
    for i in range(np.uint64(first), np.uint64(first + count)):
        n += 1 if arena[i] <= word else 0
    return n


@bare_inline_kernel
def _line(real: NDArray[np.float32], first: int, count: int, x: float) -> int:
    """As `nodes.find_line`, without branches."""
    n = 0
    for i in range(np.uint64(first), np.uint64(first + count)):
        n += 1 if real[i] <= x else 0
    return n


@kernel
def _mirror(tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the tokens as `nodes.word_at` gives rarest keywords first: ascending again."""
    mirrored = np.empty(tokens.size, np.int32)
    for i in range(tokens.size):
        mirrored[i] = MIRROR - tokens[tokens.size - 1 - i]
    return mirrored


@bare_inline_kernel
def _push(stack: Stack, top: int, node: int, eta: int, low_x: float, low_y: float) -> int:
    stack.nodes[top, 0], stack.nodes[top, 1] = node, eta
    stack.lows[top, 0], stack.lows[top, 1] = low_x, low_y
    return top + 1


@bare_inline_kernel
def _read_leaf(
    arena: Arena,
    real: NDArray[np.float32],
    columns: Arrays,
    message: Message,
    p: int,
    low_x: float,
    low_y: float,
    found: NDArray[np.int32],
    matched: int,
) -> int:
    """Write the slots of a query node that match to `found`, which has room; returns how many are there then."""
    boxes, start, length, keywords = columns
    left, bottom, right, upper = message.box
    x1, y1, x2, y2 = np.float32(left), np.float32(bottom), np.float32(right), np.float32(upper)
    keys = p + HEADER
    records = keys + arena[p + SHAPE]
    for i in range(arena[p + WEIGHT]):
        key = arena[keys + i]
        if key >= 0 and not _holds(message.table, key >> 1):
            continue
        at = records + RECORD * i
        slot, qx1, qy1, qx2, qy2 = arena[at], real[at + 1], real[at + 2], real[at + 3], real[at + 4]
        touches = (qx1 <= x2) & (qx2 >= x1) & (qy1 <= y2) & (qy2 >= y1) & (qx1 >= low_x) & (qy1 >= low_y)
        inside = (qx1 < x2) & (qx2 > x1) & (qy1 < y2) & (qy2 > y1) & (qx1 > low_x) & (qy1 > low_y)
        found[matched] = slot
        if key < 0:
            # Added rather than branched on, since it cannot be predicted; that the two agree nearly always can.
            matched += int(inside)
            if touches == inside:
                continue
        elif not touches:
            continue
        if not inside and not (
            boxes[slot, 0] <= right
            and boxes[slot, 2] >= left
            and boxes[slot, 1] <= upper
            and boxes[slot, 3] >= bottom
            and boxes[slot, 0] >= low_x
            and boxes[slot, 1] >= low_y
        ):
            continue
        if key >= 0 and key & 1:
            first = start[slot]
            word = first + length[slot] - 1
            while word >= first and _holds(message.table, keywords[word]):
                word -= 1
            if word >= first:
                continue
        matched += 1
    return matched


@bare_inline_kernel
def _push_cuts(
    arena: Arena, tokens: NDArray[np.int32], p: int, eta: int, low_x: float, low_y: float, stack: Stack, top: int
) -> int:
    """Push the children of a keyword node that the tokens from `eta` on lead to."""
    cuts = arena[p + SHAPE]
    low, high, child = p + HEADER, p + HEADER + cuts, p + HEADER + 2 * cuts
    if arena[child + cuts]:
        top = _push(stack, top, arena[child + cuts], eta, low_x, low_y)
    gap = -1
    cut = -1
    for i in range(eta, tokens.size):
        word = tokens[i]
        c = _at_most(arena, low, cuts, word) - 1
        if c >= 0 and word <= arena[high + c]:
            if c != cut:
                cut = c
                q = arena[child + c]
                if q:
                    single = arena[low + c] == arena[high + c]
                    top = _push(stack, top, q, i + 1 if single else i, low_x, low_y)
        elif gap < 0:
            gap = i
    if gap >= 0 and arena[child + cuts + 1]:
        top = _push(stack, top, arena[child + cuts + 1], gap, low_x, low_y)
    return top


@bare_inline_kernel
def _push_words(
    arena: Arena, tokens: NDArray[np.int32], p: int, low_x: float, low_y: float, stack: Stack, top: int
) -> int:
    """Push the children of a directory under the message's tokens."""
    for i in range(tokens.size):
        word = MIRROR - tokens[i]
        if word < arena[p + SHAPE]:
            q = arena[p + HEADER + word]
            if q:
                top = _push(stack, top, q, i + 1, low_x, low_y)
    return top


@bare_inline_kernel
def _push_cells(
    arena: Arena,
    real: NDArray[np.float32],
    box: tuple[float, float, float, float],
    p: int,
    eta: int,
    low_x: float,
    low_y: float,
    stack: Stack,
    top: int,
) -> int:
    """Push the dummy cell of a spatial node and the cells that the message's box meets."""
    left, bottom, right, upper = box
    columns, lines = arena[p + SHAPE] & 0xFFFF, arena[p + SHAPE] >> 16
    xs, ys = p + HEADER, p + HEADER + columns - 1
    child = ys + lines - 1
    c1, r1 = _line(real, xs, columns - 1, left), _line(real, ys, lines - 1, bottom)
    c2 = c1 if left == right else _line(real, xs, columns - 1, right)
    r2 = r1 if bottom == upper else _line(real, ys, lines - 1, upper)
    q = arena[child + columns * lines]
    if q:
        top = _push(stack, top, q, eta, low_x, low_y)
    for c in range(c1, c2 + 1):
        for r in range(r1, r2 + 1):
            q = arena[child + c * lines + r]
            if q:
                # The first column visited begins at or before the message: what was demanded above it still is.
                x = low_x if c == c1 else real[xs + c - 1]
                y = low_y if r == r1 else real[ys + r - 1]
                top = _push(stack, top, q, eta, x, y)
    return top


@bare_kernel
def walk(
    arena: Arena,
    real: NDArray[np.float32],
    columns: Arrays,
    message: Message,
    stack: Stack,
    found: NDArray[np.int32],
    state: NDArray[np.int64],
) -> None:
    """Visit what is on the stack until it is empty, or until `state` says that more room is needed."""
    top, matched, nodes, verified = state[TOP], state[MATCHED], state[NODES], state[VERIFIED]
    room, tokens = len(stack.nodes), message.tokens
    while top:
        p, eta = stack.nodes[top - 1, 0], stack.nodes[top - 1, 1]
        low_x, low_y = stack.lows[top - 1, 0], stack.lows[top - 1, 1]
        kind, shape = arena[p] & 3, arena[p + SHAPE]
        if kind == QUERY:
            count = arena[p + WEIGHT]
            if matched + count > found.size:
                state[MORE_FOUND] = matched + count
                break
            top -= 1
            nodes += 1
            verified += count
            matched = _read_leaf(arena, real, columns, message, p, low_x, low_y, found, matched)
            continue
        more = (shape & 0xFFFF) * (shape >> 16) + 1
        if kind == KEYWORD:
            more = min(shape, tokens.size - eta) + 2
        elif kind == DIRECTORY:
            more = tokens.size
        if top + more > room:
            state[MORE_STACK] = top + more
            break
        top -= 1
        nodes += 1
        if kind == KEYWORD:
            top = _push_cuts(arena, tokens, p, eta, low_x, low_y, stack, top)
        elif kind == DIRECTORY:
            top = _push_words(arena, tokens, p, low_x, low_y, stack, top)
        else:
            top = _push_cells(arena, real, message.box, p, eta, low_x, low_y, stack, top)
    state[TOP], state[MATCHED], state[NODES], state[VERIFIED] = top, matched, nodes, verified


@inline_kernel
def _visit(
    arena: Arena,
    real: NDArray[np.float32],
    columns: Arrays,
    message: Message,
    stack: Stack,
    found: NDArray[np.int32],
    state: NDArray[np.int64],
) -> tuple[Stack, NDArray[np.int32]]:
    """Walk from the root to the end, with more room where that is needed; what is found is behind what was."""
    stack.nodes[0, 0], stack.nodes[0, 1] = arena[ROOT], 0
    stack.lows[0, 0] = stack.lows[0, 1] = -np.inf
    state[TOP] = 1 if arena[ROOT] else 0
    while state[TOP]:
        walk(arena, real, columns, message, stack, found, state)
        if state[MORE_FOUND] > found.size:
            matched = state[MATCHED]
            larger = np.empty(2 * state[MORE_FOUND], np.int32)
            larger[:matched] = found[:matched]
            found = larger
        if state[MORE_STACK] > len(stack.nodes):
            top, size = state[TOP], 2 * state[MORE_STACK]
            nodes, lows = np.empty((size, 2), np.int32), np.empty((size, 2), np.float32)
            nodes[:top], lows[:top] = stack.nodes[:top], stack.lows[:top]
            stack = Stack(nodes, lows)
    return stack, found


@inline_kernel
def _message(tokens: NDArray[np.int32], box: NDArray[np.float64], rare: bool) -> Message:
    table = token_table(tokens)
    if rare:
        tokens = _mirror(tokens)
    return Message(tokens, table, (box[0], box[1], box[2], box[3]))


@kernel
def search_tree(
    arena: Arena, columns: Arrays, tokens: NDArray[np.int32], box: NDArray[np.float64], rare: bool
) -> tuple[NDArray[np.int32], int, int]:
    """Slots that match, each once; nodes visited; candidates verified."""
    found = np.empty(512, np.int32)
    stack = Stack(np.empty((512, 2), np.int32), np.empty((512, 2), np.float32))
    state = np.zeros(6, np.int64)
    _, found = _visit(arena, arena.view(np.float32), columns, _message(tokens, box, rare), stack, found, state)
    return found[: state[MATCHED]], state[NODES], state[VERIFIED]


@kernel
def search_tree_many(
    arena: Arena,
    columns: Arrays,
    tokens: NDArray[np.int32],
    ends: NDArray[np.int64],
    boxes: NDArray[np.float64],
    rare: bool,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """As `search_tree` of many messages, whose tokens end at `ends`: slots, and where each message's end."""
    real = arena.view(np.float32)
    found = np.empty(4096, np.int32)
    stack = Stack(np.empty((512, 2), np.int32), np.empty((512, 2), np.float32))
    state = np.zeros(6, np.int64)
    until = np.empty(ends.size, np.int64)
    start = 0
    for n in range(ends.size):
        message = _message(tokens[start : ends[n]], boxes[n], rare)
        stack, found = _visit(arena, real, columns, message, stack, found, state)
        start, until[n] = ends[n], state[MATCHED]
    return found[: state[MATCHED]], until
