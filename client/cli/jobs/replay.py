"""`contrada replay`: past events against an index, on Spark; or into a live broker."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from contrada.client.cli.common import ClientOptions, ConfigFile, ConnectTimeout, Exit, Key, ServerKey
from contrada.client.cli.event_publisher import publish_log
from contrada.client.cli.jobs.spark import AsJson, Master, PyEnv, Quiet, progress, spark_session
from contrada.errors import InvalidValue
from contrada.forwarding.stores.addresses import join, shown

EXAMPLES = (
    "contrada replay events.parquet index out",
    "contrada replay recording recording out --compare",
    "contrada replay recording index out --what-if new-filters.jsonl --json",
    "contrada replay recording --to tcp://127.0.0.1:7400 --speed 10",
)
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def replay(
    events: Annotated[str, typer.Argument(help="Parquet, JSON lines, or a recording of `broker --record`.")],
    index: Annotated[
        str | None, typer.Argument(help="An index, or the recording: subscriptions as of each moment.")
    ] = None,
    out: Annotated[str | None, typer.Argument(help="The output directory; an earlier output is replaced.")] = None,
    compare: Annotated[bool, typer.Option("--compare", help="List what differs from what was delivered.")] = False,
    recorded: Annotated[
        str | None, typer.Option("--recorded", help="Deliveries to compare with, instead of the recording's.")
    ] = None,
    what_if: Annotated[
        str | None, typer.Option("--what-if", help="Try out filters: a file as build-index takes, or an index.")
    ] = None,
    timezone: Annotated[
        str | None, typer.Option("--timezone", help="Of times that tell none, such as Europe/Rome.")
    ] = None,
    id_column: Annotated[str, typer.Option("--id-column", help="Of Parquet.")] = "id",
    time_column: Annotated[str, typer.Option("--time-column", help="Of Parquet.")] = "time",
    worker_memory: Annotated[
        str | None, typer.Option("--worker-memory", help="How much of the index a worker may hold, such as 2g.")
    ] = None,
    geoparquet: Annotated[
        bool, typer.Option("--geoparquet", help="Give deliveries and subscriptions a geometry: GeoParquet.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 5 if an event could not be read.")] = False,
    to: Annotated[str | None, typer.Option("--to", help="Publish the events to this broker instead.")] = None,
    speed: Annotated[str, typer.Option("--speed", help="With --to: times real time, or max.")] = "1",
    master: Master = None,
    py_env: PyEnv = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    config: ConfigFile = None,
    key: Key = None,
    server_key: ServerKey = None,
    connect_timeout: ConnectTimeout = None,
) -> None:
    """Who would have been notified? Deliveries by day, a report, and what differs from what was recorded.

    Exits with 6 if a comparison found differences, and with 5 if not one event could be read. See docs/spark.md.
    """
    if to is None and (index is None or out is None):
        raise typer.BadParameter("give EVENTS, INDEX and OUT; or EVENTS and --to")
    if to is not None and index is not None:
        raise typer.BadParameter("--to takes EVENTS alone: the broker has the subscriptions")
    from contrada.spark_jobs.common.session import require_arrow

    require_arrow()
    from contrada.spark_jobs.replaying.logs.event_logs import Layout

    layout = Layout(id_column, time_column, timezone)
    if to is not None:
        options = ClientOptions(to, config, key, server_key, connect_timeout, quiet)
        told = publish_log(events, layout, rate_of(speed), options)
        rejected, different = told["rejected"], False
    else:
        assert index is not None
        assert out is not None
        from contrada.spark_jobs.replaying.replay import Replay, plan_replay, run_replay

        job = Replay(
            events,
            index,
            out,
            layout,
            compare=compare or recorded is not None,
            recorded=recorded,
            what_if=what_if,
            geoparquet=geoparquet,
            worker_memory=None if worker_memory is None else bytes_of(worker_memory),
        )
        planned = plan_replay(job)
        with spark_session("replay", master, py_env, quiet=quiet) as session, progress(session, quiet=quiet) as tell:
            told = run_replay(session, planned, tell).as_dict()
        rejected = told["rejected"]
        compared = told.get("compare", {})
        different = bool(compared.get("missing", 0) or compared.get("extra", 0))
    if as_json:
        print(json.dumps(told, ensure_ascii=False))
    elif out is not None:
        _show(told, out)
    else:
        print(f"published {told['events']:,} events in {told['seconds']:,.1f} s; {rejected:,} could not be read")
    if different:
        raise typer.Exit(Exit.DIFFERENT)
    if (strict and rejected) or not told["events"]:
        raise typer.Exit(Exit.SET_ASIDE)


def _show(told: dict[str, Any], out: str) -> None:
    print(
        f"{told['events']:,} events, {told['deliveries']:,} deliveries to {told['subscriptions'] - told['dead']:,} of "
        f"{told['subscriptions']:,} subscriptions, {told['seconds']:,.1f} s"
    )
    if told["rejected"]:
        print(f"{told['rejected']:,} could not be read: {_inside(told, out, 'quarantine')}")
    for problem in told["problems"]:
        print(f"problem: {problem}")
    if "what_if" in told:
        tried = told["what_if"]
        alive = tried["subscriptions"] - tried["dead"]
        print(f"what if: {tried['deliveries']:,} deliveries to {alive:,} of {tried['subscriptions']:,} new filters")
    if "compare" in told:
        compared = told["compare"]
        print(f"compared: {compared['missing']:,} missing, {compared['extra']:,} extra")
        for row in compared["differences"]:
            print(f"  {row['difference']} {row['event_id']} to {row['interface']} {row['filter_id'] or ''}".rstrip())
    print(f"report: {_inside(told, out, 'report.html')}")


def _inside(told: dict[str, Any], out: str, name: str) -> str:
    """Where something of the output is."""
    return shown(join(out, *([told["folder"]] if "folder" in told else []), name))


def bytes_of(text: str) -> int:
    """A size such as 512m or 2g."""
    number, unit = text.strip().lower().removesuffix("b"), ""
    if number and number[-1] in _UNITS:
        number, unit = number[:-1], number[-1]
    if not number.isdecimal():
        raise InvalidValue(f"{text!r} is not a size: give bytes, or a number with k, m or g")
    return int(number) * _UNITS[unit]


def rate_of(text: str) -> float | None:
    """How many times real time; None: as fast as possible."""
    if text == "max":
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 < rate < float("inf"):
        raise InvalidValue(f"{text!r} is not a speed: give a number above 0, such as 1 or 10, or max")
    return rate
