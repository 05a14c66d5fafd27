"""Whether one string contains another, in time linear in their lengths whatever they are made of."""

from __future__ import annotations

import numpy as np

from contrada.forwarding.kernels.memory.layout import S_BASE, S_INVERSE, Bytes, Index
from contrada.forwarding.kernels.memory.words import same_bytes
from contrada.forwarding.kernels.substrings.fingerprints import PRIME, fingerprint, plus, times
from contrada.spatial.storage.jit import bare_kernel

UNKNOWN = -1
_PLAIN = 4  # steps per byte that the plain search may take


@bare_kernel
def scan(text: Bytes, start: int, length: int, patterns: Bytes, at: int, size: int, most: int) -> tuple[int, int]:
    """Compare at each place in turn: 1 or 0, or UNKNOWN when `most` steps did not decide it; and the steps taken.

    On ordinary text this is the fastest way, a step or two per byte.
    """
    first = patterns[at]
    matched = 0
    for place in range(start, start + length - size + 1):
        if text[place] == first:
            i = 1
            while i < size and text[place + i] == patterns[at + i]:
                i += 1
            if i == size:
                return 1, matched + place + 1 - start
            matched += i
            if matched + place - start > most:
                return UNKNOWN, matched + place + 1 - start
    return 0, matched + length


@bare_kernel
def has_bytes(index: Index, text: Bytes, start: int, length: int, at: int, size: int) -> bool:
    """Whether `text[start : start + length]` contains `index.text[at : at + size]`, `size` being at least 1.

    Where comparing gets stuck, a fingerprint is rolled along the text, and only what has the pattern's is compared.
    """
    if size > length:
        return False
    answer, _ = scan(text, start, length, index.text, at, size, _PLAIN * length)
    if answer != UNKNOWN:
        return answer == 1
    base, inverse = index.state[S_BASE], index.state[S_INVERSE]
    wanted = fingerprint(index.text, at, 1, size, base)
    rolled = fingerprint(text, start, 1, size, base)
    last = 1
    for _ in range(size - 1):
        last = times(last, base)
    place = start
    while True:
        if rolled == wanted and same_bytes(text, place, index.text, at, size):
            return True
        if place + size == start + length:
            return False
        rolled -= np.int64(text[place]) + 1
        rolled = times(rolled + (PRIME & (rolled >> 63)), inverse)
        rolled = plus(rolled, times(np.int64(text[place + size]) + 1, last))
        place += 1
