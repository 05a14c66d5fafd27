"""Settings every test shares."""

from __future__ import annotations

import logging
import os
import re
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from contrada.forwarding.stores.addresses import join

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A shell that starts the suite in the background has it ignore Ctrl-C, and so would every process that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# JVMs of a few seconds: compiling thoroughly, and collecting garbage by several threads, takes longer than it saves.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
os.environ.setdefault("SPARK_SUBMIT_OPTS", f"{_SHORT_LIVED} -Dspark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1")
os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", _SHORT_LIVED)

# No wall-clock assertions: the first example may compile a kernel. CI draws the same examples every time; a longer
# search is `HYPOTHESIS_PROFILE=thorough make pytest`.
_quiet = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("default", max_examples=100, derandomize=bool(os.environ.get("CI")), **_quiet)
settings.register_profile("quick", max_examples=10, derandomize=True, **_quiet)
settings.register_profile("thorough", max_examples=5_000, **_quiet)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


_LONGEST = ("cluster", "tests/client/gateway/test_live_map.py", "spark", "tests/client/cli/test_processes.py")
"""Groups that begin first, so that no worker is left with one of them when the others are done."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say for `--dist loadgroup` what stays on one worker: a file's tests, and those of one Spark session or cluster.

    Groups are put in order, which `--no-loadscope-reorder` leaves alone: the longest, then those of most tests. Names
    of tests with addresses of objects in them are refused: no two workers have the same.
    """
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid}: give the parameters ids that are the same in every process")
        shared = {"spark", "cluster"}.intersection(getattr(item, "fixturenames", ()))
        group = min(shared) if shared else item.nodeid.split("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
        groups.setdefault(group, []).append(item)
    order = sorted(
        groups, key=lambda group: (_LONGEST.index(group) if group in _LONGEST else len(_LONGEST), -len(groups[group]))
    )
    items[:] = [item for group in order for item in groups[group]]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark cluster, started once."""
    from tests.spark_jobs.cluster import spark_cluster

    with spark_cluster(tmp_path_factory.mktemp("cluster")) as address:
        yield address


@pytest.fixture(scope="session")
def bucket() -> Iterator[str]:
    """A bucket of a local S3 server, by a URL that says all: Spark's workers have an environment of their own."""
    from moto.server import ThreadedMotoServer
    from pyarrow.fs import FileSystem

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = f"endpoint_override={host}:{port}&scheme=http&region=us-east-1"
    store, _ = FileSystem.from_uri(f"s3://key:secret@bucket?{options}&allow_bucket_creation=true")
    store.create_dir("bucket")
    yield f"s3://key:secret@bucket?{options}"
    server.stop()


@pytest.fixture
def url(bucket: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A place in the bucket, and a cache, that no other test uses."""
    monkeypatch.setenv("CONTRADA_CACHE", str(tmp_path / "cache"))
    return join(bucket, re.sub(r"\W+", "-", request.node.name))
