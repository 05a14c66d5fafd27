"""The subscriptions themselves, once, for whichever index is built over them.

A subscription lives in a slot. Indexes hold slots and nothing else; slots of removed subscriptions are used again.

    ids       int32   (c,)     the caller's id; -1 in a free slot
    boxes     float64 (c, 4)   closed box x1, y1, x2, y2
    start     int64   (c,)     where the slot's keywords begin
    length    int32   (c,)     how many there are; at least one, since no keywords are stored as the wildcard
    keywords  int32   (k,)     word ids, ascending within a subscription: frequent first, rarest last

c is a capacity: slots at or beyond `used` were never filled. Removal leaves a dead run in `keywords`; the runs are
compacted when the array is full and at least a third of it is dead, so n insertions and removals cost O(n) and memory
stays proportional to what is alive. About 60 bytes per subscription of three keywords, plus 6 for the id map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from contrada.errors import InvalidValue
from contrada.spatial.storage.growing import longer
from contrada.spatial.storage.jit import kernel
from contrada.spatial.textual.slot_map import drop_slot, enter_slots, find_slot, table_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Arrays = tuple[NDArray[Any], ...]

FEW = 32  # keywords that are sorted by insertion


class Rows(NamedTuple):
    """The store's arrays, as kernels take them."""

    ids: NDArray[np.int32]
    boxes: NDArray[np.float64]
    start: NDArray[np.int64]
    length: NDArray[np.int32]
    keywords: NDArray[np.int32]


