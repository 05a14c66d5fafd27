"""Subscriptions on road networks: EIA against BIA and a scan, the experiments of [ROADS] in shape.

    python -m benchmarks.roads --data DIR                          # both cities, every figure, a million subscriptions
    python -m benchmarks.roads --data DIR --city delhi --only sizes --size 4000000
    python -m benchmarks.roads --quick                             # a made-up town and words: does it run?

DIR (or $CONTRADA_DATA) has road_seattle.npz, road_delhi.npz and place_names.parquet. Subscriptions and messages stand
at random places of random edges, as in the paper; their words are those of place names (the paper's: of tweets), 1 to 5
to a subscription and 5 to 25 to a message, and weigh their idf over the names. α = 0.4 and τ = 0.7 after the paper's
worked example, since the text does not print its defaults; D_max is a tenth of the map's diagonal. Every answer of one
index is compared with the others'.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.harness import Report, data_directory
from contrada.spatial.road.graph.weights import idf_weights
from contrada.spatial.road.index.base import RoadSubscription
from contrada.spatial.road.index.bia import BasicIndex
from contrada.spatial.road.index.eia import EnhancedIndex
from contrada.spatial.road.index.scan import RoadScan
from contrada.spatial.road.network import RoadNetwork
from contrada.spatial.textual.geotext import tokenise

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from contrada.spatial.road.index.base import RoadIndex

ALPHA, TAU, REACH = 0.4, 0.7, 0.1
KEYWORDS, TOKENS = (1, 5), (5, 25)
PRINTED = 0.176  # Fig. 5: EIA needs 17.6 % of BIA's time at 12.4 million subscriptions
MATCHES = 200  # messages on which indexes are compared
SCANNED = 20  # messages that the scan is measured on
CHANGED = 10_000  # subscriptions that come and go


class Names(NamedTuple):
    """Texts: `words[offsets[i]:offsets[i + 1]]` are those of text i."""

    vocabulary: list[str]
    offsets: NDArray[np.int64]
    words: NDArray[np.int32]
    weights: dict[str, float]


class Message(NamedTuple):
    """What is searched for."""

    words: frozenset[str]
    at: tuple[float, float]


class Cost(NamedTuple):
    """Averages over messages."""

    milliseconds: float
    worst: float  # milliseconds of the slowest of a hundred
    candidates: float
    touched: float
    matched: float


@dataclass
class City:
    """A map, texts, and what is drawn from them."""

    name: str
    xy: NDArray[np.float64]
    edges: NDArray[np.int32]
    lengths: NDArray[np.float64]
    names: Names

    def network(self, reach: float = REACH) -> RoadNetwork:
        """Make the network, D_max being so much of the diagonal."""
        diagonal = float(np.hypot(*np.ptp(self.xy, axis=0)))
        return RoadNetwork(
            self.xy, self.edges, self.lengths, d_max=reach * diagonal, weights=self.names.weights, other_weight=0.0
        )

    def places(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Draw points on edges."""
        ends = self.xy[self.edges[rng.integers(0, len(self.edges), count)]]
        part = rng.random((count, 1))
        places: NDArray[np.float64] = ends[:, 0] * part + ends[:, 1] * (1 - part)
        return places

    def build(
        self,
        kind: type[RoadIndex],
        network: RoadNetwork,
        size: int,
        keywords: tuple[int, int] = KEYWORDS,
        alpha: float = ALPHA,
        tau: float = TAU,
    ) -> tuple[RoadIndex, float]:
        """Draw subscriptions, always the same, and build an index; with the seconds that it took."""
        rng = np.random.default_rng(5)
        offsets, words = _some_words(self.names, rng, size, *keywords)
        places = self.places(rng, size)
        start = time.perf_counter()
        index = kind.build_arrays(
            network,
            np.arange(size),
            offsets,
            words,
            self.names.vocabulary,
            places,
            np.full(size, alpha),
            np.full(size, tau),
        )
        return index, time.perf_counter() - start

    def messages(self, count: int, tokens: tuple[int, int] = TOKENS) -> list[Message]:
        """Draw messages."""
        rng = np.random.default_rng(7)
        offsets, words = _some_words(self.names, rng, count, *tokens)
        places = self.places(rng, count).tolist()
        return [
            Message(frozenset(self.names.vocabulary[w] for w in words[a:b].tolist()), (x, y))
            for a, b, (x, y) in zip(offsets, offsets[1:], places, strict=False)
        ]


