"""`SlotIndex`: what geotext indexes and indexes on roads share: subscriptions with an id and keywords, in slots.

An index writes these methods, in terms of slots of `self.store` and word ids of `self.vocabulary`:

    _build()                       index every live slot; called once, on a filled store
    _insert(slot)                  index one more
    _remove(slot)                  unindex one; the store still holds it
    _arrays() / _restore(arrays)   its own arrays, for the file
    _check_structure()             assert its invariants
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from contrada.errors import InvalidValue, NotFound, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from contrada.spatial.textual.store import SubscriptionStore
    from contrada.spatial.textual.vocabulary import Vocabulary

ID_LIMIT = 2**31


def check_id(id: int) -> int:
    """Return the id as an int if it is one that a subscription may have, else raise `InvalidValue`."""
    if isinstance(id, bool) or not isinstance(id, (int, np.integer)) or not 0 <= id < ID_LIMIT:
        raise InvalidValue(f"subscription id {id!r}: must be an integer in 0..2**31 - 1")
    return int(id)


def check_words(words: Iterable[str], whose: str) -> frozenset[str]:
    """Return the words as a set if they are strings and not one string, else raise `InvalidValue`."""
    given = None
    if not isinstance(words, (str, bytes)):
        with suppress(TypeError):  # neither iterable nor hashable: refused below
            given = frozenset(words)
    if given is None or not all(isinstance(word, str) for word in given):
        raise InvalidValue(f"{whose}: keywords are a collection of strings, not {words!r}")
    return given


def check_runs(
    ids: ArrayLike, offsets: ArrayLike, keywords: ArrayLike, vocabulary: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Return ids and runs of keywords as arrays, if they fit together and into the vocabulary."""
    ids = _check_integers(ids, "ids").astype(np.int64)
    offsets = _check_integers(offsets, "offsets").astype(np.int64)
    keywords = _check_integers(keywords, "keywords")
    n = ids.size
    if offsets.size != n + 1 or offsets[0] != 0 or offsets[-1] != keywords.size or (np.diff(offsets) < 0).any():
        raise InvalidValue(f"offsets must be {n + 1} ascending numbers from 0 to the number of keywords")
    if n and not 0 <= ids.min() <= ids.max() < ID_LIMIT:
        raise InvalidValue(f"subscription ids must lie in 0..2**31 - 1, found {ids.min()} and {ids.max()}")
    if keywords.size and not 0 <= keywords.min() <= keywords.max() < len(vocabulary):
        raise InvalidValue(f"keywords must be positions in the vocabulary of {len(vocabulary)} words")
    if len(check_words(vocabulary, "the vocabulary")) != len(vocabulary):
        raise InvalidValue("the vocabulary has a word twice")
    return ids, offsets, keywords


def _check_integers(values: ArrayLike, what: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidValue(f"{what} must be a flat array of integers, not {array.dtype} of {array.ndim} dimensions")
    return array


def name_arrays(**parts: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the arrays of all parts under "part.name", as they go into a file."""
    return {f"{part}.{name}": array for part, arrays in parts.items() for name, array in arrays.items()}


class SlotIndex(ABC):
    """Base of `StoredIndex` and `RoadIndex`."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    store: SubscriptionStore
    vocabulary: Vocabulary

    def remove(self, id: int) -> None:
        """Take a subscription out. `NotFound` when there is none of that id."""
        slot = self._slot_of(id)
        self._remove(slot)
        words = self.store.keywords(slot).copy()
        self.store.discard(slot)
        self.vocabulary.release(words)

    def _slot_of(self, id: int) -> int:
        slot = self.store.slot(id) if isinstance(id, (int, np.integer)) and 0 <= id < ID_LIMIT else -1
        if slot < 0:
            raise NotFound(f"there is no subscription of id {shown(id)}")
        return slot

    def __len__(self) -> int:
        return len(self.store)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, int) and 0 <= id < ID_LIMIT and self.store.slot(id) >= 0

    def _check(self) -> None:
        """Assert every invariant of the store, the vocabulary and the structure."""
        self.store._check()
        keywords = [self.store.keywords(slot) for slot in self.store.slots.tolist()]
        counts = np.bincount(np.concatenate([np.empty(0, np.int32), *keywords]), minlength=self.vocabulary.size)
        self.vocabulary._check(counts)
        self._check_structure()

    @abstractmethod
    def _build(self) -> None:
        """Index every live slot of the store. Called once, before anything else."""

    @abstractmethod
    def _insert(self, slot: int) -> None:
        """Index a slot that the store has just filled."""

    @abstractmethod
    def _remove(self, slot: int) -> None:
        """Unindex a slot that the store still holds."""

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return the structure's arrays, as they go into the file."""

    @abstractmethod
    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take the arrays of `_arrays` back, memory-mapped copy-on-write. Runs instead of `_build`."""

    @abstractmethod
    def _check_structure(self) -> None:
        """Assert every invariant of the structure."""


class Unindexed:
    """A scan's structure: none. Stands before the base whose methods it fills in."""

    def _build(self) -> None:
        pass

    def _insert(self, slot: int) -> None:
        pass

    def _remove(self, slot: int) -> None:
        pass

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def _restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        pass

    def _check_structure(self) -> None:
        pass
