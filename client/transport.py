"""A DEALER socket and its monitor: the only module of the client that knows ZeroMQ.

Sending never blocks: the core keeps no more in flight than the broker's window, so the socket needs no high-water mark
of its own. Receiving is bounded by the credit of the subscriptions. The monitor tells what the data socket cannot: that
the connection was cut, and that security could not be agreed on (`PROTOCOL.md`, Security).
"""

from __future__ import annotations

import math
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import zmq

from contrada.broker.protocol.addresses import host_name, is_address, unknown_host
from contrada.broker.protocol.keepalive import keepalive
from contrada.broker.protocol.monitor import event_number
from contrada.client.engine.states import Input
from contrada.errors import Disconnected, InvalidValue

if TYPE_CHECKING:
    from random import Random

    from contrada.client.options import Key, Options

LINGER_MS = 2_000
KEEPALIVE = keepalive(heartbeat=5.0, timeout=30.0)  # a broker's own come with WELCOME, when the socket is long open
_LONGEST_WAIT = 3600.0  # seconds; whoever waits longer looks again
_Z85 = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")
# A failed handshake ends in DISCONNECTED without HANDSHAKE_SUCCEEDED before it, whatever made it fail.
# A failed attempt is CONNECT_DELAYED, CLOSED, CONNECT_RETRIED; without the first two the host was not even found.
_WATCHED = (
    zmq.EVENT_DISCONNECTED
    | zmq.EVENT_CLOSED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_CONNECT_DELAYED
    | zmq.EVENT_CONNECT_RETRIED
)
_NOT_YET = "a broker that is new on its machine first compiles for minutes, and says when it listens"
_BAD_HANDSHAKE = "the security handshake failed: wrong server key, or keys on one side only"


class Report(NamedTuple):
    """What the monitor saw."""

    fault: Input
    reason: str


class Transport:
    """The socket of one connection attempt after another."""

    def __init__(self, url: str, options: Options, random: Random) -> None:
        if not isinstance(url, str) or not is_address(url):
            raise InvalidValue(f"{url!r} is not a broker's address: expected one like tcp://127.0.0.1:7400")
        self.url = url
        self._random = random
        self._secrets = load_keys(options.key, options.server_key)
        self.socket: zmq.Socket[bytes] | None = None
        self.monitor: zmq.Socket[bytes] | None = None
        self._shaken = self._tried = False
        self._name = host_name(url)

    def connect(self) -> None:
        """Open a new socket; ZeroMQ connects it in the background and keeps trying."""
        self.hangup(linger=False)
        try:
            socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        except zmq.ZMQError as error:
            raise Disconnected(f"no socket for {self.url}: {error}") from error
        try:
            socket.linger = LINGER_MS
            socket.sndhwm = socket.rcvhwm = 0
            socket.reconnect_ivl = self._random.randint(50, 150)
            socket.reconnect_ivl_max = 2_000
            socket.setsockopt(zmq.HANDSHAKE_IVL, 5_000)
            socket.setsockopt(zmq.IPV6, int("[" in self.url))
            for option, value in KEEPALIVE.items():
                socket.setsockopt(option, value)
            if self._secrets is not None:
                socket.curve_serverkey, socket.curve_publickey, socket.curve_secretkey = self._secrets
            self.monitor = socket.get_monitor_socket(_WATCHED)
            socket.connect(self.url)
        except zmq.ZMQError as error:
            self.socket = socket
            self.hangup(linger=False)
            raise Disconnected(f"cannot connect to {self.url}: {error}") from error
        self.socket = socket
        self._shaken = self._tried = False

    def hangup(self, *, linger: bool) -> None:
        """Close the socket, if there is one."""
        if self.socket is not None:
            self.socket.disable_monitor()
            self.socket.close(linger=LINGER_MS if linger else 0)
        if self.monitor is not None:
            self.monitor.close(linger=0)
        self.socket = self.monitor = None

    def send(self, frames: list[bytes]) -> None:
        """Hand a message to ZeroMQ. After a refused handshake there is nobody to take it: the monitor tells why."""
        assert self.socket is not None
        with suppress(zmq.Again):
            self.socket.send_multipart(frames, zmq.NOBLOCK, copy=True)

    @property
    def readable(self) -> bool:
        """Whether a message has arrived."""
        return self.socket is not None and bool(int(self.socket.events) & zmq.POLLIN)

    def receive(self) -> list[bytes] | None:
        """Return the next message that has arrived, if any."""
        if self.socket is None:
            return None
        try:
            return self.socket.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return None

    def wait(self, wake: int, timeout: float | None) -> None:
        """Block until something arrives, the monitor has news, the pipe `wake` is written to, or time is up."""
        poller = zmq.Poller()
        poller.register(wake, zmq.POLLIN)
        for socket in (self.socket, self.monitor):
            if socket is not None:
                poller.register(socket, zmq.POLLIN)
        ready = dict(poller.poll(None if timeout is None else math.ceil(min(timeout, _LONGEST_WAIT) * 1000)))
        if wake in ready:
            os.read(wake, 4096)

    def report(self) -> Report | None:
        """Return the next thing that the monitor saw and the core should know, if any."""
        while self.monitor is not None:
            try:
                kind = event_number(self.monitor.recv_multipart(zmq.NOBLOCK))
            except zmq.Again:
                return None
            if kind == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._shaken = True
            elif kind == zmq.EVENT_CONNECT_DELAYED:
                self._tried = True
            elif kind == zmq.EVENT_CLOSED:
                self._tried = True
                return Report(Input.CUT, f"nobody listens at {self.url}, or not yet: {_NOT_YET}")
            elif kind == zmq.EVENT_CONNECT_RETRIED:
                found, self._tried = self._tried or self._name is None, False
                if not found:
                    return Report(Input.CUT, f"{self.url}: {unknown_host(self._name or '')}")
            elif kind == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                return Report(Input.INSECURE, f"{self.url}: {self._unknown_key()}")
            elif self._shaken:
                return Report(Input.CUT, f"the connection to {self.url} was cut")
            else:
                return Report(Input.HANDSHAKE, f"{self.url}: {_BAD_HANDSHAKE}")
        return None

    def _unknown_key(self) -> str:
        key = self._secrets[1].decode() if self._secrets is not None else "none"
        return f"the broker does not let the key {key} in: it is not in its key directory; ask its operator"


def load_keys(key: Key | None, server_key: Key | None) -> tuple[bytes, bytes, bytes] | None:
    """Read the broker's public key and this client's pair; None without keys."""
    if key is None or server_key is None:
        return None
    from contrada.broker.protocol.keys import load_public, load_secret

    pair = load_secret(key)
    given = isinstance(server_key, str) and _Z85.fullmatch(server_key)
    server = str(server_key) if given else load_public(server_key)
    return server.encode(), pair.public.encode(), pair.secret.encode()
