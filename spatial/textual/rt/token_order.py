"""In which order a subscription's keywords represent it: the strategies of [RT-TREE], section 4.2.

    random    by a hash of word and subscription
    df        frequent words first: small token sets, shared by many subscriptions
    idf       rare words first: what a message is least likely to have
    locality  rare first among the subscriptions of the same grid cell, ties by idf

An order is a pure function of a subscription and of statistics that stay as they are until the index is loaded anew,
so what one operation placed, another finds. Frequencies are of subscriptions, `df` and `counts` as of that loading.
For `locality` a subscription belongs to the cell of its box's centre (the paper says "locates in"), and the
frequencies are an array sorted by cell * 2**32 + word, searched by bisection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from contrada.errors import InvalidValue
from contrada.spatial.storage.jit import kernel
from contrada.spatial.textual.store import FEW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from contrada.spatial.textual.store import Rows

STRATEGIES = ("random", "df", "idf", "locality")
_RANDOM, _DF, _IDF, _LOCALITY = range(4)


class TokenOrder(NamedTuple):
    """A strategy and its statistics. `shape` is (strategy, cells per side)."""

    shape: NDArray[np.int64]
    df: NDArray[np.int32]
    universe: NDArray[np.float64]
    keys: NDArray[np.int64]
    counts: NDArray[np.int32]


@kernel
def _cell(order: TokenOrder, boxes: NDArray[np.float64], slot: int) -> int:
    side = order.shape[1]
    b, u = boxes[slot], order.universe
    # Halves first: the difference of two huge coordinates would overflow.
    fx = ((b[0] / 2 + b[2] / 2) / 2 - u[0] / 2) / max(u[2] / 2 - u[0] / 2, 1e-300)
    fy = ((b[1] / 2 + b[3] / 2) / 2 - u[1] / 2) / max(u[3] / 2 - u[1] / 2, 1e-300)
    column = int(min(max(fx, 0.0), 1.0) * (side - 1))
    row = int(min(max(fy, 0.0), 1.0) * (side - 1))
    return int(row * side + column)


@kernel
def _cell_keys(order: TokenOrder, rows: Rows, slots: NDArray[np.int32]) -> NDArray[np.int64]:
    total = 0
    for slot in slots:
        total += rows.length[slot]
    keys = np.empty(total, np.int64)
    written = 0
    for slot in slots:
        cell = _cell(order, rows.boxes, slot)
        for i in range(rows.start[slot], rows.start[slot] + rows.length[slot]):
            keys[written] = (np.int64(cell) << 32) | rows.keywords[i]
            written += 1
    return keys


@kernel
def ordered_tokens(order: TokenOrder, rows: Rows, slot: int) -> NDArray[np.int32]:
    """Return the slot's keywords, the one that represents it best first."""
    length = rows.length[slot]
    tokens = np.empty(length, np.int32)
    weights = np.empty(length, np.int64)
    cell = _cell(order, rows.boxes, slot) if order.shape[0] == _LOCALITY else 0
    for i in range(length):
        token = rows.keywords[rows.start[slot] + i]
        df = np.int64(order.df[token]) if token < order.df.size else np.int64(0)
        if order.shape[0] == _RANDOM:
            weight = ((np.int64(token) << 31 ^ np.int64(rows.ids[slot])) * 2654435761 >> 20) & 0xFFFFFF
        elif order.shape[0] == _DF:
            weight = -df
        else:
            weight = df
            if order.shape[0] == _LOCALITY:
                key = (np.int64(cell) << 32) | token
                at = np.searchsorted(order.keys, key)
                if at < order.keys.size and order.keys[at] == key:
                    weight += np.int64(order.counts[at]) << 32
        j = i
        while length <= FEW and j > 0 and weights[j - 1] > weight:
            weights[j], tokens[j] = weights[j - 1], tokens[j - 1]
            j -= 1
        weights[j], tokens[j] = weight, token
    return tokens if length <= FEW else tokens[np.argsort(weights, kind="mergesort")]


def measured_order(
    options: Mapping[str, Any], df: NDArray[np.int32], rows: Rows, slots: NDArray[np.int32]
) -> TokenOrder:
    """Take the statistics that a strategy needs from the stored subscriptions."""
    strategy, side = options["order"], options["grid"]
    if strategy not in STRATEGIES:
        raise InvalidValue(f"no token order is called {strategy!r}; choose one of: {', '.join(STRATEGIES)}")
    if not isinstance(side, int) or not 1 <= side <= 10_000:
        raise InvalidValue(f"grid: {side!r} cells per side; give an integer from 1 to 10,000")
    boxes = rows.boxes[slots]
    universe = np.concatenate([boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)]) if len(boxes) else np.zeros(4)
    shape = np.array([STRATEGIES.index(strategy), side])
    order = TokenOrder(shape, df.copy(), universe, np.empty(0, np.int64), np.empty(0, np.int32))
    if strategy == "locality":
        keys, counts = np.unique(_cell_keys(order, rows, slots), return_counts=True)
        order = order._replace(keys=keys, counts=counts.astype(np.int32))
    return order
