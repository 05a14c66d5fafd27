"""Rows of a stream published to a broker: what `writeStream.foreachBatch` is given.

    found = spark_jobs.match(events, "index")
    found.writeStream.foreachBatch(spark_jobs.publisher(lambda: contrada.Client("tcp://127.0.0.1:7400"))).start()

Each row is a notification, each of its columns an attribute, as in a log of events (replaying/logs/typed.py). The jobs
know neither clients nor brokers: they are given a function that connects, and run it where the rows are, in each task.

A batch is over when the broker has taken all of its rows. Spark repeats a batch that failed or was cut off, so a row is
published at least once, and after such an end some are published twice.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from contrada.errors import InvalidValue
from contrada.spark_jobs.common.engine import MESSAGES, message_rows, messages_in
from contrada.spark_jobs.common.errors import naming_this_machine, told_in_one_line
from contrada.spark_jobs.common.instants import zone_of
from contrada.spark_jobs.common.splits import plain_type
from contrada.spark_jobs.replaying.logs.event_stream import row_of
from contrada.spark_jobs.replaying.logs.typed import check_attributes, read_attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame

log = logging.getLogger("contrada.spark_jobs")
_SHOWN: Final = 3  # reasons that are told of rows that cannot be published


class Publisher(Protocol):
    """What rows are given to: a `contrada.Client` is one."""

    def publish_many(self, notifications: Iterable[Mapping[str, object]], *, ack: bool = True) -> Any:
        """Publish notifications, in order."""

    def flush(self) -> None:
        """Wait until all of them were taken; raise if one was not."""


@dataclass(frozen=True, slots=True)
class Published:
    """What a task has published."""

    rows: int
    refused: int
    reasons: tuple[str, ...]


def publisher(
    connect: Callable[[], AbstractContextManager[Publisher]], *, timezone: str | None = None
) -> Callable[[DataFrame, int], None]:
    """A function for `foreachBatch` that publishes every row of a batch.

    `connect` is run by tasks, where the rows are. `timezone` is that of times without one. Rows that are no
    notifications are left out, and the logger `contrada.spark_jobs` tells how many and why.
    """
    zone_of(timezone)

    def publish(batch: DataFrame, number: int) -> None:
        told = publish_rows(batch, connect, timezone)
        if told.refused:
            log.warning("batch %d: %d rows were not published: %s", number, told.refused, "; ".join(told.reasons))

    return publish


def publish_rows(
    rows: DataFrame, connect: Callable[[], AbstractContextManager[Publisher]], timezone: str | None = None
) -> Published:
    """Publish every row of a table."""
    from pyspark.sql.pandas.types import to_arrow_schema

    names = rows.columns
    if len(set(names)) < len(names):
        raise InvalidValue(f"two columns have one name, of {', '.join(names)}: an attribute has one value")
    schema = to_arrow_schema(rows.schema, timezone="UTC")
    check_attributes(pa.struct([(each.name, plain_type(each.type)) for each in schema]), timezone)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with naming_this_machine():
            yield from message_rows([(0, _publish(batches, connect, timezone))])

    with told_in_one_line():
        told: list[Published] = list(messages_in(rows.mapInArrow(run, MESSAGES).toArrow().to_batches()))
    reasons = dict.fromkeys(reason for each in told for reason in each.reasons)
    return Published(
        sum(each.rows for each in told), sum(each.refused for each in told), tuple(sorted(reasons)[:_SHOWN])
    )


def _publish(
    batches: Iterable[pa.RecordBatch], connect: Callable[[], AbstractContextManager[Publisher]], timezone: str | None
) -> Published:
    count = refused = 0
    reasons: dict[str, None] = {}
    with ExitStack() as connected:
        client: Publisher | None = None
        for batch in batches:
            faults: dict[int, str] = {}
            columns = read_attributes(batch.to_struct_array(), zone_of(timezone), faults)
            good = [row_of(columns, row) for row in range(batch.num_rows) if row not in faults]
            if good:
                client = client or connected.enter_context(connect())  # a task without rows needs no connection
                client.publish_many(good, ack=False)
            count += len(good)
            refused += len(faults)
            reasons.update(dict.fromkeys(faults.values()))
        if client is not None:
            client.flush()
    return Published(count, refused, tuple(list(reasons)[:_SHOWN]))
