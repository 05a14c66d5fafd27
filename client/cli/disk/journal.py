"""`contrada journal`: what stands in a journal on disk, and whether it is whole. Nothing is changed or locked.

DIR is what `broker --data` or `broker --record` was given; a broker may be running on it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgpack  # type: ignore[import-untyped]  # it ships no types
import typer

from contrada.client.cli.common import Exit, Quiet, examples, teller
from contrada.errors import ContradaError
from contrada.forwarding.journal.blocks import Block, entries_of
from contrada.forwarding.journal.disk import REAL_DISK
from contrada.forwarding.journal.recovery import Damage, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contrada.forwarding.journal.blocks import Entry
    from contrada.forwarding.journal.recovery import Directory

LIST_EXAMPLES = ("contrada journal ls data", "contrada journal ls log --json")
CAT_EXAMPLES = ("contrada journal cat data --from 100 --to 120", "contrada journal cat log")
VERIFY_EXAMPLES = ("contrada journal verify data",)
EXAMPLES = (*LIST_EXAMPLES, *CAT_EXAMPLES, *VERIFY_EXAMPLES)

journal = typer.Typer(
    help="What a broker has on disk: list the files, print the records, look for damage.", no_args_is_help=True
)
Where = Annotated[Path, typer.Argument(metavar="DIR", help="What `broker --data` or `broker --record` was given.")]
_SHOWN: Final = 64  # bytes of what is nothing known


@journal.command(epilog=examples(LIST_EXAMPLES))
def ls(
    directory: Where,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, for programs.")] = False,
    quiet: Quiet = False,
) -> None:
    """List the files: the numbers of their records, bytes, and when each was begun."""
    path, found = _look(directory, thorough=False)
    rows = []
    for file in found.files:
        begun = next((each for each in file.blocks(REAL_DISK, found.salt, 1, file.first + 1)), None)
        time = _time(begun.time) if isinstance(begun, Block) else ""
        last = file.end - 1
        rows.append({"file": file.path.name, "first": file.first, "last": last, "bytes": file.size, "begun": time})
    if as_json:
        for row in rows:
            print(json.dumps(row))
    else:
        _print_table(rows)
    teller(quiet)(f"{path}: {len(rows)} files, {sum(file.size for file in found.files):,} bytes")


@journal.command(epilog=examples(CAT_EXAMPLES))
def cat(
    directory: Where,
    start: Annotated[int, typer.Option("--from", min=1, help="The number of the first record.")] = 1,
    end: Annotated[int | None, typer.Option("--to", min=1, help="The number of the last record.")] = None,
    quiet: Quiet = False,
) -> None:
    """Print records as JSON lines: number, time, kind, and what it says; notifications as JSON.

    What is damaged is left out and told.
    """
    _, found = _look(directory, thorough=False)
    stop = found.files[-1].end if found.files else 1
    for entry in _entries(found, start, stop if end is None else min(stop, end + 1)):
        print(json.dumps({"number": entry.sequence, "time": _time(entry.time), **_told(entry)}, ensure_ascii=False))
    _tell(found, teller(quiet))


@journal.command(epilog=examples(VERIFY_EXAMPLES))
def verify(directory: Where, quiet: Quiet = False) -> None:
    """Read everything and check it: checksums, the chain between blocks, and that every record can be read.

    Exits with 1 when something is damaged, and says what it cost. A torn end is none: a crash leaves it, or a broker
    that is writing just now.
    """
    path, found = _look(directory, thorough=True)
    records = sum(entry.numbers for entry in _entries(found, 1, found.files[-1].end if found.files else 1))
    for each in (*found.recovery.damaged, *found.recovery.cut):
        print(each)
    whole = "damaged" if found.recovery.damaged else "whole"
    size = sum(file.size for file in found.files)
    print(f"{path}: {len(found.files)} files, {records:,} records, {size:,} bytes: {whole}")
    if found.recovery.damaged:
        raise typer.Exit(Exit.FAILURE)


def _look(directory: Path, *, thorough: bool) -> tuple[Path, Directory]:
    path = directory / "journal" if (directory / "journal").is_dir() else directory
    try:
        found = walk(REAL_DISK, path, thorough=thorough)
    except OSError as error:
        raise ContradaError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not found.files and not found.torn:
        raise ContradaError(f"{path}: no journal: it holds no file NNNNNNNN.rec")
    return path, found


def _entries(found: Directory, start: int, stop: int) -> Iterator[Entry]:
    """The entries of all files, what files restate only at the beginning; damage is noted."""
    expected = None
    for file in found.files:
        if file.end <= start and file is not found.files[-1]:
            continue
        news = expected != file.first
        for each in file.blocks(REAL_DISK, found.salt, start, stop):
            if not isinstance(each, Block):
                if not found.recovery.knows(file.path, each.offset):
                    length = each.end_offset - each.offset
                    found.recovery.note(Damage(file.path, each.offset, length, 1, 0, each.reason))
                continue
            expected = each.end
            try:
                entries = entries_of(each)
            except ValueError as error:
                length = each.end_offset - each.offset
                found.recovery.note(Damage(file.path, each.offset, length, each.first, each.end - 1, str(error)))
                continue
            yield from (entry for entry in entries if entry.numbers or news)


def _told(entry: Entry) -> dict[str, Any]:
    """What an entry says: a record of a recording, or the rows of a durable broker."""
    from contrada.broker.stored.rows import Row
    from contrada.forwarding.recording.records import Kind

    try:
        fields = msgpack.unpackb(entry.payload, use_list=False)
        if entry.kind == 1 and len(fields) == 2 and isinstance(fields[1], tuple):
            return {"rows": [[Row(row[0]).name.lower(), *map(_plain, row[1:])] for row in fields[1]]}
        return {"kind": Kind(entry.kind).name.lower(), "fields": _plain(fields)}
    except (ValueError, TypeError, IndexError, msgpack.UnpackException):
        return {"kind": entry.kind, "bytes": len(entry.payload), "begins": entry.payload[:_SHOWN].hex()}


def _plain(value: Any) -> Any:
    """A field as JSON has it: notifications and filters are read, other bytes are shown in part."""
    from contrada.forwarding.codec.json import notification_to_json
    from contrada.forwarding.codec.msgpack import decode_filter, decode_notification

    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if not isinstance(value, bytes):
        return value
    try:
        return json.loads(notification_to_json(decode_notification(value)))
    except ContradaError:
        pass
    try:
        return str(decode_filter(value))
    except ContradaError:
        return {"bytes": len(value), "begins": value[:_SHOWN].hex()}


def _tell(found: Directory, tell: Any) -> None:
    for each in (*found.recovery.damaged, *found.recovery.cut):
        tell(str(each))


def _time(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1e6, UTC).isoformat()


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("file", "first", "last", "bytes", "begun")
    for row in rows:
        table.add_row(row["file"], *(f"{row[name]:,}" for name in ("first", "last", "bytes")), row["begun"])
    Console().print(table)
