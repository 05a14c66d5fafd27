"""The socket that clients and neighbours connect to: bound first, before anything that takes long is loaded.

Who connects before the broker serves is accepted by ZeroMQ, and is answered as soon as it does.
"""

from __future__ import annotations

import logging
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import zmq

from contrada.broker.node.files.durable_disk import kept_id
from contrada.broker.node.key_directory import KeyDirectory, id_of_key
from contrada.broker.protocol.addresses import host_name, unknown_host
from contrada.broker.protocol.keepalive import keepalive
from contrada.errors import ContradaError

if TYPE_CHECKING:
    from contrada.broker.node.settings import Settings

log = logging.getLogger("contrada.broker")

_SEND_QUEUE: Final = 128  # messages in a connection's buffer before it counts as full
_RECEIVE_QUEUE: Final = 64
HANDSHAKE_FAILURES: Final = {
    int(zmq.Event.HANDSHAKE_FAILED_NO_DETAIL): "the client gave up during the handshake",
    int(zmq.Event.HANDSHAKE_FAILED_PROTOCOL): "the client has other security settings, or another key for this broker",
}


class Listener:
    """The sockets of a broker that others reach, its keys, and its name."""

    def __init__(self, settings: Settings) -> None:
        self.keys = KeyDirectory(settings.keys) if settings.keys is not None else None
        self.id = settings.id or _kept_id(settings) or _own_id(self.keys)
        self.context: zmq.Context[Any] = zmq.Context()
        self.zap = self.context.socket(zmq.REP)  # where the transport asks whether a key is let in
        self.router = self.context.socket(zmq.ROUTER)
        try:
            self.monitor = self.router.get_monitor_socket(sum(HANDSHAKE_FAILURES))
            self._bind(settings)
        except BaseException:
            self.context.destroy(linger=0)
            raise
        self.url = self.router.getsockopt_string(zmq.LAST_ENDPOINT)
        log.info("listening", extra={"url": self.url, "broker": self.id, "secure": self.keys is not None})

    def _bind(self, settings: Settings) -> None:
        router = self.router
        options = transport_options(settings)
        options |= {zmq.ROUTER_MANDATORY: 1, zmq.BACKLOG: 4096, zmq.IPV6: int("[" in settings.listen)}
        for option, value in options.items():
            router.setsockopt(option, value)
        if self.keys is not None:
            self.zap.bind("inproc://zeromq.zap.01")
            router.curve_server = True
            router.curve_secretkey = self.keys.own.secret.encode()
            router.zap_domain = b"contrada"
        try:
            router.bind(settings.listen)
        except zmq.ZMQError as error:
            name = host_name(settings.listen)
            reason = unknown_host(name) if name is not None and not _is_known(name) else str(error)
            raise ContradaError(f"cannot listen on {settings.listen}: {reason}") from error


def transport_options(settings: Settings) -> dict[int, int]:
    """What the sockets of clients and of peers have in common."""
    return {
        zmq.SNDHWM: _SEND_QUEUE,
        zmq.RCVHWM: _RECEIVE_QUEUE,
        zmq.MAXMSGSIZE: settings.limits.message_bytes,
        zmq.HANDSHAKE_IVL: 10_000,
        **keepalive(settings.heartbeat, settings.timeout),
    }


def _is_known(name: str) -> bool:
    try:
        return name == "*" or bool(socket.getaddrinfo(name, None))
    except OSError:
        return False


def _kept_id(settings: Settings) -> str:
    """The id under which a broker's data was written, if there is any."""
    return kept_id(Path(settings.data)) if settings.data is not None else ""


def _own_id(keys: KeyDirectory | None) -> str:
    """Name a broker that was given no id: by its key, which stays the same across restarts, or at random."""
    return f"b-{secrets.token_hex(4)}" if keys is None else id_of_key(keys.own.public)
