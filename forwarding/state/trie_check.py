"""Every invariant of the tries that patterns are in (kernels/substrings/tries.py), asserted: for tests."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from contrada.forwarding.kernels.match.patterns import DIGITS, LONGEST_AFFIX
from contrada.forwarding.kernels.memory import layout as at
from contrada.forwarding.kernels.substrings.fingerprints import PRIME

if TYPE_CHECKING:
    from contrada.forwarding.state.memory import Memory

_LOW_HALF = (1 << 32) - 1
_LARGEST_TOP = 5


def check_tries(memory: Memory) -> None:
    """Assert that patterns, nodes, their handles and what fields say of them agree."""
    _Checker(memory).check()


class _Checker:
    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.operands = memory.index.operands[: memory.state[at.S_OPERANDS]].tolist()
        self.base = int(memory.state[at.S_BASE])
        self.reached: set[int] = set()

    def check(self) -> None:
        assert self.base * int(self.memory.state[at.S_INVERSE]) % PRIME == 1
        live = [o for o, row in enumerate(self.operands) if o and row[at.O_REFS]]
        patterns = {o for o in live if self._is_kept(self.operands[o])}
        salts: dict[int, int] = {}
        bits: dict[int, Counter[int]] = {}
        for pattern in sorted(patterns):
            row = self.operands[pattern]
            assert self.operands[row[at.O_KEY]][at.O_LOW] & _LOW_HALF == pattern
            counted = bits.setdefault(row[at.O_TAG] >> 8, Counter())
            counted[DIGITS + row[at.O_LEN].bit_length() - 1] += 1
            if row[at.O_TAG] & 255 == at.PATTERN_CONTAINS:
                counted[_top_power(row[at.O_LEN])] += 1
            top = row[at.O_KEY]
            while self.operands[top][at.O_LOW] >> 32:
                top = self.operands[top][at.O_LOW] >> 32
            if top not in self.reached:
                self._check_below(top, row[at.O_TAG], salts)
        nodes = {o for o in live if self.operands[o][at.O_TAG] & 255 == at.NODE}
        assert self.reached == nodes
        for name, counted in bits.items():
            tries = int(self.memory.index.fields[name * at.KINDS + at.STRING, at.N_TRIES])
            marked = {bit for bit in range(DIGITS + 40) if tries >> bit & 1 and (bit >= DIGITS or bit <= _LARGEST_TOP)}
            assert marked == set(counted)

    def _is_kept(self, row: list[int]) -> bool:
        kind = row[at.O_TAG] & 255
        return kind == at.PATTERN_CONTAINS or (
            kind in (at.PATTERN_PREFIX, at.PATTERN_SUFFIX) and row[at.O_LEN] > LONGEST_AFFIX
        )

    def _check_below(self, top: int, tag: int, salts: dict[int, int]) -> None:
        """Walk a trie of patterns of one name and kind."""
        waiting = [top]
        while waiting:
            node = waiting.pop()
            self.reached.add(node)
            row = self.operands[node]
            assert row[at.O_TAG] == tag >> 8 << 8 | at.NODE
            children = self._children(node)
            pattern = row[at.O_LOW] & _LOW_HALF
            assert pattern or len(children) > 1, "a node that is no pattern is a fork"
            extent = self._extent(node)
            if pattern:
                assert self.operands[pattern][at.O_TAG] == tag
                assert self.operands[pattern][at.O_LEN] == row[at.O_LEN]
            assert row[at.O_KEY] == self._fingerprint(extent)
            parent = row[at.O_LOW] >> 32
            handle = (
                1 << _top_power(len(extent)) if parent == 0 else _fattest(self.operands[parent][at.O_LEN], len(extent))
            )
            salt = row[at.O_HASH] ^ self._fingerprint(extent[:handle])
            assert salts.setdefault(tag, salt) == salt, "handles are where binary searches probe"
            bytes_ = []
            for child in children:
                below = self.operands[child]
                assert below[at.O_LOW] >> 32 == node
                assert below[at.O_LEN] > row[at.O_LEN]
                longer = self._extent(child)
                assert longer.startswith(extent)
                assert below[at.O_REFS] == 1 + longer[len(extent)]
                bytes_.append(below[at.O_REFS])
            assert len(set(bytes_)) == len(bytes_)
            waiting += children

    def _children(self, node: int) -> list[int]:
        children = []
        child = self.operands[node][at.O_POSTED] >> 32
        while child:
            children.append(child)
            child = self.operands[child][at.O_POSTED] & _LOW_HALF
        return children

    def _extent(self, node: int) -> bytes:
        length = self.operands[node][at.O_LEN]
        while not self.operands[node][at.O_LOW] & _LOW_HALF:
            node = self.operands[node][at.O_POSTED] >> 32
        row = self.operands[self.operands[node][at.O_LOW] & _LOW_HALF]
        text = bytes(self.memory.index.text[row[at.O_LOW] : row[at.O_LOW] + row[at.O_LEN]])
        return (text[::-1] if row[at.O_TAG] & 255 == at.PATTERN_SUFFIX else text)[:length]

    def _fingerprint(self, text: bytes) -> int:
        total = 0
        for byte in reversed(text):
            total = (total * self.base + byte + 1) % PRIME
        return total


def _top_power(length: int) -> int:
    return min(length.bit_length() - 1, _LARGEST_TOP)


def _fattest(low: int, high: int) -> int:
    return max(range(low + 1, high + 1), key=lambda length: length & -length)
