"""Filters read from a column of texts against `parse`: the same filter, or left to it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import ContradaError
from contrada.forwarding.batches.packed_columns import RELATIONS
from contrada.forwarding.language.constraint import Constraint
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.language.operands import TextMatch
from contrada.forwarding.language.text.parse import parse
from contrada.spark_jobs.build.rows.column_language import read_texts
from contrada.spark_jobs.build.staging import BOX_MATCH, OTHER, POLYGON
from contrada.spark_jobs.common.arrow import text_of
from contrada.spatial.geometry.region import Box, Region
from tests.forwarding.strategies import predicates

QUICK = [
    'post matches {"ipad"} within BOX(0 0, 5 5)',
    ' post\t matches{"b", "a" ,"b"} within BOX( -1.5e1 0.5 , 5.25 1E+2 ) ',
    'a.b-c matches {"x_1"} within BOX(-0.0 -0 , 5 5)',
    "area intersects POLYGON((0 0, 4 0, 0 4))",
    "Area_2 covered-by POLYGON ( (0 0,4 0, 0 4, 0 0) )",
    "android inside BOX(1 2, 3 4)",
    "area contains BOX(1e-9 2, 0.1000000000000000055511151231257827 4)",
    "area equals POLYGON((4 4, 2 4, 0 4, 0 0, 4 0))",
]
SLOW = [
    "area inside POLYGON((0 0, 4 0, 0 99999999999999999999))",
    "area inside or covered-by POLYGON((0 0, 4 0, 0 4))",
    "not area inside POLYGON((0 0, 4 0, 0 4))",
    "area inside POLYGON((0 0, 4 0, 0 4), (1 1, 2 1, 1 2))",
    "area inside MULTIPOLYGON(((0 0, 4 0, 0 4)), ((5 5, 6 5, 6 6)))",
    "area not inside BOX(1 2, 3 4)",
    'not post prefix "a"',
    'post MATCHES {"ipad"} within BOX(0 0, 5 5)',
    'post matches {"iPad"} within BOX(0 0, 5 5)',
    'post matches {"café"} within BOX(0 0, 5 5)',
    'post matches {"a\\u0062"} within BOX(0 0, 5 5)',
    'post matches {" a"} within BOX(0 0, 5 5)',
    'post matches {"a"}',
    'post matches {"a"} within POLYGON((0 0, 4 0, 0 4))',
    '"post" matches {"a"} within BOX(0 0, 5 5)',
    'posté matches {"a"} within BOX(0 0, 5 5)',
    'post matches {"a"} within BOX(+1 .5, 5. 5)',
    "area inside box(1 2, 3 4)",
    "area inside BOX(1 2, 3 4) or price < 3",
    'stock = "MTK" and price < 100',
]
WRONG = [
    "",
    " ",
    'and matches {"a"} within BOX(0 0, 5 5)',
    "OR inside BOX(1 2, 3 4)",
    'post matches {"a"} within BOX(5 0, 0 5)',
    'post matches {"a"} within BOX(0 0, 1e300 5)',
    'post matches {"a"} within BOX(0 0, 1e999 5)',
    'post matches {"a"} within BOX(0 1e-200, 1 5)',
    'post matches {"a"} withinBOX(0 0, 5 5)',
    "post matches {} within BOX(0 0, 5 5)",
    f'post matches {{"{"a" * 256}"}} within BOX(0 0, 5 5)',
    f'{"n" * 500} matches {{"a"}} within BOX(0 0, 5 5)',
    "area inside POLYGON((0 0, 4 4, 4 0, 0 4))",
    "area inside POLYGON((0 0, 4 0))",
    "area inside POLYGON((0 0 0, 4 0 0, 0 4 0))",
    "area intersects POLYGON((0 0, 4 0, 0 2026-11-16))",
    "area near POLYGON((0 0, 4 0, 0 4))",
    "area inside BOX(1 2, 3 4) x",
    "area inside BOX(1 2, 3 4",
]


def read(texts: list[str]) -> list[Filter | None]:
    """The filters of a column; None where one is left to `parse`. A slice, so that nothing relies on offsets."""
    column = pa.array(["before", *texts, "after"]).slice(1, len(texts))
    found = read_texts(text_of(column))
    made: list[Filter | None] = [None] * len(texts)
    starts = [0, *found.word_ends.tolist()]
    vertices = [0, *found.ring_ends.tolist()]
    assert len(found.rows) == len(found.ops) == len(found.boxes) == len(starts) - 1 == len(vertices) - 1
    for i, row in enumerate(found.rows.tolist()):
        name = string(found.names, i)
        box = Box(*found.boxes[i].tolist())
        if found.shapes[row] == BOX_MATCH:
            words = frozenset(string(found.words, k) for k in range(starts[i], starts[i + 1]))
            made[row] = Filter(Constraint(name, "matches", TextMatch(words, box)))
        elif found.shapes[row] == POLYGON:
            region = Region(found.rings[vertices[i] : vertices[i + 1]])
            assert np.array_equal(region.coords, found.rings[vertices[i] : vertices[i + 1]]), "it is canonical"
            assert region.bounds == box.bounds
            made[row] = Filter(Constraint(name, RELATIONS[found.ops[i]], region))
        else:
            made[row] = Filter(Constraint(name, RELATIONS[found.ops[i]], box))
    assert [each is None for each in made] == (found.shapes == OTHER).tolist()
    return made


def string(text: tuple[np.ndarray, np.ndarray], i: int) -> str:
    offsets, data = text
    return bytes(data[offsets[i] : offsets[i + 1]]).decode()


def test_which_are_read_and_as_what() -> None:
    texts = [*QUICK, *SLOW, *WRONG]
    made = read(texts)
    assert [each is not None for each in made] == [True] * len(QUICK) + [False] * (len(SLOW) + len(WRONG))
    assert made[: len(QUICK)] == [parse(text) for text in QUICK]
    for text in SLOW:
        parse(text)
    for text in WRONG:
        with pytest.raises(ContradaError):
            parse(text)


def test_no_texts() -> None:
    assert read([]) == []


def compare(texts: list[str]) -> None:
    for text, found in zip(texts, read(texts), strict=True):
        assert found is None or found == parse(text)


@given(st.lists(predicates(), max_size=3))
def test_whatever_filters_are_written_as(written: list[object]) -> None:
    compare(list(map(str, written)))


@given(
    st.sampled_from(QUICK), st.integers(0, 60), st.sampled_from(['"', ")", ",", "0", "e", "-", " ", "é", "and ", "{"])
)
def test_texts_that_are_nearly_right(text: str, at: int, piece: str) -> None:
    compare([text[:at] + piece + text[at:], text[:at] + text[at + 1 :], text])


@given(st.lists(st.floats(-1e100, 1e100).filter(lambda x: x == 0 or abs(x) > 1e-90), min_size=2, max_size=2))
def test_numbers_are_rounded_as_python_does(corner: list[float]) -> None:
    x, y = corner
    text = f"area inside BOX({x!r} {y!r}, 1e100 1e100)"
    (found,) = read([text.replace("1e100", "9e99")])
    if found is not None:
        assert found == parse(text.replace("1e100", "9e99"))
