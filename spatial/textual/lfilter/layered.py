"""A static structure that takes changes: a layer built in bulk, a few later subscriptions beside it, and marks.

    order  int32 (n,)     subscription n of the layer in token-set order ([LFILTER], 3.1): its slot, -1 once removed
    boxes  float32 (n, 4) its box, rounded; rounding is monotone, so only equal numbers need the store's doubles
    later  int32 (m,)     slots that came after the layer was built; verified one by one
    where  int32 (slots,) a live slot's place: p in the layer, or -1 - i for i in `later`

Token-set order is lexicographic with the rarest keyword first (the paper's idf order), a prefix before what it begins.
The layer is built anew when `later` exceeds `LATER` and an eighth of it, or when half of it is marked, so n changes
cost O(n log n) in all; single ones may wait for a rebuild. The paper reserves ids and inserts into the trie instead,
which flat arrays cannot do cheaply; where stalls matter, use the AP-tree.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from contrada.errors import CorruptFile
from contrada.spatial.storage.jit import kernel
from contrada.spatial.storage.row_numbers import check_rows, check_shapes
from contrada.spatial.textual.base import StoredIndex
from contrada.spatial.textual.store import grow, has_token, token_table, verify

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from contrada.spatial.textual.store import Arrays, Rows

LATER = 512
NO, YES, ASK = 0, 1, 2


class Layer(NamedTuple):
    """What verification reads of a layer and of the store.

    Searches take this and a structure's arrays as plain tuples, and name them inside: entering compiled code with a
    named tuple takes twice as long.
    """

    order: NDArray[np.int32]
    boxes: NDArray[np.float32]
    exact: NDArray[np.float64]
    start: NDArray[np.int64]
    length: NDArray[np.int32]
    keywords: NDArray[np.int32]


@kernel
def token_label(rows: Rows, slot: int, i: int) -> int:
    """Return the i-th keyword in token-set order, as a number that ascends in that order."""
    return int(-rows.keywords[rows.start[slot] + rows.length[slot] - 1 - i])


@kernel
def _search_later(
    rows: Rows, later: NDArray[np.int32], tokens: NDArray[np.int32], box: NDArray[np.float64]
) -> tuple[NDArray[np.int32], int]:
    found = np.empty(later.size, np.int32)
    matched = verified = 0
    table = token_table(tokens)
    for slot in later:
        if has_token(table, rows.keywords[rows.start[slot] + rows.length[slot] - 1]):
            verified += 1
            if verify(table, rows, slot, box):
                found[matched] = slot
                matched += 1
    return found[:matched], verified


@kernel
def compare_boxes(qx1: float, qy1: float, qx2: float, qy2: float, x1: float, y1: float, x2: float, y2: float) -> int:
    """Tell from rounded boxes whether the originals meet: NO, YES, or ASK the store's doubles.

    Takes numbers, not arrays: an array that is bound to a name in a loop costs two atomic operations each time.
    """
    # Bitwise, so that four unpredictable branches are one that is nearly always taken.
    if not (qx1 <= x2) & (qx2 >= x1) & (qy1 <= y2) & (qy2 >= y1):
        return NO
    return YES if (qx1 < x2) & (qx2 > x1) & (qy1 < y2) & (qy2 > y1) else ASK


@kernel
def first_at_least(values: NDArray[np.int32], begin: int, end: int, value: int) -> int:
    """Where in a sorted run the first value at or above `value` is."""
    while begin < end:
        middle = (begin + end) >> 1
        if values[middle] < value:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def as_labels(tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return a message's tokens as `token_label` gives keywords: ascending, the rarest first."""
    labels = np.empty(tokens.size, np.int32)
    for i in range(tokens.size):
        labels[i] = -tokens[tokens.size - 1 - i]
    return labels


