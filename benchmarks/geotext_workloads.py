"""Subscriptions and messages for the geotext benchmarks: a synthetic world of the papers' parameters, and a real one.

`Synthetic` is like the geo-tagged tweets of [AP-TREE], Table II: a vocabulary of 1.7 million words and nine keywords
in a message. Words follow Zipf's law ([RT-TREE], section 6), p of rank r proportional to 1 / r: the most frequent is
near 5 % of the text. No paper prints the rest, which is ours: a thousand cities of Zipfian size and a fifth of the
population anywhere; three tenths of the words out of the city's own five hundred, so that places talk of different
things. With `shift` the law is Mandelbrot's, 1 / (r + shift), as if stop words had been removed: a shift of 10 leaves
0.6 % for the most frequent word, and is kinder to inverted lists.

`Places` is real: names and addresses with their coordinates, from `place_names.parquet`. A subscription takes words of
one place; a message is a place's text, extended with that of its neighbours when it should be longer.

In both a subscription has 1-5 keywords of one text and a box around its place, of 0.01-1 % of the space ([AP-TREE],
section V-A), and a message 6-20 or 100-1,000 tokens at a point or in a box ([RT-TREE], section 6). All is seeded.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from contrada.spatial.textual.registry import textual_index

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from contrada.spatial.textual.base import StoredIndex

SHORT, LONG = (6, 20), (100, 1_000)
AREA = (0.0001, 0.01)
TIMED = 8  # messages between two looks at the clock
WARM_UP = 30  # messages; an index that has two ways loads the code of the second when a message first asks for it


class Message(NamedTuple):
    """What is searched for."""

    tokens: frozenset[str]
    box: tuple[float, float, float, float]


@dataclass(frozen=True)
class Subscriptions:
    """Flat arrays, as `build_arrays` takes them."""

    offsets: NDArray[np.int64]
    keywords: NDArray[np.int32]
    vocabulary: list[str]
    boxes: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.boxes)

    def first(self, count: int) -> Subscriptions:
        """The first so many of them."""
        offsets = self.offsets[: count + 1]
        return Subscriptions(offsets, self.keywords[: offsets[-1]], self.vocabulary, self.boxes[:count])

    def build(self, name: str, **options: Any) -> StoredIndex:
        """An index over them, ids from 0."""
        return textual_index(name).build_arrays(
            np.arange(len(self)), self.offsets, self.keywords, self.vocabulary, self.boxes, **options
        )


def _around(
    rng: np.random.Generator,
    xy: NDArray[np.float64],
    space: NDArray[np.float64],
    area: tuple[float, float],
) -> NDArray[np.float64]:
    """Boxes centred at the points, of uniformly drawn shares of the space's area and aspects up to 2."""
    side = np.sqrt(rng.uniform(*area, len(xy)))
    aspect = np.sqrt(rng.uniform(0.5, 2.0, len(xy)))
    half = np.column_stack([side * aspect, side / aspect]) * (space[2:] - space[:2]) / 2
    return np.hstack([xy - half, xy + half])


