"""`contrada bench`: how fast is it here? A broker process, a publisher and a subscriber on this machine."""

from __future__ import annotations

import random
import statistics
import threading
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contrada.client.cli.common import Exit, Quiet, say, teller

if TYPE_CHECKING:
    from contrada.client.blocking import Client

EXAMPLES = (
    "contrada bench",
    "contrada bench --notifications 2000 --subscriptions 100",
)


def bench(
    notifications: Annotated[int, typer.Option("--notifications", "-n", min=1, help="How many to publish.")] = 20_000,
    subscriptions: Annotated[
        int, typer.Option("--subscriptions", "-s", min=0, help="Other subscriptions in the table.")
    ] = 1_000,
    seed: Annotated[int, typer.Option(help="Of the workload.")] = 1,
    url: Annotated[str | None, typer.Option("--url", "-u", help="Use this broker instead of a new one.")] = None,
    quiet: Quiet = False,
) -> None:
    """Measure rate and latency end to end: one publisher, one subscriber, and a table of other subscriptions.

    Starts a broker of its own unless --url names one. For comparisons with peers, see benchmarks/.
    """
    from rich.console import Console

    if url is not None:
        report = measure(url, notifications, subscriptions, seed)
    else:
        from contrada.client.cli.local import local_broker

        teller(quiet)("starting a broker …")
        with local_broker() as address:
            report = measure(address, notifications, subscriptions, seed)
    console = Console()
    console.print(
        f"{notifications:,} notifications, {subscriptions:,} other subscriptions, one publisher, one subscriber"
    )
    for name, value in report.items():
        console.print(f"  {name:<34}{value:>14}")


def measure(url: str, notifications: int, subscriptions: int, seed: int) -> dict[str, str]:
    """Run the workload; the figures, ready to print."""
    from contrada.client.blocking import Client

    rng = random.Random(seed)
    with Client(url, name="bench-subscriber") as receiver, Client(url, name="bench-publisher") as sender:
        began = time.perf_counter()
        for _ in range(subscriptions):
            low = rng.randint(0, 990)
            receiver.subscribe(f'stock = "S{rng.randint(0, 199)}" and price > {low} and price < {low + 2}', window=100)
        subscribing = time.perf_counter() - began
        everything = receiver.subscribe("n >= 0", window=10_000, queue=min(notifications, 65_536), policy="block")
        sender.publish(_notification(rng, 0))  # the first match compiles or loads the kernels
        everything.get(timeout=120)
        throughput = _throughput(sender, everything, notifications, rng)
        latency = sorted(_latencies(sender, everything, min(1000, notifications), rng))
    return {
        "end to end": f"{throughput:,.0f} /s",
        "round trip p50": f"{statistics.median(latency) * 1e3:,.2f} ms",
        "round trip p99": f"{latency[int(len(latency) * 0.99)] * 1e3:,.2f} ms",
        "subscribing": f"{subscriptions / subscribing if subscriptions else 0:,.0f} /s",
    }


def _notification(rng: random.Random, n: int) -> dict[str, object]:
    return {"n": n, "stock": f"S{rng.randint(0, 199)}", "price": rng.uniform(0, 1000), "size": rng.randint(1, 100)}


def _throughput(sender: Client, everything: Any, count: int, rng: random.Random) -> float:
    batch = [_notification(rng, n) for n in range(count)]
    failure: list[BaseException] = []

    def stream() -> None:
        try:
            for notification in batch:
                sender.publish(notification, ack=False)
            sender.flush(timeout=120)
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=stream, daemon=True)
    began = time.perf_counter()
    thread.start()
    for expected in range(count):
        n = everything.get(timeout=60)["n"]
        if n != expected:
            say(f"expected notification {expected}, received {n}")
            raise typer.Exit(Exit.FAILURE)
    took = time.perf_counter() - began
    thread.join()
    if failure:
        raise failure[0]
    return count / took


def _latencies(sender: Client, everything: Any, count: int, rng: random.Random) -> list[float]:
    spans = []
    for n in range(count):
        notification = _notification(rng, n)
        began = time.perf_counter()
        sender.publish(notification, ack=False)
        everything.get(timeout=60)
        spans.append(time.perf_counter() - began)
    return spans
