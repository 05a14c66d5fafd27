"""What a hostile world does to clients: brokers that vanish in mid-sentence, forks, cancellation, mistakes."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
import zmq

import contrada
from contrada.broker.protocol.frames import decode, encode
from contrada.broker.protocol.messages import (
    Ack,
    Acked,
    Deliver,
    Delivered,
    Hello,
    Limits,
    NotificationId,
    Subscribe,
    Welcome,
)
from contrada.broker.protocol.wire import Role
from contrada.client.transport import Transport
from contrada.forwarding.codec.msgpack import encode_notification
from tests.client.reference import make_broker

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

LIMIT = 60.0
WELCOME = Welcome(1, "b", 1, "p", frozenset({Role.PUBLISH, Role.SUBSCRIBE}), 30.0, 60.0, Limits())


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, LIMIT))


class Vanishing:
    """A broker that welcomes one client, delivers to its subscription, and is gone without a goodbye."""

    def __init__(self) -> None:
        self.context = zmq.Context()
        self.router = self.context.socket(zmq.ROUTER)
        self.router.sndhwm = 0  # or it would drop what is too much at a time
        self.router.bind("tcp://127.0.0.1:*")
        self.url = self.router.getsockopt_string(zmq.LAST_ENDPOINT)

    def serve(self, count: int) -> None:
        """Answer HELLO and SUBSCRIBE, send `count` deliveries of one notification each, and vanish."""
        while True:
            assert self.router.poll(LIMIT * 1000)
            client, *frames = self.router.recv_multipart()
            message = decode(frames)
            if isinstance(message, Hello):
                self.router.send_multipart([client, *encode(WELCOME)])
            elif isinstance(message, Subscribe):
                self.router.send_multipart([client, *encode(Ack((Acked(message.request),)))])
                break
        for n in range(count):
            body = encode_notification({"n": n})
            entry = Delivered(NotificationId("b", n + 1), "p", body, (message.subscription,))
            self.router.send_multipart([client, *encode(Deliver((entry,)))])
        self.context.destroy(linger=int(LIMIT * 1000))


@pytest.mark.parametrize("kind", ["async", "blocking"])
def test_what_arrived_before_the_connection_broke_is_not_lost(kind: str) -> None:
    """More messages than a client reads in one go, and then the end of the connection."""
    broker = Vanishing()
    options: dict[str, Any] = {"reconnect": False}

    def blocking() -> list[int]:
        with contrada.Client(broker.url, **options) as c:
            sub = c.subscribe("n exists", window=5000)
            got = [sub.get(timeout=LIMIT)["n"] for _ in range(1000)]
            with pytest.raises(contrada.Disconnected):
                sub.get(timeout=LIMIT)
            return got

    async def main() -> None:
        serving = asyncio.get_running_loop().run_in_executor(None, broker.serve, 1000)
        if kind == "blocking":
            got = await asyncio.to_thread(blocking)
        else:
            async with contrada.connect(broker.url, **options) as c:
                sub = await c.subscribe("n exists", window=5000)
                await serving  # everything is in this client's buffers, or on its way there
                got = [(await sub.get())["n"] for _ in range(1000)]
                with pytest.raises(contrada.Disconnected):
                    await sub.get()
        await serving
        assert got == list(range(1000))

    run(main())


def test_the_failure_of_a_cancelled_publication_is_told_later(url: str) -> None:
    """It was cancelled after it was handed over: whether it arrived is not silently forgotten."""

    async def main() -> None:
        with make_broker(shutdown_timeout=0.2) as broker:
            client = await contrada.connect(broker.url, reconnect=False)
            blocker = await contrada.connect(broker.url)
            await blocker.subscribe("n >= 0", policy="block", window=1, queue=1)
            publishing = asyncio.create_task(client.publish_many({"n": n} for n in range(10)))
            while not client._core.outbox.unanswered:
                await asyncio.sleep(0)
            publishing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await publishing
            await blocker.close()  # lets the publication go,
            await client.flush()  # which was accepted
            await (blocker := await contrada.connect(broker.url)).subscribe("n >= 0", policy="block", window=1, queue=1)
            single = [asyncio.create_task(client.publish({"n": n})) for n in range(5)]
            while len(client._core.outbox.unanswered) < 3:
                await asyncio.sleep(0)
            for task in single:
                task.cancel()
            await asyncio.wait(single)
        # The broker is gone, and with it the answer.
        while client._core.outbox.unanswered:
            await asyncio.sleep(0)
        with pytest.raises(contrada.ContradaError, match="streamed"):  # refused or lost, as far as they had come
            await client.close()
        await blocker.close()

    run(main())


def test_a_timed_out_publication_that_fails_is_told_later() -> None:
    with make_broker(shutdown_timeout=0.2) as broker:
        client = contrada.Client(broker.url, reconnect=False)
        client.subscribe("n >= 0", policy="block", window=1, queue=1)
        client.publish_many([{"n": 1}, {"n": 2}])
        with pytest.raises(TimeoutError):
            client.publish({"n": 3}, timeout=0.2)
    with pytest.raises(contrada.ContradaError, match="1 streamed"):  # refused or lost, as far as it had come
        client.close()


@pytest.mark.parametrize("ack", [True, False])
@pytest.mark.parametrize("place", [3, 300])
def test_publish_many_publishes_what_comes_before_a_bad_one(url: str, ack: bool, place: int) -> None:
    def invalid() -> Iterator[dict[str, Any]]:
        yield from ({"n": n} for n in range(place))
        yield {"n": float("nan")}
        raise AssertionError("nobody asks for more")

    def broken() -> Iterator[dict[str, Any]]:
        yield from ({"n": n} for n in range(place))
        raise KeyError("of the caller's own")

    async def main() -> None:
        async with contrada.connect(url) as c, c.subscribe("n >= 0") as sub:
            for source, error in ((invalid, contrada.InvalidValue), (broken, KeyError)):
                with pytest.raises(error) as caught:
                    await c.publish_many(source(), ack=ack)
                assert source is broken or f"notification {place}:" in str(caught.value)
                assert [(await sub.get(timeout=30))["n"] for _ in range(place)] == list(range(place))

    run(main())
    with contrada.Client(url) as c:
        sub = c.subscribe("n >= 0")
        for source, error in ((invalid, contrada.InvalidValue), (broken, KeyError)):
            with pytest.raises(error):
                c.publish_many(source(), ack=ack)
            assert [sub.get(timeout=30)["n"] for _ in range(place)] == list(range(place))


def test_a_forked_process_is_told_instead_of_waiting_for_ever(url: str) -> None:
    with contrada.Client(url) as c:
        sub = c.subscribe("n exists")
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:  # pragma: no cover (another process)
            signal.alarm(int(LIMIT))  # whatever happens, it ends
            told = []
            for use in (lambda: c.publish({"n": 1}), sub.get, c.status, lambda: c.subscribe("n > 1")):
                try:
                    use()
                except contrada.ContradaError as error:
                    told.append("forked" in str(error))
            c.close()
            os.write(writer, b"told" if told == [True] * 4 else b"other")
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            assert pipe.read() == b"told"
        os.waitpid(child, 0)
        c.publish({"n": 2})
        assert sub.get(timeout=30)["n"] == 2


def test_a_client_is_entered_once(url: str) -> None:
    async def main() -> None:
        client = contrada.connect(url)
        async with client:
            with pytest.raises(contrada.ContradaError, match="entered before"):
                await client
            assert client.connected
        with pytest.raises(contrada.ContradaError, match="entered before"):
            await client

    run(main())


def test_another_event_loop_is_told_instead_of_waiting_for_ever(url: str) -> None:
    async def enter() -> tuple[Any, Any]:
        client = await contrada.connect(url)
        return client, await client.subscribe("n exists")

    client, sub = asyncio.run(enter())

    async def use(what: Any) -> None:
        with pytest.raises(contrada.ContradaError, match="another event loop"):
            await what()

    for what in (lambda: client.publish({"n": 1}), sub.get, lambda: anext(sub), lambda: client.subscribe("n > 1")):
        run(use(what))
    run(client.close())


def test_a_broker_is_started_once() -> None:
    broker = make_broker()
    with broker:
        with pytest.raises(contrada.ContradaError, match="started before"):
            broker.start()
        contrada.Client(broker.url).close()
    with pytest.raises(contrada.ContradaError, match="started before"):
        broker.start()
    broker.stop()


@pytest.mark.parametrize("kind", ["async", "blocking"])
def test_a_reconnect_that_cannot_even_try_ends_the_client(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No descriptors left, say: everybody who waits is told, and nobody waits for ever."""

    def exhausted(self: Transport) -> None:
        raise contrada.Disconnected("no socket: too many open files")

    async def main() -> None:
        with make_broker(shutdown_timeout=0.2) as broker:
            client = await contrada.connect(broker.url)
            sub = await client.subscribe("n exists")
            monkeypatch.setattr(Transport, "connect", exhausted)
        with pytest.raises(contrada.Disconnected, match="too many open files"):
            await sub.get()
        await client.close()

    if kind == "async":
        run(main())
        return
    with make_broker(shutdown_timeout=0.2) as broker:
        client = contrada.Client(broker.url)
        sub = client.subscribe("n exists")
        monkeypatch.setattr(Transport, "connect", exhausted)
    with pytest.raises(contrada.Disconnected, match="too many open files"):
        sub.get(timeout=LIMIT)
    client.close()