def _some_words(
    names: Names, rng: np.random.Generator, count: int, least: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Words of texts one after another from a random one on, least to most of them."""
    sizes = rng.integers(least, most + 1, count)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    first = names.offsets[rng.integers(0, len(names.offsets) - 1, count)]
    at = np.repeat(first - offsets[:-1], sizes) + np.arange(offsets[-1])
    return offsets, names.words[at % len(names.words)]


def _texts(texts: list[str]) -> Names:
    known: dict[str, int] = {}
    words: list[int] = []
    ends = [0]
    for text in texts:
        words += [known.setdefault(word, len(known)) for word in tokenise(text)]
        ends.append(len(words))
    return Names(list(known), np.array(ends), np.array(words, np.int32), idf_weights(texts))


def place_names(data: Path) -> Names:
    import pyarrow.parquet as parquet

    table = parquet.read_table(data / "place_names.parquet", columns=["text", "source"])
    kept = [t for t, s in zip(*(table[c].to_pylist() for c in ("text", "source")), strict=True) if s != "osm_nodes"]
    np.random.default_rng(3).shuffle(kept)
    return _texts(kept)


def city(data: Path, name: str, names: Names) -> City:
    with np.load(data / f"road_{name}.npz") as file:
        return City(name, file["xy"].astype(np.float64), file["edges"], file["length"].astype(np.float64), names)


def town() -> City:
    """A grid of streets with some left out, and words by Zipf's law."""
    rng = np.random.default_rng(1)
    side = 60
    xy = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2) + rng.uniform(
        -0.3, 0.3, (side**2, 2)
    )
    number = np.arange(side**2)
    edges = np.concatenate(
        [np.stack([number, number + 1], 1)[number % side < side - 1], np.stack([number, number + side], 1)[:-side]]
    )
    edges = edges[rng.random(len(edges)) < 0.9].astype(np.int32)
    across = xy[edges[:, 0]] - xy[edges[:, 1]]
    texts = [" ".join(f"w{n}" for n in rng.zipf(1.3, 5) % 5_000) for _ in range(5_000)]
    return City("town", xy, edges, np.hypot(*across.T), _texts(texts))


def measure(index: RoadIndex, messages: list[Message]) -> Cost:
    for message in messages[:5]:
        index.search(*message)
    times, work = [], []
    for message in messages:
        start = time.perf_counter()
        index.search(*message)
        times.append(1e3 * (time.perf_counter() - start))
        work.append(index.counters)
    counts = np.array(work, float).mean(axis=0).tolist()
    return Cost(float(np.mean(times)), float(np.quantile(times, 0.99)), counts[1], counts[2], counts[3])


def compare(report: Report, city: City, title: str, setups: dict[str, dict[str, Any]], size: int, count: int) -> None:
    """Measure EIA and BIA in each set-up: a row, a point of the plot, and the ratio."""
    rows = []
    for label, setup in setups.items():
        network = city.network(setup.get("reach", REACH))
        how = {key: setup[key] for key in ("keywords", "alpha", "tau") if key in setup}
        messages = city.messages(count, setup.get("tokens", TOKENS))
        eia, built = city.build(EnhancedIndex, network, setup.get("size", size), **how)
        enhanced = measure(eia, messages)
        answers = [eia.search(*message).tolist() for message in messages[:MATCHES]]
        bia, _ = city.build(BasicIndex, network, setup.get("size", size), **how)
        basic = measure(bia, messages)
        assert answers == [bia.search(*message).tolist() for message in messages[:MATCHES]]
        rows.append(
            {
                title: label,
                "EIA, ms": enhanced.milliseconds,
                "99 %": enhanced.worst,
                "BIA, ms": basic.milliseconds,
                "EIA / BIA": enhanced.milliseconds / basic.milliseconds,
                "candidates": f"{enhanced.candidates:,.0f} / {basic.candidates:,.0f}",
                "junctions": f"{enhanced.touched:,.0f} / {basic.touched:,.0f}",
                "matches": enhanced.matched,
                "build, s": built,
            }
        )
    report.table(f"{city.name}: by {title}, {size:,} subscriptions", rows)
    xs = range(len(rows)) if title == "keywords" or title == "message words" else [float(r[title]) for r in rows]
    lines = {name: (xs, [r[f"{name}, ms"] for r in rows]) for name in ("EIA", "BIA")}
    report.plot(report.name, lines, x=title, y="ms per message", log="xy" if title == "subscriptions" else "y")


def changes(index: RoadIndex, drawn: list[Message], first: int) -> tuple[float, float]:
    """Insert subscriptions into a full index one by one, and take them out again: how many a second."""
    start = time.perf_counter()
    for id, (words, at) in enumerate(drawn, first):
        index.insert(RoadSubscription(id, words, at, ALPHA, TAU))
    middle = time.perf_counter()
    for id in range(first, first + len(drawn)):
        index.remove(id)
    return len(drawn) / (middle - start), len(drawn) / (time.perf_counter() - middle)