@kernel
def as_float32(box: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return a message's box as `rounded` does boxes."""
    near = np.empty(4, np.float32)
    for i in range(4):
        near[i] = box[i]
    return near


def rounded(boxes: NDArray[np.float64]) -> NDArray[np.float32]:
    """Boxes as float32; what is too large becomes infinite, which compares as it should."""
    with np.errstate(over="ignore"):
        return boxes.astype(np.float32)


class LayeredIndex(StoredIndex):
    """Base of the indexes of [LFILTER]: they define how a layer is built, searched, stored and checked."""

    order: NDArray[np.int32]
    boxes: NDArray[np.float32]

    def _layer(self) -> Arrays:
        """Return the arrays of `Layer`."""
        return (self.order, self.boxes, *self.store.columns)

    def _build(self) -> None:
        self._index(self.store.slots)

    def _index(self, slots: NDArray[np.int32]) -> None:
        """Build the layer over `slots`; nothing is left beside it."""
        self._later = np.zeros(LATER, np.int32)
        self._later_count = self._dead = 0
        self.order = self._build_layer(slots)
        self.boxes = rounded(self.store.rows.boxes[self.order])
        self._where = np.zeros(self.store.rows.ids.size, np.int32)
        self._where[self.order] = np.arange(self.order.size, dtype=np.int32)

    def _insert(self, slot: int) -> None:
        self._where = grow(self._where, slot + 1)
        self._later = grow(self._later, self._later_count + 1)
        self._later[self._later_count] = slot
        self._later_count += 1
        self._where[slot] = -self._later_count
        if self._later_count > LATER + self.order.size // 8:
            self._build()

    def _remove(self, slot: int) -> None:
        place = int(self._where[slot])
        if place >= 0:
            self.order[place] = -1
            self._dead += 1
            if self._dead > LATER and 2 * self._dead > self.order.size:
                slots = self.store.slots
                self._index(slots[slots != slot])
        else:
            self._later_count -= 1
            last = self._later[self._later_count]
            self._later[-1 - place] = last
            self._where[last] = place

    def _search(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        slots, nodes, verified = self._search_layer(tokens, box)
        if self._later_count:
            more, checked = _search_later(self.store.rows, self._later[: self._later_count], tokens, box)
            slots, verified = np.concatenate([slots, more]), verified + checked
        return slots, nodes, verified

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "order": self.order,
            "later": self._later[: self._later_count],
            **{f"layer.{name}": array for name, array in self._layer_arrays().items()},
        }

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.order, self._later = arrays["order"], arrays["later"]
        check_shapes(self.name, arrays, {"order": (np.int32, ()), "later": (np.int32, ())})
        check_rows(f"{self.name}: order", self.order, self.store.used, -1)
        check_rows(f"{self.name}: later", self._later, self.store.used)
        self._later_count = self._later.size
        live = self.order[self.order >= 0]
        self._dead = self.order.size - live.size
        if live.size + self._later_count != len(self.store):
            raise CorruptFile(
                f"{self.name}: {live.size + self._later_count} subscriptions where {len(self.store)} are stored"
            )
        self.boxes = rounded(self.store.rows.boxes[self.order])
        self._where = np.zeros(self.store.rows.ids.size, np.int32)
        self._where[live] = np.flatnonzero(self.order >= 0)
        self._where[self._later] = -1 - np.arange(self._later_count)
        self._restore_layer({name[6:]: array for name, array in arrays.items() if name.startswith("layer.")})

    def _check_structure(self) -> None:
        live = self.order[self.order >= 0]
        later = self._later[: self._later_count]
        assert sorted([*live.tolist(), *later.tolist()]) == self.store.slots.tolist()
        assert self._dead == self.order.size - live.size
        assert (self.order[self._where[live]] == live).all()
        assert (later[-1 - self._where[later]] == later).all()
        assert (self.boxes[self.order >= 0] == rounded(self.store.rows.boxes[live])).all()
        self._check_layer()

    @abstractmethod
    def _build_layer(self, slots: NDArray[np.int32]) -> NDArray[np.int32]:
        """Build the structure and return the slots in token-set order."""

    @abstractmethod
    def _search_layer(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        """As `_search`, for the layer alone."""

    @abstractmethod
    def _layer_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what to save of the layer."""

    @abstractmethod
    def _restore_layer(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take it back."""

    @abstractmethod
    def _check_layer(self) -> None:
        """Assert the layer's invariants."""
