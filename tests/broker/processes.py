"""Broker processes and raw clients for tests over real sockets. Every wait has a deadline; none sleeps."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import zmq

from contrada.broker.protocol.frames import decode, encode
from contrada.broker.protocol.messages import (
    Ack,
    Deliver,
    Error,
    Hello,
    Message,
    Ping,
    Pong,
    Publish,
    Reply,
    Subscribe,
    Welcome,
)
from contrada.broker.protocol.wire import Policy
from tests.broker.table_top import body, equals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from contrada.broker.protocol.keys import KeyPair

PATIENCE = 30.0
ROOT = Path(__file__).parents[2]
M = TypeVar("M")


class Process:
    """A broker in a process of its own."""

    def __init__(self, log: Path, settings: dict[str, Any]) -> None:
        self.log = log
        with log.open("w") as errors:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "tests.broker.naive_server", json.dumps(settings)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=ROOT,
            )
        assert self.popen.stdout is not None
        line = self.popen.stdout.readline()
        assert line, log.read_text()
        document = json.loads(line)
        self.url: str = document["url"]
        self.metrics: str = document["metrics"]

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def resident_bytes(self) -> int:
        return int(Path(f"/proc/{self.popen.pid}/statm").read_text().split()[1]) * 4096


@contextlib.contextmanager
def broker(tmp_path: Path, **settings: Any) -> Iterator[Process]:
    process = Process(tmp_path / "broker.log", settings)
    try:
        yield process
        assert process.popen.poll() is None, f"the broker died: {process.log.read_text()}"
    finally:
        process.popen.terminate()
        try:
            process.popen.wait(PATIENCE)
        finally:
            process.popen.kill()
            process.popen.wait()
            assert process.popen.stdout is not None
            process.popen.stdout.close()


OPEN: list[Dealer] = []  # closed when their test ends, however it ends


class Dealer:
    """A client that says exactly what it is told to."""

    def __init__(
        self,
        context: zmq.Context[Any],
        url: str,
        *,
        keys: KeyPair | None = None,
        server_key: str | None = None,
        hello: bool = True,
        **options: int,
    ) -> None:
        self.socket = context.socket(zmq.DEALER)
        OPEN.append(self)
        self.socket.linger = 0
        for name, value in options.items():
            setattr(self.socket, name, value)
        if keys is not None and server_key is not None:
            self.socket.curve_publickey = keys.public.encode()
            self.socket.curve_secretkey = keys.secret.encode()
            self.socket.curve_serverkey = server_key.encode()
        self.monitor = self.socket.get_monitor_socket()
        self.socket.connect(url)
        self.request = 0
        self.delivered: list[tuple[int, int]] = []  # (sequence, subscription)
        if hello:
            self.say(Hello(1, 1, "dealer"))
            self.welcome = self.until(Welcome)

    def say(self, message: Message) -> None:
        self.socket.send_multipart(encode(message))

    def hear(self, patience: float = PATIENCE) -> Message:
        """The next message; deliveries are noted, pings are answered."""
        if not self.socket.poll(int(patience * 1000)):
            raise TimeoutError(f"nothing was heard for {patience} s")
        message = decode(self.socket.recv_multipart())
        if isinstance(message, Ping):
            self.say(Pong(message.nonce))
        if isinstance(message, Deliver):
            self.delivered += [(e.id.sequence, s) for e in message.entries for s in e.subscriptions]
        return message

    def until(self, kind: type[M], when: Callable[[M], bool] = lambda _m: True) -> M:
        """Listen until a message of this kind comes; others pass by."""
        deadline = time.monotonic() + PATIENCE
        while (left := deadline - time.monotonic()) > 0:
            message = self.hear(left)
            if isinstance(message, kind) and when(message):
                return message
            assert not isinstance(message, Error), message
        raise TimeoutError(f"no {kind.__name__} came")

    def until_delivered(self, count: int) -> list[tuple[int, int]]:
        while len(self.delivered) < count:
            self.until(Deliver)
        return self.delivered

    def ask(self, message: Any) -> Any:
        """Send a request and wait for its ACK, REPLY or ERROR."""
        self.say(message)
        deadline = time.monotonic() + PATIENCE
        while (left := deadline - time.monotonic()) > 0:
            heard = self.hear(left)
            if isinstance(heard, Ack) and message.request in [a.request for a in heard.entries]:
                return heard
            if isinstance(heard, (Error, Reply)) and heard.request == message.request:
                return heard
        raise TimeoutError(f"no answer to {message}")

    def subscribe(
        self, id: int, value: Any, policy: Policy = Policy.BLOCK, credit: int = 1_000_000, queue: int = 0
    ) -> Any:
        self.request += 1
        return self.ask(Subscribe(self.request, id, equals("a", value), policy, credit, queue))

    def publish(self, *values: Any, wait: bool = True, **more: Any) -> Any:
        self.request += 1
        message = Publish(self.request, tuple(body(a=value, **more) for value in values))
        return self.ask(message) if wait else self.say(message)

    def close(self) -> None:
        if not self.socket.closed:
            self.socket.disable_monitor()
        self.monitor.close()
        self.socket.close()
