"""Where feeds come from: a file, standard input, an address of HTTP, or for lines a TCP stream. Bounded in size."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from contrada.errors import ContradaError

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES: Final = 64 << 20
_TIMEOUT: Final = 30.0


def read_whole(source: str) -> bytes:
    """All bytes of a document."""
    try:
        if source == "-":
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        elif urlsplit(source).scheme in ("http", "https"):
            with urlopen(Request(source, headers={"User-Agent": "contrada"}), timeout=_TIMEOUT) as answer:
                data = answer.read(MOST_BYTES + 1)
        else:
            with Path(source).open("rb") as file:
                data = file.read(MOST_BYTES + 1)
    except (OSError, URLError, ValueError) as error:
        raise ContradaError(f"cannot read {source}: {error}") from error
    if len(data) > MOST_BYTES:
        raise ContradaError(f"{source} has more than {MOST_BYTES} bytes")
    return data


def read_lines(source: str) -> Iterator[bytes]:
    """Lines as they come, without end if the source has none."""
    parts = urlsplit(source)
    try:
        if parts.scheme == "tcp":
            if not parts.hostname or not parts.port:
                raise ContradaError(f"{source!r} is not an address: expected tcp://HOST:PORT")
            with socket.create_connection((parts.hostname, parts.port), timeout=_TIMEOUT) as connection:
                connection.settimeout(None)
                yield from connection.makefile("rb", buffering=1 << 16)
        elif source == "-":
            yield from sys.stdin.buffer
        elif parts.scheme in ("http", "https"):
            yield from read_whole(source).splitlines()
        else:
            with Path(source).open("rb") as file:
                yield from file
    except (OSError, ValueError) as error:
        raise ContradaError(f"cannot read {source}: {error}") from error
