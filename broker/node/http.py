"""The HTTP port of a broker: `/metrics` for Prometheus, and `/healthz` and `/readyz` for whoever starts and stops it.

A check says what is wrong, or nothing: 200 and `ok`, or 503 and the reason. Other paths are 404.
"""

from __future__ import annotations

import socket
import threading
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any, NamedTuple
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import make_wsgi_app

from contrada.errors import ContradaError, InvalidValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from contrada.broker.node.metrics import Metrics

    Check = Callable[[], str]

_TEXT = ("Content-Type", "text/plain; charset=utf-8")


class HttpServer(NamedTuple):
    """A running HTTP endpoint."""

    url: str
    close: Callable[[], None]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        """Bind without asking the name service who we are, as `WSGIServer` would.

        Connections of a broker that was killed a moment ago, which the system still remembers, are no hindrance.
        """
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of every scrape."""


def serve(metrics: Metrics, address: str, checks: Mapping[str, Check] | None = None) -> HttpServer:
    """Serve the registry, and a check for each path given, at HOST:PORT; port 0 picks a free one."""
    host, colon, port = address.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not colon or not port.isdecimal() or int(port) > 65_535:
        raise InvalidValue(f"{address!r} is not an address for metrics: expected HOST:PORT, as in 127.0.0.1:9464")
    application = _application(make_wsgi_app(metrics.registry), checks or {})
    kind = _Server6 if ":" in host else _Server
    try:
        server = make_server(host, int(port), application, kind, handler_class=_Quiet)
    except socket.gaierror as error:
        raise ContradaError(
            f"metrics cannot be served on {address}: the host {host} cannot be resolved ({error.strerror})"
        ) from error
    except OSError as error:
        raise ContradaError(f"metrics cannot be served on {address}: {error}") from error
    thread = threading.Thread(target=server.serve_forever, name="contrada-http", daemon=True)
    thread.start()

    def close() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    shown = f"[{host}]" if ":" in host else host
    return HttpServer(f"http://{shown}:{server.server_port}/metrics", close)


def _application(metrics: Callable[..., Iterable[bytes]], checks: Mapping[str, Check]) -> Callable[..., Any]:
    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            return metrics(environ, start)
        if path in checks:
            wrong = checks[path]()
            start("503 Service Unavailable" if wrong else "200 OK", [_TEXT])
            return [f"{wrong or 'ok'}\n".encode()]
        start("404 Not Found", [_TEXT])
        return [f"nothing is here: {' '.join(('/metrics', *checks))}\n".encode()]

    return answer
