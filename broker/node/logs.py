"""Structured logs: one JSON object per line, with the facts as fields."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """Formats a record as `{"time", "level", "event", …}` and whatever was passed as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **{key: value for key, value in vars(record).items() if key not in _STANDARD and value is not None},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


def configure(level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Send the broker's log as JSON lines to a stream, stderr by default."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("contrada")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False
