"""The Spark session of a job: found or started, or one clear line about what is missing.

Started by `spark-submit`, a job takes the session and settings it was given: interpreter, user interface, log level and
event log are the user's, and only what answers depend on is set. Otherwise it starts Spark in this process: local mode
on all cores unless a master is named, with this Python for the workers.

`bring` gives the executors of a cluster a Python of their own: an archive of an environment (venv-pack, conda-pack),
which Spark unpacks beside each, or a wheel of this package, for those that have all that it needs.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contrada.errors import InvalidValue
from contrada.spark_jobs.common.errors import SparkMissing, account_of, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

_WHEELS: Final = (".whl", ".zip")
_ARCHIVES: Final = (".tar.gz", ".tgz", ".tar")
_ENVIRONMENT: Final = "environment"  # where an archive is unpacked, beside each executor
JAVA: Final = 17
"""The oldest Java that Spark 4 runs on."""

_LOGGING: Final = Path(__file__).with_name("log4j2.properties").resolve()
_NEEDED: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "8192",
}
_OURS: Final = {
    "spark.python.worker.reuse": "true",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "true",
}
_LOCAL: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.python.unix.domain.socket.enabled": "true",  # a short task then takes a fifth less time than over TCP
    "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 1)),  # two hundred are for clusters
    "spark.sql.files.maxPartitionBytes": "16m",  # or a file of a million subscriptions is one task
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
}


def require_arrow() -> None:
    """Raise `SparkMissing` unless the extra is installed; what needs no session needs no Java either."""
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        raise SparkMissing("this command runs on Spark, which is not installed: pip install 'contrada[spark]'")


def require_spark() -> None:
    """Raise `SparkMissing`, saying what to install, unless a session could be started."""
    require_arrow()
    problem = java_problem()
    if problem is not None:
        raise SparkMissing(problem)


def java_problem() -> str | None:
    """What is wrong with the Java of this machine, and what to do; None when it will do."""
    advice = (
        f"install a Java runtime of version {JAVA} or newer (apt install openjdk-{JAVA}-jre-headless), or set JAVA_HOME"
    )
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME={home} has no bin/java" if home else "no java was found"
        return f"Spark needs Java, and {where}: {advice}"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr.strip()
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found is None or int(found[1]) < JAVA:
        return f"Spark needs Java {JAVA} or newer, and {java} is {said.splitlines()[0] if said else 'mute'}: {advice}"
    return None


def open_session(
    name: str,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    *,
    bring: Path | None = None,
    quiet: bool = False,
) -> SparkSession:
    """The session of a job; `SparkMissing` when there can be none. Stop it with `.stop()`.

    With `quiet` the JVM has no stderr: what it says of itself and of failed tasks is also in the error that is raised.
    """
    require_spark()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit, which has decided about masters and memory
    options = dict(_NEEDED)
    if not submitted or master is not None:
        options |= _OURS
        chosen = master or "local[*]"
        builder = builder.master(chosen)
        if chosen.startswith("local"):
            options |= _LOCAL
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if bring is not None and bring.suffix not in _WHEELS:
        options["spark.archives"] = f"{bring}#{_ENVIRONMENT}"
        os.environ["PYSPARK_PYTHON"] = f"./{_ENVIRONMENT}/bin/python"
    elif not submitted:  # or executors take the first python on their path, which is in no virtual environment
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for key, value in (options | dict(settings or {})).items():
        builder = builder.config(key, value)
    with _told_if_not_started(), _without_stderr() if quiet else nullcontext():
        session = builder.getOrCreate()
    if bring is not None and bring.suffix in _WHEELS:
        home = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, home, ignore_errors=True)  # executors that come later ask for it, too
        packed = shutil.copy(bring, Path(home) / f"{bring.stem}.zip")  # a name that Spark takes for a package
        session.sparkContext.addPyFile(str(packed))
    return session


def check_brought(path: Path) -> Path:
    """Refuse what executors could not be brought: neither an archive of an environment nor a wheel."""
    if not path.is_file():
        raise InvalidValue(f"--py-env {path}: no such file")
    if path.suffix not in _WHEELS and not path.name.endswith(_ARCHIVES):
        raise InvalidValue(f"--py-env {path}: give an archive (.tar.gz, as venv-pack makes them) or a wheel (.whl)")
    return path.resolve()


@contextmanager
def _told_if_not_started() -> Iterator[None]:
    """Tell in one line why Spark cannot be started: a master that nobody answers for, a setting that is none."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise SparkMissing(f"Spark did not start: {reason_of(account_of(error))}") from error


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Give children that are started meanwhile no stderr; they keep that when this process has its own again.

    What could not be started tells why: the last that it said is added to the error.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        except Exception as error:
            said.seek(0)
            last = said.read().decode(errors="replace").strip().splitlines()[-3:]
            raise SparkMissing(f"Spark did not start: {'; '.join([reason_of(account_of(error)), *last])}") from error
        finally:
            os.dup2(kept, 2)
            os.close(kept)
