"""Dialled peers on the network: one DEALER each, which connects once. When it fails, the core decides what to do.

Belongs to the node's thread, and shares its context and poller.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import zmq

from contrada.broker.protocol.addresses import host_name, unknown_host
from contrada.broker.protocol.keys import load_public
from contrada.broker.protocol.monitor import event_number
from contrada.errors import ContradaError

if TYPE_CHECKING:
    from contrada.broker.core.core import Core
    from contrada.broker.node.key_directory import KeyDirectory
    from contrada.broker.overlay.dial import Peer

_MESSAGES: Final = 512  # of one peer in a turn
_NOTIFICATIONS: Final = 4096  # of all peers in a turn
_LOST: Final = {
    int(zmq.Event.CLOSED): "nobody listens there",
    int(zmq.Event.DISCONNECTED): "the connection is gone",
    int(
        zmq.Event.HANDSHAKE_FAILED_NO_DETAIL
    ): "the peer gave up during the handshake: it has another key than its file here says, or only one end uses keys",
    int(zmq.Event.HANDSHAKE_FAILED_PROTOCOL): "the peer has other security settings, or another key",
    int(zmq.Event.HANDSHAKE_FAILED_AUTH): "the peer refuses this broker's key",
}


_FOUND: Final = (int(zmq.Event.CONNECT_DELAYED), int(zmq.Event.CONNECTED))  # the host has an address


class Line(NamedTuple):
    """A socket, and what reports on it."""

    dealer: zmq.Socket[bytes]
    monitor: zmq.Socket[bytes]


class Dealers:
    """The connections that this broker has dialled, by the name that the core gave them."""

    def __init__(
        self, context: zmq.Context[Any], poller: zmq.Poller, keys: KeyDirectory | None, options: dict[int, int]
    ) -> None:
        self._context = context
        self._poller = poller
        self._keys = keys
        self._options = {**options, zmq.RECONNECT_IVL: -1, zmq.LINGER: 0}
        self.lines: dict[bytes, Line] = {}
        self._unknown: dict[bytes, str] = {}  # names of hosts of which no address was found yet

    def __bool__(self) -> bool:
        return bool(self.lines)

    def open(self, connection: bytes, peer: Peer) -> None:
        """Dial a peer."""
        server_key = load_public(self._keys.path / f"{peer.key}.toml") if self._keys is not None else ""
        dealer = self._context.socket(zmq.DEALER)
        for option, value in self._options.items():
            dealer.setsockopt(option, value)
        dealer.setsockopt(zmq.IPV6, int("[" in peer.url))
        if self._keys is not None:
            dealer.curve_publickey = self._keys.own.public.encode()
            dealer.curve_secretkey = self._keys.own.secret.encode()
            dealer.curve_serverkey = server_key.encode()
        line = Line(dealer, dealer.get_monitor_socket(sum(_LOST) + sum(_FOUND)))
        self.lines[connection] = line
        if (name := host_name(peer.url)) is not None:
            self._unknown[connection] = name
        for readable in line:
            self._poller.register(readable, zmq.POLLIN)
        try:
            dealer.connect(peer.url)
        except zmq.ZMQError as error:
            raise ContradaError(f"cannot dial {peer.url}: {error}") from error

    def silence(self, connection: bytes) -> str:
        """Say why nothing may have come from a connection."""
        name = self._unknown.get(connection)
        return "no answer" if name is None else unknown_host(name)

    def close(self, connection: bytes) -> None:
        """Hang up, if it is still open."""
        line = self.lines.pop(connection, None)
        self._unknown.pop(connection, None)
        if line is not None:
            for readable in line:
                self._poller.unregister(readable)
            line.dealer.disable_monitor()
            line.monitor.close()
            line.dealer.close()

    def close_all(self) -> None:
        """Hang up on everybody."""
        for connection in list(self.lines):
            self.close(connection)

    def receive(self, ready: dict[Any, int], core: Core) -> None:
        """Take in what peers have sent, up to a turn's worth, and which of them are gone."""
        now = time.monotonic()
        most = core.pending + _NOTIFICATIONS
        for connection, (dealer, monitor) in self.lines.items():
            if dealer in ready:
                for _ in range(_MESSAGES):
                    if core.pending >= most:
                        break
                    try:
                        frames = dealer.recv_multipart(zmq.NOBLOCK)
                    except zmq.Again:
                        break
                    core.receive(connection, None, frames, now)
            if monitor in ready:
                event = event_number(monitor.recv_multipart(zmq.NOBLOCK))
                if event in _FOUND:
                    self._unknown.pop(connection, None)
                else:
                    core.disconnected(connection, _LOST.get(event, "lost"), now)
