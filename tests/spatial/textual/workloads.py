"""Subscriptions and messages that the indexes' tests share: ordinary ones, and those that break indexes.

Coordinates lie on a coarse grid that includes the borders of cells of every quadtree over 0..8, so that boxes touch,
nest and coincide; words are few and skewed, so that keyword sets repeat.
"""

from __future__ import annotations

import random
import sys

from hypothesis import strategies as st

from contrada.spatial.textual.protocol import Subscription

FARTHEST = sys.float_info.max
UNIVERSE = (-FARTHEST, -FARTHEST, FARTHEST, FARTHEST)
WORDS = ["the", "a", "of", "tea", "tram", "quay", "Łódź", "", "zebra", "x" * 300]

coordinates = st.one_of(
    st.integers(0, 32).map(lambda i: i / 4.0),
    st.sampled_from([0.0, -0.0, 4.0, 8.0, 1 / 3, -1e300, 1e300, 5e-324, 1e9, -FARTHEST, FARTHEST, 3.5e38]),
)


def box_of(a: float, b: float, c: float, d: float) -> tuple[float, float, float, float]:
    return (min(a, c), min(b, d), max(a, c), max(b, d))


points = st.tuples(coordinates, coordinates).map(lambda p: (*p, *p))
boxes = st.one_of(points, st.builds(box_of, coordinates, coordinates, coordinates, coordinates))
keywords = st.frozensets(st.sampled_from(WORDS), max_size=5)
messages = st.tuples(st.frozensets(st.sampled_from([*WORDS, "unknown", "words"])), boxes)


@st.composite
def subscription_lists(draw: st.DrawFn, max_size: int = 40) -> list[Subscription]:
    """Distinct ids in no order; some subscriptions identical but for the id."""
    contents = draw(st.lists(st.tuples(keywords, boxes), max_size=max_size))
    contents += contents[: draw(st.integers(0, 10))]
    ids = draw(st.permutations(range(len(contents))))
    spread = draw(st.sampled_from([1, 7, 1_000_003]))
    return [Subscription(i * spread, *content) for i, content in zip(ids, contents, strict=True)]


def zipf_subscriptions(
    count: int, seed: int, *, words: int = 200, most: int = 5, side: float = 0.1, first: int = 0
) -> list[Subscription]:
    """A workload with structure: word ranks by Zipf's law, boxes of up to `side` clustered in the unit square."""
    rng = random.Random(seed)
    weights = [1 / (rank + 1) for rank in range(words)]
    names = [f"w{i}" for i in range(words)]
    made = []
    for i in range(count):
        x, y = (rng.random(), rng.random()) if i % 3 else (rng.gauss(0.5, 0.05), rng.gauss(0.3, 0.05))
        its = frozenset(rng.choices(names, weights, k=rng.randint(1, most)))
        made.append(Subscription(first + i, its, (x, y, x + rng.random() * side, y + rng.random() * side)))
    return made


def zipf_messages(
    count: int, seed: int, *, words: int = 200, tokens: int = 12, side: float = 0.0
) -> list[tuple[frozenset[str], tuple[float, float, float, float]]]:
    """Messages of the same world: points, or boxes of up to `side`."""
    rng = random.Random(seed)
    weights = [1 / (rank + 1) for rank in range(words)]
    names = [f"w{i}" for i in range(words)]
    made = []
    for _ in range(count):
        x, y = rng.random(), rng.random()
        its = frozenset([*rng.choices(names, weights, k=tokens), "unheard"])
        made.append((its, (x, y, x + rng.random() * side, y + rng.random() * side)))
    return made