def sizes(report: Report, city: City, size: int, count: int) -> None:
    """Fig. 5; and at the full size a scan, changes one by one, and memory."""
    compare(
        report,
        city,
        "subscriptions",
        {str(n): {"size": n} for n in (size // 8, size // 4, size // 2, size)},
        size,
        count,
    )
    last = report.tables[f"{city.name}: by subscriptions, {size:,} subscriptions"][-1]
    network = city.network()
    messages = city.messages(SCANNED)
    scan, _ = city.build(RoadScan, network, size)
    eia, _ = city.build(EnhancedIndex, network, size)
    scanned = measure(scan, messages)
    assert [scan.search(*m).tolist() for m in messages] == [eia.search(*m).tolist() for m in messages]
    inserted, removed = changes(eia, city.messages(min(size, CHANGED), KEYWORDS), size)
    lists = sum(array.nbytes for array in eia._arrays().values())
    report.table(
        f"{city.name}: the rest of it, {size:,} subscriptions",
        [
            {
                "scan, ms": scanned.milliseconds,
                "EIA, ms": last["EIA, ms"],
                "EIA: insertions/s": inserted,
                "removals/s": removed,
                "lists, MB": lists / 1e6,
                "all, MB": sum(array.nbytes for array in eia.arrays().values()) / 1e6,
            }
        ],
    )
    report.target(
        f"{city.name}: EIA / BIA (printed: {PRINTED} at 12.4 million)", last["EIA / BIA"], 0.3, at_least=False
    )
    report.target(f"{city.name}: EIA, mean", last["EIA, ms"], 3.0, at_least=False, unit="ms")


def keywords(report: Report, city: City, size: int, count: int) -> None:
    """Fig. 6."""
    compare(report, city, "keywords", {str(n): {"keywords": (n, n)} for n in range(1, 6)}, size, count)


def tokens(report: Report, city: City, size: int, count: int) -> None:
    """Fig. 7."""
    compare(report, city, "message words", {str(n): {"tokens": (n, n)} for n in (5, 10, 15, 20, 25)}, size, count)


def alpha(report: Report, city: City, size: int, count: int) -> None:
    """Fig. 8."""
    compare(report, city, "alpha", {str(a): {"alpha": a} for a in (0.1, 0.3, 0.5, 0.7, 0.9)}, size, count)


def tau(report: Report, city: City, size: int, count: int) -> None:
    """Fig. 9."""
    compare(report, city, "tau", {str(t): {"tau": t} for t in (0.5, 0.6, 0.7, 0.8, 0.9)}, size, count)


def reach(report: Report, city: City, size: int, count: int) -> None:
    """Ours: D_max, as a part of the map's diagonal."""
    compare(report, city, "D_max / diagonal", {str(r): {"reach": r} for r in (0.02, 0.05, 0.1, 0.2, 0.4)}, size, count)


FIGURES: dict[str, Callable[[Report, City, int, int], None]] = {
    "sizes": sizes,
    "keywords": keywords,
    "tokens": tokens,
    "alpha": alpha,
    "tau": tau,
    "reach": reach,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--city", choices=("seattle", "delhi"), action="append", help="which map; both by default")
    parser.add_argument("--only", choices=tuple(FIGURES), action="append", help="which figure; all by default")
    parser.add_argument("--size", type=int, default=1_000_000, help="subscriptions")
    parser.add_argument("--messages", type=int, default=1_000, help="messages per measurement")
    parser.add_argument("--quick", action="store_true", help="a made-up town, 20,000 subscriptions and 50 messages")
    parser.add_argument("--data", help="directory of the maps and names; $CONTRADA_DATA by default")
    arguments = parser.parse_args()
    size, count = (20_000, 50) if arguments.quick else (arguments.size, arguments.messages)
    if arguments.quick:
        cities = [town()]
    else:
        data = data_directory(arguments.data)
        if data is None or not (data / "place_names.parquet").exists():
            parser.error("needs --data, a directory with road_*.npz and place_names.parquet; or --quick")
        names = place_names(data)
        cities = [city(data, name, names) for name in arguments.city or ("seattle", "delhi")]
    code = 0
    for each in cities:
        for name, figure in FIGURES.items():
            if arguments.only is None or name in arguments.only:
                report = Report(f"roads-{each.name}-{name}-{size}")
                figure(report, each, size, count)
                code |= report.finish()
    return code


if __name__ == "__main__":
    raise SystemExit(main())