@kernel
def token_table(tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return a message's tokens as a hash set for `has_token`: at most a quarter full, so small."""
    size = 16
    while size < 4 * tokens.size:
        size *= 2
    table = np.full(size, -1, np.int32)
    for token in tokens:
        h = ((token * 2654435761) >> 13) & (size - 1)
        while table[h] >= 0:
            h = (h + 1) & (size - 1)
        table[h] = token
    return table


@kernel
def has_token(table: NDArray[np.int32], token: int) -> bool:
    """Whether the message has the token."""
    h = ((token * 2654435761) >> 13) & (table.size - 1)
    while table[h] >= 0:
        if table[h] == token:
            return True
        h = (h + 1) & (table.size - 1)
    return False


@kernel
def has_all(table: NDArray[np.int32], keywords: NDArray[np.int32], first: int, length: int) -> bool:
    """Whether the message has every keyword of a run. Rarest first: a miss is likeliest there."""
    for i in range(first + length - 1, first - 1, -1):  # noqa: SIM110  # kernels have no generators
        if not has_token(table, keywords[i]):
            return False
    return True


@kernel
def meets(boxes: NDArray[np.float64], row: int, box: NDArray[np.float64]) -> bool:
    """Whether the closed box in a row and the message's closed box have a point in common (interval test)."""
    return bool(
        boxes[row, 0] <= box[2] and box[0] <= boxes[row, 2] and boxes[row, 1] <= box[3] and box[1] <= boxes[row, 3]
    )


@kernel
def verify(table: NDArray[np.int32], rows: Rows, slot: int, box: NDArray[np.float64]) -> bool:
    """Whether the slot's subscription matches the message.

    Not for inner loops: passing all the store's arrays costs more than the test. Take the arrays out of `rows` first,
    then ask `meets` and `has_all`.
    """
    return meets(rows.boxes, slot, box) and has_all(table, rows.keywords, rows.start[slot], rows.length[slot])


@kernel
def as_slots(found: list[np.int32]) -> NDArray[np.int32]:
    """Return a kernel's list of slots as an array. Lists take appends in loops better than arrays do."""
    slots = np.empty(len(found), np.int32)
    for i in range(slots.size):
        slots[i] = found[i]
    return slots


@kernel
def _sort_run(words: NDArray[np.int32], first: int, end: int) -> None:
    """Sort a run in place: by insertion where it is short, as nearly all are."""
    if end - first > FEW:
        words[first:end] = np.sort(words[first:end])
        return
    for i in range(first + 1, end):
        word = words[i]
        j = i
        while j > first and words[j - 1] > word:
            words[j] = words[j - 1]
            j -= 1
        words[j] = word


@kernel
def _normalise(offsets: NDArray[np.int64], keywords: NDArray[np.int32], df: NDArray[np.int32], rows: Rows) -> int:
    """Copy keyword runs into `rows`, sorted and without repeats; returns how many were written."""
    written = 0
    for slot in range(offsets.size - 1):
        first = written
        end = first + offsets[slot + 1] - offsets[slot]
        rows.keywords[first:end] = keywords[offsets[slot] : offsets[slot + 1]]
        _sort_run(rows.keywords, first, end)
        for i in range(first, end):
            if i == first or rows.keywords[i] != rows.keywords[written - 1]:
                rows.keywords[written] = rows.keywords[i]
                written += 1
        if written == first:
            rows.keywords[written] = 0
            written += 1
        for i in range(first, written):
            df[rows.keywords[i]] += 1
        rows.start[slot] = first
        rows.length[slot] = written - first
    return written


@kernel
def _renumber(rows: Rows, used: int, rank: NDArray[np.int32]) -> None:
    """Replace every keyword by its rank and sort the runs again."""
    for slot in range(used):
        first = rows.start[slot]
        end = first + rows.length[slot]
        for i in range(first, end):
            rows.keywords[i] = rank[rows.keywords[i]]
        _sort_run(rows.keywords, first, end)


@kernel
def _compact(rows: Rows, used: int, keywords: NDArray[np.int32]) -> int:
    """Copy the live runs one after another into `keywords`; returns how many words they are."""
    written = 0
    for slot in range(used):
        if rows.ids[slot] >= 0:
            first = rows.start[slot]
            for i in range(rows.length[slot]):
                keywords[written + i] = rows.keywords[first + i]
            rows.start[slot] = written
            written += rows.length[slot]
        else:
            rows.start[slot] = rows.length[slot] = 0  # its run is gone: a saved store must not speak of it
    return written


def grow(array: NDArray[Any], needed: int, fill: int = 0) -> NDArray[Any]:
    """`array` itself, or one in its place with room for `needed` rows and half as many again, new rows filled."""
    if needed <= len(array):
        return array
    larger = longer(array, max(16, needed + needed // 2))
    if fill:
        larger[len(array) :] = fill
    return larger


class SubscriptionStore:
    """Slots, their contents, and the map from ids to slots."""

    @property
    def columns(self) -> Arrays:
        """Boxes, starts, lengths and keywords, as searches take them.

        A plain tuple: entering compiled code with a named one takes twice as long.
        """
        return self.rows[1:]

    def __init__(self) -> None:
        self.rows = Rows(
            np.full(16, -1, np.int32),
            np.zeros((16, 4)),
            np.zeros(16, np.int64),
            np.zeros(16, np.int32),
            np.zeros(64, np.int32),
        )
        self.used = 0
        self._words_used = 0
        self._words_alive = 0
        self._free: list[int] = []
        self._map = np.full(16, -1, np.int32)

    def __len__(self) -> int:
        return self.used - len(self._free)

    @property
    def slots(self) -> NDArray[np.int32]:
        """All live slots, ascending."""
        return np.flatnonzero(self.rows.ids[: self.used] >= 0).astype(np.int32)

    def slot(self, id: int) -> int:
        """Return the slot of an id, or -1."""
        return find_slot(self._map, self.rows.ids, id)

    def keywords(self, slot: int) -> NDArray[np.int32]:
        """Return the slot's word ids, ascending."""
        first = self.rows.start[slot]
        return self.rows.keywords[first : first + self.rows.length[slot]]

    def fill(
        self,
        ids: NDArray[np.int32],
        offsets: NDArray[np.int64],
        keywords: NDArray[np.int32],
        words: int,
        boxes: NDArray[np.float64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Fill an empty store in bulk: subscription i has `keywords[offsets[i]:offsets[i+1]]`, each in 1..words.

        Words are renumbered by descending frequency. Returns which given word each id from 1 on is, unused words
        left out, and the frequency of each id from 0, the wildcard's, on.
        """
        n = ids.size
        room = keywords.size + int(np.count_nonzero(offsets[1:] == offsets[:-1]))
        self.rows = Rows(ids, boxes, np.zeros(n, np.int64), np.zeros(n, np.int32), np.zeros(room, np.int32))
        self.used = n
        df = np.zeros(words + 1, np.int32)
        self._words_used = self._words_alive = _normalise(offsets, keywords, df, self.rows)
        self._rehash()
        order = np.argsort(-df[1:], kind="stable") + 1
        order = order[: int(np.count_nonzero(df[1:]))]
        rank = np.zeros(words + 1, np.int32)
        rank[order] = np.arange(1, order.size + 1, dtype=np.int32)
        _renumber(self.rows, n, rank)
        return order, np.concatenate([df[:1], df[order]])

    def add(self, id: int, keywords: NDArray[np.int32], box: tuple[float, float, float, float]) -> int:
        """Store one subscription and return its slot. The id is not in use, the keywords ascend."""
        slot = self._free.pop() if self._free else self.used
        if slot == self.used:
            self.used += 1
            ids, boxes, start, length, words = self.rows
            if slot >= ids.size:
                needed = slot + 1
                self.rows = Rows(
                    grow(ids, needed, -1), grow(boxes, needed), grow(start, needed), grow(length, needed), words
                )
        self._make_room(keywords.size)
        rows, end = self.rows, self._words_used
        rows.ids[slot] = id
        rows.boxes[slot] = box
        rows.start[slot] = end
        rows.length[slot] = keywords.size
        rows.keywords[end : end + keywords.size] = keywords
        self._words_used += keywords.size
        self._words_alive += keywords.size
        if table_size(len(self)) > self._map.size:
            self._rehash()
        else:
            enter_slots(self._map, rows.ids, slot, slot + 1)
        return slot

    def discard(self, slot: int) -> None:
        """Free a live slot."""
        drop_slot(self._map, self.rows.ids, int(self.rows.ids[slot]))
        self.rows.ids[slot] = -1
        self._words_alive -= int(self.rows.length[slot])
        self._free.append(slot)

    def _make_room(self, words: int) -> None:
        if self._words_used + words <= self.rows.keywords.size:
            return
        if 3 * (self._words_used - self._words_alive) < self._words_used:
            self.rows = self.rows._replace(keywords=grow(self.rows.keywords, self._words_used + words))
            return
        fresh = np.zeros(max(64, (self._words_alive + words) * 3 // 2), np.int32)
        # A slot just taken from the free list still has a dead run and a free mark, so it is not copied.
        self._words_used = _compact(self.rows, self.used, fresh)
        self.rows = self.rows._replace(keywords=fresh)

    def _rehash(self) -> None:
        self._map = np.full(table_size(len(self)), -1, np.int32)
        twice = enter_slots(self._map, self.rows.ids, 0, self.used)
        if twice >= 0:
            raise InvalidValue(f"subscription id {self.rows.ids[twice]} is given twice; ids must be unique")

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what to save."""
        columns = {name: array[: self.used] for name, array in self.rows._asdict().items()}
        return {**columns, "keywords": self.rows.keywords[: self._words_used], "map": self._map}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], words: int) -> SubscriptionStore:
        """Invert `arrays`, mapped or not, of keywords below `words`; `CorruptFile` unless they fit together."""
        from contrada.spatial.textual.guard import guard_store

        made = cls()
        made.rows = rows = Rows(*(arrays[name] for name in Rows._fields))
        guard_store(rows, arrays["map"], words)
        made.used = rows.ids.size
        made._map = arrays["map"]
        made._free = np.flatnonzero(rows.ids < 0).tolist()
        made._words_used = rows.keywords.size
        made._words_alive = int(rows.length[rows.ids >= 0].sum())
        return made

    def _check(self) -> None:
        """Assert every invariant."""
        rows, slots = self.rows, self.slots
        assert len(rows.boxes) == rows.ids.size == rows.start.size == rows.length.size
        assert self.used <= rows.ids.size
        assert slots.size == len(self)
        assert sorted(self._free) == np.flatnonzero(rows.ids[: self.used] < 0).tolist()
        assert (rows.ids[self.used :] == -1).all()
        assert np.isfinite(rows.boxes[slots]).all()
        assert (rows.boxes[slots, :2] <= rows.boxes[slots, 2:]).all()
        assert rows.length[slots].sum() == self._words_alive
        taken = np.zeros(rows.keywords.size, bool)
        for slot in slots.tolist():
            words = self.keywords(slot)
            assert words.size >= 1
            assert (np.diff(words) > 0).all(), "keywords are not strictly ascending"
            assert words.size == 1 or words[0] > 0, "the wildcard stands alone"
            run = taken[rows.start[slot] : rows.start[slot] + words.size]
            assert not run.any(), "keyword runs overlap"
            run[:] = True
            assert self.slot(int(rows.ids[slot])) == slot
        assert not taken[self._words_used :].any()
        assert np.count_nonzero(self._map >= 0) == len(self)
