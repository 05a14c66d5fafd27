"""`StoredIndex`, the base of all geotext indexes: boxes, options, counters and files. An index adds its structure.

An index writes the methods of `SlotIndex` (slot_index.py), and

    _search(tokens, box)  slots that match, each once, any order, and counters. Read-only, scratch per call

Options are keyword-only arguments of `build` and of the constructor, declared in `defaults`, saved with the index.
"""

from __future__ import annotations

from abc import abstractmethod
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from contrada.errors import CorruptFile, InvalidValue
from contrada.spatial.storage.arrays_file import load_arrays, save_arrays
from contrada.spatial.textual.protocol import Subscription, TextCounters
from contrada.spatial.textual.slot_index import SlotIndex, check_id, check_runs, check_words, name_arrays
from contrada.spatial.textual.store import SubscriptionStore
from contrada.spatial.textual.vocabulary import WILDCARD, Vocabulary

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    BoxTuple = tuple[float, float, float, float]


def check_box(box: Collection[float], whose: str) -> BoxTuple:
    """Return the box as four finite floats with x1 <= x2 and y1 <= y2, else raise `InvalidValue`."""
    try:
        x1, y1, x2, y2 = map(float, box)
    except (TypeError, ValueError) as error:
        raise InvalidValue(f"{whose}: a box is four numbers x1, y1, x2, y2, not {box!r}") from error
    if not (isfinite(x1) and isfinite(y1) and isfinite(x2) and isfinite(y2)):
        raise InvalidValue(f"{whose}: box {(x1, y1, x2, y2)} has a coordinate that is not finite")
    if x1 > x2 or y1 > y2:
        raise InvalidValue(f"{whose}: box {(x1, y1, x2, y2)} is inside out; write x1 <= x2 and y1 <= y2")
    return x1, y1, x2, y2


