"""The blocking client, and that it is the async client's twin."""

from __future__ import annotations

import inspect
import threading

import pytest

import contrada
from contrada.broker.messages import Limits
from contrada.client import async_client, blocking
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
    [(async_client.AsyncClient, blocking.Client), (async_client.Subscription, blocking.Subscription)],
)
def test_both_clients_have_the_same_methods_and_parameters(theirs: type, ours: type) -> None:
    def public(kind: type) -> dict[str, object]:
        return {name: member for name, member in vars(kind).items() if not name.startswith("_")}

    assert public(theirs).keys() == public(ours).keys()
    for name, member in public(theirs).items():
        if callable(member):
            asked = inspect.signature(member).parameters
            given = dict(inspect.signature(getattr(ours, name)).parameters)
            if "timeout" not in asked:
                given.pop("timeout", None)  # blocking calls can always be bounded
            assert list(given) == list(asked), name
            assert [p.default for p in given.values()] == [p.default for p in asked.values()], name


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
