"""Filters column by column, for tables that are packed in bulk: no object for each, whatever their number.

Filters of two shapes come as arrays, in the order of the table's rows; all others come as they are.

    Matches     name matches words within box
    Relations   name relation region
    Filters     both, the others, whose interface each is, and which may cover or be covered

A plugged-in type keeps what the codec writes for a constraint (types/records.py). Kernels write the same bytes from the
arrays; constraints whose bytes are equal, on one name, are one, and get one handle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgpack  # type: ignore[import-untyped]  # it ships no types
import numpy as np

from contrada.errors import InvalidValue
from contrada.forwarding.codec.msgpack import BOX, REGION
from contrada.forwarding.language.constraint import Operator
from contrada.forwarding.state.hashes import hashes_of
from contrada.forwarding.types.records import Saved
from contrada.spatial.storage.jit import bare_kernel, kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contrada.forwarding.kernels.memory.layout import Bytes, Floats, Ints
    from contrada.forwarding.language.filter import Filter

RELATIONS: Final = tuple(op for op in Operator if op.mask)
"""Operators that relate to a region: `Relations.ops` are places here."""


class Matches(NamedTuple):
    """Constraints `matches … within` a box: those of filter `places[i]` has the words up to `ends[i]`, ascending."""

    places: Ints
    names: Ints  # places in Filters.names
    words: Ints  # places in the vocabulary
    ends: Ints
    vocabulary: Sequence[str]
    boxes: Floats


class Relations(NamedTuple):
    """Relations to regions: that of filter `places[i]` is canonical, not closed, and has the vertices up to `ends[i]`.

    `boxed` are those that were given as boxes.
    """

    places: Ints
    names: Ints
    ops: Ints
    boxed: NDArray[np.bool_]
    coords: Floats
    ends: Ints

    @property
    def masks(self) -> Ints:
        """The sets of relations, as bit masks."""
        return np.array([op.mask for op in RELATIONS], np.int64)[self.ops]


class Filters(NamedTuple):
    """All filters of a table, in the order of its rows."""

    names: Sequence[str]
    interfaces: Sequence[str]
    interface_places: Ints  # of each filter, a place in `interfaces`
    matches: Matches
    relations: Relations
    others: Sequence[tuple[int, Filter]]  # with their places, ascending
    weigh: NDArray[np.bool_]  # which may cover others or be covered
    coverers: Ints | None = None  # of each filter, the place of one that seems to cover it; -1: of none that is known


def check_degrees_of(filters: Filters) -> None:
    """Refuse columns with places that are not ones of longitudes from -180 to 180 and latitudes from -90 to 90."""
    for places in (filters.matches.boxes.reshape(-1, 2), filters.relations.coords):
        if len(places) and (np.abs(places) > (180.0, 90.0)).any():
            raise InvalidValue(
                "by columns, longitudes are from -180 to 180 and latitudes from -90 to 90: give others as filters"
            )


def match_texts(matches: Matches) -> tuple[Bytes, Ints]:
    """What the codec writes for each constraint, under the name x: bytes, and where each ends."""
    packed = [msgpack.packb(word) for word in matches.vocabulary]
    ends = np.cumsum([0, *map(len, packed)])
    head = np.frombuffer(_head(Operator.MATCHES) + b"\x92", np.uint8)
    counts = np.diff(matches.ends, prepend=0)
    sums = np.concatenate(([0], np.cumsum(np.diff(ends)[matches.words])))
    sizes = sums[matches.ends] - sums[matches.ends - counts]
    lengths = len(head) + np.where(counts < 16, 1, np.where(counts < 65536, 3, 5)) + sizes + 3 + 32
    text = np.empty(int(lengths.sum()), np.uint8)
    where = np.cumsum(lengths)
    words = np.frombuffer(b"".join(packed), np.uint8)
    boxes = np.ascontiguousarray(matches.boxes, "<f8").view(np.uint8).reshape(-1, 32)
    _write_matches(head, words, ends, matches.words, matches.ends, boxes, where - lengths, text)
    return text, where


def relation_texts(relations: Relations) -> tuple[Bytes, Ints]:
    """As `match_texts`, of relations."""
    heads = [_head(op) for op in RELATIONS]
    ends = np.cumsum([0, *map(len, heads)])
    counts = np.diff(relations.ends, prepend=0)
    sizes = np.where(relations.boxed, 32, 16 * counts)
    lengths = np.diff(ends)[relations.ops] + np.where(sizes < 256, 3, np.where(sizes < 65536, 4, 6)) + sizes
    text = np.empty(int(lengths.sum()), np.uint8)
    where = np.cumsum(lengths)
    _write_relations(
        np.frombuffer(b"".join(heads), np.uint8),
        ends,
        relations.ops,
        relations.boxed,
        np.ascontiguousarray(relations.coords, "<f8").view(np.uint8).reshape(-1, 16),
        relations.ends,
        where - lengths,
        text,
    )
    return text, where


def distinct(text: Bytes, ends: Ints, names: Ints) -> tuple[Saved, Ints, Ints]:
    """The different constraints of some texts under their names, by the first place of each; and the handle of each."""
    hashes = hashes_of(text, ends, names)
    starts = ends - np.diff(ends, prepend=0)
    first = np.arange(len(ends))
    order = np.argsort(hashes, kind="stable")
    raw = text.data
    for i in np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]]).tolist():
        one, two = int(first[order[i]]), int(order[i + 1])
        # Where three or more have one hash and the middle differs, the third stays by itself: no harm is done.
        if names[one] == names[two] and raw[starts[one] : ends[one]] == raw[starts[two] : ends[two]]:
            first[two] = one
    kept = np.flatnonzero(first == np.arange(len(first)))
    handles = np.empty(len(first), np.int64)
    handles[kept] = np.arange(len(kept))
    handles = handles[first]
    if len(kept) < len(first):
        sizes = (ends - starts)[kept]
        where = np.repeat(starts[kept] - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))
        text, ends = text[where], np.cumsum(sizes)
    return Saved(text, ends, hashes[kept], names[kept]), kept, handles


def _head(op: Operator) -> bytes:
    """A predicate of one filter of one constraint, up to its operand."""
    head: bytes = b"\x91\x91\x93" + msgpack.packb("x") + msgpack.packb(op.value)
    return head


@bare_kernel
def _put(source: Bytes, start: int, end: int, into: Bytes, at: int) -> int:
    for k in range(start, end):
        into[at] = source[k]
        at += 1
    return at


@kernel
def _write_matches(
    head: Bytes, words: Bytes, word_ends: Ints, chosen: Ints, ends: Ints, boxes: Bytes, starts: Ints, text: Bytes
) -> None:
    w = 0
    for i in range(ends.shape[0]):
        at = _put(head, 0, head.shape[0], text, starts[i])
        count = ends[i] - w
        if count < 16:
            text[at] = 0x90 | count
            at += 1
        elif count < 65536:
            text[at] = 0xDC
            text[at + 1] = count >> 8
            text[at + 2] = count & 255
            at += 3
        else:
            text[at] = 0xDD
            for k in range(4):
                text[at + 1 + k] = count >> (24 - 8 * k) & 255
            at += 5
        while w < ends[i]:
            at = _put(words, word_ends[chosen[w]], word_ends[chosen[w] + 1], text, at)
            w += 1
        text[at] = 0xC7
        text[at + 1] = 32
        text[at + 2] = BOX
        at += 3
        for k in range(32):
            text[at + k] = boxes[i, k]


@kernel
def _write_relations(
    heads: Bytes,
    head_ends: Ints,
    ops: Ints,
    boxed: NDArray[np.bool_],
    coords: Bytes,
    ends: Ints,
    starts: Ints,
    text: Bytes,
) -> None:
    v = 0
    for i in range(ends.shape[0]):
        at = _put(heads, head_ends[ops[i]], head_ends[ops[i] + 1], text, starts[i])
        size = 32 if boxed[i] else 16 * (ends[i] - v)
        if size < 256:
            text[at] = 0xC7
            text[at + 1] = size
            at += 2
        elif size < 65536:
            text[at] = 0xC8
            text[at + 1] = size >> 8
            text[at + 2] = size & 255
            at += 3
        else:
            text[at] = 0xC9
            for k in range(4):
                text[at + 1 + k] = size >> (24 - 8 * k) & 255
            at += 5
        text[at] = BOX if boxed[i] else REGION
        at += 1
        while v < ends[i]:
            # Of a box, counter-clockwise from its smallest corner, the first and the third say all.
            if not boxed[i] or (ends[i] - v) % 2 == 0:
                for k in range(16):
                    text[at + k] = coords[v, k]
                at += 16
            v += 1
