"""From candidates to answers: one bounded expansion from the message ([ROADS], Algorithm 2), for every index.

Subscriptions stand in the slots of a store (`spatial.textual.store`), which holds their keywords. Beside it:

    road   int32   (c,)    the road of each slot's place
    facts  float64 (c, 6)  how far along, x, y (`road/graph/places.py`), α, τ, and what its keywords weigh together

A candidate comes with its TSIM, known exactly. The expansion ends at the radius given, or when both ends of every
candidate's road have their distances, whichever is sooner; or with its allowance, and then the answer is not whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contrada.spatial.road.graph.expansion import Graph, Scratch, forget
from contrada.spatial.road.graph.places import ALONG, distance_to, expand_to
from contrada.spatial.road.index.similarity import similarity
from contrada.spatial.storage.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALPHA = 3
TAU = 4
TOTAL = 5
FACTS = 6

# Units of an allowance:
PER_ENTRY = 8  # for a key of a word's directory,
PER_LIST = 40  # for a list that is read,
PER_SLOT = 60  # and for a subscription on it


class Message(NamedTuple):
    """A message as kernels take it: where it is, and its words that any subscription has."""

    road: int
    along: float
    x: float
    y: float
    tokens: NDArray[np.int32]  # distinct, ascending
    weights: NDArray[np.float64]  # of the tokens


class Placed(NamedTuple):
    """Subscriptions as kernels take them, by slot: their keywords in the store, and their places."""

    start: NDArray[np.int64]
    length: NDArray[np.int32]
    keywords: NDArray[np.int32]
    roads: NDArray[np.int32]
    facts: NDArray[np.float64]


class Candidates(NamedTuple):
    """Slots that may match, each once."""

    slots: NDArray[np.int32]
    words: NDArray[np.float64]  # TSIM of each
    radius: float  # no match is farther
    visited: int  # lists that were read


@kernel
def verify(
    graph: Graph,
    scratch: Scratch,
    message: Message,
    candidates: Candidates,
    placed: Placed,
    d_max: float,
    left: NDArray[np.int64],
) -> tuple[NDArray[np.int32], int]:
    """Return the slots that match, and how many junctions the expansion touched."""
    ends, road_length, facts = graph.ends, graph.road_length, placed.facts
    slots, words = candidates.slots, candidates.words
    roads = placed.roads[slots]
    touched = expand_to(graph, scratch, message.road, message.along, roads, candidates.radius, left)
    found = np.empty(slots.size, np.int32)
    count = 0
    for i in range(slots.size):
        slot = slots[i]
        far = distance_to(
            ends, road_length, scratch.distance, message.road, message.along, roads[i], facts[slot, ALONG]
        )
        if far <= d_max and similarity(facts[slot, ALPHA], far, d_max, words[i]) >= facts[slot, TAU]:
            found[count] = slot
            count += 1
    forget(scratch, touched)
    return found[:count], touched


@kernel
def token_places(tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return a hash map from a message's tokens to their places, at most a quarter full: rows of token and place."""
    size = 16
    while size < 4 * tokens.size:
        size *= 2
    table = np.full((size, 2), -1, np.int32)
    for i in range(tokens.size):
        h = ((tokens[i] * 2654435761) >> 13) & (size - 1)
        while table[h, 0] >= 0:
            h = (h + 1) & (size - 1)
        table[h, 0] = tokens[i]
        table[h, 1] = i
    return table


@kernel
def place_of(table: NDArray[np.int32], token: int) -> int:
    """Return the place of a token in the message, or -1."""
    mask = table.shape[0] - 1
    h = ((token * 2654435761) >> 13) & mask
    while table[h, 0] >= 0:
        if table[h, 0] == token:
            return int(table[h, 1])
        h = (h + 1) & mask
    return -1


@kernel
def shared(
    table: NDArray[np.int32],
    weights: NDArray[np.float64],
    keywords: NDArray[np.int32],
    first: int,
    length: int,
    token: int,
) -> float:
    """Return the weight of the keywords of a run that the message has; -1 unless `token` is the rarest of these.

    Rarest is last in the run. Token 0, the wildcard, asks that the message has none. So of all the lists that hold a
    subscription, one takes it up.
    """
    weight = 0.0
    met = False
    for i in range(first + length - 1, first - 1, -1):
        place = place_of(table, keywords[i])
        if place >= 0:
            if not met and keywords[i] != token:
                return -1.0
            met = True
            weight += weights[place]
    return weight if met or token == 0 else -1.0
