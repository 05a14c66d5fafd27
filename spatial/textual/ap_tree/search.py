"""Matching a message against an AP-tree ([AP-TREE], Algorithm 1), for points and boxes alike.

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

from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.storage.jit import bare_kernel, inlined_kernel, kernel
from contrada.spatial.textual.ap_tree.nodes import (
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


@inlined_kernel
def _holds(table: NDArray[np.int32], token: int) -> bool:
    """As `store.has_token`."""
    mask = table.size - 1
    h = ((token * 2654435761) >> 13) & mask
    while table[h] >= 0 and table[h] != token:
        h = (h + 1) & mask
    return bool(table[h] == token)


@inlined_kernel
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


@inlined_kernel
def _line(real: NDArray[np.float32], first: int, count: int, x: float) -> int:
    """As `ap_tree_nodes.find_line`."""
    n = 0
    for i in range(np.uint64(first), np.uint64(first + count)):
        n += 1 if real[i] <= x else 0
    return n


@kernel
def _mirrored(tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the tokens as `ap_tree_nodes.word_at` gives rarest keywords first: ascending again."""
    mirrored = np.empty(tokens.size, np.int32)
    for i in range(tokens.size):
        mirrored[i] = MIRROR - tokens[tokens.size - 1 - i]
    return mirrored


@bare_kernel
def walk(
    arena: Arena,
    real: NDArray[np.float32],
    boxes: NDArray[np.float64],
    start: NDArray[np.int64],
    length: NDArray[np.int32],
    keywords: NDArray[np.int32],
    tokens: NDArray[np.int32],
    table: NDArray[np.int32],
    box: NDArray[np.float64],
    stack: NDArray[np.int32],
    lows: NDArray[np.float32],
    found: NDArray[np.int32],
    state: NDArray[np.int64],
) -> None:
    """Visit what is on the stack until it is empty, or until `state` says that more room is needed."""
    top, matched, nodes, verified = state[TOP], state[MATCHED], state[NODES], state[VERIFIED]
    left, bottom, right, upper = box[0], box[1], box[2], box[3]
    x1, y1, x2, y2 = np.float32(left), np.float32(bottom), np.float32(right), np.float32(upper)
    room, rest = len(stack), tokens.size
    while top:
        p, eta = stack[top - 1, 0], stack[top - 1, 1]
        low_x, low_y = lows[top - 1, 0], lows[top - 1, 1]
        kind, shape = arena[p] & 3, arena[p + SHAPE]
        if kind == QUERY:
            count = arena[p + WEIGHT]
            if matched + count > found.size:
                state[MORE_FOUND] = matched + count
                break
            top -= 1
            nodes += 1
            verified += count
            keys = p + HEADER
            for i in range(count):
                key = arena[keys + i]
                if key >= 0 and not _holds(table, key >> 1):
                    continue
                at = keys + shape + RECORD * i
                slot, qx1, qy1, qx2, qy2 = arena[at], real[at + 1], real[at + 2], real[at + 3], real[at + 4]
                touches = (qx1 <= x2) & (qx2 >= x1) & (qy1 <= y2) & (qy2 >= y1) & (qx1 >= low_x) & (qy1 >= low_y)
                inside = (qx1 < x2) & (qx2 > x1) & (qy1 < y2) & (qy2 > y1) & (qx1 > low_x) & (qy1 > low_y)
                found[matched] = slot
                if key < 0:
                    # Added rather than branched on, since it cannot be predicted; that the two agree nearly always can.
                    matched += np.int64(inside)
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
                    while word >= first and _holds(table, keywords[word]):
                        word -= 1
                    if word >= first:
                        continue
                matched += 1
            continue
        more = (shape & 0xFFFF) * (shape >> 16) + 1
        if kind == KEYWORD:
            more = min(shape, rest - eta) + 2
        elif kind == DIRECTORY:
            more = rest
        if top + more > room:
            state[MORE_STACK] = top + more
            break
        top -= 1
        nodes += 1
        if kind == KEYWORD:
            low, high, child = p + HEADER, p + HEADER + shape, p + HEADER + 2 * shape
            if arena[child + shape]:
                stack[top, 0], stack[top, 1] = arena[child + shape], eta
                lows[top, 0], lows[top, 1] = low_x, low_y
                top += 1
            gap = -1
            cut = -1
            for i in range(eta, rest):
                word = tokens[i]
                c = _at_most(arena, low, shape, word) - 1
                if c >= 0 and word <= arena[high + c]:
                    if c != cut:
                        cut = c
                        q = arena[child + c]
                        if q:
                            single = arena[low + c] == arena[high + c]
                            stack[top, 0], stack[top, 1] = q, i + 1 if single else i
                            lows[top, 0], lows[top, 1] = low_x, low_y
                            top += 1
                elif gap < 0:
                    gap = i
            if gap >= 0 and arena[child + shape + 1]:
                stack[top, 0], stack[top, 1] = arena[child + shape + 1], gap
                lows[top, 0], lows[top, 1] = low_x, low_y
                top += 1
        elif kind == DIRECTORY:
            for i in range(rest):
                word = MIRROR - tokens[i]
                if word < shape:
                    q = arena[p + HEADER + word]
                    if q:
                        stack[top, 0], stack[top, 1] = q, i + 1
                        lows[top, 0], lows[top, 1] = low_x, low_y
                        top += 1
        else:
            columns, lines = shape & 0xFFFF, shape >> 16
            xs, ys = p + HEADER, p + HEADER + columns - 1
            child = ys + lines - 1
            c1, r1 = _line(real, xs, columns - 1, left), _line(real, ys, lines - 1, bottom)
            c2 = c1 if left == right else _line(real, xs, columns - 1, right)
            r2 = r1 if bottom == upper else _line(real, ys, lines - 1, upper)
            q = arena[child + columns * lines]
            if q:
                stack[top, 0], stack[top, 1] = q, eta
                lows[top, 0], lows[top, 1] = low_x, low_y
                top += 1
            for c in range(c1, c2 + 1):
                for r in range(r1, r2 + 1):
                    q = arena[child + c * lines + r]
                    if q:
                        stack[top, 0], stack[top, 1] = q, eta
                        # The first column visited begins at or before the message: what was demanded above it still is.
                        lows[top, 0] = low_x if c == c1 else real[xs + c - 1]
                        lows[top, 1] = low_y if r == r1 else real[ys + r - 1]
                        top += 1
    state[TOP], state[MATCHED], state[NODES], state[VERIFIED] = top, matched, nodes, verified


