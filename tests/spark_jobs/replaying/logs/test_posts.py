"""Geotext in columns is what `GeoText` makes of the same cells, one by one, and is refused where that refuses it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import ContradaError
from contrada.spark_jobs.replaying.logs.decoding import Form, Format, decode
from contrada.spatial.geometry.region import Box
from contrada.spatial.textual.geotext import GeoText
from tests.spark_jobs.replaying.logs.test_decoding import batch

WORDS = (
    "ipad",
    "sale",
    "iPad",
    "AT&T",
    "ＩＰＡＤ",
    "東京",
    "!",
    "",
    " ",
    "x" * 255,
    "x" * 256,
    "caf\u0065\u0301",
    None,
)
NUMBERS = st.sampled_from((0.0, -0.0, 1.0, 2.5, 1e101, float("nan"), None))
LISTS = st.none() | st.lists(st.sampled_from(WORDS), max_size=4)
TEXTS = st.sampled_from((None, "", "iPad on sale!", "東京 AT&T", "x" * 300, "caf\u0065\u0301"))


def places(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(dict.fromkeys(names, NUMBERS))


def made(cell: dict[str, Any]) -> GeoText | None:
    try:
        if "x" in cell:
            return GeoText(cell["keywords"], at=(cell["x"], cell["y"]))
        return GeoText(cell["keywords"], within=Box(cell["x1"], cell["y1"], cell["x2"], cell["y2"]))
    except ContradaError:
        return None


def check(cells: list[dict[str, Any] | None], words: pa.DataType, names: tuple[str, ...]) -> None:
    kind = pa.struct({"keywords": words, **dict.fromkeys(names, pa.float64())})
    events = decode(batch(pa.array([{"post": cell} for cell in cells], pa.struct({"post": kind}))), Format(Form.TYPED))
    expected = [None if cell is None else made(cell) for cell in cells]
    wrong = [row for row, cell in enumerate(cells) if cell is not None and expected[row] is None]
    assert [reject.row for reject in events.rejects] == wrong
    for column in events.notifications.columns:
        assert column.kind.name == "GEOTEXT"
        kept = [expected[row] for row in events.rows.tolist()]
        there = [True] * len(kept) if column.present is None else column.present.tolist()
        assert [column.values[n] if there[n] else None for n in range(len(kept))] == kept
        some = events.notifications.take(events.rows[:0])
        assert some.size == len(some.columns[0].values) == 0


@given(st.lists(st.none() | st.tuples(LISTS, places(("x", "y"))).map(lambda c: {"keywords": c[0], **c[1]}), max_size=8))
def test_words_at_points(cells: list[Any]) -> None:
    check(cells, pa.list_(pa.string()), ("x", "y"))


@given(
    st.lists(
        st.none() | st.tuples(TEXTS, places(("x1", "y1", "x2", "y2"))).map(lambda c: {"keywords": c[0], **c[1]}),
        max_size=8,
    )
)
def test_a_text_within_boxes(cells: list[Any]) -> None:
    check(cells, pa.string(), ("x1", "y1", "x2", "y2"))


@pytest.mark.parametrize("words", [pa.string(), pa.list_(pa.string())])
def test_what_is_not_utf_8_is_a_fault_of_its_row(words: pa.DataType) -> None:
    raw = pa.array([b"ipad", b"\xff\xfe", b"sale"], pa.binary()).view(pa.string())
    column = raw if words == pa.string() else pa.ListArray.from_arrays([0, 1, 2, 3], raw)
    at = pa.array([1.0, 2.0, 3.0])
    post = pa.StructArray.from_arrays([column, at, at], ["keywords", "x", "y"])
    events = decode(batch(pa.StructArray.from_arrays([post], ["post"])), Format(Form.TYPED))
    assert [reject.row for reject in events.rejects] == [1]
    assert "not UTF-8" in events.rejects[0].reason
    assert [events.notifications.columns[0].values[n].keywords for n in range(2)] == [{"ipad"}, {"sale"}]
