"""Publishing a log of past events to a broker, at its own pace or a multiple of it: `contrada replay --to`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from contrada.client.cli.common import connected, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from contrada.client.cli.common import ClientOptions
    from contrada.spark_jobs.replaying.logs.event_stream import Event

_CHUNK: Final = 256


def publish_log(events: str, layout: Any, rate: float | None, options: ClientOptions) -> dict[str, Any]:
    """Publish a log at its own pace, or a multiple of it."""
    from contrada.spark_jobs.replaying.logs.decoding import Reject
    from contrada.spark_jobs.replaying.logs.event_stream import stream

    rejects: list[Reject] = []

    def good() -> Iterator[Event]:
        for each in stream(events, layout):
            if isinstance(each, Reject):
                rejects.append(each)
                if not options.quiet and len(rejects) <= 10:
                    say(f"left out {each.event_id or 'an event'}: {each.reason}")
            else:
                yield each

    began = time.monotonic()
    count = 0
    with connected(options, "replay") as client:
        for due in paced(good(), rate):
            client.publish_many([each.notification for each in due], ack=False)
            count += len(due)
        client.flush()
    return {"events": count, "rejected": len(rejects), "seconds": round(time.monotonic() - began, 3)}


def paced(
    events: Iterable[Event],
    rate: float | None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[list[Event]]:
    """Events in chunks, each when its time has come; those that lie before an earlier one go with it."""
    chunk: list[Event] = []
    start = first = None
    for event in events:
        when = event.time / 1e6
        if rate is not None:
            if start is None or first is None:
                start, first = clock(), when
            ahead = start + (when - first) / rate - clock()
            if ahead > 0:
                if chunk:
                    yield chunk
                    chunk = []
                ahead = start + (when - first) / rate - clock()
                if ahead > 0:
                    sleep(ahead)
        chunk.append(event)
        if len(chunk) >= _CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
