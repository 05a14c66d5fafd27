"""Matching a message against an AP-tree (paper 4, Algorithm 1), for points and boxes alike.

A keyword node sends the message to every cut that one of its remaining tokens falls into, with the position after
that token (at it, when the cut holds several words), to the dummy cut, and to the gap when a token lies in no cut. A
spatial node sends it to every cell that its box meets, and to the dummy cell.

Cells are half-open, [line, next line), for subscriptions and messages alike; the outermost reach to infinity.

A subscription may lie in several cells that a box visits. It is reported only where their common part begins: in the
cell that holds (max of both x1, max of both y1), which is exactly one. Going right to a cell whose lower line is
above the message's own x1, that means the subscription's x1 must not be below that line; `low` carries the line down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial._jit import kernel
from contrada.spatial.textual.ap_tree_nodes import (
    HEADER,
    KEYWORD,
    QUERY,
    ROOT,
    SHAPE,
    WEIGHT,
    Arena,
    find_line,
    kind_of,
)
from contrada.spatial.textual.store import has_token, meets, token_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.textual.store import Rows


@kernel
def _first_at_least(tokens: NDArray[np.int32], begin: int, word: int) -> int:
    a, b = begin, tokens.size
    while a < b:
        middle = (a + b) >> 1
        if tokens[middle] < word:
            a = middle + 1
        else:
            b = middle
    return a


@kernel
def scan_leaf(
    arena: Arena,
    real: NDArray[np.float32],
    p: int,
    boxes: NDArray[np.float64],
    start: NDArray[np.int64],
    length: NDArray[np.int32],
    keywords: NDArray[np.int32],
    table: NDArray[np.int32],
    corners: NDArray[np.float32],
    box: NDArray[np.float64],
    found: NDArray[np.int32],
    matched: int,
) -> int:
    """Append the slots of a query node that match; returns how many are found by then.

    A loop of its own over plain arrays: within the walk, or over a tuple of arrays, reference counts are kept for
    every candidate, which makes it several times slower.
    """
    x1, y1, x2, y2, low_x, low_y = corners[0], corners[1], corners[2], corners[3], corners[4], corners[5]
    shape = arena[p + SHAPE]
    keys, slots = p + HEADER, p + HEADER + shape
    for i in range(arena[p + WEIGHT]):
        key = arena[keys + i]
        if key >= 0 and not has_token(table, key >> 1):
            continue
        at = slots + shape + i
        qx1, qy1, qx2, qy2 = real[at], real[at + shape], real[at + 2 * shape], real[at + 3 * shape]
        # Bitwise, so that six unpredictable branches are one.
        if not (qx1 <= x2) & (qx2 >= x1) & (qy1 <= y2) & (qy2 >= y1) & (qx1 >= low_x) & (qy1 >= low_y):
            continue
        slot = arena[slots + i]
        sure = (qx1 < x2) & (qx2 > x1) & (qy1 < y2) & (qy2 > y1) & (qx1 > low_x) & (qy1 > low_y)
        if not sure and not (meets(boxes, slot, box) and boxes[slot, 0] >= low_x and boxes[slot, 1] >= low_y):
            continue
        if key >= 0 and key & 1:
            word = start[slot] + length[slot] - 2
            while word >= start[slot] and has_token(table, keywords[word]):
                word -= 1
            if word >= start[slot]:
                continue
        found[matched] = slot
        matched += 1
    return matched


@kernel
def search_tree(
    arena: Arena, rows: Rows, tokens: NDArray[np.int32], box: NDArray[np.float64]
) -> tuple[NDArray[np.int32], int, int]:
    """Slots that match, each once; nodes visited; candidates verified."""
    real = arena.view(np.float32)
    table = token_table(tokens)
    corners = np.empty(6, np.float32)  # the message's box, and the lower lines that answers must not be below
    for i in range(4):
        corners[i] = box[i]
    found = np.empty(256, np.int32)
    matched = nodes = verified = 0
    capacity = 1024
    stack = np.empty((capacity, 2), np.int32)
    lows = np.empty((capacity, 2), np.float32)
    stack[0, 0], stack[0, 1] = arena[ROOT], 0
    lows[0, 0] = lows[0, 1] = -np.inf
    top = 1 if arena[ROOT] else 0
    while top:
        top -= 1
        p, eta = stack[top, 0], stack[top, 1]
        low_x, low_y = lows[top, 0], lows[top, 1]
        corners[4], corners[5] = low_x, low_y
        kind, shape = kind_of(arena, p), arena[p + SHAPE]
        nodes += 1
        if kind == QUERY:
            count = arena[p + WEIGHT]
            verified += count
            if matched + count > found.size:
                larger = np.empty(2 * (matched + count), np.int32)
                larger[:matched] = found[:matched]
                found = larger
            matched = scan_leaf(
                arena, real, p, rows.boxes, rows.start, rows.length, rows.keywords, table, corners, box, found, matched
            )
            continue
        room = top + 2 + (shape if kind == KEYWORD else (shape & 0xFFFF) * (shape >> 16))
        if room > capacity:
            capacity = 2 * room
            more_stack, more_lows = np.empty((capacity, 2), np.int32), np.empty((capacity, 2), np.float32)
            more_stack[:top], more_lows[:top] = stack[:top], lows[:top]
            stack, lows = more_stack, more_lows
        if kind == KEYWORD:
            low, high, child = p + HEADER, p + HEADER + shape, p + HEADER + 2 * shape
            if arena[child + shape]:
                stack[top, 0], stack[top, 1] = arena[child + shape], eta
                lows[top, 0], lows[top, 1] = low_x, low_y
                top += 1
            gap = -1
            if (tokens.size - eta) * 4 < shape:
                # Few tokens: each looks for its cut, from where the one before was found.
                begin = 0
                cut = -1
                for i in range(eta, tokens.size):
                    word = tokens[i]
                    end = shape
                    while begin < end:
                        middle = (begin + end) >> 1
                        if arena[low + middle] <= word:
                            begin = middle + 1
                        else:
                            end = middle
                    if begin > 0 and word <= arena[high + begin - 1]:
                        if cut != begin - 1:
                            cut = begin - 1
                            single = arena[low + cut] == arena[high + cut]
                            stack[top, 0], stack[top, 1] = arena[child + cut], i + 1 if single else i
                            lows[top, 0], lows[top, 1] = low_x, low_y
                            top += 1 if arena[child + cut] else 0
                    elif gap < 0:
                        gap = i
            else:
                # Many tokens: each cut looks for its first token.
                i = eta
                for cut in range(shape):
                    j = _first_at_least(tokens, i, arena[low + cut])
                    if j > i and gap < 0:
                        gap = i
                    i = j
                    if i == tokens.size:
                        break
                    if tokens[i] <= arena[high + cut]:
                        single = arena[low + cut] == arena[high + cut]
                        stack[top, 0], stack[top, 1] = arena[child + cut], i + 1 if single else i
                        lows[top, 0], lows[top, 1] = low_x, low_y
                        top += 1 if arena[child + cut] else 0
                        i = i + 1 if single else _first_at_least(tokens, i, arena[high + cut] + 1)
                if i < tokens.size and gap < 0:
                    gap = i
            if gap >= 0 and arena[child + shape + 1]:
                stack[top, 0], stack[top, 1] = arena[child + shape + 1], gap
                lows[top, 0], lows[top, 1] = low_x, low_y
                top += 1
        else:
            columns, lines = shape & 0xFFFF, shape >> 16
            xs, ys = p + HEADER, p + HEADER + columns - 1
            child = ys + lines - 1
            c1, c2 = find_line(real, xs, columns - 1, box[0]), find_line(real, xs, columns - 1, box[2])
            r1, r2 = find_line(real, ys, lines - 1, box[1]), find_line(real, ys, lines - 1, box[3])
            if arena[child + columns * lines]:
                stack[top, 0], stack[top, 1] = arena[child + columns * lines], eta
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
    return found[:matched], nodes, verified
