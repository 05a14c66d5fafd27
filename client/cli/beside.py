"""A gateway beside a broker: a process of its own, so that a fault in it costs the broker nothing."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

from contrada.client.cli.common import say

if TYPE_CHECKING:
    from collections.abc import Mapping

_GRACE: Final = 10.0  # seconds to end in


class Beside:
    """`contrada gateway` with options, for a broker that will say where it listens."""

    def __init__(self, options: Mapping[str, Any], quiet: bool) -> None:
        from contrada.client.cli.access.gateway import require_libraries

        require_libraries()  # before the broker starts
        self._words = [str(word) for pair in options.items() if pair[1] is not None for word in pair]
        self._words += ["--quiet"] if quiet else []
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, url: str) -> None:
        """Start it, for the broker at this address."""
        here = re.sub(r"//(\*|0\.0\.0\.0|\[::\])", "//127.0.0.1", url)
        try:
            self._process = subprocess.Popen([sys.executable, "-m", "contrada", "gateway", "--url", here, *self._words])
        except OSError as error:
            say(f"contrada: the gateway did not start: {error}")

    def stop(self) -> None:
        """End it, and wait for that."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
