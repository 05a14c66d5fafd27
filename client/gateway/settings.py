"""Everything that an operator may set on a gateway, with its default and its check."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from contrada.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_COUNTS: Final = (
    "body_bytes",
    "line_bytes",
    "batch",
    "connections",
    "subscriptions",
    "token_connections",
    "token_durable",
    "token_sessions",
    "session_bytes",
    "window",
)


@dataclass(frozen=True, kw_only=True)
class GatewaySettings:
    """A gateway's settings: the table [gateway] of the configuration file. Times are seconds."""

    http: str | None = None  # HOST:PORT for HTTP and WebSocket; port 0 picks one
    mqtt: str | None = None  # HOST:PORT for MQTT
    tokens: str | Path | None = None  # the key directory, with its tokens; None: everybody may do everything
    recording: str | Path | None = None  # a broker's recording (`contrada broker --record`), for looking back
    webhooks: Sequence[Mapping[str, Any]] = ()  # tables with name, filter, url and secret: see `webhooks`
    insecure: bool = False  # allow other machines in without tokens
    certificate: str | Path | None = None  # PEM files for TLS, of both doors
    private_key: str | Path | None = None
    origins: Sequence[str] = ()  # pages that may use the gateway from elsewhere: https://map.example
    body_bytes: int = 4 << 20  # of a request that is one document; lines may go on for ever
    line_bytes: int = 1 << 20  # of one line, WebSocket message or MQTT packet
    batch: int = 10_000  # notifications of one request whose ids are answered
    connections: int = 10_000  # streams, WebSockets and MQTT connections together
    subscriptions: int = 100  # of one WebSocket or MQTT connection
    token_connections: int = 1000  # of one token, of those above
    token_durable: int = 1000  # durable subscriptions of one token at the broker, those of MQTT among them
    token_sessions: int = 1000  # MQTT sessions of one token whose clients are away
    session_bytes: int = 64 << 20  # of all MQTT sessions whose clients are away: topic filters, filters and wills
    session_expiry: float = 604_800.0  # for which an MQTT session outlives its connection, at most
    window: int = 10_000  # the largest window that a subscriber may ask for
    timeout: float = 10.0  # how long the broker may take to answer
    heartbeat: float = 15.0  # between signs of life in a stream
    shutdown_timeout: float = 5.0

    def __post_init__(self) -> None:
        for name in _COUNTS:
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value < 2**31:
                raise InvalidValue(f"gateway.{name} must be a whole number of at least 1, not {value!r}")
        for name in ("timeout", "heartbeat", "shutdown_timeout", "session_expiry"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
                raise InvalidValue(f"gateway.{name} must be a positive number of seconds, not {value!r}")
        if isinstance(self.origins, str) or not all(isinstance(origin, str) for origin in self.origins):
            raise InvalidValue(f"gateway.origins must be a list of origins, not {self.origins!r}")
        if not isinstance(self.insecure, bool):
            raise InvalidValue(f"gateway.insecure must be true or false, not {self.insecure!r}")
        if (self.certificate is None) != (self.private_key is None):
            raise InvalidValue("TLS needs two files: gateway.certificate and gateway.private_key")
        if self.http is None and self.mqtt is None:
            raise InvalidValue("a gateway without a door: give --http HOST:PORT, --mqtt HOST:PORT, or both")
        for name in ("http", "mqtt"):
            address = getattr(self, name)
            if address is None:
                continue
            host, _ = host_and_port(address, name)
            if self.tokens is None and not self.insecure and not is_loopback(host):
                raise InvalidValue(
                    f"{address} can be reached from other machines, and without tokens anyone may publish and "
                    "subscribe there. Give a key directory with tokens (see contrada token), listen on 127.0.0.1, "
                    "or allow it with --insecure"
                )

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> GatewaySettings:
        """Make settings from a mapping, as read from TOML. Unknown names are an error."""
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(options) - known):
            raise InvalidValue(f"unknown setting gateway.{unknown[0]}; the settings are {', '.join(sorted(known))}")
        return cls(**options)


def host_and_port(address: object, what: str) -> tuple[str, int]:
    """Take HOST:PORT apart."""
    host, colon, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
    host = host.strip("[]") or "127.0.0.1"
    if not colon or not port.isascii() or not port.isdecimal() or int(port) > 65_535:
        raise InvalidValue(f"{address!r} is not an address for {what}: expected HOST:PORT, as in 127.0.0.1:7480")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine can get there."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