class StoredIndex(SlotIndex):
    """Base of every index here; implements `protocol.TextualIndex`."""

    defaults: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, **options: Any) -> None:
        self._prepare(options)
        self._build()

    def _prepare(self, options: Mapping[str, Any]) -> None:
        unknown = sorted(options.keys() - self.defaults.keys())
        if unknown:
            known = ", ".join(self.defaults) or "none"
            raise InvalidValue(f"{self.name}: unknown option {unknown[0]!r}; there are: {known}")
        self.options: dict[str, Any] = {**self.defaults, **options}
        self.counters = TextCounters(0, 0, 0)
        self.vocabulary = Vocabulary()
        self.store = SubscriptionStore()

    @classmethod
    def build(cls, subscriptions: Iterable[Subscription], **options: Any) -> Self:
        """Bulk load; answers as if every subscription had been inserted."""
        ids: list[int] = []
        ends: list[int] = [0]
        keywords: list[int] = []
        boxes: list[BoxTuple] = []
        words: dict[str, int] = {}
        for subscription in subscriptions:
            id, its_words, box = _check_subscription(subscription)
            whose = f"subscription {id}"
            ids.append(check_id(id))
            boxes.append(check_box(box, whose))
            keywords.extend(words.setdefault(word, len(words)) for word in check_words(its_words, whose))
            ends.append(len(keywords))
        return cls.build_arrays(
            ids, ends, np.array(keywords, np.int32), list(words), np.array(boxes).reshape(-1, 4), **options
        )

    @classmethod
    def build_arrays(
        cls,
        ids: ArrayLike,
        offsets: ArrayLike,
        keywords: ArrayLike,
        vocabulary: Sequence[str],
        boxes: ArrayLike,
        **options: Any,
    ) -> Self:
        """Bulk load from flat arrays, so that millions of subscriptions need no Python object each.

        Subscription `ids[i]` has the words `vocabulary[k] for k in keywords[offsets[i]:offsets[i + 1]]`, repeats
        allowed, and the box `boxes[i]`.
        """
        ids, offsets, keywords = check_runs(ids, offsets, keywords, vocabulary)
        try:
            boxes = np.array(boxes, np.float64, order="C").reshape(-1, 4)  # a copy: the store goes on changing
        except (TypeError, ValueError) as error:
            raise InvalidValue(f"boxes must be rows of x1, y1, x2, y2: {error}") from error
        n = ids.size
        if len(boxes) != n:
            raise InvalidValue(f"{n} ids but {len(boxes)} boxes")
        _refuse_bad_boxes(ids, boxes)

        made = cls.__new__(cls)
        made._prepare(options)
        if n:
            shifted = keywords.astype(np.int32) + np.int32(1)
            order, df = made.store.fill(ids.astype(np.int32), offsets, shifted, len(vocabulary), boxes)
            made.vocabulary = Vocabulary([vocabulary[i - 1] for i in order.tolist()], df)
        made._build()
        return made

    def insert(self, subscription: Subscription) -> None:
        """Add one subscription. `InvalidValue` when its id is in use or its box is not a finite box."""
        id, words, box = _check_subscription(subscription)
        whose = f"subscription {id}"
        box = check_box(box, whose)
        words = check_words(words, whose)
        if self.store.slot(check_id(id)) >= 0:
            raise InvalidValue(f"{whose}: the id is in use; remove it first")
        self._insert(self.store.add(id, self.vocabulary.acquire(words), box))

    def search(self, tokens: Collection[str], box: Collection[float]) -> NDArray[np.int64]:
        """Ids of the subscriptions that match, each once, in ascending order."""
        if isinstance(tokens, str):
            raise InvalidValue(f"message: tokens are a collection of strings, not {tokens!r}")
        place = np.array(check_box(box, "message"))
        try:
            known = self.vocabulary.lookup(tokens)
        except TypeError as error:
            raise InvalidValue(f"message: tokens are a collection of strings, not {tokens!r}") from error
        slots, nodes, verified = self._search(known, place)
        self.counters = TextCounters(nodes, verified, slots.size)
        found = self.store.rows.ids[slots].astype(np.int64)
        found.sort()
        return found

    def search_many(
        self,
        offsets: NDArray[np.int64],
        words: NDArray[np.int32],
        vocabulary: Sequence[str],
        boxes: NDArray[np.float64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """As `search` of many messages at once: ids, those of each in no order, and where each message's end.

        Message i has the words `vocabulary[k] for k in words[offsets[i]:offsets[i + 1]]`, repeats allowed, and the box
        `boxes[i]`, which are taken as they are: for callers who have checked them.
        """
        used, which = np.unique(words, return_inverse=True)
        known = self.vocabulary.numbers(map(vocabulary.__getitem__, used.tolist()))[which]
        messages = np.repeat(np.arange(len(boxes)), np.diff(offsets))
        keys = messages[known >= 0] << 32 | known[known >= 0]
        if self.vocabulary.df[WILDCARD]:
            keys = np.concatenate((keys, np.arange(len(boxes)) << 32 | WILDCARD))
        keys = np.unique(keys)
        tokens = (keys & 0xFFFFFFFF).astype(np.int32)
        ends = np.searchsorted(keys >> 32, np.arange(len(boxes)), side="right")
        slots, found = self._search_many(tokens, ends, boxes)
        return self.store.rows.ids[slots].astype(np.int64), found

    def get(self, id: int) -> Subscription:
        """Return the stored subscription. `NotFound` when there is none of that id."""
        slot = self._slot_of(id)
        words = (self.vocabulary.word(i) for i in self.store.keywords(slot).tolist() if i != WILDCARD)
        x1, y1, x2, y2 = self.store.rows.boxes[slot].tolist()
        return Subscription(id, frozenset(words), (x1, y1, x2, y2))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything but the options as arrays, with the number of their layout."""
        named = name_arrays(store=self.store.arrays(), vocabulary=self.vocabulary.arrays(), tree=self._arrays())
        return {**named, "layout": np.array([self.version])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], **options: Any) -> Self:
        """Make an index of what `arrays` gave, taken as it is: mapped arrays are copied where they change or grow."""
        parts: dict[str, dict[str, NDArray[Any]]] = {"store": {}, "vocabulary": {}, "tree": {}, "layout": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            if part not in parts:
                raise CorruptFile(f"{cls.name}: what is the array {name!r}?")
            parts[part][rest] = array
        layout = parts["layout"].get("", np.zeros(1, np.int64)).tolist()
        if layout != [cls.version]:
            raise CorruptFile(f"{cls.name}: layout {layout[0]}, this version reads {cls.version}; build the index anew")
        made = cls.__new__(cls)
        made._prepare(options)
        try:
            made.vocabulary = Vocabulary.from_arrays(parts["vocabulary"])
            made.store = SubscriptionStore.from_arrays(parts["store"], made.vocabulary.size)
            made._restore(parts["tree"])
        except KeyError as error:
            raise CorruptFile(f"{cls.name}: the array {error} is missing") from error
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one file that `load` maps back."""
        save_arrays(
            path,
            kind=f"textual:{self.name}",
            version=self.version,
            arrays=self.arrays(),
            meta={"options": self.options},
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = True) -> Self:
        """Map a saved index; it can be searched at once and changed afterwards, which the file never sees.

        `verify` checks every byte against its checksum first.
        """
        arrays, meta = load_arrays(path, kind=f"textual:{cls.name}", version=cls.version, verify=verify)
        return cls.from_arrays(arrays, **meta["options"])

    @abstractmethod
    def _search(self, tokens: NDArray[np.int32], box: NDArray[np.float64]) -> tuple[NDArray[np.int32], int, int]:
        """Slots that match, each once, in any order; nodes visited; candidates verified.

        `tokens` are distinct and ascending.
        """

    def _search_many(
        self, tokens: NDArray[np.int32], ends: NDArray[np.int64], boxes: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """As `_search` of many messages, whose tokens end at `ends`: slots, and where each message's end."""
        starts = np.concatenate(([0], ends[:-1])) if len(ends) else ends
        parts = [
            self._search(tokens[start:end], box)[0]
            for start, end, box in zip(starts.tolist(), ends.tolist(), boxes, strict=True)
        ]
        slots = np.concatenate(parts) if parts else np.zeros(0, np.int32)
        return slots, np.cumsum([part.size for part in parts], dtype=np.int64)


def _check_subscription(subscription: Subscription) -> Subscription:
    if not isinstance(subscription, tuple) or len(subscription) != 3:
        raise InvalidValue(f"a subscription is (id, keywords, box), not {subscription!r}")
    return Subscription(*subscription)


def _refuse_bad_boxes(ids: NDArray[np.int64], boxes: NDArray[np.float64]) -> None:
    bad = ~np.isfinite(boxes).all(axis=1) | (boxes[:, 0] > boxes[:, 2]) | (boxes[:, 1] > boxes[:, 3])
    if bad.any():
        first = int(np.argmax(bad))
        check_box(boxes[first].tolist(), f"subscription {ids[first]}")
