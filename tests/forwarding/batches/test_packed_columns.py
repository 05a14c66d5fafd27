"""Tables packed from columns against tables packed from filters, one object each."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.forwarding.batches.packed_columns import (
    RELATIONS,
    Filters,
    Matches,
    Relations,
    distinct,
    match_texts,
    relation_texts,
)
from contrada.forwarding.codec.msgpack import encode_filter
from contrada.forwarding.language.constraint import Constraint
from contrada.forwarding.language.filter import Filter
from contrada.forwarding.language.operands import TextMatch
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.table.table import ForwardingTable
from contrada.spatial.geometry.region import Box, Region
from tests.forwarding.strategies import filters, notifications

if TYPE_CHECKING:
    from pathlib import Path


boxes = st.builds(
    lambda x, y, w, h: Box(x, y, x + w, y + h), *[st.integers(-4, 4)] * 2, st.integers(1, 6), st.integers(1, 6)
)
triangles = st.builds(
    lambda x, y, w: Region([(x, y), (x + w, y), (x, y + w)]), *[st.integers(-4, 4)] * 2, st.integers(1, 6)
)
words = st.frozensets(st.sampled_from(("a", "b", "é", "w" * 40, "ü" * 200)), min_size=1)
plain = st.one_of(
    st.builds(lambda n, k, b: Filter(Constraint(n, "matches", TextMatch(k, b))), st.sampled_from("pq"), words, boxes),
    st.builds(
        lambda n, op, r: Filter(Constraint(n, op, r)),
        st.sampled_from("rs"),
        st.sampled_from(RELATIONS),
        boxes | triangles,
    ),
)
rows = st.lists(st.tuples(st.sampled_from(("I1", "I2", "I3")), plain | filters()), max_size=12)

pytestmark = pytest.mark.usefixtures("every_matching")


def columns_of(pairs: list[tuple[str, Filter]]) -> Filters:
    """Filters as columns, the slow way."""
    names: dict[str, int] = {}
    interfaces: dict[str, int] = {}
    vocabulary: dict[str, int] = {}
    matches: list[tuple[int, int, list[int], tuple[float, ...]]] = []
    relations: list[tuple[int, int, int, bool, np.ndarray]] = []
    others = []
    for place, (_, each) in enumerate(pairs):
        first = each.constraints[0] if len(each.constraints) == 1 else None
        if first is not None and isinstance(first.value, TextMatch) and type(first.value.within) is Box:
            held = [vocabulary.setdefault(word, len(vocabulary)) for word in sorted(first.value.keywords)]
            matches.append((place, names.setdefault(first.name, len(names)), held, first.value.within.bounds))
        elif (
            first is not None
            and first.op in RELATIONS  # no sets of relations
            and isinstance(first.value, Region)
            and not first.value.is_compound
        ):
            number = names.setdefault(first.name, len(names))
            boxed = type(first.value) is Box
            relations.append((place, number, RELATIONS.index(first.op), boxed, first.value.coords))
        else:
            others.append((place, each))
    interface_places = [interfaces.setdefault(interface, len(interfaces)) for interface, _ in pairs]
    return Filters(
        list(names),
        list(interfaces),
        ints(interface_places),
        Matches(
            ints([m[0] for m in matches]),
            ints([m[1] for m in matches]),
            ints([word for m in matches for word in m[2]]),
            np.cumsum(ints([len(m[2]) for m in matches])),
            list(vocabulary),
            np.array([m[3] for m in matches]).reshape(-1, 4),
        ),
        Relations(
            ints([r[0] for r in relations]),
            ints([r[1] for r in relations]),
            ints([r[2] for r in relations]),
            np.array([r[3] for r in relations], np.bool_),
            np.concatenate([np.zeros((0, 2)), *(r[4] for r in relations)]),
            np.cumsum(ints([len(r[4]) for r in relations])),
        ),
        others,
        np.ones(len(pairs), np.bool_),
    )


def ints(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


@given(rows, st.lists(notifications(), max_size=4), st.data())
def test_as_packed_from_filters(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, Filter]], batch: list, data: st.DataObject
) -> None:
    table = ForwardingTable.packed_columns(columns_of(pairs))
    twin = ForwardingTable.packed(pairs)
    table._check()
    assert [table.filter(n + 1) for n in range(len(table))] == [each for _, each in pairs]
    assert table.match_many(batch) == twin.match_many(batch)
    assert table.match_many_filters(batch) == twin.match_many_filters(batch)

    path: Path = tmp_path_factory.mktemp("packed") / "table"
    table.save(path)
    loaded = ForwardingTable.load(path)
    gone = data.draw(st.lists(st.sampled_from(range(1, len(pairs) + 1)), unique=True)) if pairs else []
    for each in (loaded, table, twin):
        for id in gone:
            each.remove(id)
        each.add_many(pairs[:3])
        each._check()
    assert loaded.match_many_filters(batch) == table.match_many_filters(batch) == twin.match_many_filters(batch)
    for each in (loaded, table):  # what was taken in at once, changed, and written again
        each.save(path)
        again = ForwardingTable.load(path)
        again._check()
        assert again.match_many_filters(batch) == twin.match_many_filters(batch)


def test_a_store_whose_runs_were_compacted_loads_again(tmp_path: Path) -> None:
    texts = [f'q matches {{"a"}} within BOX(0 {y}, 1 {y + 1})' for y in range(3)]
    table = ForwardingTable.packed([("I", parse(text)) for text in texts])
    for id in (3, 1):
        table.remove(id)
    table.add_many([("I", text) for text in texts])
    table.save(tmp_path / "table")
    assert len(ForwardingTable.load(tmp_path / "table")) == 4


@given(st.lists(plain, max_size=8))
def test_texts_are_what_the_codec_writes(given: list[Filter]) -> None:
    columns = columns_of([("I", each) for each in given])
    for texts, places in (
        (match_texts(columns.matches), columns.matches.places),
        (relation_texts(columns.relations), columns.relations.places),
    ):
        text, ends = texts
        starts = [0, *ends.tolist()]
        found = [bytes(text[start:end]) for start, end in pairwise(starts)]
        constraints = [given[place].constraints[0] for place in places.tolist()]
        expected = [encode_filter(Filter(Constraint("x", each.op, each.value))) for each in constraints]
        assert found == expected


def test_a_ring_of_many_vertices_and_a_match_of_many_words() -> None:
    angles = [k / 5000 * 6.283 for k in range(5000)]
    large = Filter(Constraint("area", "inside", Region(np.column_stack((np.cos(angles), np.sin(angles))))))
    wordy = Filter(Constraint("post", "matches", TextMatch(frozenset(f"w{n}" for n in range(300)), Box(0, 0, 1, 1))))
    pairs = [("I", large), ("I", wordy)]
    table = ForwardingTable.packed_columns(columns_of(pairs))
    table._check()
    assert [table.filter(1), table.filter(2)] == [large, wordy]


def test_equal_texts_under_one_name_are_one() -> None:
    texts = [b"a", b"b", b"a", b"a", b"b"]
    text, ends = np.frombuffer(b"".join(texts), np.uint8), np.arange(1, 6)
    saved, kept, handles = distinct(text, ends, ints([1, 1, 1, 2, 1]))
    assert kept.tolist() == [0, 1, 3]
    assert handles.tolist() == [0, 1, 0, 2, 1]
    assert bytes(saved.text) == b"aba"
    assert saved.names.tolist() == [1, 1, 2]
