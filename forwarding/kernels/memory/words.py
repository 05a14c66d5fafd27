"""Variable-sized pieces of one array of words: strings, constraint lists, directories.

Pieces are powers of two, each size with its own free list (threaded through the first word of free pieces), so
allocation and release are O(1) and a churn of equal sizes reuses the same memory. The table makes sure there is room
before it enters a kernel that allocates (`GrowableArray.reserve`).
"""

from __future__ import annotations

from contrada.forwarding.kernels.memory.layout import S_WORD_FREE, S_WORDS, Bytes, Index, Ints
from contrada.spatial.storage.jit import bare_kernel


@bare_kernel
def size_class(count: int) -> int:
    """The power of two of the piece that holds `count` words."""
    power = 0
    while (1 << power) < count:
        power += 1
    return power


@bare_kernel
def take_words(index: Index, count: int) -> int:
    """A piece of at least `count` words; what it holds is arbitrary."""
    power = size_class(count)
    state = index.state
    place = state[S_WORD_FREE + power]
    if place != 0:
        state[S_WORD_FREE + power] = index.words[place]
        return place
    place = state[S_WORDS]
    state[S_WORDS] = place + (1 << power)
    return place


@bare_kernel
def give_words(index: Index, place: int, count: int) -> None:
    """Give back the piece that was taken for `count` words."""
    power = size_class(count)
    index.words[place] = index.state[S_WORD_FREE + power]
    index.state[S_WORD_FREE + power] = place


@bare_kernel
def same_bytes(a: Bytes, a_start: int, b: Bytes, b_start: int, length: int) -> bool:
    """Whether two runs of bytes are equal."""
    for i in range(length):  # noqa: SIM110  # kernels have no generators
        if a[a_start + i] != b[b_start + i]:
            return False
    return True


@bare_kernel
def compare_bytes(a: Bytes, a_start: int, a_length: int, b: Bytes, b_start: int, b_length: int) -> int:
    """The order of two strings: -1, 0 or 1. UTF-8 sorts by byte as its code points do."""
    for i in range(min(a_length, b_length)):
        x = a[a_start + i]
        y = b[b_start + i]
        if x != y:
            return -1 if x < y else 1
    if a_length == b_length:
        return 0
    return -1 if a_length < b_length else 1


@bare_kernel
def sort_run(numbers: Ints, first: int, last: int) -> None:
    """Sort `numbers[first:last]`: by insertion when short, else as a heap."""
    count = last - first
    if count <= 32:
        for i in range(first + 1, last):
            number = numbers[i]
            j = i
            while j > first and numbers[j - 1] > number:
                numbers[j] = numbers[j - 1]
                j -= 1
            numbers[j] = number
        return
    for root in range(count // 2 - 1, -1, -1):
        _sift(numbers, first, root, count)
    for end in range(count - 1, 0, -1):
        numbers[first], numbers[first + end] = numbers[first + end], numbers[first]
        _sift(numbers, first, 0, end)


@bare_kernel
def _sift(numbers: Ints, first: int, root: int, count: int) -> None:
    number = numbers[first + root]
    child = 2 * root + 1
    while child < count:
        if child + 1 < count and numbers[first + child + 1] > numbers[first + child]:
            child += 1
        if numbers[first + child] <= number:
            break
        numbers[first + root] = numbers[first + child]
        root = child
        child = 2 * root + 1
    numbers[first + root] = number
