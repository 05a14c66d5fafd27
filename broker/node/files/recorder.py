"""Writes down what the broker did, in its recording, and decides what happens when the disk does not take it.

    turn ─▶ commit ─▶ flush

A turn's records are with the operating system before any ACK or delivery of that turn leaves, so that whatever a client
has seen survives a kill of the broker. How much of it survives the machine is the policy:

    none       the operating system writes when it likes
    interval   a thread asks it to, every second
    always     every turn waits for the disk

When a write fails, the broker goes on and the recording stops: deliveries are its duty, the recording is not. It is
logged, counted, and tried again in a new file every few seconds; the reader finds a gap and all subscriptions restated.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from contrada.broker.protocol.wire import Sync
from contrada.errors import JournalFailed
from contrada.forwarding.recording.writer import RecordingWriter

if TYPE_CHECKING:
    from collections import Counter

    from contrada.broker.node.settings import Settings

log = logging.getLogger("contrada.broker")

_SYNC_EVERY: Final = 1.0
_RETRY_AFTER: Final = 5.0


class Recorder:
    """One broker's recording. Everything belongs to the broker's thread, but for syncing every second."""

    def __init__(self, settings: Settings, broker: str, counters: Counter[str]) -> None:
        assert settings.record is not None
        self._counters = counters
        self._policy = Sync(settings.record_sync)
        self._retry_at = 0.0
        self._stopping = threading.Event()
        self._syncing: threading.Thread | None = None
        self.writer = RecordingWriter(
            settings.record,
            broker,
            crs=settings.crs,
            file_bytes=settings.record_file_bytes,
            file_seconds=settings.record_file_seconds,
            total_bytes=settings.record_total_bytes,
        )
        if self._policy is Sync.INTERVAL:
            self._syncing = threading.Thread(target=self._sync_on, name="contrada-recording", daemon=True)
            self._syncing.start()
        log.info("recording", extra={"file": str(self.writer.path), "sync": self._policy})

    def commit(self) -> None:
        """Write what the turn did. Before anything of it is sent."""
        try:
            self.writer.commit()
            if self._policy is Sync.ALWAYS and not self.writer.failed:
                self.writer.sync()
        except JournalFailed as error:
            self._failed(error)

    def tick(self, now: float) -> None:
        """Try again after a failure, when it is time."""
        if self.writer.failed and now >= self._retry_at:
            self._retry_at = now + _RETRY_AFTER
            self._try_again()
        self._counters["recorded_bytes"] = self.writer.written

    def close(self) -> None:
        """Record the end and wait for the disk, if it is to have everything."""
        if self._syncing is not None:
            self._stopping.set()
            self._syncing.join()
            self._syncing = None
        try:
            self.writer.close(sync=self._policy is not Sync.NONE)
        except JournalFailed as error:
            self._failed(error)

    def _failed(self, error: JournalFailed) -> None:
        self.writer.give_up()
        self._counters["record_failures"] += 1
        where = {"file": str(self.writer.path), "reason": error.reason}
        log.error("recording failed; the broker goes on without", extra=where)

    def _try_again(self) -> None:
        try:
            self.writer.reopen()
        except JournalFailed as error:
            log.debug("recording still fails", extra={"reason": error.reason})
        else:
            log.warning("recording again", extra={"file": str(self.writer.path)})

    def _sync_on(self) -> None:
        """On a thread of its own: the disk may take its time, the broker's turns may not."""
        while not self._stopping.wait(_SYNC_EVERY):
            try:
                if not self.writer.failed:
                    self.writer.sync()
            except JournalFailed as error:
                self._counters["record_failures"] += 1
                log.error("recording could not be synced", extra={"reason": error.reason})
