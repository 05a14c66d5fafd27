"""Posting lists: whom to look at when an operand is hit.

A list is a chain of blocks of 4, then 16, then 64 rows, so that the many lists of one filter are small and the few
long ones are read in runs. A block's first row is (next block, size class << 32 | entries); an entry is:

    mask      what the filter needs of a notification (kernels/match/masks.py): an entry with a bit that the
              notification has not is skipped without touching the filter
    payload   filter << 33 | alone << 32 | counted << 31 | interface; `alone` says that the posting's constraint is the
              only one, `counted` that each of the filter's constraints has a posting

The head block is the only one that is not full. Append and removal are O(1): the last entry takes the removed one's
place, and the caller is told whose posting moved.
"""

from __future__ import annotations

from contrada.forwarding.kernels.memory.bits import halves, high_half
from contrada.forwarding.kernels.memory.layout import S_POSTING_COUNT, S_POSTING_FREE, S_POSTINGS, Index
from contrada.spatial.storage.jit import bare_kernel

COUNT = (1 << 32) - 1


@bare_kernel
def block_rows(size: int) -> int:
    """Rows of a block of size class 0, 1 or 2, its header among them."""
    return 4 << (2 * size)


@bare_kernel
def push_posting(index: Index, head: int, mask: int, payload: int) -> tuple[int, int]:
    """Append an entry; the list's new head and the entry's place."""
    postings, state = index.postings, index.state
    size = 0
    if head != 0:
        size = high_half(postings[head, 1])
        count = postings[head, 1] & COUNT
        if count == block_rows(size) - 1:
            size = min(size + 1, 2)
        else:
            size = -1
    if size >= 0:
        block = state[S_POSTING_FREE + size]
        if block != 0:
            state[S_POSTING_FREE + size] = postings[block, 0]
        else:
            block = state[S_POSTINGS]
            state[S_POSTINGS] = block + block_rows(size)
        postings[block, 0] = head
        postings[block, 1] = halves(size, 0)
        head = block
    postings[head, 1] += 1
    place = head + (postings[head, 1] & COUNT)
    postings[place, 0] = mask
    postings[place, 1] = payload
    state[S_POSTING_COUNT] += 1
    return head, place


@bare_kernel
def drop_posting(index: Index, head: int, place: int) -> tuple[int, int, int]:
    """Remove the entry at `place`; the new head, and the place and payload of the entry that took it over.

    The place is 0 when nothing moved.
    """
    postings, state = index.postings, index.state
    last = head + (postings[head, 1] & COUNT)
    moved = 0
    payload = 0
    if last != place:
        postings[place, 0] = postings[last, 0]
        payload = postings[last, 1]
        postings[place, 1] = payload
        moved = last
    postings[head, 1] -= 1
    state[S_POSTING_COUNT] -= 1
    if postings[head, 1] & COUNT == 0:
        size = high_half(postings[head, 1])
        following = postings[head, 0]
        postings[head, 0] = state[S_POSTING_FREE + size]
        state[S_POSTING_FREE + size] = head
        head = following
    return head, moved, payload