def test_ipv6_works_where_there_is_any() -> None:
    try:
        broker = make_broker("tcp://[::1]:*")
    except contrada.ContradaError as error:
        pytest.skip(f"no IPv6 here: {error}")
    with broker, contrada.Client(broker.url) as c:
        sub = c.subscribe("n exists")
        c.publish({"n": 1})
        assert sub.get(timeout=30)["n"] == 1


@pytest.mark.parametrize(
    "options",
    [
        {"name": "x" * 129},
        {"name": 5},
        {"name": "\ud800"},
        {"reconnect": "no"},
        {"outstanding": True},
        {"connect_timeout": True},
    ],
)
def test_options_that_the_broker_could_not_take_are_refused_here(options: dict[str, Any]) -> None:
    with pytest.raises(contrada.InvalidValue):
        contrada.connect("tcp://127.0.0.1:9", **options)


@pytest.mark.parametrize("options", [{"window": 2**63}, {"queue": 2**64}, {"window": True}, {"queue": -1}])
def test_sizes_that_no_message_could_carry_are_refused_here(url: str, options: dict[str, Any]) -> None:
    with contrada.Client(url) as c:
        with pytest.raises(contrada.InvalidValue):
            c.subscribe("n exists", **options)
        assert c.publish({"n": 1})