@kernel
def search_tree(
    arena: Arena, columns: Arrays, tokens: NDArray[np.int32], box: NDArray[np.float64], rare: bool
) -> tuple[NDArray[np.int32], int, int]:
    """Slots that match, each once; nodes visited; candidates verified."""
    boxes, start, length, keywords = columns
    real = arena.view(np.float32)
    table = token_table(tokens)
    if rare:
        tokens = _mirrored(tokens)
    found = np.empty(512, np.int32)
    stack, lows = np.empty((512, 2), np.int32), np.empty((512, 2), np.float32)
    state = np.zeros(6, np.int64)
    stack[0, 0], stack[0, 1] = arena[ROOT], 0
    lows[0, 0] = lows[0, 1] = -np.inf
    state[TOP] = 1 if arena[ROOT] else 0
    while state[TOP]:
        walk(arena, real, boxes, start, length, keywords, tokens, table, box, stack, lows, found, state)
        if state[MORE_FOUND] > found.size:
            matched = state[MATCHED]
            larger = np.empty(2 * state[MORE_FOUND], np.int32)
            larger[:matched] = found[:matched]
            found = larger
        if state[MORE_STACK] > len(stack):
            top, size = state[TOP], 2 * state[MORE_STACK]
            more_stack, more_lows = np.empty((size, 2), np.int32), np.empty((size, 2), np.float32)
            more_stack[:top], more_lows[:top] = stack[:top], lows[:top]
            stack, lows = more_stack, more_lows
    return found[: state[MATCHED]], state[NODES], state[VERIFIED]
