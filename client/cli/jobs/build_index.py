"""`contrada build-index`: an index of many subscriptions, built on Spark."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contrada.client.cli.common import Exit, say, teller
from contrada.client.cli.jobs.spark import AsJson, Master, PyEnv, Quiet, progress, spark_session
from contrada.client.cli.jobs.table_options import Crs, Density, GeotextIndex, Halo, Matching, Relations, Simplify
from contrada.forwarding.language.lonlat import PLANE
from contrada.forwarding.state.matching import DEFAULT_MATCHING
from contrada.forwarding.table.options import TableOptions
from contrada.spatial.relations.discretization import make_discretization
from contrada.spatial.textual.registry import DEFAULT

if TYPE_CHECKING:
    from contrada.spark_jobs.build.build_index import Built
    from contrada.spark_jobs.build.plan import Build

EXAMPLES = (
    "contrada build-index subscriptions.parquet index",
    "contrada build-index 'subscriptions/*.jsonl' index --segments 16 --json",
    "contrada build-index wards.geojson index --quarantine rejected --strict",
    "contrada build-index /mnt/subscriptions /mnt/index --format parquet --master spark://master:7077",
)


class Engine(StrEnum):
    """Where a build runs."""

    SPARK = "spark"
    LOCAL = "local"


def build_index(
    subscriptions: Annotated[str, typer.Argument(help="A file, a directory, a pattern in quotes, or a URL.")],
    out: Annotated[str, typer.Argument(help="A directory or URL. An index that is there is replaced at the end.")],
    format: Annotated[
        str | None, typer.Option("--format", help="parquet, jsonl, geojson or geojsonl; else the names tell.")
    ] = None,
    segments: Annotated[
        int | None, typer.Option("--segments", min=1, help="About how many; else of some 130,000 subscriptions each.")
    ] = None,
    quarantine: Annotated[
        str | None, typer.Option("--quarantine", help="Where else bad rows go, a table with the reasons.")
    ] = None,
    geotext_index: GeotextIndex = DEFAULT,
    matching: Matching = DEFAULT_MATCHING,
    discretization: Relations = "exact",
    density: Density = None,
    halo: Halo = False,
    simplify: Simplify = True,
    crs: Crs = PLANE,
    roads: Annotated[
        Path | None, typer.Option("--roads", help="The road network that `similar` asks; the index will have it.")
    ] = None,
    d_max: Annotated[
        float | None, typer.Option("--d-max", help="Of an .npz: the distance beyond which nothing is similar.")
    ] = None,
    max_quarantined: Annotated[
        float, typer.Option("--max-quarantined", min=0, max=100, help="Percent of the input; above it nothing changes.")
    ] = 10,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Commit also when no subscription was accepted.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 5 if a row went to the quarantine.")] = False,
    engine: Annotated[
        Engine | None,
        typer.Option("--engine", help="local: without Spark, for some 500,000 rows; so if Java is missing."),
    ] = None,
    master: Master = None,
    py_env: PyEnv = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Build an index of subscriptions (id, interface, filter) that a broker maps at start: see docs/spark.md.

    Bad rows go to the quarantine with the reason. The index is replaced at the very end, at once: a job that is killed
    leaves the old one, and so does one that accepts nothing, or less than it should (exit code 5). Running it again on
    the same input gives the same files.
    """
    from contrada.spark_jobs.common.session import java_problem, require_arrow

    require_arrow()
    from contrada.spark_jobs.build.plan import plan_build
    from contrada.spark_jobs.common.errors import NotCommitted

    here = engine is Engine.LOCAL or (engine is None and master is None and java_problem() is not None)
    if here and (master is not None or py_env is not None):
        raise typer.BadParameter("--master and --py-env are of Spark: without it, leave them out")
    plan = plan_build(
        subscriptions,
        out,
        TableOptions(geotext_index, matching, make_discretization(discretization, density, halo), simplify, crs),
        format=format,
        segments=segments,
        quarantine=quarantine,
        roads=roads,
        d_max=d_max,
        max_quarantined=max_quarantined / 100,
        allow_empty=allow_empty,
    )
    try:
        built = _build(plan, master, py_env, here=here, quiet=quiet)
    except NotCommitted as error:
        say(f"contrada: {error}")
        raise typer.Exit(Exit.SET_ASIDE) from None
    if as_json:
        print(json.dumps(built.as_dict(), ensure_ascii=False))
    else:
        _show(built)
    if strict and built.quarantined:
        raise typer.Exit(Exit.SET_ASIDE)


def _build(plan: Build, master: str | None, py_env: Path | None, *, here: bool, quiet: bool) -> Built:
    """Run the build in this process, or on Spark."""
    from contrada.spark_jobs.build.build_index import run_build
    from contrada.spark_jobs.common.engine import LocalEngine, SparkEngine

    if here:
        return run_build(plan, LocalEngine(), tell=teller(quiet))
    with spark_session("build-index", master, py_env, quiet=quiet) as session, progress(session, quiet=quiet) as tell:
        return run_build(plan, SparkEngine(session), tell=tell)


def _show(built: Built) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"[bold]{escape(built.index)}[/]: {built.subscriptions:,} subscriptions, {built.filters:,} filters in "
        f"{built.segments} segments, {built.bytes / 1e6:,.1f} MB, {built.seconds:,.1f} s"
    )
    console.print(
        f"  of {built.rows:,} rows, {built.duplicates:,} were repeated; {built.covered:,} subscriptions are covered by "
        f"others, {built.unsatisfiable:,} match nothing"
    )
    if built.quarantined:
        console.print(f"  [yellow]{built.quarantined:,} rows to the quarantine[/]: {escape(built.quarantine)}")