class World:
    """Where words and places come from."""

    space: NDArray[np.float64]
    vocabulary: list[str]

    def texts(
        self, rng: np.random.Generator, lengths: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Draw places and, one after another, so many words for each."""
        raise NotImplementedError

    def subscriptions(
        self, count: int, *, seed: int = 1, keywords: tuple[int, int] = (1, 5), area: tuple[float, float] = AREA
    ) -> Subscriptions:
        """Keyword sets of 1-5 words of one text, and a box around its place."""
        rng = np.random.default_rng(seed)
        lengths = rng.integers(keywords[0], keywords[1], count, endpoint=True)
        xy, words = self.texts(rng, lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return Subscriptions(offsets, words, self.vocabulary, _around(rng, xy, self.space, area))

    def messages(
        self, count: int, *, seed: int = 2, tokens: tuple[int, int] = SHORT, area: tuple[float, float] | None = None
    ) -> list[Message]:
        """Texts with a place: a point, or a box of a share of the space."""
        rng = np.random.default_rng(seed)
        lengths = rng.integers(tokens[0], tokens[1], count, endpoint=True)
        xy, words = self.texts(rng, lengths)
        boxes = np.hstack([xy, xy]) if area is None else _around(rng, xy, self.space, area)
        runs = np.split(words, np.cumsum(lengths)[:-1])
        return [
            Message(frozenset(self.vocabulary[w] for w in run.tolist()), tuple(box))
            for run, box in zip(runs, boxes.tolist(), strict=True)
        ]


class Synthetic(World):
    """The unit square of cities; see the module."""

    def __init__(self, words: int = 1_700_000, cities: int = 1_000, shift: float = 0.0, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.space = np.array([0.0, 0.0, 1.0, 1.0])
        self.vocabulary = [f"w{i}" for i in range(words)]
        self._centres = rng.random((cities, 2))
        weights = 1 / np.arange(1, cities + 1)
        self._population = np.cumsum(weights / weights.sum())
        self._words, self._slang = _zipf(words, shift), _zipf(500, shift)

    def texts(
        self, rng: np.random.Generator, lengths: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Draw a city, a place near it, and words of the world and of the city."""
        count, total = lengths.size, int(lengths.sum())
        city = np.searchsorted(self._population, rng.random(count))
        xy = self._centres[city] + rng.normal(0, 0.01, (count, 2))
        anywhere = rng.random(count) < 0.2
        xy[anywhere] = rng.random((int(anywhere.sum()), 2))
        ranks = np.searchsorted(self._words, rng.random(total)).astype(np.int32)
        local = rng.random(total) < 0.3
        slang = np.repeat(city, lengths)[local] * 500 + np.searchsorted(self._slang, rng.random(int(local.sum())))
        ranks[local] = (slang + 1_000) % len(self.vocabulary)
        return np.clip(xy, 0, 1), ranks


def _zipf(words: int, shift: float) -> NDArray[np.float64]:
    """The distribution function of ranks from 0, p proportional to 1 / (rank + 1 + shift)."""
    sums: NDArray[np.float64] = np.cumsum(1 / (np.arange(1, words + 1) + shift))
    sums /= sums[-1]
    return sums


class Places(World):
    """Real names at real places."""

    def __init__(self, directory: Path) -> None:
        import pyarrow.parquet as pq

        from contrada.spatial.textual.geotext import tokenise

        table = pq.read_table(directory / "place_names.parquet", columns=["lon", "lat", "text"])
        xy = np.column_stack([table["lon"].to_numpy(), table["lat"].to_numpy()])
        ids: dict[str, int] = {}
        rows = [[ids.setdefault(t, len(ids)) for t in set(tokenise(text))] for text in table["text"].to_pylist()]
        kept = np.flatnonzero([len(row) > 0 for row in rows])
        # Neighbours in the plane are neighbours in this order, so a text can go on with the next place's.
        kept = kept[np.lexsort((xy[kept, 1], np.floor(xy[kept, 0] * 4)))]
        self.vocabulary = list(ids)
        self.space = np.concatenate([xy[kept].min(axis=0), xy[kept].max(axis=0)])
        self._xy = xy[kept]
        self._words = np.array([w for i in kept.tolist() for w in rows[i]], np.int32)
        self._starts = np.concatenate([[0], np.cumsum([len(rows[i]) for i in kept.tolist()])])

    def texts(
        self, rng: np.random.Generator, lengths: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Draw a place and take its words, beginning at a random one, then its neighbours'."""
        place = rng.integers(0, len(self._xy), lengths.size)
        own = self._starts[place + 1] - self._starts[place]
        first = self._starts[place] + (rng.random(lengths.size) * own).astype(np.int64)
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        words = self._words[(np.repeat(first, lengths) + within) % len(self._words)]
        return self._xy[place], words


GROUPS: dict[str, dict[str, Any]] = {
    "short point": {"tokens": SHORT},
    "long point": {"tokens": LONG},
    "short range": {"tokens": SHORT, "area": AREA},
    "long range": {"tokens": LONG, "area": AREA},
}


@dataclass(frozen=True)
class Cost:
    """Averages over a run of messages."""

    milliseconds: float
    nodes: float
    verified: float
    matched: float


def measure_index(index: StoredIndex, messages: list[Message], *, budget: float = 1.5, rounds: int = 2) -> Cost:
    """Search for the messages, as many as the seconds of the budget allow, and return the quickest round's averages.

    What all indexes share is left out: words are looked up beforehand and answers are not sorted. Time is the
    processor's, so waiting for one does not count.
    """
    asked = [(index.vocabulary.lookup(m.tokens), np.array(m.box)) for m in messages]
    for tokens, box in asked[:WARM_UP]:
        index._search(tokens, box)
    return min((_round(index, asked, budget) for _ in range(rounds)), key=lambda cost: cost.milliseconds)


def _round(index: StoredIndex, asked: list[tuple[NDArray[np.int32], NDArray[np.float64]]], budget: float) -> Cost:
    done, spent = 0, 0.0
    nodes = verified = matched = 0
    while done < len(asked) and spent < budget:
        some = asked[done : done + TIMED]
        start = time.thread_time()
        for tokens, box in some:
            slots, visited, checked = index._search(tokens, box)
            nodes += visited
            verified += checked
            matched += slots.size
        spent += time.thread_time() - start
        done += len(some)
    return Cost(1_000 * spent / done, nodes / done, verified / done, matched / done)


def measure_in_turns(indexes: dict[str, StoredIndex], messages: list[Message], *, rounds: int = 9) -> dict[str, float]:
    """Milliseconds per message of indexes over the same subscriptions, as `measure_index` takes them.

    Every index answers a message before the next is asked, and of each the quickest round counts, so that a busy
    machine slows all alike or none.
    """
    first = next(iter(indexes.values()))
    total = dict.fromkeys(indexes, 0.0)
    for message in messages:
        asked = first.vocabulary.lookup(message.tokens), np.array(message.box)
        best = dict.fromkeys(indexes, np.inf)
        for _ in range(rounds):
            for name, index in indexes.items():
                start = time.perf_counter()
                index._search(*asked)
                best[name] = min(best[name], time.perf_counter() - start)
        for name in total:
            total[name] += best[name]
    return {name: 1_000 * spent / len(messages) for name, spent in total.items()}
