"""Which requests are let in: by their host, their origin and their token. No I/O.

A page on any site may make a browser send requests to 127.0.0.1, and a name that someone else owns may resolve to it.
So a request with an `Origin` must come from the gateway's own page or from one of the settings' origins, and without
tokens the `Host` must be this machine's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contrada.client.gateway.problems import Problem
from contrada.client.gateway.settings import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def check_host(host: str, *, has_tokens: bool, insecure: bool) -> None:
    """Refuse a `Host` that is not this machine's, where no token protects the gateway."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    if has_tokens or insecure or is_loopback(name.strip("[]")):
        return
    raise Problem("foreign-origin", f"the host {host!r:.80} is not this machine: use 127.0.0.1 or localhost, or tokens")


def check_origin(origin: str | None, host: str, origins: Sequence[str]) -> str | None:
    """Refuse pages of elsewhere; the origin to allow, if it is one of the settings'."""
    if origin is None:
        return None
    if origin in origins:
        return origin
    if origin.partition("://")[2] == host:
        return None
    raise Problem("foreign-origin", f"{origin!r:.80} is not let in: name it in the settings, gateway.origins")


def bearer(header: str | None) -> str | None:
    """The token of an `Authorization` header."""
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Problem("unauthenticated", "Authorization must be `Bearer TOKEN`")
    return token.strip()
