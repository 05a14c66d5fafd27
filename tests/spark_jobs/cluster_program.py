"""What test_cluster.py runs as a driver of its own: one session, several jobs; tells what came of them as JSON."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from contrada.errors import ContradaError
from contrada.spark_jobs.build import build_index as building
from contrada.spark_jobs.build.build_index import build_index
from contrada.spark_jobs.common import preflight
from contrada.spark_jobs.common.session import open_session
from contrada.spark_jobs.replaying.replay import Replay, replay


def segments(index: str) -> list[str]:
    return sorted(each.name for each in Path(index).glob("segment-*"))


def executors(port: str) -> list[int]:
    """The processes of the executors of the driver at a port."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [
        int(line.split()[0])
        for line in listed.splitlines()
        if "CoarseGrainedExecutorBackend" in line and f":{port} " in line and "java" in line
    ]


def jobs(session: Any, told: dict[str, Any]) -> None:
    context = session.sparkContext
    told["brought"] = context.parallelize([0], 1).map(lambda _: __import__("brought").here).collect()[0]
    build_index("in", "index", session=session)
    told["segments"] = segments("index")
    done = replay(session, Replay(Path("events.jsonl"), Path("index"), Path("out")))
    told["deliveries"] = done.deliveries
    try:
        preflight.check_executors(session, {"SUBSCRIPTIONS": "/nowhere"})
    except ContradaError as error:
        told["unseen"] = str(error)
    ask = preflight._ask
    unseen = str(Path("index").resolve())
    preflight._ask = lambda *given: [each._replace(missing=(unseen,)) for each in ask(*given)]
    job = Replay(Path("events.jsonl"), Path("index"), Path("copied"), compare=True, recorded=Path("out/deliveries"))
    copied = replay(session, job)
    assert copied.compare is not None
    told["copied"], told["missing"], told["extra"] = copied.deliveries, copied.compare.missing, copied.compare.extra
    preflight._ask = ask
    second_pass = building.second_pass

    def kill_first(*given: Any) -> Any:
        found = executors(context.getConf().get("spark.driver.port"))
        for process in found:
            os.kill(process, signal.SIGKILL)
        told["killed"] = len(found)
        return second_pass(*given)

    building.second_pass = kill_first
    build_index("in", "after", session=session)
    told["after"] = segments("after")


def main() -> None:
    master, wheel = sys.argv[1:]
    told: dict[str, Any] = {}
    settings = {"spark.executor.memory": "512m", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    session = open_session("tests", master, settings, bring=Path(wheel))
    jobs(session, told)
    session.stop()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
