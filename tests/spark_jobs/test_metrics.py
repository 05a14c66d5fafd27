"""What stages cost, as Spark and the jobs themselves tell it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from contrada.spark_jobs.build.build_index import build_index
from contrada.spark_jobs.metrics import Meter, _told_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_a_stage_has_the_tasks_that_were_run_in_it(spark: SparkSession) -> None:
    context = spark.sparkContext
    context.setLocalProperty("spark.jobGroup.id", "mine")
    meter = Meter(spark)
    with meter.stage("first") as cost:
        context.parallelize(range(6), 6).map(lambda n: time.sleep(0.5 if n == 0 else 0.01)).count()
        cost.rows = 60
    with meter.stage("second"):
        assert context.parallelize([(n % 3, n) for n in range(100)], 4).groupByKey(2).count() == 3
    with pytest.raises(ZeroDivisionError), meter.stage("third"):
        raise ZeroDivisionError
    first, second = meter.stages
    assert (first.tasks, first.rows, first.shuffled_bytes, first.spilled_bytes) == (6, 60, 0, 0)
    assert first.skew > 2
    assert first.task_seconds >= 0.5
    assert first.rows_per_second == round(60 / first.seconds, 1)
    assert second.tasks == 6
    assert second.shuffled_bytes > 0
    assert context.getLocalProperty("spark.jobGroup.id") == "mine"
    context.setLocalProperty("spark.jobGroup.id", None)


def test_builds_tell_what_their_stages_cost(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text(
        "".join(json.dumps({"id": f"s{n}", "interface": "I", "filter": f"x > {n}"}) + "\n" for n in range(50))
    )
    for session in (spark, None):
        told = build_index(source, tmp_path / f"index-{session is None}", session=session).as_dict()
        stages = {each["stage"]: each for each in told["stages"]}
        assert list(stages) == ["parse", "count", "build", "commit"]
        assert stages["parse"]["rows"] == stages["build"]["rows"] == 50
        assert stages["parse"]["bytes"] == source.stat().st_size
        assert stages["build"]["bytes"] == told["bytes"]
        assert (stages["parse"]["tasks"] > 0) == (session is not None)
        assert json.loads(json.dumps(told)) == told


def test_a_stage_that_spark_has_no_account_of_costs_nothing_and_fails_nothing(spark: SparkSession) -> None:
    assert _told_of(spark.sparkContext._jsc.sc().statusStore(), 10**6) is None
