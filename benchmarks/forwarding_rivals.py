"""What one would use instead of a forwarding table for regions: shapely's STRtree with a dictionary, and koncorde."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import shapely

from contrada.forwarding.language.constraint import Operator
from contrada.spatial.geometry.point import Point

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = tuple[list[tuple[float, float]], Operator, str, int, int]

_PATIENCE = 900  # seconds
_KONCORDE = """
const { Koncorde } = require('koncorde');
const fs = require('fs');
(async () => {
  const { filters, documents } = JSON.parse(fs.readFileSync(process.argv[2]));
  const engine = new Koncorde();
  for (const filter of filters) await engine.register(filter);
  const run = () => { let found = 0; for (const each of documents) found += engine.test(each).length; return found; };
  run();
  const start = process.cpuUsage();
  const found = run();
  const { user, system } = process.cpuUsage(start);
  console.log(JSON.stringify({ seconds: (user + system) / 1e6, found }));
})();
"""


class Shapely:
    """The plain matcher: a tree over the polygons, a dictionary over the kinds, the rest by hand."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.polygons = [shapely.Polygon(ring) for ring, *_ in rows]
        shapely.prepare(self.polygons)
        self.tree = shapely.STRtree(self.polygons)
        self.of_kind: dict[str, set[int]] = {}
        for i, row in enumerate(rows):
            self.of_kind.setdefault(row[2], set()).add(i)

    def match(self, notification: dict[str, Any]) -> set[int]:
        """The filters that match."""
        area, level = notification["area"], notification["level"]
        point = isinstance(area, Point)
        shape = shapely.Point(area.x, area.y) if point else shapely.Polygon(area.coords)
        wanted = self.of_kind.get(notification["kind"], set())
        found = set()
        for i in self.tree.query(shape, predicate="intersects").tolist():
            if i not in wanted:
                continue
            _, op, _, low, high = self.rows[i]
            if not low < level < high:
                continue
            polygon = self.polygons[i]
            if op is Operator.INTERSECTS:
                holds = True
            elif op is Operator.INSIDE:
                holds = polygon.contains_properly(shape)
            else:
                holds = not point and polygon.overlaps(shape)
            if holds:
                found.add(i)
        return found


def install_package(package: str, directory: Path | None = None) -> Path | str:
    """A directory with a package of npm in its `node_modules`; or why there is none.

    Installing may compile C++ for minutes, so it is done once: in `directory`, or in the user's cache.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None:
        return "there is no node on the PATH; install Node.js 18 or newer"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = (directory or cache / "contrada" / package).resolve()
    if (place / "node_modules" / package).is_dir() and _loads(node, place, package) is None:
        return place
    if npm is None:
        return f"{package} is not in {place}, and there is no npm on the PATH to install it with"
    place.mkdir(parents=True, exist_ok=True)
    print(f"installing {package} in {place}, once; that may take minutes …", file=sys.stderr, flush=True)
    install = [npm, "install", "--no-save", "--no-audit", "--no-fund", "--prefix", str(place), package]
    try:
        subprocess.run(install, cwd=place, capture_output=True, text=True, check=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return f"npm install {package} took more than {_PATIENCE} s; run it in {place} and start again"
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or ["nothing"]
        return f"npm install {package} failed in {place}; it said: {said[-1]}"
    if _loads(node, place, package) is not None:  # a part in C++ that was not built, for whatever reason
        subprocess.run([npm, "rebuild"], cwd=place, capture_output=True, text=True, check=False, timeout=_PATIENCE)
    wrong = _loads(node, place, package)
    return place if wrong is None else f"{package} does not load in {place}, try `npm rebuild` there: {wrong}"


def _loads(node: str, place: Path, package: str) -> str | None:
    """What is wrong with an installed package: None if it can be loaded."""
    done = subprocess.run(
        [node, "-e", f"require({package!r})"], cwd=place, capture_output=True, text=True, check=False, timeout=60
    )
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["nothing"])[-1]


def koncorde(rows: Sequence[Row], notifications: Sequence[dict[str, Any]], directory: Path | None) -> float | str:
    """Notifications per second of koncorde, which knows points in polygons; or why it could not be measured."""
    installed = install_package("koncorde", directory)
    if isinstance(installed, str):
        return installed
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        (place / "node_modules").symlink_to(installed / "node_modules")
        filters = [
            {
                "and": [
                    {"equals": {"kind": kind}},
                    {"range": {"level": {"gt": low, "lt": high}}},
                    {"geoPolygon": {"area": {"points": [{"lat": y / 20, "lon": x / 20} for x, y in ring]}}},
                ]
            }
            for ring, op, kind, low, high in rows
            if op is not Operator.OVERLAPS
        ]
        documents = [
            {
                "area": {"lat": each["area"].y / 20, "lon": each["area"].x / 20},
                "kind": each["kind"],
                "level": each["level"],
            }
            for each in notifications
        ]
        (place / "run.js").write_text(_KONCORDE)
        (place / "work.json").write_text(json.dumps({"filters": filters, "documents": documents}))
        try:
            command = ["node", "run.js", "work.json"]
            done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            return f"koncorde was not done with {len(filters):,} filters after {_PATIENCE} s"
        if done.returncode:
            return f"koncorde stopped: {done.stderr.strip().splitlines()[-1:]}"
        return len(documents) / float(json.loads(done.stdout)["seconds"])
