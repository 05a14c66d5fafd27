"""The jobs as functions of DataFrames: the answers are those of the command line, on tables and on streams."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contrada
from contrada import spark_jobs
from contrada.errors import InvalidValue
from contrada.forwarding.segments.index_directory import write_index
from contrada.forwarding.segments.segmented_table import SegmentedTable
from contrada.spark_jobs.common.errors import JobFailed
from contrada.spark_jobs.replaying.matching import DELIVERED

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

WHEN = datetime(2026, 11, 16, 12, tzinfo=UTC)
ROWS = [("s1", "I", "price > 3"), ("s2", "J", "price > 7 and kind = 1"), ("s3", "I", "price >")]


def subscriptions(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, "id string, interface string, filter string")


def write_events(path: Path, prices: list[int | None]) -> None:
    path.parent.mkdir(exist_ok=True)
    ids, kinds = [None if each is None else f"e{each}" for each in prices], [1] * len(prices)
    pq.write_table(pa.table({"key": ids, "at": [WHEN] * len(prices), "price": prices, "kind": kinds}), path)


def deliveries(table: DataFrame) -> list[tuple[str, str]]:
    return sorted((row.event_id, row.filter_id) for row in table.collect())


def test_a_table_is_parsed_built_and_matched(spark: SparkSession, tmp_path: Path) -> None:
    parsed = {row.id: row for row in spark_jobs.parse_subscriptions(subscriptions(spark)).collect()}
    assert [parsed[id].reason is None for id in ("s1", "s2", "s3")] == [True, True, False]
    assert parsed["s2"].filter == ROWS[1][2]
    built = spark_jobs.build_index(subscriptions(spark), tmp_path / "index", max_quarantined=0.5)
    assert (built.subscriptions, built.quarantined) == (2, 1)
    write_events(tmp_path / "events" / "a.parquet", [1, 5, 9, None])
    events = spark.read.parquet(str(tmp_path / "events"))
    found = spark_jobs.match(events, tmp_path / "index", id="key", time="at")
    table = SegmentedTable.open(tmp_path / "index")
    expected = sorted(
        (f"e{price}", id) for price in (1, 5, 9) for _, id in table.match_subscriptions({"price": price, "kind": 1})
    )
    assert deliveries(found) == expected == [("e5", "s1"), ("e9", "s1"), ("e9", "s2")]
    told = spark_jobs.match(events, tmp_path / "index", id="key", time="at", attributes=["price"], rejects=True)
    assert deliveries(told.where("reason is null")) == [("e5", "s1"), ("e9", "s1")]
    assert [row.reason for row in told.where("reason is not null").collect()] == ["the event has no id"]
    assert {
        (row.difference, row.filter_id) for row in spark_jobs.compare(found, found.where("filter_id = 's1'")).collect()
    } == {("missing", "s2")}


def test_names_with_dots_are_columns(spark: SparkSession, tmp_path: Path) -> None:
    write_index(tmp_path / "index", [("s", "I", "wind.speed > 1")])
    events = spark.createDataFrame([("e", WHEN, 2, 0)], "id string, time timestamp, `wind.speed` int, other int")
    found = spark_jobs.match(events, tmp_path / "index", attributes=["wind.speed"])
    assert deliveries(found) == deliveries(spark_jobs.match(events, tmp_path / "index")) == [("e", "s")]


def test_tables_that_are_none(spark: SparkSession, tmp_path: Path) -> None:
    write_index(tmp_path / "index", [("s", "I", "x > 1")])
    with pytest.raises(InvalidValue, match="no column filter nor interface"):
        spark_jobs.build_index(spark.range(3), tmp_path / "out")
    with pytest.raises(InvalidValue, match="no column 'time'"):
        spark_jobs.match(spark.range(3), tmp_path / "index")
    rows = subscriptions(spark)
    for twice in (rows.select("id", "id", "interface", "filter"), rows.selectExpr("*", "id as ID")):
        with pytest.raises(InvalidValue, match="two columns are called id"):
            spark_jobs.build_index(twice, tmp_path / "out")
        with pytest.raises(InvalidValue, match="two columns are called id"):
            spark_jobs.parse_subscriptions(twice)
    nobody: Any = 17
    with pytest.raises(InvalidValue, match="a path, a URL or a DataFrame, not 17"):
        spark_jobs.build_index(nobody, tmp_path / "out")
    with pytest.raises(JobFailed, match="http"):
        spark_jobs.build_index("http://127.0.0.1:9/s.jsonl", tmp_path / "out", session=spark)
    events = spark.createDataFrame([("e", WHEN, 1)], "id string, time timestamp, `wind.speed` int")
    with pytest.raises(InvalidValue, match=r"two columns are called wind\.speed"):
        spark_jobs.match(events.select("*", "`wind.speed`"), tmp_path / "index")
    with pytest.raises(InvalidValue, match="no column nope; there are id, time"):
        spark_jobs.match(events, tmp_path / "index", attributes=["nope"])
    with pytest.raises(InvalidValue, match="replayed: no column event_id"):
        spark_jobs.compare(spark.createDataFrame([], DELIVERED), events)
    with pytest.raises(AttributeError, match="no attribute 'matches'"):
        spark_jobs.matches  # noqa: B018  # that is the test


def test_a_stream_is_matched_against_the_index_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    write_index(tmp_path / "index", [("s1", "I", "price > 3")])
    write_events(tmp_path / "events" / "a.parquet", [1, 5])

    def run() -> list[tuple[str, str]]:
        schema = spark.read.parquet(str(tmp_path / "events")).schema
        events = spark.readStream.schema(schema).parquet(str(tmp_path / "events"))
        found = spark_jobs.match(events, tmp_path / "index", id="key", time="at")
        sink = found.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        sink.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
        return deliveries(spark.read.parquet(str(tmp_path / "out")))

    assert run() == [("e5", "s1")]
    write_index(tmp_path / "index", [("s2", "I", "price > 0")])
    write_events(tmp_path / "events" / "b.parquet", [2, 7])
    assert run() == [("e2", "s2"), ("e5", "s1"), ("e7", "s2")]


def test_a_stream_is_published_to_a_broker(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_index(tmp_path / "index", [("s1", "I", "price > 3"), ("s2", "J", "price > 7")])
    write_events(tmp_path / "events" / "a.parquet", [1, 5, 9])
    table = spark.read.parquet(str(tmp_path / "events"))
    events = spark.readStream.schema(table.schema).parquet(str(tmp_path / "events"))
    with contrada.Broker() as broker, contrada.Client(broker.url) as client:
        heard = client.subscribe("filter_id exists")
        url = broker.url
        found = spark_jobs.match(events, tmp_path / "index", id="key", time="at")
        sink = found.writeStream.foreachBatch(spark_jobs.publisher(lambda: contrada.Client(url)))
        sink.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
            availableNow=True
        ).start().awaitTermination()
        told = sorted((n["event_id"], n["filter_id"]) for n in (heard.get(timeout=30) for _ in range(3)))
        batch = spark_jobs.match(table, tmp_path / "index", id="key", time="at")
        assert told == deliveries(batch) == [("e5", "s1"), ("e9", "s1"), ("e9", "s2")]
        wrong = spark.createDataFrame([("a", 1.0), ("b", float("nan"))], "filter_id string, price double")
        spark_jobs.publisher(lambda: contrada.Client(url))(wrong, 7)
        assert heard.get(timeout=30)["filter_id"] == "a"
    assert "batch 7: 1 rows were not published: attribute 'price': a number must be finite" in caplog.text
    with pytest.raises(InvalidValue, match="which is no value"):
        spark_jobs.publisher(lambda: contrada.Client(url))(spark.sql("select array(true) as x"), 8)
