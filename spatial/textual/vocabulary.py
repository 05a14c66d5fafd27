"""Words as dense integers, with how many subscriptions hold each.

    id    0           1         2          3
    word  (wildcard)  "coffee"  "harbour"  "tram"
    df    1           90        17         17

Ids are handed out in descending document frequency when an index is built, and upwards from there afterwards, so
ascending ids are the papers' global order: frequent words first, a subscription's rarest keyword last. The order is
a promise about speed only; every index stays correct while frequencies drift away from it.

Id 0 is the wildcard: the one keyword of a subscription without keywords, and a token of every message as long as
such a subscription exists. No index therefore needs a case for empty keyword sets.

The id of a word that no subscription holds any more is given to the next new word. An index may keep a stale id in
a structure that only prunes, since that makes it visit too much and never too little.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from contrada.errors import CorruptFile
from contrada.spatial.storage.row_numbers import check_offsets, check_rows, check_shapes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from numpy.typing import NDArray

WILDCARD = 0
SHAPES = {"words": (np.uint8, ()), "word_ends": (np.int64, ()), "df": (np.int32, ()), "free_words": (np.int32, ())}


class Vocabulary:
    """The words of the stored subscriptions. `df[i]` counts the subscriptions that hold word `i`."""

    def __init__(self, words: Iterable[str] = (), df: NDArray[np.int32] | None = None) -> None:
        self._words: list[str] = ["", *words]
        self._ids = {word: i for i, word in enumerate(self._words) if i}
        self._free: list[int] = []
        self.df = np.zeros(max(16, len(self._words)), np.int32) if df is None else df

    @property
    def size(self) -> int:
        """One more than the largest id in use: what an array indexed by word must hold."""
        return len(self._words)

    def __len__(self) -> int:
        """How many words are in use, the wildcard not counted."""
        return len(self._ids)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def word(self, id: int) -> str:
        """Return the word of an id in use."""
        return self._words[id]

    def acquire(self, words: Collection[str]) -> NDArray[np.int32]:
        """Ids of a subscription's keywords in ascending order, entering the new ones; each is counted once more."""
        ids = sorted({self._ids[w] if w in self._ids else self._enter(w) for w in words}) or [WILDCARD]
        for i in ids:
            self.df[i] += 1
        return np.array(ids, np.int32)

    def release(self, ids: NDArray[np.int32]) -> None:
        """Count each id once less; forget the words that nobody holds."""
        for i in ids.tolist():
            self.df[i] -= 1
            if self.df[i] == 0 and i != WILDCARD:
                del self._ids[self._words[i]]
                self._words[i] = ""
                self._free.append(i)

    def lookup(self, tokens: Iterable[str]) -> NDArray[np.int32]:
        """Distinct ids of a message's tokens in ascending order. Tokens that no subscription holds are dropped."""
        found: set[int | None]
        if isinstance(tokens, frozenset) and len(self._ids) < len(tokens):
            found = {self._ids[word] for word in self._ids if word in tokens}
        else:
            found = {*map(self._ids.get, tokens)}  # one probe each: most of them miss the processor's caches
            found.discard(None)
        if self.df[WILDCARD]:
            found.add(WILDCARD)
        return np.array(sorted(cast("set[int]", found)), np.int32)

    def numbers(self, words: Iterable[str]) -> NDArray[np.int32]:
        """The id of each word; -1 of those that no subscription holds."""
        return np.array(list(map(self._ids.get, words, repeat(-1))), np.int32)

    def _enter(self, word: str) -> int:
        if self._free:
            id = self._free.pop()
            self._words[id] = word
        else:
            id = len(self._words)
            self._words.append(word)
            if id >= self.df.size:
                self.df = np.concatenate([self.df, np.zeros(self.df.size, np.int32)])
        self._ids[word] = id
        return id

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what to save: the words as one run of UTF-8, their ends, frequencies and free ids."""
        encoded = [word.encode("utf-8", "surrogatepass") for word in self._words]
        return {
            "words": np.frombuffer(b"".join(encoded), np.uint8),
            "word_ends": np.cumsum([len(e) for e in encoded], dtype=np.int64),
            "df": self.df[: self.size],
            "free_words": np.array(self._free, np.int32),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Vocabulary:
        """Invert `arrays`."""
        check_shapes("vocabulary", arrays, SHAPES)
        text, ends = arrays["words"].tobytes(), arrays["word_ends"].tolist()
        if not ends or len(arrays["df"]) != len(ends):
            raise CorruptFile("vocabulary: words, their ends and their frequencies do not fit together")
        check_offsets("vocabulary", np.concatenate(([0], arrays["word_ends"])), len(text))
        check_rows("vocabulary: free words", arrays["free_words"], len(ends), 1)
        starts = [0, *ends[:-1]]
        made = cls()
        try:
            made._words = [text[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts, ends, strict=True)]
        except UnicodeDecodeError as error:
            raise CorruptFile(f"vocabulary: a word that is no text: {error}") from None
        made._free = arrays["free_words"].tolist()
        unused = {WILDCARD, *made._free}
        made._ids = {word: i for i, word in enumerate(made._words) if i not in unused}
        made.df = np.array(arrays["df"], np.int32)
        return made

    def _check(self, df: NDArray[np.int64]) -> None:
        """Assert the invariants; `df` is counted from the subscriptions."""
        assert np.array_equal(self.df[: df.size], df), "document frequencies do not add up"
        assert df.size >= self.size
        assert not self.df[df.size :].any()
        assert len(self._ids) + len(self._free) + 1 == len(self._words)
        assert all(self._words[i] == w for w, i in self._ids.items())
        assert all(self.df[i] > 0 for i in self._ids.values())
        assert all(self.df[i] == 0 and self._words[i] == "" for i in self._free)
