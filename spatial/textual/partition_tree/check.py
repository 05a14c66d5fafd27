"""The invariants of a partition tree, asserted by `_check()`: slow and obvious, for tests."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.textual.partition_tree.nodes import (
    BINS,
    DIRECTORY,
    HEADER,
    KEYWORD,
    QUERY,
    RECORD,
    ROOT,
    SHAPE,
    USED,
    WEIGHT,
    cell_region,
    children,
    find_cut,
    find_line,
    key_of,
    kind_of,
    node_words,
    spans,
    word_at,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.spatial.textual.partition_tree.nodes import Arena, Meta
    from contrada.spatial.textual.partition_tree.settings import Settings
    from contrada.spatial.textual.store import SubscriptionStore


def check_tree(arena: Arena, meta: Meta, store: SubscriptionStore, settings: Settings) -> None:
    """Assert that every slot is exactly where its keywords and box lead, and that no word of the arena is lost."""
    rows, real = store.rows, arena.view(np.float32)
    used: list[tuple[int, int]] = []
    everywhere = np.array([-np.inf, -np.inf, np.inf, np.inf])

    def walk(p: int, slots: set[int], offset: int, region: NDArray[np.float64]) -> None:
        """Node `p` holds exactly `slots`."""
        if p == 0:
            assert not slots
            return
        used.append((p, node_words(arena, p)))
        assert arena[p + WEIGHT] == len(slots)
        shape = int(arena[p + SHAPE])
        if kind_of(arena, p) == DIRECTORY:
            assert p == arena[ROOT]
            by_word: dict[int, set[int]] = {}
            for s in slots:
                by_word.setdefault(int(store.keywords(s)[-1]), set()).add(s)
            for word in range(shape):
                walk(int(arena[p + HEADER + word]), by_word.pop(word, set()), 1, region)
            assert not by_word
            return
        assert slots
        if kind_of(arena, p) == QUERY:
            assert len(slots) <= shape
            at = p + HEADER + shape
            records = slice(at, at + RECORD * len(slots))
            entries = arena[records].reshape(-1, RECORD)[:, 0].tolist()
            assert set(entries) == slots
            keys = arena[p + HEADER : p + HEADER + len(slots)].tolist()
            assert keys == [key_of(rows, s, offset, settings.rare) for s in entries]
            with np.errstate(over="ignore"):
                boxes = rows.boxes[entries].astype(np.float32)
            assert (boxes == real[records].reshape(-1, RECORD)[:, 1:]).all()
            return
        first, n = children(arena, p)
        inside: list[set[int]] = [set() for _ in range(n)]
        below = [(offset, region)] * n
        if kind_of(arena, p) == KEYWORD:
            low, high = arena[p + HEADER : p + HEADER + shape], arena[p + HEADER + shape : first]
            assert (low <= high).all()
            assert (high[:-1] < low[1:]).all()
            for s in slots:
                known = rows.length[s] <= offset
                inside[shape if known else find_cut(arena, p, word_at(rows, s, offset, settings.rare))].add(s)
            below = [(offset + 1 if b < shape and low[b] == high[b] else offset, region) for b in range(n)]
        else:
            columns, lines = shape & 0xFFFF, shape >> 16
            xs, ys = p + HEADER, p + HEADER + columns - 1
            assert (np.diff(real[xs:ys]) > 0).all()
            assert (np.diff(real[ys:first]) > 0).all()
            for s in slots:
                x1, y1, x2, y2 = rows.boxes[s]
                if spans(rows.boxes, s, region, settings.universe):
                    inside[n - 1].add(s)
                    continue
                for c in range(find_line(real, xs, columns - 1, x1), find_line(real, xs, columns - 1, x2) + 1):
                    for r in range(find_line(real, ys, lines - 1, y1), find_line(real, ys, lines - 1, y2) + 1):
                        inside[c * lines + r].add(s)
            cells = [cell_region(real, p, columns, lines, b // lines, b % lines, region) for b in range(n - 1)]
            below = [*((offset, cell) for cell in cells), (offset, region)]
        for b in range(n):
            walk(int(arena[first + b]), inside[b], *below[b])

    walk(int(arena[ROOT]), set(store.slots.tolist()), 0, everywhere)
    for b, head in enumerate(meta[BINS:].tolist()):
        while head:
            used.append((head, (4 + b % 4) << (b // 4)))
            head = int(arena[head])
    used = [*sorted(used), (int(meta[USED]), 0)]
    for (p, words), (q, _) in pairwise(used):
        assert p + words <= q, "blocks overlap"
