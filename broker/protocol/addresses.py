"""Where brokers listen and clients connect: ZeroMQ endpoints, checked before ZeroMQ sees them.

ZeroMQ takes a port of more than 16 bits for another one, and an address that it cannot read for one that is not there.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

_HOST: Final = r"(?:\[[\w:.%*]+\]|[^\[\]:;/\s]+)"
_ADDRESS: Final = re.compile(
    rf"(?:ipc|inproc)://\S+|(?:tcp|ws|wss)://(?:{_HOST}:\d+;)?{_HOST}:(?:\*|(?P<port>\d{{1,5}}))(?:/\S*)?"
)


def is_address(text: str) -> bool:
    """Whether a text is one of ZeroMQ's endpoints for TCP, WebSockets or this machine."""
    found = _ADDRESS.fullmatch(text)
    return found is not None and int(found["port"] or 0) <= 65_535


def host_name(endpoint: str) -> str | None:
    """The name of the host of an endpoint that has to be looked up; None where there is nothing to look up."""
    if endpoint.startswith(("ipc://", "inproc://")):
        return None
    host = urlsplit("//" + re.split(r"://|;", endpoint.replace(":*", ":0"))[-1]).hostname or ""
    try:
        ip_address(host)
    except ValueError:
        return host
    return None


def unknown_host(name: str) -> str:
    """What is said of a host that cannot be looked up."""
    return f"there is no host {name!r}, as far as this machine knows"


def is_local(endpoint: str) -> bool:
    """Whether only this machine can reach an endpoint."""
    if endpoint.startswith(("ipc://", "inproc://")):
        return True
    host = urlsplit(endpoint.replace(":*", ":0")).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
