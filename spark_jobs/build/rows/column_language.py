"""The commonest filters from a column of texts, without an object for each: for jobs that read millions.

`parse` (parse.py) says what a text means and what is wrong with it. A kernel reads the shapes that machines write

    name matches {"word", …} within BOX(x1 y1, x2 y2)
    name relation POLYGON((x y, …))
    name relation BOX(x1 y1, x2 y2)

straight from the bytes of the column: it finds where names, words and numbers lie, and arrays of those are made of the
spans. Numbers become doubles by Arrow's cast, which rounds as Python does. Whatever does not look exactly so, or may
not be valid (a ring that crosses itself, a coordinate out of range), has the shape OTHER and is left to `parse`: the
two never differ. Plain ASCII only; linear in the bytes.

    shape    (n,)        OTHER, BOX_MATCH, POLYGON or BOX
    names    Text        of the m rows that were read, ascending; `rows` says which they are
    ops      (m,)        place in RELATIONS; -1 for `matches`
    boxes    (m, 4)      of the box, or around the ring
    words    Text, with `word_ends` (m,)   keywords, as they stand: in any order, with repeats
    rings    (v, 2) with `ring_ends` (m,)  canonical vertices, not closed, of polygons
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from contrada.forwarding.batches.columns import Text
from contrada.forwarding.batches.packed_columns import RELATIONS
from contrada.forwarding.language.values import MAX_NAME
from contrada.spark_jobs.build.staging import BOX, BOX_MATCH, OTHER, POLYGON
from contrada.spatial.geometry.canonical import MAX_VERTICES, SOUND, canonical_ring
from contrada.spatial.geometry.predicates import MAX_MAGNITUDE, MIN_MAGNITUDE
from contrada.spatial.storage.jit import bare_kernel, kernel
from contrada.spatial.textual.geotext import MAX_KEYWORD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contrada.forwarding.kernels.memory.layout import Bytes, Floats, Ints

_WORDS: Final = np.frombuffer(b"".join(op.value.encode() for op in RELATIONS), np.uint8)
_WORD_ENDS: Final = np.cumsum([0, *(len(op.value) for op in RELATIONS)])
_DIGITS: Final = 18  # of an integer that surely fits in 64 bits
_NUMBER: Final = 40  # bytes of a number; a longer one is for `parse`

_SPACE, _QUOTE, _COMMA, _POINT, _MINUS, _PLUS = 32, 34, 44, 46, 45, 43
_OPEN, _CLOSE, _BRACE, _UNBRACE = 40, 41, 123, 125


class Read(NamedTuple):
    """What was read; see the module."""

    shapes: NDArray[np.int8]
    rows: Ints
    names: Text
    ops: Ints
    boxes: Floats
    words: Text
    word_ends: Ints
    rings: Floats
    ring_ends: Ints


def read_texts(texts: Text) -> Read:
    """Read the filters of a column that have one of the shapes."""
    n = len(texts.offsets) - 1
    data, offsets = texts.data, np.ascontiguousarray(texts.offsets, np.int64)
    total = int(offsets[-1] - offsets[0])
    shapes, ops = np.zeros(n, np.int8), np.full(n, -1, np.int64)
    names = np.empty((n, 2), np.int64)
    words, numbers = np.empty((total // 3 + 1, 2), np.int64), np.empty((total // 2 + 1, 2), np.int64)
    word_ends, number_ends = np.empty(n, np.int64), np.empty(n, np.int64)
    _scan(data, offsets, _WORDS, _WORD_ENDS, shapes, ops, names, words, word_ends, numbers, number_ends)
    digits = _gathered(data, numbers[: number_ends[-1] if n else 0])
    values = _strings(digits).cast(pa.float64()).to_numpy() + 0.0  # -0.0 becomes 0.0, as coordinates have it
    boxes, sizes = np.empty((n, 4)), np.zeros(n, np.int64)
    rings = np.empty((len(values) // 2, 2))
    _measure(shapes, values, number_ends, boxes, rings, sizes)
    rows = np.flatnonzero(shapes)
    counts = np.diff(word_ends, prepend=0)
    chosen = words[: word_ends[-1] if n else 0]
    if len(rows) < n:
        chosen = chosen[np.repeat(shapes != OTHER, counts)]
    return Read(
        shapes,
        rows,
        _gathered(data, names[rows]),
        ops[rows],
        boxes[rows],
        _gathered(data, chosen),
        np.cumsum(counts[rows]),
        rings[: int(sizes.sum())],
        np.cumsum(sizes[rows]),
    )


def _strings(text: Text) -> pa.LargeStringArray:
    return pa.LargeStringArray.from_buffers(len(text.offsets) - 1, pa.py_buffer(text.offsets), pa.py_buffer(text.data))


def _gathered(data: Bytes, spans: Ints) -> Text:
    """The texts at some spans, one after another."""
    offsets = np.zeros(len(spans) + 1, np.int64)
    np.cumsum(spans[:, 1] - spans[:, 0], out=offsets[1:])
    gathered = np.empty(int(offsets[-1]), np.uint8)
    _copy(data, spans, offsets, gathered)
    return Text(offsets, gathered)


@kernel
def _copy(data: Bytes, spans: Ints, offsets: Ints, into: Bytes) -> None:
    for i in range(spans.shape[0]):
        start, at = spans[i, 0], offsets[i]
        for k in range(spans[i, 1] - start):
            into[at + k] = data[start + k]


@kernel
def _measure(
    shapes: NDArray[np.int8], values: Floats, number_ends: Ints, boxes: Floats, rings: Floats, sizes: Ints
) -> None:
    """The boxes and rings that the numbers describe; what may not be valid becomes OTHER."""
    start = 0
    vertices = 0
    for i in range(shapes.shape[0]):
        end = number_ends[i]
        shape = shapes[i]
        if shape != OTHER:
            for k in range(start, end):
                if values[k] != 0.0 and not MIN_MAGNITUDE <= abs(values[k]) <= MAX_MAGNITUDE:
                    shape = OTHER
        if shape == POLYGON:
            fault, _, _, _, _, xy, runs = canonical_ring(values[start:end].reshape(((end - start) // 2, 2)))
            if fault == SOUND:
                boxes[i] = runs[runs.shape[0] - 1]
                sizes[i] = xy.shape[0] - 1
                rings[vertices : vertices + sizes[i]] = xy[:-1]
                vertices += sizes[i]
            else:
                shape = OTHER
        elif shape != OTHER:
            if values[start] < values[start + 2] and values[start + 1] < values[start + 3]:
                boxes[i] = values[start:end]
            else:
                shape = OTHER
        shapes[i] = shape
        start = end


@kernel
def _scan(
    data: Bytes,
    offsets: Ints,
    relations: Bytes,
    relation_ends: Ints,
    shapes: NDArray[np.int8],
    ops: Ints,
    names: Ints,
    words: Ints,
    word_ends: Ints,
    numbers: Ints,
    number_ends: Ints,
) -> None:
    """Find shapes and spans. A row that turns out to be OTHER leaves no spans behind."""
    word, number = 0, 0
    for i in range(shapes.shape[0]):
        at, end = _spaces(data, offsets[i], offsets[i + 1]), offsets[i + 1]
        shape, w, m = OTHER, word, number
        stop = _name(data, at, end)
        if stop > at:
            names[i, 0], names[i, 1] = at, stop
            at = _spaces(data, stop, end)
            op = -1
            if at > stop and _literal(data, at, end, b"matches"):
                at, w = _keywords(data, _spaces(data, at + 7, end), end, words, w)
                if w > word and _literal(data, at, end, b"within") and at + 6 < end and _is_space(data[at + 6]):
                    shape = BOX_MATCH
                    at = _spaces(data, at + 6, end)
            elif at > stop:
                op, at = _relation(data, at, end, relations, relation_ends)
                if op >= 0:
                    shape = BOX
            if shape != OTHER:
                if _literal(data, at, end, b"BOX"):
                    at, m = _positions(data, _spaces(data, at + 3, end), end, numbers, m)
                    if m - number != 4:
                        shape = OTHER
                elif shape == BOX and _literal(data, at, end, b"POLYGON"):
                    shape = POLYGON
                    at = _spaces(data, at + 7, end)
                    if at < end and data[at] == _OPEN:
                        at, m = _positions(data, _spaces(data, at + 1, end), end, numbers, m)
                        at = at + 1 if at < end and data[at] == _CLOSE else end + 1
                    if m == number or m - number > 2 * MAX_VERTICES:
                        shape = OTHER
                else:
                    shape = OTHER
                if at > end or _spaces(data, at, end) != end:
                    shape = OTHER
            if shape != OTHER:
                shapes[i] = shape
                ops[i] = op
                word, number = w, m
        word_ends[i], number_ends[i] = word, number


@bare_kernel
def _is_space(byte: int) -> bool:
    return byte == _SPACE or 9 <= byte <= 13


@bare_kernel
def _spaces(data: Bytes, at: int, end: int) -> int:
    """Where the spaces from here on end."""
    while at < end and _is_space(data[at]):
        at += 1
    return at


@bare_kernel
def _is_word(byte: int) -> bool:
    return 97 <= byte <= 122 or 48 <= byte <= 57 or byte == 95


@bare_kernel
def _is_digit(byte: int) -> bool:
    return 48 <= byte <= 57


@bare_kernel
def _name(data: Bytes, at: int, end: int) -> int:
    """Where the name that begins here ends; here, if there is none, or one that is reserved or too long."""
    start = at
    if at < end and (_is_word(data[at] | 32) or data[at] == 95) and not _is_digit(data[at]):
        while at < end and (_is_word(data[at]) or 65 <= data[at] <= 90 or data[at] == _POINT or data[at] == _MINUS):
            at += 1
    if at < end and data[at] >= 128:
        return start  # it may go on
    if at - start > MAX_NAME or (at - start <= 3 and _is_reserved(data, start, at)):
        return start
    return at


@bare_kernel
def _is_reserved(data: Bytes, start: int, end: int) -> bool:
    a = data[start] | 32 if end > start else 0
    b = data[start + 1] | 32 if end > start + 1 else 0
    c = data[start + 2] | 32 if end > start + 2 else 0
    if a == 97:  # and
        return b == 110 and c == 100
    if a == 110:  # not
        return b == 111 and c == 116
    return a == 111 and b == 114 and c == 0  # or


@bare_kernel
def _literal(data: Bytes, at: int, end: int, text: bytes) -> bool:
    """Whether the text stands here."""
    if end - at < len(text):
        return False
    k = 0
    while k < len(text) and data[at + k] == text[k]:
        k += 1
    return k == len(text)


@bare_kernel
def _relation(data: Bytes, at: int, end: int, relations: Bytes, ends: Ints) -> tuple[int, int]:
    """Which relation stands here, followed by a space, and where what it relates to begins; -1 for none."""
    for r in range(ends.shape[0] - 1):
        size = ends[r + 1] - ends[r]
        if end - at <= size or not _is_space(data[at + size]):
            continue
        k = 0
        while k < size and data[at + k] == relations[ends[r] + k]:
            k += 1
        if k == size:
            return r, _spaces(data, at + size, end)
    return -1, at


@bare_kernel
def _keywords(data: Bytes, at: int, end: int, words: Ints, count: int) -> tuple[int, int]:
    """Read {"word", …}; where what follows begins, and how many words there are now; as many as before if it is not."""
    before = count
    if at >= end or data[at] != _BRACE:
        return at, before
    at = _spaces(data, at + 1, end)
    while True:
        if at >= end or data[at] != _QUOTE:
            return at, before
        start = at + 1
        at = start
        while at < end and _is_word(data[at]):
            at += 1
        if at >= end or data[at] != _QUOTE or not 0 < at - start <= MAX_KEYWORD:
            return at, before
        words[count, 0], words[count, 1] = start, at
        count += 1
        at = _spaces(data, at + 1, end)
        if at < end and data[at] == _COMMA:
            at = _spaces(data, at + 1, end)
        elif at < end and data[at] == _UNBRACE:
            return _spaces(data, at + 1, end), count
        else:
            return at, before


@bare_kernel
def _positions(data: Bytes, at: int, end: int, numbers: Ints, count: int) -> tuple[int, int]:
    """Read (x y, …); the byte after what is read, spaces skipped, and how many numbers there are now.

    As many as before if it is not that.
    """
    before = count
    if at >= end or data[at] != _OPEN:
        return at, before
    at = _spaces(data, at + 1, end)
    while True:
        for axis in range(2):
            stop = _number(data, at, end)
            if stop == at:
                return at, before
            numbers[count, 0], numbers[count, 1] = at, stop
            count += 1
            at = _spaces(data, stop, end)
            if axis == 0 and at == stop:
                return at, before
        if at < end and data[at] == _COMMA:
            at = _spaces(data, at + 1, end)
        elif at < end and data[at] == _CLOSE:
            return _spaces(data, at + 1, end), count
        else:
            return at, before


@bare_kernel
def _number(data: Bytes, at: int, end: int) -> int:
    """Where the number that begins here ends; here, if there is none or one that only `parse` should read."""
    start = at
    if at < end and data[at] == _MINUS:
        at += 1
    first = at
    while at < end and _is_digit(data[at]):
        at += 1
    whole = at - first
    if whole == 0:
        return start
    if at < end and data[at] == _POINT:
        first = at + 1
        at = first
        while at < end and _is_digit(data[at]):
            at += 1
        if at == first:
            return start
    elif whole > _DIGITS:
        return start
    if at < end and data[at] | 32 == 101:
        at += 1
        if at < end and (data[at] == _MINUS or data[at] == _PLUS):
            at += 1
        first = at
        while at < end and _is_digit(data[at]):
            at += 1
        if not 0 < at - first <= 2:
            return start
    return at if at - start <= _NUMBER else start
