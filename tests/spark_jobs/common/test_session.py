"""Finding Spark and Java, or saying in one line what to install."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JError

from contrada.spark_jobs.common import session
from contrada.spark_jobs.common.errors import SparkMissing
from contrada.spark_jobs.common.session import java_problem, require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def java(tmp_path: Path, says: str) -> str:
    script = tmp_path / "bin" / "java"
    script.parent.mkdir(parents=True)
    script.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    script.chmod(0o755)
    return str(tmp_path)


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_a_java_that_will_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    monkeypatch.setenv("JAVA_HOME", java(tmp_path, f'openjdk version "{version}" 2025-04-15'))
    assert java_problem() is None


@pytest.mark.parametrize(("says", "why"), [('java version "1.8.0_292"', "1.8.0_292"), ("", "mute"), ("hello", "hello")])
def test_a_java_that_will_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str, why: str) -> None:
    monkeypatch.setenv("JAVA_HOME", java(tmp_path, says))
    problem = java_problem()
    assert problem is not None
    assert why in problem
    assert "JAVA_HOME" in problem
    assert "\n" not in problem


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkMissing, match="no java was found: install a Java runtime of version 17"):
        require_spark()


def test_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_spec", lambda name: None)
    with pytest.raises(SparkMissing, match=r"pip install 'contrada\[spark\]'"):
        require_spark()


def test_the_session_takes_arrow_through_python(spark: SparkSession) -> None:
    doubled = spark.range(10).mapInArrow(lambda batches: batches, "id long")
    assert sorted(row.id for row in doubled.collect()) == list(range(10))
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


class Builder:
    """Keeps what a session would be started with."""

    def __init__(self) -> None:
        self.options: dict[str, str] = {}

    def appName(self, name: str) -> Builder:  # noqa: N802  # Spark's name
        return self

    def master(self, url: str) -> Builder:
        self.options["master"] = url
        return self

    def config(self, key: str, value: str) -> Builder:
        self.options[key] = value
        return self

    def getOrCreate(self) -> dict[str, str]:  # noqa: N802  # Spark's name
        return self.options


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Any:
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "builder", Builder())
    monkeypatch.setattr(session, "require_spark", lambda: None)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", "")
    monkeypatch.delenv("PYSPARK_PYTHON")
    return session.open_session


def test_under_spark_submit_settings_are_the_users(started: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert set(started("job")) == set(session._NEEDED)
    assert "PYSPARK_PYTHON" not in os.environ
    assert not {key for key in session._NEEDED if "ui" in key.split(".") or "log" in key or "event" in key}


def test_executors_of_a_cluster_run_this_python(started: Any) -> None:
    options = started("job", "spark://host:7077")
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert options["master"] == "spark://host:7077"
    assert "spark.driver.host" not in options


@pytest.mark.parametrize("quiet", [False, True])
def test_a_master_that_nobody_answers_for(started: Any, monkeypatch: pytest.MonkeyPatch, quiet: bool) -> None:
    def fail(builder: Builder) -> None:
        raise Py4JError("An error occurred.\n: java.lang.Exception: all masters are mute\n\tat org.apache.X.f(X)")

    monkeypatch.setattr(Builder, "getOrCreate", fail)
    with pytest.raises(SparkMissing, match=r"did not start: .*all masters are mute") as told:
        started("job", "spark://host:1", quiet=quiet)
    assert "\n" not in str(told.value)
    assert "org.apache.X" not in str(told.value)


def test_an_environment_is_unpacked_beside_executors(started: Any) -> None:
    options = started("job", "spark://host:7077", bring=Path("/mnt/environment.tar.gz"))
    assert options["spark.archives"] == "/mnt/environment.tar.gz#environment"
    assert os.environ["PYSPARK_PYTHON"] == "./environment/bin/python"
