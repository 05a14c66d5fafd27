"""`RoadIndex`, the base of the indexes of subscriptions on a road network: places, weights and files.

A subscription is keywords at a place, with α and τ; a message is words at a place. The answer is that of evaluating
every subscription by `RoadNetwork.similar`, whichever index is asked. An index writes the methods of `SlotIndex`
(spatial/textual/slot_index.py), and

    _candidates(message, left)     slots that may match, each once, with their TSIM; read-only. It takes what it costs
                                   from the allowance (spatial/allowance.py), and ends where that does

Words have ids from the vocabulary, rarest last, as in the geotext indexes. The order matters to speed alone.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from contrada.errors import InvalidValue
from contrada.spatial import allowance
from contrada.spatial.geometry.point import Point, check_coordinates
from contrada.spatial.road.index.verification import ALPHA, FACTS, TAU, TOTAL, Candidates, Message, Placed, verify
from contrada.spatial.storage.arrays_file import load_arrays, save_arrays
from contrada.spatial.storage.row_numbers import check_lengths, check_rows, check_shapes, check_that
from contrada.spatial.textual.slot_index import SlotIndex, check_id, check_runs, check_words, name_arrays
from contrada.spatial.textual.store import SubscriptionStore, grow
from contrada.spatial.textual.vocabulary import WILDCARD, Vocabulary

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from contrada.spatial.road.network import Place, RoadNetwork


class RoadSubscription(NamedTuple):
    """Keywords at a place, under the caller's id; similar are messages of a similarity of at least `tau`."""

    id: int
    keywords: frozenset[str]
    at: tuple[float, float]
    alpha: float
    tau: float


class RoadCounters(NamedTuple):
    """Work done by the last search."""

    lists: int  # inverted lists read
    candidates: int  # subscriptions whose distance was asked for
    touched: int  # junctions that the expansion reached
    matched: int


