"""`similar` in bulk: the road network ships with the index, and answers are those of a table filled one by one."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

import contrada
from contrada import ForwardingTable, GeoText, RoadNetwork
from contrada.errors import CorruptFile, InvalidValue
from contrada.forwarding.segments.manifest import ROADS, read_manifest
from contrada.forwarding.segments.segmented_table import SegmentedTable
from contrada.forwarding.stores.addresses import join
from contrada.spark_jobs.build.build_index import build_index
from contrada.spark_jobs.build.plan import plan_build
from contrada.spark_jobs.common.index_cache import IndexFiles, opened

if TYPE_CHECKING:
    from pathlib import Path

SIDE = 6


def network() -> RoadNetwork:
    """A grid of streets."""
    nodes = [(x, y) for x in range(SIDE) for y in range(SIDE)]
    across = [(n, n + SIDE) for n in range(SIDE * (SIDE - 1))]
    along = [(n, n + 1) for n in range(SIDE * SIDE) if (n + 1) % SIDE]
    return RoadNetwork(nodes, across + along, d_max=6.0)


def rows(count: int = 300) -> list[tuple[str, str, str]]:
    draw = random.Random(7)
    words = ["ipad", "sale", "rain", "tram", "fair"]
    made = []
    for n in range(count):
        keywords = ", ".join(f'"{word}"' for word in draw.sample(words, 2))
        at = f"POINT({draw.uniform(0, 5):.3f} {draw.uniform(0, 5):.3f})"
        more = f" and price > {n % 5}" if n % 3 == 0 else ""
        alpha, tau = draw.choice([0.2, 0.5]), draw.choice([0.4, 0.6])
        made.append((f"s{n}", f"I{n % 9}", f"post similar {{{keywords}}} at {at} alpha {alpha} tau {tau}{more}"))
    return [*made, *((f"p{n}", "I0", f"price > {n}") for n in range(9))]


def notifications() -> list[dict[str, object]]:
    draw = random.Random(3)
    return [
        {
            "post": GeoText(
                draw.sample(["ipad", "sale", "rain", "tram", "fair"], 3), at=(draw.uniform(0, 5), draw.uniform(0, 5))
            ),
            "price": n % 7,
        }
        for n in range(40)
    ]


def write(path: Path, given: list[tuple[str, str, str]]) -> Path:
    lines = (json.dumps(dict(zip(("id", "interface", "filter"), row, strict=True))) for row in given)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_an_index_brings_its_roads(tmp_path: Path, url: str) -> None:
    roads, given = network(), rows()
    source = write(tmp_path / "rows.jsonl", given)
    roads.save(tmp_path / "roads")
    one_by_one: ForwardingTable[str] = ForwardingTable(road_network=roads)
    for id, _, text in given:
        one_by_one.add(id, text)
    expected = [one_by_one.match(each) for each in notifications()]
    assert sum(map(len, expected)) > 20
    for place in (str(tmp_path / "index"), join(url, "index")):
        built = build_index(source, place, roads=tmp_path / "roads", segments=3)
        assert (built.subscriptions, built.quarantined) == (len(given), 0)
        table = SegmentedTable.open(place)
        assert [{id for _, id in table.match_subscriptions(each)} for each in notifications()] == expected
        assert read_manifest(place).folders["roads"].startswith("roads-")
        index = opened(IndexFiles.of(place))
        places, numbers = index[len(index.infos) - 1].match(notifications())
        assert len(places) == len(numbers) > 0
    assert build_index(source, tmp_path / "again", roads=roads, segments=3).bytes == built.bytes
    assert read_manifest(tmp_path / "again") == read_manifest(tmp_path / "index")
    with contrada.Broker(index=tmp_path / "index") as broker, contrada.Client(broker.url) as client:
        assert client.status()["index"]["subscriptions"] == len(given)


def test_without_roads_similar_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "rows.jsonl", rows(1))
    built = build_index(source, tmp_path / "index")
    assert (built.subscriptions, built.quarantined) == (9, 1)
    assert "roads" not in read_manifest(tmp_path / "index").folders
    with pytest.raises(InvalidValue, match="--d-max 3: of no road network"):
        plan_build(str(source), tmp_path / "index", d_max=3.0)
    with pytest.raises(CorruptFile, match="cannot be read"):
        plan_build(str(source), tmp_path / "index", roads=tmp_path / "none")
    build_index(source, tmp_path / "index", roads=network())
    manifest = read_manifest(tmp_path / "index")
    (tmp_path / "index" / manifest.folders["roads"] / ROADS).write_bytes(b"nothing")
    with pytest.raises(CorruptFile):
        SegmentedTable.open(tmp_path / "index")
