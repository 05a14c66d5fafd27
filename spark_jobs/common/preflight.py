"""What executors lack, told in one line before any work: an interpreter, the package, its version, paths.

A short task asks the executors that there are. What it runs is sent by value, so that it also runs where the package is
missing. Local mode is not asked: its workers are this interpreter on this machine.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from contrada.forwarding.stores.addresses import shown
from contrada.spark_jobs.common.errors import ClusterNotReady, JobFailed, told_in_one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

_MOST = 3  # faults that are told
VERSION: str = import_module("contrada").__version__  # the package's face, which imports all of it


class Executor(NamedTuple):
    """What a task saw."""

    host: str
    python: str
    version: str | None  # of the package
    why: str | None  # it cannot be imported
    kernels: bool  # whether there are compiled ones
    missing: tuple[str, ...]  # of the paths


def check_executors(
    session: SparkSession,
    paths: Mapping[str, str],
    wanted: Sequence[str] = (),
    *,
    tell: Callable[[str], None] = lambda step: None,
) -> set[str]:
    """Raise `ClusterNotReady` unless all executors can do a job on some paths, which have a name each.

    Which of the `wanted` paths some of them do not see. `tell` is told who has to compile kernels first.
    """
    master = str(session.sparkContext.master)
    if master.startswith("local") and not master.startswith("local-cluster"):
        return set()
    try:
        found = _ask(session, [*paths.values(), *wanted])
    except JobFailed as error:
        raise ClusterNotReady(
            f"executors cannot run {session.sparkContext.pythonExec}: {error}; "
            "name their Python with PYSPARK_PYTHON, or bring one with --py-env"
        ) from error
    if faults := list(dict.fromkeys(fault for each in found for fault in _faults(each, paths))):
        more = f"; and {len(faults) - _MOST} more" if len(faults) > _MOST else ""
        raise ClusterNotReady(f"the cluster is not ready: {'; '.join(faults[:_MOST])}{more}")
    if cold := sorted({each.host for each in found if not each.kernels}):
        tell(f"no compiled kernels on {', '.join(cold)}: the first tasks compile them (contrada warm --jobs)")
    return {path for path in wanted if any(path in each.missing for each in found)}


def _faults(seen: Executor, paths: Mapping[str, str]) -> list[str]:
    if seen.version is None:
        return [f"{seen.host}: {seen.python} has no contrada ({seen.why}); install it there, or bring it with --py-env"]
    if seen.version != VERSION:
        return [f"{seen.host}: {seen.python} has contrada {seen.version}, and here it is {VERSION}"]
    return [
        f"{seen.host}: does not see {name} {shown(path)}, which all machines must have under this path"
        for name, path in paths.items()
        if path in seen.missing
    ]


def _ask(session: SparkSession, paths: list[str]) -> list[Executor]:
    from pyspark import cloudpickle

    context = session.sparkContext
    tasks = 2 * context.defaultParallelism
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # pyspark does not type it
    try:
        with told_in_one_line():
            told = context.parallelize(range(tasks), tasks).map(lambda _: _look(paths)).collect()
    finally:
        cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]  # the same
    return [Executor(*each) for each in sorted(set(told), key=str)]


def _look(paths: list[str]) -> tuple[str, str, str | None, str | None, bool, tuple[str, ...]]:
    """What this process sees; it may not use anything of this package that it has not looked for."""
    import os
    import socket
    import sys

    version = why = None
    kernels = False
    try:
        import importlib

        from contrada.spark_jobs.common import engine  # noqa: F401  # with all that it needs
        from contrada.spatial.storage.kernel_cache import packaged_folder, user_folder

        version = importlib.import_module("contrada").__version__
        kernels = any(folder.is_dir() and any(folder.iterdir()) for folder in (user_folder(), packaged_folder()))
    except Exception as error:  # whatever keeps the package from being imported here
        why = f"{type(error).__name__}: {error}"

    def there(path: str) -> bool:
        if "://" not in path:
            return os.path.exists(path)  # noqa: PTH110  # sent by value
        try:
            from contrada.forwarding.stores import object_store

            return object_store.size_of(path) is not None
        except Exception:  # no credentials here, or no way to the store
            return False

    missing = tuple(path for path in paths if not there(path))
    return socket.gethostname(), sys.executable, version, why, kernels, missing
