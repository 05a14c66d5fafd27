"""`contrada sub`: subscribe, and print what arrives."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from contrada.client.cli.common import Connect, Exit, Quiet, say, teller, with_client

if TYPE_CHECKING:
    from contrada.client.notification import Notification

EXAMPLES = (
    "contrada sub 'hazard > 3' --count 1 --timeout 10",
    "contrada sub 'wind > 90 and area overlaps POLYGON((0 0, 9 0, 9 9, 0 9))' --pretty --timeout 10",
    """contrada sub 'stock = "MTK" and price < 100 or stock = "DYS"' --bare --count 2 --timeout 10""",
)


@with_client("sub")
def sub(
    connect: Connect,
    filter: Annotated[str | None, typer.Argument(help="What to receive, in the filter language.")] = None,
    attach: Annotated[
        str | None, typer.Option("--attach", help="Instead of a filter: an interface of the broker's index.")
    ] = None,
    count: Annotated[int | None, typer.Option("--count", "-n", min=1, help="Stop after so many.")] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", "-t", min=0.0, help="Stop after so many seconds.")
    ] = None,
    pretty: Annotated[bool, typer.Option("--pretty", "-p", help="For people: coloured, one attribute a line.")] = False,
    bare: Annotated[bool, typer.Option("--bare", help="The notification alone, without id and publisher.")] = False,
    policy: Annotated[
        str, typer.Option(help="When this subscriber is too slow: drop-oldest, block, or disconnect.")
    ] = "drop-oldest",
    window: Annotated[int, typer.Option(min=1, help="Notifications sent ahead of being printed.")] = 1000,
    queue: Annotated[int, typer.Option(min=0, help="Length of the queue at the broker; 0: its default.")] = 0,
    durable: Annotated[
        str | None, typer.Option("--durable", help="Be the durable subscription of this name; it stays at the broker.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="Where a new durable one begins: all, an id, a time (2026-11-18T09:30:00Z)."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Subscribe and print notifications as JSON lines: {"id": …, "publisher": …, "notification": {…}}.

    Exits with 4 if --timeout passed before --count notifications came, and with 1 if --attach names what the index of
    the broker does not have.
    """
    if (filter is None) == (attach is None):
        raise typer.BadParameter("give a filter, or --attach an interface of the broker's index")
    write = _pretty if pretty else _bare if bare else _line
    received = 0
    with connect() as client:
        subscribe, wanted = (client.attach, attach) if filter is None else (client.subscribe, filter)
        assert wanted is not None
        begins = _since(since)
        subscription = subscribe(
            wanted, policy=policy, window=window, queue=queue, durable=durable, since=begins, ack="manual"
        )
        if not subscription.known:
            say(f"contrada: the broker's index has no interface {wanted!r}, or it has no index")
            raise typer.Exit(Exit.FAILURE)
        teller(quiet)(f"subscription {subscription.id} of session {client.session} at {client.url}")
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            while count is None or received < count:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0 and not subscription.pending:
                    raise TimeoutError
                notification = subscription.get(left)
                write(notification)
                notification.ack()
                received += 1
        except TimeoutError:
            if count is not None:
                say(f"only {received} of {count} in {timeout:g} s")
                raise typer.Exit(Exit.TIMEOUT) from None
        finally:
            if subscription.dropped:
                say(f"the broker dropped {subscription.dropped:,} notifications: this subscriber was too slow")
            if subscription.interruptions and durable is None:
                say(f"reconnected {subscription.interruptions} times; what was published in between is missing")


def _since(text: str | None) -> str | datetime | None:
    """A time, if it is one; else an id, or all."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return text


def _line(n: Notification) -> None:
    import json

    from contrada.forwarding.codec.json import notification_to_json

    body = notification_to_json(n)
    head = f'"id": {json.dumps(str(n.id))}, "publisher": {json.dumps(n.publisher)}, "notification": {body}'
    print(f"{{{head}{_payload(n)}}}")
    sys.stdout.flush()


def _payload(n: Notification) -> str:
    import json
    from base64 import b64encode

    payload = n.payload
    if payload is None:
        return ""
    if isinstance(payload, bytes):
        payload = {"base64": b64encode(payload).decode()}
    return f', "payload": {json.dumps(payload, ensure_ascii=False)}'


def _bare(n: Notification) -> None:
    from contrada.forwarding.codec.json import notification_to_json

    print(notification_to_json(n), flush=True)


def _pretty(n: Notification) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    console.print(f"[bold cyan]{n.id}[/] from [bold]{escape(n.publisher)}[/]")
    width = max(map(len, n), default=0)
    for name, value in n.items():
        console.print(f"  {escape(name):<{width}}  {escape(shorten(str(value), 100))}", soft_wrap=True)


def shorten(text: str, longest: int) -> str:
    """Cut the middle out of a long text."""
    if len(text) <= longest:
        return text
    half = (longest - 3) // 2
    return f"{text[:half]} … {text[-half:]}"
