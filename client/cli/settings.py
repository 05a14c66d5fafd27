"""Where the command line finds its settings: an option, then the environment, then a TOML file, then a default.

The file is the one named by `--config` or `CONTRADA_CONFIG`, else `contrada.toml` in the working directory, else
`contrada/config.toml` in `$XDG_CONFIG_HOME` (`~/.config`):

    url = "tcp://127.0.0.1:7400"

    [client]                       # fields of contrada.client.options.Options
    name = "gauge-17"
    key = "keys/gauge-17.secret.toml"
    server_key = "keys/broker.toml"

    [broker]                       # fields of contrada.broker.node.settings.Settings
    listen = "tcp://*:7400"
    keys = "keys"

    [gateway]                      # fields of contrada.client.gateway.settings.GatewaySettings
    http = "127.0.0.1:7480"
    tokens = "keys"

Paths in the file are relative to the file.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from contrada.client.options import Options
from contrada.errors import InvalidValue

DEFAULT_URL: Final = "tcp://127.0.0.1:7400"
_SECTIONS: Final = ("url", "client", "broker", "gateway")
_PATHS: Final = {
    "client": ("key", "server_key"),  # or, for server_key, the key itself
    "broker": ("keys", "roads"),
    "gateway": ("tokens", "recording", "certificate", "private_key"),
}
_PLACES: Final = ("record", "index", "data")  # of the broker: directories that need not be there yet


@dataclass(frozen=True)
class Config:
    """What a TOML file says."""

    path: Path | None = None
    url: str | None = None
    client: dict[str, Any] = field(default_factory=dict)
    broker: dict[str, Any] = field(default_factory=dict)
    gateway: dict[str, Any] = field(default_factory=dict)

    def address(self, option: str | None) -> str:
        """Return the broker's address: the option (or `CONTRADA_URL`), the file's, or the default."""
        return option or self.url or DEFAULT_URL


def load(option: Path | None = None) -> Config:
    """Read the file that applies; an empty `Config` if there is none."""
    if option is not None:
        return read(option)
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    for path in (Path("contrada.toml"), home / "contrada" / "config.toml"):
        if path.is_file():
            return read(path)
    return Config()


def read(path: Path) -> Config:
    """Read one file; `InvalidValue` says what is wrong with it."""
    try:
        document = tomllib.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InvalidValue(f"cannot read the configuration {path}: {error}") from error
    if unknown := sorted(set(document) - set(_SECTIONS)):
        raise InvalidValue(f"{path}: unknown setting {unknown[0]!r}; there are {', '.join(_SECTIONS)}")
    if not isinstance(document.get("url", ""), str):
        raise InvalidValue(f"{path}: url must be a string")
    sections = {name: document.get(name, {}) for name in _PATHS}
    for name, section in sections.items():
        if not isinstance(section, dict):
            raise InvalidValue(f"{path}: {name} must be a table, [{name}]")
        for key in _PATHS[name]:
            if isinstance(value := section.get(key), str) and (path.parent / value).exists():
                section[key] = str(path.parent / value)
    for key in _PLACES:
        if isinstance(value := sections["broker"].get(key), str):
            sections["broker"][key] = str(path.parent / value)
    known = {f.name for f in fields(Options)}
    if unknown := sorted(set(sections["client"]) - known):
        raise InvalidValue(f"{path}: unknown setting client.{unknown[0]}; there are {', '.join(sorted(known))}")
    return Config(path, document.get("url"), sections["client"], sections["broker"], sections["gateway"])
