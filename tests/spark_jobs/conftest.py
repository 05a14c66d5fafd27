"""One local Spark session for all tests of jobs. tests/conftest.py gives them all to one worker: one JVM starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contrada.spark_jobs.common.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Local mode on two cores, with few shuffle partitions: the inputs are small."""
    session = open_session(
        "tests",
        "local[2]",
        {
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            # Compiling plans and byte code thoroughly takes longer than running them on a few hundred rows.
            "spark.sql.codegen.wholeStage": "false",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        },
    )
    yield session
    session.stop()
