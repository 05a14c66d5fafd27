"""The table's memory: its arrays, the room they need before a change, and scratch for calls that read them."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from contrada.forwarding.kernels.match.finding import HASHES_BESIDE
from contrada.forwarding.kernels.match.verifying import A_COLUMNS, C_COUNTERS, C_SIZE, LETTERS, SUSPECTS, Scratch
from contrada.forwarding.kernels.memory import layout
from contrada.forwarding.kernels.memory.layout import Index
from contrada.forwarding.kernels.substrings.fingerprints import PRIME
from contrada.forwarding.state.growable import GrowableArray
from contrada.forwarding.state.posted import PostedOperands
from contrada.forwarding.types.postponing import Postponing
from contrada.forwarding.types.shares import Sampler
from contrada.forwarding.types.trying import Trying

if TYPE_CHECKING:
    from contrada.forwarding.kernels.memory.layout import Ints

_COLUMNS: Final = {
    "operands": 8,
    "filters": 16,
    "fields": 8,
    "postings": 2,
    "thresholds": 4,
    "heads": 0,
    "words": 0,
}
_BLOCK: Final = 64  # rows of the largest block of postings and of thresholds
_FEWEST: Final = 4  # suspects worth a look, at least, and
_MOST: Final = 1 << 14  # at most
_KEPT: Final = 256
_MOST_MATCH: Final = 0.85  # a share of interfaces above which most match, and
_FEWER: Final = 0.7  # below which they no longer do
_WINDOW: Final = 64  # batches after which earlier ones count half
_TOPS: Final = (
    layout.S_OPERANDS,
    layout.S_FILTERS,
    layout.S_POSTINGS,
    layout.S_THRESHOLDS,
    layout.S_WORDS,
    layout.S_BUCKETS,
    layout.S_BUCKET_MASK,
)


class Suspects:
    """Filters that were looked at in vain, one in some hundreds of those: their access may be a bad one.

    Whoever matches notes them down; the table reconsiders them when there are `enough`. That is more and more often
    waited for while nothing comes of it, so that waste which no access would spare costs hardly more.
    """

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.noted = 0
        self.enough = _FEWEST

    def note(self, rows: list[int]) -> None:
        """Add some; of very many the latest are kept."""
        self.noted += len(rows)
        self.rows = (self.rows + rows)[-_KEPT:]

    def take(self) -> list[int]:
        """All of them, each once; there are none afterwards."""
        rows, self.rows, self.noted = self.rows, [], 0
        return sorted({*rows})

    def outcome(self, looked_at: int, moved: int) -> None:
        """Be told how many of those taken were given another access."""
        self.enough = _FEWEST if 8 * moved > looked_at else min(2 * self.enough, _MOST)


class MatchedShare:
    """How large a share of the interfaces matches a notification: of the latest, those before counting less and less.

    Where most do, matching ends early, and soonest if a filter is decided at the first constraint that it is met under.
    """

    def __init__(self) -> None:
        self._asked = self._matched = 0.0

    def note(self, asked: int, matched: int) -> None:
        """Take in how many interfaces so many notifications might have matched, and how many they have."""
        if self._asked > _WINDOW * asked:
            self._asked, self._matched = self._asked / 2, self._matched / 2
        self._asked += asked
        self._matched += matched

    def is_most(self, so_far: bool) -> bool:
        """Whether that is most of them; in between, what it was so far."""
        return self._matched > (_FEWER if so_far else _MOST_MATCH) * self._asked if self._asked else so_far


class Memory:
    """The arrays of one table. `index` is what kernels take; it changes whenever an array grows."""

    def __init__(self) -> None:
        self.arrays = {name: GrowableArray(columns, 512) for name, columns in _COLUMNS.items()}
        self.interfaces = GrowableArray(2, 512)
        self.state: Ints = np.zeros(layout.STATE_SIZE, np.int64)
        for top in _TOPS:
            self.state[top] = 1
        base = 2 + secrets.randbelow(PRIME - 3)
        self.state[layout.S_BASE], self.state[layout.S_INVERSE] = base, pow(base, -1, PRIME)
        self.events: Ints = np.zeros((64, 3), np.int64)
        self.index: Index = self._view()
        self._pool: list[Scratch] = []
        self._cursors: list[Ints] = []  # of all scratch that has been made
        self.suspects = Suspects()
        self.matched = MatchedShare()
        self.trying = Trying()
        self.postponing = Postponing()
        self.posted = PostedOperands()
        self.late = Sampler(256)  # of filters decided late
        # What earlier calls of `reserve` made room for and changes have not taken since.
        self._rows_left = self._filters_left = self._text_left = 0
        self._names = self._interfaces = 0

    @classmethod
    def over(cls, arrays: dict[str, GrowableArray], interfaces: GrowableArray, state: Ints) -> Self:
        """The memory of a table whose arrays are there already."""
        memory = cls()
        memory.arrays = arrays
        memory.interfaces = interfaces
        memory.state = state
        memory.index = memory._view()
        return memory

    def _view(self) -> Index:
        arrays = {name: growable.array for name, growable in self.arrays.items()}
        return Index(**arrays, text=arrays["words"].view(np.uint8), state=self.state)

    def reserve(self, *, rows: int, filters: int, text: int, names: int, interfaces: int) -> None:
        """Make room for a change: so many constraint rows, filters and bytes of strings, and this many names at all.

        Every constraint may need an operand, two nodes of a trie or two cells, and a block for each; words are asked
        for three times over because directories of thresholds double. What is not used costs no memory, so room is made
        for many small changes at once.
        """
        # Each filter that is made may cover some dozens, whose constraints are taken out of their types' searches.
        taken = filters * max(1, int(self.state[layout.S_PLUGS]))
        if len(self.events) < 8 * rows + 64 * taken + 512:
            self.events = np.zeros((16 * rows + 128 * taken + 512, 3), np.int64)
        self._rows_left -= rows
        self._filters_left -= filters
        self._text_left -= text
        if (
            min(self._rows_left, self._filters_left, self._text_left) >= 0
            and names < self._names
            and interfaces < self._interfaces
        ):
            return
        rows, filters, text = rows + 4096, filters + 1024, text + 65536
        self._rows_left, self._filters_left, self._text_left = 4096, 1024, 65536
        self._names, self._interfaces = 2 * names + 64, 2 * interfaces + 64
        state = self.state
        operands = int(state[layout.S_OPERANDS]) + 4 * rows + 4 * filters + 8
        need = {
            "operands": operands,
            "filters": int(state[layout.S_FILTERS]) + filters + 1,
            "fields": (self._names + 1) * layout.KINDS,
            "postings": int(state[layout.S_POSTINGS]) + _BLOCK * (3 * rows + 2 * filters + 1),
            "thresholds": int(state[layout.S_THRESHOLDS]) + _BLOCK * (2 * (rows + filters) + 1),
            "heads": operands,
            "words": 3 * int(state[layout.S_WORDS]) + 512 * rows + 64 * filters + text + 64,
        }
        if any(need[name] > growable.array.shape[0] for name, growable in self.arrays.items()):
            del self.index  # so that nothing looks at the arrays while they move
            for name, growable in self.arrays.items():
                growable.reserve(need[name])
            self.index = self._view()
        self.interfaces.reserve(self._interfaces + 1)

    def take_scratch(self, attributes: int, text: int) -> Scratch:
        """Scratch for a call that decodes notifications of up to that many attributes and `text` bytes of strings.

        Give it back afterwards.
        """
        try:
            scratch = self._pool.pop()
        except IndexError:
            scratch = self.new_scratch()
        return self.fitted(scratch, attributes, text)

    def new_scratch(self) -> Scratch:
        """Scratch that is to be `fitted`."""
        cursor: Ints = np.zeros(C_SIZE, np.int64)
        self._cursors.append(cursor)
        return Scratch(
            stamps=np.zeros(64, np.int64),
            found=np.empty(4096, np.int64),
            candidates=np.empty(4096, np.int64),
            operands=np.empty(512, np.int64),
            attributes=np.empty((64, A_COLUMNS), np.int64),
            slots=np.zeros(256, np.int64),
            pending=np.empty((1024, 3), np.int64),
            pairs=np.empty((1024, 3), np.int64),
            hashes=np.empty(4096, np.int64),
            marks=np.zeros(0, np.int64),
            suspects=np.zeros(SUSPECTS + LETTERS, np.int64),
            cursor=cursor,
        )

    def fitted(self, scratch: Scratch, attributes: int, text: int) -> Scratch:
        """The same, or larger where the table or the notifications are."""
        if scratch.attributes.shape[0] < attributes:
            size = 1 << (2 * attributes - 1).bit_length()
            scratch = scratch._replace(
                attributes=np.empty((attributes, A_COLUMNS), np.int64), slots=np.zeros(size, np.int64)
            )
        interfaces = self.interfaces.array.shape[0]
        stamps = interfaces
        if self.state[layout.S_MATCHING] != layout.SELECTIVE:
            stamps += self.arrays["filters"].array.shape[0]
        if scratch.stamps.shape[0] < stamps or scratch.cursor[C_COUNTERS] < interfaces:  # counters lie behind
            scratch = scratch._replace(stamps=np.zeros(stamps, np.int64))
            scratch.cursor[C_COUNTERS] = interfaces
        # All of this is address space until it is touched.
        if scratch.hashes.shape[0] < text + HASHES_BESIDE:
            scratch = scratch._replace(hashes=np.empty(text + text // 2 + HASHES_BESIDE, np.int64))
        if scratch.marks.shape[0] < self.arrays["operands"].array.shape[0]:
            scratch = scratch._replace(marks=np.zeros(self.arrays["operands"].array.shape[0], np.int64))
        return scratch

    def give_scratch(self, scratch: Scratch) -> None:
        """Keep scratch for the next call."""
        self._pool.append(scratch)

    @staticmethod
    def larger(scratch: Scratch) -> Scratch:
        """The same with twice the room for answers; what was found so far is kept."""

        def doubled(array: Ints) -> Ints:
            more = np.empty((2 * array.shape[0], *array.shape[1:]), np.int64)
            more[: array.shape[0]] = array
            return more

        return scratch._replace(
            found=doubled(scratch.found),
            candidates=doubled(scratch.candidates),
            operands=doubled(scratch.operands),
            pending=doubled(scratch.pending),
            pairs=doubled(scratch.pairs),
        )

    @property
    def counted(self) -> Ints:
        """What matching has counted since the table was made, by place in `Scratch.cursor`: for tests."""
        counted: Ints = np.sum(self._cursors, axis=0, dtype=np.int64)
        return counted

    @property
    def moves(self) -> int:
        """How often an array has become another."""
        return self.interfaces.moves + sum([growable.moves for growable in self.arrays.values()])

    @property
    def nbytes(self) -> int:
        """Bytes in use: below the tops of the arrays, not what is reserved."""
        state = self.state
        return 8 * (
            8 * int(state[layout.S_OPERANDS])
            + 16 * int(state[layout.S_FILTERS])
            + 2 * int(state[layout.S_POSTINGS])
            + 4 * int(state[layout.S_THRESHOLDS])
            + int(state[layout.S_BUCKETS])
            + int(state[layout.S_WORDS])
        )
