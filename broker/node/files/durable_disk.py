"""The disk of a durable broker: its journal, and the thread that writes it beside the loop.

    DIR/journal/    what is durable (contrada.forwarding.journal)
    DIR/id          the broker's id: it stays the same across restarts, because notifications are named by it

Everything that touches the journal is done by that one thread, in order; the loop hears of it between two turns.
"""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING

from contrada.broker.node.worker import Worker
from contrada.errors import ContradaError
from contrada.forwarding.journal.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from contrada.broker.core.core import Core

log = logging.getLogger("contrada.broker")


class DurableDisk:
    """A core's journal in a directory, from here on."""

    def __init__(self, directory: Path, core: Core, wake: Callable[[], None]) -> None:
        keep_id(directory, core.id)
        self._journal = Journal.open(directory / "journal")
        for damage in self._journal.recovery.damaged:
            log.error("journal damaged", extra={"reason": str(damage)})
        self._worker = Worker("contrada-journal", wake)
        self.collect = self._worker.collect
        try:
            core.durable.open(self._journal, time.time)
        except BaseException:
            self._journal.close()
            raise
        assert core.durable.store is not None
        core.durable.store.beside = self._worker.ask

    def close(self) -> None:
        """Let what is under way come to its end, and let go of the files."""
        self._worker.finish()
        try:
            self._journal.close()
        except ContradaError as error:
            log.error("journal not closed", extra={"reason": str(error)})


def kept_id(directory: Path) -> str:
    """The id of the broker whose data a directory has; empty if it has none yet."""
    try:
        return (directory / "id").read_text().strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ContradaError(f"cannot read {directory / 'id'}: {error.strerror or error}") from error


def keep_id(directory: Path, id: str) -> None:
    """Write down whose data a directory has; refuse another broker's."""
    before = kept_id(directory)
    if before == id:
        return
    if before:
        raise ContradaError(
            f"{directory} has the data of the broker {before}, and this one is {id}: "
            f"start it with --id {before}, or give it a directory of its own"
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        draft = directory / "id.new"
        with draft.open("w") as file:
            file.write(id + "\n")
            file.flush()
            os.fsync(file.fileno())
        draft.rename(directory / "id")
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ContradaError(f"cannot keep data in {directory}: {error.strerror or error}") from error
