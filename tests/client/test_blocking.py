"""The blocking client, and that it is the async client's twin."""

from __future__ import annotations

import inspect
import pydoc
import re
import threading
from dataclasses import fields
from typing import Any

import pytest

import contrada
from contrada.broker.protocol.messages import Limits
from contrada.client.options import Options
from contrada.client.subscriptions import Kept
from tests.client.reference import make_broker


def test_the_example_of_the_documentation(url: str) -> None:
    with contrada.Client(url) as c:
        sub = c.subscribe("hazard > 3")
        c.publish({"hazard": 4})
        n = sub.get(timeout=10.0)
        assert n["hazard"] == 4
        assert n.id.broker == c.broker
        assert n.publisher
        with pytest.raises(TimeoutError, match="no notification"):
            sub.get(timeout=0.01)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (contrada.AsyncClient, contrada.Client),
        (contrada.AsyncSubscription, contrada.Subscription),
        (contrada.AsyncAdvertisement, contrada.Advertisement),
        (contrada.connect, contrada.Client),
    ],
)
def test_both_clients_have_the_same_methods_and_parameters(theirs: Any, ours: Any) -> None:
    def public(kind: Any) -> dict[str, object]:
        return {name: getattr(kind, name) for name in dir(kind) if isinstance(kind, type) and not name.startswith("_")}

    def parameters(call: Any) -> list[tuple[str, object, object]]:
        return [(each.name, each.kind, each.default) for each in inspect.signature(call).parameters.values()]

    if isinstance(theirs, type):
        assert public(theirs).keys() == public(ours).keys()
    if not issubclass(ours, Kept):  # those are made by their client
        assert parameters(theirs) == parameters(ours)
    for name, member in public(theirs).items():
        if callable(member):
            assert parameters(member) == parameters(getattr(ours, name)), name


@pytest.mark.parametrize("made", [contrada.Client, contrada.AsyncClient, contrada.connect])
def test_help_lists_every_option(made: Any) -> None:
    page = pydoc.plain(pydoc.render_doc(made))
    for field in fields(Options):
        assert f"{field.name}: " in page.replace("\n", " "), field.name  # in the signature
        assert re.search(rf"^ .*\b{field.name}\b.*  \w", page, re.MULTILINE), field.name  # explained


@pytest.mark.parametrize("made", [contrada.Client, contrada.AsyncClient, contrada.connect])
def test_an_unknown_option_is_named_with_those_there_are(made: Any) -> None:
    with pytest.raises(contrada.InvalidValue, match="no option 'user'; the options are name, connect_timeout, "):
        made("tcp://127.0.0.1:1", user="alice")
    with pytest.raises(contrada.InvalidValue, match=r"no option 'serverkey' \(did you mean server_key\?\)"):
        made("tcp://127.0.0.1:1", serverkey="alice")


def test_iteration_ends_when_the_subscription_does(url: str) -> None:
    with contrada.Client(url) as c:
        sub = c.subscribe("n >= 0")
        c.publish_many({"n": i} for i in range(100))
        got = []
        for n in sub:
            got.append(n["n"])
            if len(got) == 100:
                sub.close()
        assert got == list(range(100))
        with pytest.raises(contrada.Disconnected):
            sub.get()


def test_many_threads_publish_and_read(url: str) -> None:
    with contrada.Client(url) as c:
        sub = c.subscribe("n >= 0")
        got: list[int] = []
        lock = threading.Lock()

        def write(first: int) -> None:
            for n in range(first, first + 50):
                c.publish({"n": n}, ack=bool(n % 2))

        def read() -> None:
            for _ in range(100):
                n = sub.get(timeout=30)["n"]
                with lock:
                    got.append(n)

        threads = [threading.Thread(target=write, args=(first,)) for first in range(0, 200, 50)]
        threads += [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(got) == list(range(200))


def test_streaming_applies_back_pressure_and_reports_failures() -> None:
    with make_broker(limits=Limits(notification_bytes=200)) as broker:
        with contrada.Client(broker.url, outstanding=10) as c:
            for i in range(500):
                c.publish({"n": i}, ack=False)
            c.flush(timeout=30)
            c.publish({"n": "x" * 500}, ack=False)
            with pytest.raises(contrada.Refused, match="1 streamed"):
                c.flush(timeout=30)
        client = contrada.Client(broker.url)
        client.publish({"n": "x" * 500}, ack=False)
        with pytest.raises(contrada.Refused, match="streamed"):
            client.close()


def test_a_blocked_publisher_times_out_and_its_notification_is_not_lost() -> None:
    with make_broker() as broker, contrada.Client(broker.url) as c:
        sub = c.subscribe("n >= 0", policy="block", window=1, queue=1)
        published = 0
        try:
            while published < 10:
                c.publish({"n": published}, timeout=0.3)
                published += 1
        except TimeoutError:
            pass
        assert published < 10, "nobody reads, so the acknowledgement must be withheld"
        assert [sub.get(timeout=30)["n"] for _ in range(published + 1)] == list(range(published + 1))


def test_drops_are_counted_and_reported() -> None:
    with make_broker() as broker, contrada.Client(broker.url) as c:
        sub = c.subscribe("n >= 0", policy="drop-oldest", window=2, queue=3)
        c.publish_many({"n": i} for i in range(100))
        got = [sub.get(timeout=30)["n"]]
        while got[-1] != 99:
            got.append(sub.get(timeout=30)["n"])
        assert got == sorted(got)
        assert sub.dropped == 100 - len(got)


def test_a_slow_consumer_that_asked_for_it_is_disconnected_with_the_reason() -> None:
    with make_broker() as broker, contrada.Client(broker.url) as publisher:
        slow = contrada.Client(broker.url)
        sub = slow.subscribe("n >= 0", policy="disconnect", window=1, queue=1)
        publisher.publish_many({"n": i} for i in range(100))
        with pytest.raises(contrada.Refused) as caught:
            for _ in sub:
                pass
        assert caught.value.code == "slow-consumer"
        slow.close()
        assert publisher.publish({"n": 1})


def test_nobody_there_is_a_clear_error_in_time() -> None:
    with make_broker() as broker:
        gone = broker.url
    with pytest.raises(contrada.Disconnected, match="no connection after"):
        contrada.Client(gone, connect_timeout=0.3)
    with pytest.raises(contrada.Disconnected, match="cannot connect"):
        contrada.Client("tcp://127.0.0.1:*")


def test_closing_twice_and_using_it_after(url: str) -> None:
    c = contrada.Client(url)
    sub = c.subscribe("n >= 0")
    c.close()
    c.close()
    with pytest.raises(contrada.Disconnected):
        c.publish({"n": 1})
    assert list(sub) == []
    sub.close()
