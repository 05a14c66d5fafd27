"""What is brought together: ids that come twice, and filters that others cover, against the slow way."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.forwarding.language.filter import Filter
from contrada.forwarding.language.operands import TextMatch
from contrada.forwarding.language.text.parse import parse
from contrada.spark_jobs.build.cover.cover_groups import CoverGroups
from contrada.spark_jobs.build.cover.coverers import MOST_COMPARED, cover_records, find_coverers
from contrada.spark_jobs.build.cover.repeated_ids import CLASHING, REPEATED, find_repeated, id_records
from contrada.spark_jobs.build.rows.parsing import parse_batch
from contrada.spark_jobs.build.statistics import groups_of

Row = tuple[str, str, str]


def records(rows: list[Row]) -> tuple[pa.Table, pa.Table, list[int]]:
    """The records of rows, and which row each ref is of: rows that are read quickly come first."""
    names = ("id", "interface", "filter")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    batch = pa.RecordBatch.from_pydict({"source": ["f"] * len(rows), "row": list(range(len(rows))), **columns})
    parsed = parse_batch(batch, "columns")
    assert not len(parsed.bad)
    refs = np.arange(len(rows)) * 10
    groups = groups_of(parsed.rows.column("name"))
    return id_records(parsed.rows, refs, 7), cover_records(parsed, refs, groups), parsed.rows.column("row").to_pylist()


CONTENT = ['p matches {"a"} within BOX(0 0, 1 1)', "x > 1", "r inside BOX(0 0, 1 1)", "r inside BOX(0 0, 1 2)"]
rows = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(("I", "J")), st.sampled_from(CONTENT)), min_size=1, max_size=8
)


@given(rows)
def test_doubles(given: list[Row]) -> None:
    ids, _, order = records(given)
    by_id = defaultdict(list)
    for n, row in enumerate(order):
        by_id[given[row][0]].append((10 * n, given[row][1:]))
    expected = {}
    for held in by_id.values():
        clash = len({content for _, content in held}) > 1
        for ref, _ in held if clash else held[1:]:
            expected[ref] = CLASHING if clash else REPEATED
    found = find_repeated(ids)
    assert dict(zip(found.refs.tolist(), found.faults.tolist(), strict=True)) == expected
    assert found.refs.tolist() == sorted(found.refs.tolist())


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ('p matches {"ab", "c"} within BOX(0 0, 1 1)', 'p matches {"a", "bc"} within BOX(0 0, 1 1)'),
        ('p matches {"a"} within BOX(0 0, 1 1)', 'q matches {"a"} within BOX(0 0, 1 1)'),
        ("r inside BOX(0 0, 1 1)", "r meets BOX(0 0, 1 1)"),
        ("r inside POLYGON((0 0, 9 0, 0 9))", "r inside POLYGON((0 0, 9 0, 9 9, 0 9))"),
        ("x > 1", "x > 2"),
    ],
)
def test_what_differs_in_anything_clashes(one: str, two: str) -> None:
    ids, _, _ = records([("s", "I", one), ("s", "I", two)])
    assert find_repeated(ids).faults.tolist() == [CLASHING] * 2
    same, _, _ = records([("s", "I", one), ("s", "I", one)])
    assert find_repeated(same).faults.tolist() == [REPEATED]


def area(filter: Filter) -> float:
    (constraint,) = filter.constraints
    assert isinstance(constraint.value, TextMatch)
    assert constraint.value.within is not None
    x1, y1, x2, y2 = constraint.value.within.bounds
    return (x2 - x1) * (y2 - y1)


def test_box_matches_find_who_covers_them() -> None:
    rng = random.Random(5)
    given: list[Row] = []
    for n in range(300):
        x, y, size = rng.randrange(6), rng.randrange(6), rng.randint(1, 4)
        words = ", ".join(f'"{word}"' for word in rng.sample("abcdef", rng.randint(1, 3)))
        given.append(
            (f"s{n}", f"I{rng.randrange(20)}", f"p matches {{{words}}} within BOX({x} {y}, {x + size} {y + 3})")
        )
    _, covers, order = records(given)
    filters = [(interface, parse(text)) for _, interface, text in (given[row] for row in order)]
    expected: dict[int, list[tuple[float, int]]] = {}
    for g, (interface, covered) in enumerate(filters):
        assert isinstance(covered, Filter)
        for f, (other, coverer) in enumerate(filters):
            assert isinstance(coverer, Filter)
            if f != g and interface == other and coverer.covers(covered) and (f < g or not covered.covers(coverer)):
                expected.setdefault(10 * g, []).append((-area(coverer), 10 * f))
    found = find_coverers(covers)
    assert dict(zip(found["ref"].to_pylist(), found["coverer"].to_pylist(), strict=True)) == {
        g: min(each)[1] for g, each in expected.items()
    }
    assert len(expected) > 20


def test_others_meet_by_kind_and_box() -> None:
    given = [
        ("a", "I", "r intersects BOX(0 0, 9 9)"),
        ("b", "I", "r inside POLYGON((1 1, 3 1, 1 3))"),
        ("c", "J", "r inside POLYGON((1 1, 3 1, 1 3))"),
        ("d", "I", "x > 1"),
        ("e", "I", 'x > 2 and s = "k"'),
        ("f", "I", "r disjoint BOX(0 0, 1 1)"),
        ("g", "I", "x > 1 and x < 0"),
    ]
    _, covers, order = records(given)
    names = [given[row][0] for row in order]
    found = find_coverers(covers)
    pairs = zip(found["ref"].to_pylist(), found["coverer"].to_pylist(), strict=True)
    assert {(names[g // 10], names[f // 10]) for g, f in pairs} == {("b", "a"), ("e", "d")}


def test_of_boxes_inside_one_another_all_are_found() -> None:
    rows = [(f"s{n}", "I", f'p matches {{"hot"}} within BOX(0 0, {n + 1} 1)') for n in range(3 * MOST_COMPARED)]
    rows += [(f"t{n}", "I", f"r inside BOX({n} {n}, {9999 - n} {9999 - n})") for n in range(3 * MOST_COMPARED)]
    random.Random(3).shuffle(rows)
    _, covers, _ = records(rows)
    assert len(find_coverers(covers)) == len(rows) - 2


def pairs_of(pairs: dict[int, int]) -> pa.Table:
    refs, roots = np.array(list(pairs), np.int64), np.array(list(pairs.values()), np.int64)
    zeros = np.zeros(len(pairs), np.int64)
    columns = {"ref": refs, "coverer": roots, "kind": zeros, "group": zeros, "x": roots + 0.0, "y": roots + 0.0}
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def test_groups_follow_chains_and_stay_small() -> None:
    pairs = {1: 2, 2: 3, 3: 4, 9: 8, **dict.fromkeys(range(20, 30), 5)}
    groups = CoverGroups.of(pairs_of(pairs), np.array([8]), 4)
    members = dict(zip(groups.refs.tolist(), groups.roots.tolist(), strict=True))
    assert members == {1: 4, 2: 4, 3: 4, 4: 4, 5: -1, **dict.fromkeys(range(20, 30), -1)}
    led = dict(zip(groups.refs[:4].tolist(), groups.x[:4].tolist(), strict=True))
    assert led == dict.fromkeys((1, 2, 3, 4), 4.0)
    at, found = groups.find(np.array([0, 3, 30]))
    assert found.tolist() == [False, True, False]
    assert groups.refs[at[1]] == 3


def test_no_groups(tmp_path_factory: pytest.TempPathFactory) -> None:
    groups = CoverGroups.of(pairs_of({}), np.zeros(0, np.int64), 4)
    path = groups.save(str(tmp_path_factory.mktemp("groups") / "groups.npz"))
    assert [len(each) for each in CoverGroups.load(path)] == [0] * 6
    assert groups.find(np.array([1, 2]))[1].tolist() == [False, False]
