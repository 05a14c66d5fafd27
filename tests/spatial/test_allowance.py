"""An allowance: what is answered within it is right, what is not raises, and nothing is the worse for it."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.spatial import allowance
from contrada.spatial.allowance import Exhausted, allowed


def test_within_the_block_only_so_much_may_be_spent_and_afterwards_as_before():
    with allowed(10):
        allowance.spend(10)
        with allowed(3), pytest.raises(Exhausted):
            allowance.spend(4)
        with pytest.raises(Exhausted):
            allowance.spend(1)
    allowance.spend(10**15)


def test_what_a_kernel_has_used_up_is_noticed():
    with allowed(5):
        left = allowance.left()
        allowance.check(left)
        left[0] -= 6
        with pytest.raises(Exhausted):
            allowance.check(left)


def test_each_thread_has_its_own():
    seen = []
    with allowed(1):
        thread = threading.Thread(target=lambda: seen.append(allowance.left()[0]))
        thread.start()
        thread.join()
        assert allowance.left()[0] == 1
    assert seen == [np.int64(1 << 62)]


@given(st.integers(0, 1 << 70))
def test_any_number_may_be_allowed(units):
    with allowed(units):
        allowance.spend(min(units, 1 << 61))