class RoadIndex(SlotIndex):
    """Base of the indexes."""

    def __init__(self, network: RoadNetwork) -> None:
        self._prepare(network)
        self._build()

    def _prepare(self, network: RoadNetwork) -> None:
        self.network = network
        self.counters = RoadCounters(0, 0, 0, 0)
        self.vocabulary = Vocabulary()
        self.store = SubscriptionStore()
        self.roads: NDArray[np.int32] = np.full(16, -1, np.int32)
        self.facts: NDArray[np.float64] = np.zeros((16, FACTS))
        self._weights: NDArray[np.float64] = np.zeros(16)  # by word id; the wildcard weighs nothing

    @classmethod
    def build(cls, network: RoadNetwork, subscriptions: Iterable[RoadSubscription]) -> Self:
        """Bulk load; answers as if every subscription had been inserted."""
        given = [RoadSubscription(*each) for each in subscriptions]
        words: dict[str, int] = {}
        keywords: list[int] = []
        ends = [0]
        for id, its_words, _, _, _ in given:
            keywords += [words.setdefault(word, len(words)) for word in check_words(its_words, f"subscription {id}")]
            ends.append(len(keywords))
        return cls.build_arrays(
            network,
            np.array([check_id(each.id) for each in given], np.int64),
            ends,
            np.array(keywords, np.int32),
            list(words),
            np.array([tuple(Point.of(each.at)) for each in given], np.float64).reshape(-1, 2),
            np.array([each.alpha for each in given], np.float64),
            np.array([each.tau for each in given], np.float64),
        )

    @classmethod
    def build_arrays(
        cls,
        network: RoadNetwork,
        ids: ArrayLike,
        offsets: ArrayLike,
        keywords: ArrayLike,
        vocabulary: Sequence[str],
        points: NDArray[np.float64],
        alpha: NDArray[np.float64],
        tau: NDArray[np.float64],
    ) -> Self:
        """Bulk load from flat arrays.

        Subscription `ids[i]` has the words `vocabulary[k] for k in keywords[offsets[i]:offsets[i + 1]]`, folded, at
        `points[i]`.
        """
        ids, offsets, keywords = check_runs(ids, offsets, keywords, vocabulary)
        n = ids.size
        if points.shape != (n, 2) or alpha.shape != (n,) or tau.shape != (n,):
            raise InvalidValue(f"{n} ids need as many points, alphas and taus")
        if not check_coordinates(points).all():
            raise InvalidValue("a subscription is at a point that is not finite, or outside 1e-100 to 1e100")
        if not (((alpha >= 0) & (alpha <= 1)).all() and ((tau >= 0) & (tau <= 1)).all()):
            raise InvalidValue("alpha and tau are from 0 to 1")
        made = cls.__new__(cls)
        made._prepare(network)
        if n:
            made._fill(ids.astype(np.int32), offsets, keywords, vocabulary, points, alpha, tau)
        made._build()
        return made

    def _fill(
        self,
        ids: NDArray[np.int32],
        offsets: NDArray[np.int64],
        keywords: NDArray[Any],
        vocabulary: Sequence[str],
        points: NDArray[np.float64],
        alpha: NDArray[np.float64],
        tau: NDArray[np.float64],
    ) -> None:
        self.roads, placed = self.network.on_roads(points)
        shifted = keywords.astype(np.int32) + np.int32(1)
        boxes = np.concatenate([placed[:, 1:], placed[:, 1:]], axis=1)
        order, df = self.store.fill(ids, offsets, shifted, len(vocabulary), boxes)
        self.vocabulary = Vocabulary([vocabulary[i - 1] for i in order.tolist()], df)
        self._weigh(range(1, self.vocabulary.size))
        rows = self.store.rows
        total = np.add.reduceat(self._weights[rows.keywords[: int(rows.length.sum())]], rows.start)
        self.facts = np.column_stack([placed, alpha, tau, total])

    def _weigh(self, ids: Iterable[int]) -> None:
        """Look up what words weigh."""
        self._weights = grow(self._weights, self.vocabulary.size)
        of, word = self.network.weights.of, self.vocabulary.word
        for id in ids:
            if id != WILDCARD:
                self._weights[id] = of(word(id))

    def insert(self, subscription: RoadSubscription) -> None:
        """Add one subscription. `InvalidValue` when its id is in use, or it is not one."""
        id, words, at, alpha, tau = RoadSubscription(*subscription)
        words = check_words(words, f"subscription {id}")
        point = np.array([tuple(Point.of(at))])
        if not (0 <= alpha <= 1 and 0 <= tau <= 1):
            raise InvalidValue(f"subscription {id}: alpha and tau are from 0 to 1, not {alpha!r} and {tau!r}")
        if self.store.slot(check_id(id)) >= 0:
            raise InvalidValue(f"subscription {id}: the id is in use; remove it first")
        road, placed = self.network.on_roads(point)
        _, x, y = placed[0].tolist()
        keywords = self.vocabulary.acquire(words)
        self._weigh(keywords.tolist())
        slot = self.store.add(id, keywords, (x, y, x, y))
        self.roads = grow(self.roads, slot + 1, -1)
        self.facts = grow(self.facts, slot + 1)
        self.roads[slot] = road[0]
        self.facts[slot, :3] = placed[0]
        self.facts[slot, 3:] = alpha, tau, self._weights[keywords].sum()
        self._insert(slot)

    def search(self, keywords: Collection[str], at: Place) -> NDArray[np.int64]:
        """Ids of the subscriptions that a message of these keywords there is similar to, in ascending order."""
        if isinstance(keywords, str):
            raise InvalidValue(f"message: keywords are a collection of strings, not {keywords!r}")
        tokens = self.vocabulary.lookup(keywords)
        if tokens.size and tokens[0] == WILDCARD:
            tokens = tokens[1:]
        network = self.network
        road, placed = network.on_roads(np.array([tuple(Point.of(at))]))
        along, x, y = placed[0].tolist()
        message = Message(int(road[0]), along, x, y, tokens, self._weights[tokens])
        left = allowance.left()
        candidates = self._candidates(message, left)
        found, touched = np.empty(0, np.int32), 0
        if candidates.slots.size:
            scratch = network.take_scratch()
            found, touched = verify(network.graph, scratch, message, candidates, self.placed, network.d_max, left)
            network.give_scratch(scratch)
        allowance.check(left)
        self.counters = RoadCounters(candidates.visited, candidates.slots.size, touched, found.size)
        ids = self.store.rows.ids[found].astype(np.int64)
        ids.sort()
        return ids

    @property
    def placed(self) -> Placed:
        """The subscriptions as kernels take them."""
        rows = self.store.rows
        return Placed(rows.start, rows.length, rows.keywords, self.roads, self.facts)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything but the network as arrays, with the network's digest."""
        used = self.store.used
        return {
            **name_arrays(store=self.store.arrays(), vocabulary=self.vocabulary.arrays(), lists=self._arrays()),
            "roads": self.roads[:used],
            "facts": self.facts[:used],
            "network": np.frombuffer(f"{self.version} {self.network.digest}".encode(), np.uint8),
        }

    @classmethod
    def fits(cls, network: RoadNetwork, arrays: Mapping[str, NDArray[Any]]) -> bool:
        """Whether arrays are of an index of this kind, by this version, over this very network."""
        return arrays["network"].tobytes() == f"{cls.version} {network.digest}".encode()

    @classmethod
    def from_arrays(cls, network: RoadNetwork, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make an index of what `arrays` gave, mapped or not. `InvalidValue` when it is over another network."""
        if not cls.fits(network, arrays):
            raise InvalidValue(f"this index ({cls.name}) was made over another road network, or by another version")
        parts: dict[str, dict[str, NDArray[Any]]] = {"store": {}, "vocabulary": {}, "lists": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            if rest:
                parts[part][rest] = array
        made = cls.__new__(cls)
        made._prepare(network)
        made.vocabulary = Vocabulary.from_arrays(parts["vocabulary"])
        made.store = SubscriptionStore.from_arrays(parts["store"], made.vocabulary.size)
        made.roads, made.facts = arrays["roads"], arrays["facts"]
        what = "subscriptions on roads"
        check_shapes(what, arrays, {"roads": (np.int32, ()), "facts": (np.float64, (FACTS,))})
        check_lengths(what, made.store.used, made.roads, made.facts)
        check_rows(f"{what}: roads", made.roads, len(network.graph.road_length))
        live = made.store.slots
        facts, lengths = made.facts[live], network.graph.road_length[made.roads[live]]
        check_that(f"{what}: a place that is none", np.isfinite(facts))
        check_that(f"{what}: a place beyond its road", (facts[:, 0] >= 0) & (facts[:, 0] <= lengths))
        check_that(f"{what}: alpha and tau", (facts[:, ALPHA : TAU + 1] >= 0) & (facts[:, ALPHA : TAU + 1] <= 1))
        made._weigh(np.flatnonzero(made.vocabulary.df[: made.vocabulary.size]).tolist())
        made._restore(parts["lists"])
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one file that `load` maps back; the network is not part of it."""
        save_arrays(path, kind=f"road-index:{self.name}", version=self.version, arrays=self.arrays())

    @classmethod
    def load(cls, network: RoadNetwork, path: str | os.PathLike[str], *, verify: bool = True) -> Self:
        """Map a saved index over its network; it can be changed afterwards, which the file never sees."""
        arrays, _ = load_arrays(path, kind=f"road-index:{cls.name}", version=cls.version, verify=verify)
        return cls.from_arrays(network, arrays)

    def _check(self) -> None:
        """Assert every invariant of the store, the vocabulary, the structure and the places."""
        super()._check()
        for slot in self.store.slots.tolist():
            assert self.facts[slot, TOTAL] == self._weights[self.store.keywords(slot)].sum()
            assert 0 <= self.facts[slot, ALPHA] <= 1
            assert 0 <= self.facts[slot, TAU] <= 1
            assert 0 <= self.facts[slot, 0] <= self.network.graph.road_length[self.roads[slot]]
        for id in np.flatnonzero(self.vocabulary.df[: self.vocabulary.size]).tolist():
            assert self._weights[id] == (self.network.weights.of(self.vocabulary.word(id)) if id else 0.0)

    @abstractmethod
    def _candidates(self, message: Message, left: allowance.Left) -> Candidates:
        """Slots that may match, each once."""
