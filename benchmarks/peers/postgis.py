"""PostGIS with a GiST index, in a cluster of its own under a temporary folder, asked by prepared statements."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import shapely

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.peers.fences import Fences

_PROGRAMS = "/usr/lib/postgresql/*/bin"


def programs() -> Path | str:
    """Where PostgreSQL's programs are; or why PostGIS cannot be run."""
    found = sorted(Path("/").glob(f"{_PROGRAMS[1:]}/initdb"))
    if not found:
        return "there is no PostgreSQL server here: install postgresql and postgis (Debian: postgresql-15-postgis-3)"
    return found[-1].parent


@contextmanager
def cluster(bin: Path) -> Iterator[str]:
    """A server of its own, on a socket in a temporary folder: what to connect to."""
    folder = Path(tempfile.mkdtemp(prefix="contrada-postgis-"))
    as_user: dict[str, Any] = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to be run by root
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user = {"user": user.pw_uid, "group": user.pw_gid}
    data = folder / "data"
    try:
        _run(as_user, folder, bin / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
        options = f"-k {folder} -c listen_addresses='' -c fsync=off -c jit=off -c shared_buffers=512MB"
        _run(as_user, folder, bin / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
        try:
            yield f"host={folder} user=postgres dbname=postgres"
        finally:
            _run(as_user, folder, bin / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(as_user: dict[str, Any], folder: Path, *command: str | Path) -> None:
    words = [str(each) for each in command]
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **as_user)


class PostGis:
    """A table of fences with an index over their areas; a look-up per event."""

    name = "PostGIS, GiST"
    _QUERY = "select n from fences where kind = %s and ST_Intersects(area, ST_MakePoint(%s, %s))"

    def __init__(self, url: str, fences: Fences) -> None:
        import psycopg

        self.connection = psycopg.connect(url, autocommit=True, prepare_threshold=1)
        run = self.connection.execute
        run("create extension postgis")
        run("create table fences (n int, kind int, area geometry(Polygon))")
        with self.connection.cursor().copy("copy fences from stdin") as copy:
            for n, (ring, kind) in enumerate(zip(fences.rings, fences.kinds, strict=True)):
                copy.write_row((n, kind, shapely.to_wkb(shapely.Polygon(ring), hex=True)))
        run("create index on fences using gist (area)")
        run("create index on fences (n)")
        run("analyze fences")

    def match(self, x: float, y: float, kind: int) -> set[int]:
        """Of one event."""
        return {n for (n,) in self.connection.execute(self._QUERY, (kind, x, y))}

    def replace(self, n: int) -> None:
        """Take a fence out, and put it in again."""
        run = self.connection.execute
        row = run("delete from fences where n = %s returning n, kind, area", (n,)).fetchone()
        run("insert into fences values (%s, %s, %s)", row)

    @property
    def memory(self) -> float:
        """Bytes of the table and its index."""
        row = self.connection.execute("select pg_total_relation_size('fences')").fetchone()
        assert row is not None
        return float(row[0])

    def close(self) -> None:
        """Hang up."""
        self.connection.close()
