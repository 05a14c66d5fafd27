"""The index over envelopes against a list of them."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.forwarding.covering.envelope_index import BLOCK, EnvelopeIndex
from tests.naive.envelopes import NaiveEnvelopes

WORKLOADS = ("scattered", "alike", "on a line", "drifting", "without samples")


def envelope(rng: random.Random, workload: str, step: int, dimensions: int) -> list[list[float]]:
    if workload == "alike":
        return [[0.0] * dimensions, [1.0] * dimensions, [0.5] * dimensions, [0.5] * dimensions]
    base = step if workload == "drifting" else 0
    centre = [base + rng.choice([rng.randrange(4), rng.uniform(0, 100)]) for _ in range(dimensions)]
    if workload == "on a line":
        centre = [centre[0], *(7.0 for _ in centre[1:])]
    width = rng.choice([0.0, 1.0, 30.0, math.inf])
    least = [c - width / 8 if width < math.inf else c for c in centre]
    most = [c + width / 8 if width < math.inf else c for c in centre]
    if workload == "without samples" and rng.random() < 0.7:
        least, most = [math.inf] * dimensions, [-math.inf] * dimensions
    return [[c - width / 2 for c in centre], [c + width / 2 for c in centre], least, most]


@pytest.mark.parametrize("workload", WORKLOADS)
@given(st.integers(0, 2**32), st.integers(1, 4))
@settings(max_examples=8)
def test_answers_equal_a_scan_whatever_comes_and_goes(workload, seed, dimensions):
    rng = random.Random(seed)
    index, twin = EnvelopeIndex(dimensions), NaiveEnvelopes()
    for step in range(rng.choice([20, 300, 1000])):
        if twin.envelopes and rng.random() < (0.6 if step // 100 % 2 else 0.2):
            gone = rng.choice([*twin.envelopes])
            index.remove(gone)
            del twin.envelopes[gone]
        else:
            made = envelope(rng, workload, step, dimensions)
            number = index.add(made)
            assert number not in twin.envelopes
            twin.envelopes[number] = made
        if step % 20 == 0:
            index._check()
            low, high, least, most = envelope(rng, workload, step, dimensions)
            for a, b in ((low, high), (least, most), ([-math.inf] * dimensions, [math.inf] * dimensions)):
                assert sorted(index.around(a, b)) == sorted(twin.around(a, b))
                assert sorted(index.within(a, b)) == sorted(twin.within(a, b))
    assert len(index) == len(twin.envelopes)
    index._check()


@pytest.mark.parametrize("side", [1, -1])
def test_envelopes_that_close_in_on_many_alike_keep_within_the_room(side):
    """Each comes into the block of those alike, and would be cut off alone."""
    index, twin = EnvelopeIndex(2), NaiveEnvelopes()
    for step in range(20 * BLOCK):
        x = 0.0 if step < BLOCK - 1 else side * (20.0 * BLOCK - step)
        made = [[x, 7.0]] * 4
        twin.envelopes[index.add(made)] = made
        assert int(index._envelopes.state[0]) <= len(index._envelopes.counts)  # kernels do not check
    index._check()
    for a, b in (([0.0, 0.0], [0.0, 7.0]), ([-9.0, 7.0], [9.0, 7.0]), ([5.0, 7.0], [5.0, 7.0])):
        assert sorted(index.around(a, b)) == sorted(twin.around(a, b))
        assert sorted(index.within(a, b)) == sorted(twin.within(a, b))


def test_envelopes_that_come_and_go_take_no_more_room():
    """Blocks that a drifting set leaves empty are given up."""
    index = EnvelopeIndex(2)
    rng = random.Random(1)
    numbers = [index.add(envelope(rng, "drifting", step, 2)) for step in range(20 * BLOCK)]
    for step in range(20 * BLOCK, 400 * BLOCK):
        index.remove(numbers[step - 20 * BLOCK])
        numbers.append(index.add(envelope(rng, "drifting", step, 2)))
    index._check()
    assert len(index._envelopes.counts) < 5 * 20 + 8
    assert len(index._envelopes.places) < 3 * 20 * BLOCK
