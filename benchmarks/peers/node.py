"""Rule engines of Node.js: koncorde, which knows points in polygons, and json-rules-engine, which is taught them."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.forwarding_rivals import install_package

if TYPE_CHECKING:
    from benchmarks.peers.fences import Fences

_PATIENCE = 600  # seconds
_KONCORDE = """
const { Koncorde } = require('koncorde');
module.exports = async (fences) => {
  const engine = new Koncorde();
  const fenceOf = new Map(), ids = [];
  const put = async (n) => {
    const points = fences[n].ring.map(([lon, lat]) => ({ lat, lon }));
    const filter = { and: [{ equals: { kind: fences[n].kind } }, { geoPolygon: { pos: { points } } }] };
    return (ids[n] = await engine.register(filter));
  };
  for (let n = 0; n < fences.length; n++) {
    const id = await put(n);
    if (!fenceOf.has(id)) fenceOf.set(id, []);
    fenceOf.get(id).push(n);
  }
  const match = async ({ pos: [lon, lat], kind }) =>
    engine.test({ kind, pos: { lat, lon } }).flatMap((id) => fenceOf.get(id));
  const replace = async (n) => { await engine.remove(ids[n]); await put(n); };
  return { match, replace };
};
"""
_RULES = """
const { Engine } = require('json-rules-engine');
const inside = ([x, y], ring) => {
  let odd = false;
  for (let i = 0, j = ring.length - 1; i < ring.length; j = i++) {
    const [xi, yi] = ring[i], [xj, yj] = ring[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) odd = !odd;
  }
  return odd;
};
module.exports = async (fences) => {
  const engine = new Engine([], { allowUndefinedFacts: true });
  engine.addOperator('inside', inside);
  const put = (n) =>
    engine.addRule({
      name: `fence ${n}`,
      conditions: { all: [{ fact: 'kind', operator: 'equal', value: fences[n].kind },
                          { fact: 'pos', operator: 'inside', value: fences[n].ring }] },
      event: { type: 'in', params: { n } },
    });
  for (let n = 0; n < fences.length; n++) put(n);
  const match = async (event) => (await engine.run(event)).events.map((each) => each.params.n);
  const replace = async (n) => { engine.removeRule(`fence ${n}`); put(n); };
  return { match, replace };
};
"""
_RUN = """
const fs = require('fs');
(async () => {
  const { fences, events } = JSON.parse(fs.readFileSync('work.json'));
  const began = process.hrtime.bigint();
  const { match, replace } = await require('./engine.js')(fences);
  const built = Number(process.hrtime.bigint() - began) / 1e9;
  for (const each of events.slice(0, 5)) await match(each);
  const times = [], answers = [];
  for (const each of events) {
    const start = process.hrtime.bigint();
    answers.push(await match(each));
    times.push(Number(process.hrtime.bigint() - start) / 1e9);
  }
  const replaced = [];
  for (let n = 0; n < Math.min(20, fences.length); n++) {
    const start = process.hrtime.bigint();
    await replace(n);
    replaced.push(Number(process.hrtime.bigint() - start) / 1e9);
  }
  console.log(JSON.stringify({ built, times, answers, replaced, memory: process.memoryUsage().rss }));
})();
"""
ENGINES = {"koncorde": _KONCORDE, "json-rules-engine": _RULES}


class Measured(NamedTuple):
    """What an engine of another process took, in seconds, and what it found."""

    built: float
    times: list[float]
    answers: list[set[int]]
    replaced: list[float]
    memory: float  # bytes, of the process


def measure(package: str, fences: Fences) -> Measured | str:
    """Run an engine of Node.js; or why it could not be."""
    installed = install_package(package)
    if isinstance(installed, str):
        return installed
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        (place / "node_modules").symlink_to(installed / "node_modules")
        (place / "engine.js").write_text(ENGINES[package])
        (place / "run.js").write_text(_RUN)
        rings = zip(fences.rings, fences.kinds, strict=True)
        events = zip(fences.points.tolist(), fences.point_kinds, strict=True)
        work = {
            "fences": [{"ring": ring.tolist(), "kind": kind} for ring, kind in rings],
            "events": [{"pos": pos, "kind": kind} for pos, kind in events],
        }
        (place / "work.json").write_text(json.dumps(work))
        node = shutil.which("node")
        assert node is not None, "the package could not have been installed"
        try:
            done = subprocess.run(
                [node, "run.js"], cwd=place, capture_output=True, text=True, check=False, timeout=_PATIENCE
            )
        except subprocess.TimeoutExpired:
            return f"{package} was not done after {_PATIENCE} s"
        if done.returncode:
            return f"{package} stopped: {done.stderr.strip()[-300:]}"
        said = json.loads(done.stdout)
        return Measured(
            said["built"], said["times"], [set(each) for each in said["answers"]], said["replaced"], said["memory"]
        )
