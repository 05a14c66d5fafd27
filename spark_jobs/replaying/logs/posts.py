"""Geotext in Arrow columns: keywords beside a point or a box, read without an object for each.

Keywords repeat themselves. Those of a batch are looked at once each: what is a word as it stands, as nearly all are,
stays one number, and so does what is one word after folding. A row with any other keyword, with none where there should
be some, or at no place, is read as a `GeoText` would be, which tells what is wrong with it if something is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contrada.errors import ContradaError, InvalidValue
from contrada.forwarding.batches.texts import Texts
from contrada.spark_jobs.common.arrow import mask_of, numbers_of
from contrada.spatial.geometry.point import check_coordinates
from contrada.spatial.textual.geotext import check_keywords, tokenise

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from contrada.forwarding.kernels.memory.layout import Floats, Ints
    from contrada.spatial.textual.geotext import GeoText

_CORNERS: Final = ("x1", "y1", "x2", "y2")
_WORD: Final = "^[0-9a-z_]{1,255}$"  # what is surely left as it is
_ODD: Final = -1  # in place of a keyword's number


def read_posts(
    cells: pa.StructArray,
    present: NDArray[np.bool_] | None,
    make: Callable[..., GeoText],
    refuse: Callable[[int, ContradaError], None],
) -> tuple[Texts, NDArray[np.bool_]]:
    """The geotext of a column, and where there is one.

    `make` makes one of a row's fields in alphabetical order; `refuse` is told the row and what is wrong with it.
    """
    boxes, fine = _boxes(cells)
    offsets, words, vocabulary, odd = _keywords(cells.field("keywords"))
    there = np.ones(len(cells), np.bool_) if present is None else present.copy()
    strange = np.flatnonzero(there & (odd | ~fine))
    if not len(strange):
        return Texts(offsets, words, vocabulary, boxes), there
    names = sorted(field.name for field in cells.type)
    entered = _Words(vocabulary)
    found: dict[int, list[int]] = {}
    for row in strange.tolist():
        try:
            fields = cells[row].as_py()
            text = make(*(fields[name] for name in names))
        except UnicodeDecodeError:
            refuse(row, InvalidValue("a keyword is not UTF-8"))
            there[row] = False
            continue
        except ContradaError as error:
            refuse(row, error)
            there[row] = False
            continue
        boxes[row] = text.box
        found[row] = [entered.number(word) for word in text.keywords]
    lengths = np.diff(offsets)
    dropped = odd | ~fine
    kept = words[np.repeat(~dropped, lengths)]
    lengths[dropped] = 0
    return _inserted(lengths, kept, found, vocabulary, boxes), there


def _inserted(
    lengths: Ints, words: NDArray[np.int32], found: dict[int, list[int]], vocabulary: list[str], boxes: Floats
) -> Texts:
    """Texts of rows with so many words each, into which the words of some others are put."""
    rows = np.repeat(np.arange(len(lengths)), lengths)
    more = [(row, number) for row, numbers in found.items() for number in numbers]
    if more:
        others = np.array(more, np.int64)
        rows = np.concatenate((rows, others[:, 0]))
        words = np.concatenate((words, others[:, 1].astype(np.int32)))
        order = np.argsort(rows, kind="stable")
        rows, words = rows[order], words[order]
    offsets = np.searchsorted(rows, np.arange(len(lengths) + 1)).astype(np.int64)
    return Texts(offsets, words, vocabulary, boxes)


def _boxes(cells: pa.StructArray) -> tuple[Floats, NDArray[np.bool_]]:
    """The places, and which are places."""
    point = cells.type.get_field_index("x") >= 0
    axes = [_coordinates(cells.field(name)) for name in (("x", "y") if point else _CORNERS)]
    boxes = np.stack([*axes, *axes] if point else axes, axis=1) + 0.0  # no -0.0, as in Point
    fine: NDArray[np.bool_] = np.logical_and.reduce(check_coordinates(boxes), axis=1)
    if not point:
        fine &= (boxes[:, 0] < boxes[:, 2]) & (boxes[:, 1] < boxes[:, 3])
    return boxes, fine


def _coordinates(cells: pa.Array) -> Floats:
    if not (pa.types.is_floating(cells.type) or pa.types.is_integer(cells.type)):
        return np.full(len(cells), np.nan)
    numbers: Floats = cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)  # null is NaN
    return numbers


def _keywords(cells: pa.Array) -> tuple[Ints, NDArray[np.int32], list[str], NDArray[np.bool_]]:
    """Offsets, numbers of words and the words of a column; and the rows that have to be read one by one."""
    odd = np.zeros(len(cells), np.bool_) if cells.null_count == 0 else mask_of(cells.is_null())
    if pa.types.is_string(cells.type):
        texts = _strings(cells)
        odd = np.array([text is None for text in texts], np.bool_)
        cells = pa.array([[] if text is None else tokenise(text) for text in texts], pa.list_(pa.string()))
    if cells.null_count:
        cells = pc.fill_null(cells, pa.scalar([], cells.type))
    lengths = numbers_of(cells.value_lengths()).astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    flat = cells.flatten()
    coded = flat.dictionary_encode(null_encoding="encode") if len(flat) else pa.array([""]).dictionary_encode()[:0]
    meaning, vocabulary = _numbered(coded.dictionary)
    words = meaning[coded.indices.to_numpy()] if len(flat) else np.zeros(0, np.int32)
    strange = np.flatnonzero(words == _ODD)
    if len(strange):
        odd[np.searchsorted(offsets, strange, side="right") - 1] = True
    return offsets, words, vocabulary, odd


def _strings(cells: pa.Array) -> list[str | None]:
    """The strings; None for none, and for what is not UTF-8."""
    found: list[str | None] = []
    for each in cells.cast(pa.binary()).to_pylist():
        try:
            found.append(None if each is None else each.decode())
        except UnicodeDecodeError:
            found.append(None)
    return found


def _numbered(keywords: pa.Array) -> tuple[NDArray[np.int32], list[str]]:
    """The number of each different keyword, `_ODD` of those that are not one word; and the words by number."""
    meaning = np.arange(len(keywords), dtype=np.int32)
    plain = mask_of(pc.match_substring_regex(keywords, _WORD))
    words: list[str] = pc.if_else(pa.array(plain), keywords, "").to_pylist()
    others = np.flatnonzero(~plain)
    if len(others):
        entered = _Words(words)
        for place, keyword in zip(others.tolist(), _strings(keywords.take(pa.array(others))), strict=True):
            word = None if keyword is None else _one_word(keyword)
            meaning[place] = _ODD if word is None else entered.number(word)
    return meaning, words


class _Words:
    """A list of words, some of which may be nothing, that others are added to."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._numbers = {word: number for number, word in enumerate(words) if word}

    def number(self, word: str) -> int:
        """The place of a word, which is added if it is new."""
        found = self._numbers.setdefault(word, len(self._words))
        if found == len(self._words):
            self._words.append(word)
        return found


def _one_word(keyword: str) -> str | None:
    """The word that a keyword is when it is folded; None if it is no or several words, or refused."""
    try:
        words = check_keywords([keyword])
    except ContradaError:
        return None
    return next(iter(words)) if len(words) == 1 else None
