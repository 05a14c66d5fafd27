"""Of what is covered a build finds as much as a table that is filled one by one, and no answer depends on it."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.forwarding.covering import simplify
from contrada.forwarding.language.text.parse import parse
from contrada.forwarding.table.table import ForwardingTable
from contrada.spark_jobs.build.build_index import build_index
from contrada.spark_jobs.build.building import filters_of
from contrada.spark_jobs.build.rows.parsing import parse_batch
from contrada.spatial.geometry.region import Box
from contrada.spatial.textual.geotext import GeoText

if TYPE_CHECKING:
    from pathlib import Path


def nested(count: int) -> list[str]:
    boxes = [f"area intersects BOX({n} {n}, {3 * count - n} {3 * count - n})" for n in range(count)]
    random.Random(1).shuffle(boxes)
    return boxes


def scattered(count: int, what: str) -> list[str]:
    rng = np.random.default_rng(2)
    corners, sides = rng.uniform(0, 1000, (count, 2)), rng.uniform(1, 200, (count, 2))
    ends = corners + sides
    return [f"{what} BOX({x} {y}, {u} {v})" for (x, y), (u, v) in zip(corners.tolist(), ends.tolist(), strict=True)]


@pytest.mark.parametrize(
    "texts",
    [
        nested(50),
        nested(500),
        nested(5000),
        scattered(2000, "area intersects"),
        scattered(500, 'p matches {"a"} within'),
    ],
    ids=["50 nested", "500 nested", "5,000 nested", "regions", "geotext"],
)
def test_as_much_is_covered_as_one_by_one(texts: list[str], tmp_path: Path) -> None:
    lines = [json.dumps({"id": f"s{n}", "interface": "I", "filter": text}) for n, text in enumerate(texts)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    table: ForwardingTable[str] = ForwardingTable()
    for text in texts:
        table.add("I", text)
    assert build_index(tmp_path / "in.jsonl", tmp_path / "out").covered >= 0.95 * table.stats().covered


def test_a_coverer_older_than_all_that_are_kept_by_their_boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest filters of its interface are all covered by the time that the outermost box is weighed."""
    monkeypatch.setattr(simplify, "_GATHERED", 32)
    boxes = [f"area inside BOX({n} {n}, {900 - n} {900 - n})" for n in range(200)]
    lines = [json.dumps({"id": f"s{n:03}", "interface": "I", "filter": text}) for n, text in enumerate(boxes)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    assert build_index(tmp_path / "in.jsonl", tmp_path / "out").covered == 199


texts = st.builds(
    "{} BOX({} 0, {} 4)".format,
    st.sampled_from(("area intersects", "area inside", 'p matches {"a"} within', 'p matches {"a", "b"} within')),
    st.integers(0, 3),
    st.integers(4, 7),
)
filters = st.one_of(texts, texts.map(lambda text: f"x > 1 and {text}"))


@given(st.lists(st.tuples(st.sampled_from("IJ"), filters, st.integers(-1, 5)), min_size=6, max_size=6))
def test_whoever_seems_to_cover_is_asked(rows: list[tuple[str, str, int]]) -> None:
    columns = {"source": ["f"] * 6, "row": list(range(6)), "id": [f"s{n}" for n in range(6)]}
    asked = {"interface": [row[0] for row in rows], "filter": [row[1] for row in rows]}
    staged = parse_batch(pa.RecordBatch.from_pydict({**columns, **asked}), "columns").rows
    table = pa.Table.from_batches([staged])
    order = table.column("row").to_pylist()
    roots = [-1 if rows[n][2] < 0 else rows[n][2] for n in order]
    for name, column in (("weigh", [True] * 6), ("ref", order), ("root", roots)):
        table = table.append_column(name, pa.array(column))
    built = ForwardingTable.packed_columns(filters_of(table))
    built._check()
    events = [
        {"area": Box(1, 1, 2, 2), "p": GeoText(["a"], at=(1, 1)), "x": 2},
        {"area": Box(5, 1, 9, 2), "p": GeoText(["a", "b"], at=(5, 1)), "x": 0},
        {"area": Box(3, 0, 4, 4), "p": GeoText(["b"], at=(3, 1))},
    ]
    for event in events:
        expected = [place + 1 for place, n in enumerate(order) if parse(rows[n][1]).matches(event)]
        assert built.match_filters(event) == expected
