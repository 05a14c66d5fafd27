"""The async client against a real broker over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest
import shapely

import contrada
from contrada import Box, GeoText, Point, Region
from contrada.broker.protocol.messages import Limits
from tests.client.reference import make_broker

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from contrada.client.async_client import AsyncClient

LIMIT = 60.0


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, LIMIT))


def test_the_example_of_the_documentation(url: str) -> None:
    async def main() -> None:
        region = Region([(1, 1), (4, 1), (4, 4)])
        wanted = "wind > 90 and area overlaps POLYGON((0 0, 3 0, 3 3, 0 3))"
        async with contrada.connect(url) as c, c.subscribe(wanted) as storms:
            await c.publish({"area": region, "wind": 120})
            await c.publish({"area": region, "wind": 80})
            async for n in storms:
                assert n["wind"] == 120
                assert n["area"] == region
                break
            assert storms.pending == 0

    run(main())


def test_ids_and_publishers_name_what_arrived(url: str) -> None:
    async def main() -> None:
        async with contrada.connect(url, name="gauge-17") as c, c.subscribe("n exists") as sub:
            ids = [await c.publish({"n": i}) for i in range(3)]
            got = [await sub.get(timeout=10) for _ in range(3)]
            assert [n.id for n in got] == ids
            assert [n["n"] for n in got] == [0, 1, 2]
            assert {n.publisher for n in got} == {"gauge-17"}
            assert got[0] == {"n": 0}
            assert dict(got[2]) == {"n": 2}

    run(main())


def test_streaming_keeps_order_and_is_bounded(url: str) -> None:
    async def main() -> None:
        async def stream(c: AsyncClient) -> None:
            for i in range(3000):
                await c.publish({"n": i}, ack=False)
                assert c._core.outbox.queued + c._core.outbox.sent_count <= 100
            await c.flush()

        async with (
            contrada.connect(url, outstanding=100) as c,
            c.subscribe("n >= 0", window=50, policy="block") as sub,
        ):
            streaming = asyncio.create_task(stream(c))
            assert [(await sub.get(timeout=30))["n"] for _ in range(3000)] == list(range(3000))
            await streaming
            assert sub.dropped == 0

    run(main())


def test_publish_many_splits_by_the_broker_s_limits() -> None:
    async def main() -> None:
        with make_broker(limits=Limits(batch=7, window=20)) as broker:
            async with contrada.connect(broker.url) as c, c.subscribe("n >= 0") as sub:
                ids = await c.publish_many({"n": i} for i in range(500))
                assert len(set(ids)) == 500
                assert [(await sub.get(timeout=10))["n"] for _ in range(500)] == list(range(500))
                assert await c.publish_many([]) == []

    run(main())


def test_shapes_from_anywhere_are_regions_and_points(url: str) -> None:
    ring = [(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)]
    region = Region(ring)

    class Field:
        __geo_interface__ = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}  # noqa: RUF012  # read, never changed

    shapes = [region, Box(0, 0, 2, 2), shapely.Polygon(ring), Field(), Field.__geo_interface__, Region.of(region.wkt)]

    async def main() -> None:
        async with contrada.connect(url) as c, c.subscribe("area equals BOX(0 0, 2 2)") as sub:
            for shape in shapes:
                await c.publish({"area": shape})
                assert (await sub.get(timeout=10))["area"] == region
            async with c.subscribe("at inside BOX(0 0, 2 2)") as places:
                for place in (Point(1, 1), shapely.Point(1, 1), {"type": "Point", "coordinates": [1, 1]}):
                    await c.publish({"at": place})
                    assert (await places.get(timeout=10))["at"] == Point(1, 1)

    run(main())


def test_geotext_travels(url: str) -> None:
    async def main() -> None:
        async with contrada.connect(url) as c, c.subscribe('post matches {"ipad"} within BOX(0 0, 5 5)') as sub:
            text = GeoText("iPad on sale", at=(1, 2))
            await c.publish({"post": text})
            assert (await sub.get(timeout=30))["post"] == text

    run(main())


@pytest.mark.parametrize(
    "wrong",
    [
        {"x": float("nan")},
        {"x": object()},
        {"x": {"type": "Polygon", "coordinates": []}},
        {"x": [[1]]},
        {"x": 2**64},
        {"": 1},
        "text",
    ],
    ids=["nan", "object", "no ring", "lists in lists", "large", "no name", "text"],
)
def test_bad_notifications_are_refused_before_they_are_sent(url: str, wrong: Any) -> None:
    async def main() -> None:
        async with contrada.connect(url) as c:
            with pytest.raises(contrada.InvalidValue):
                await c.publish(wrong)
            assert await c.publish({"fine": 1})

    run(main())


def test_a_bad_filter_fails_where_it_is_written(url: str) -> None:
    async def main() -> None:
        async with contrada.connect(url) as c:
            with pytest.raises(contrada.FilterSyntaxError):
                c.subscribe("hazard >")
            with pytest.raises(contrada.InvalidValue, match="policy"):
                c.subscribe("hazard > 3", policy="shrug")

    run(main())


def test_the_broker_s_reason_reaches_the_caller() -> None:
    async def main() -> None:
        with make_broker(limits=Limits(subscriptions=1, notification_bytes=200)) as broker:
            async with contrada.connect(broker.url) as c:
                async with c.subscribe("a exists"):
                    with pytest.raises(contrada.Refused, match="1") as caught:
                        await c.subscribe("b exists")
                    assert caught.value.code == "limit"
                with pytest.raises(contrada.Refused, match="bytes"):
                    await c.publish({"a": "x" * 500})
                await c.publish({"a": "x" * 500}, ack=False)
                with pytest.raises(contrada.Refused, match="1 streamed"):
                    await c.flush()

    run(main())


def test_cancelling_a_get_loses_nothing(url: str) -> None:
    async def main() -> None:
        async with contrada.connect(url) as c, c.subscribe("n >= 0") as sub:
            received = []
            for i in range(50):
                waiting = asyncio.create_task(sub.get())
                await asyncio.sleep(0)
                if i % 2:
                    await c.publish({"n": i})
                waiting.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    received.append((await waiting)["n"])
            while len(received) < 25:
                received.append((await sub.get(timeout=10))["n"])
            assert received == list(range(1, 50, 2))

    run(main())


def test_a_timeout_loses_nothing(url: str) -> None:
    async def main() -> None:
        async with contrada.connect(url) as c, c.subscribe("n >= 0") as sub:
            with pytest.raises(TimeoutError, match="no notification"):
                await sub.get(timeout=0.01)
            await c.publish({"n": 1})
            assert (await sub.get(timeout=10))["n"] == 1

    run(main())


def test_cancelling_a_subscribe_leaves_no_subscription(url: str) -> None:
    async def main() -> None:
        async with contrada.connect(url) as c:
            task = asyncio.create_task(c.subscribe("n >= 0").__aenter__())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await c.publish({"n": 1})  # behind the UNSUBSCRIBE
            assert (await c.status())["subscriptions"] == 0

    run(main())


def test_leaving_a_subscription_ends_it_at_the_broker_and_its_iteration(url: str) -> None:
    async def main() -> None:
        async with contrada.connect(url) as c:
            async with c.subscribe("n >= 0") as sub:
                await c.publish_many([{"n": 1}, {"n": 2}])
                while sub.pending < 2:
                    await c.publish({"other": 1})
            assert [n["n"] async for n in sub] == [1, 2], "what had arrived can still be read"
            with pytest.raises(contrada.Disconnected):
                await sub.get()
            assert (await c.status())["subscriptions"] == 0
            await sub.close()

    run(main())


def test_two_readers_share_one_subscription(url: str) -> None:
    async def main() -> None:
        async with contrada.connect(url) as c, c.subscribe("n >= 0") as sub:
            readers = [asyncio.create_task(sub.get(timeout=10)) for _ in range(2)]
            await c.publish_many([{"n": 1}, {"n": 2}])
            assert sorted([(await reader)["n"] for reader in readers]) == [1, 2]

    run(main())


def test_closing_waits_for_what_was_streamed(url: str) -> None:
    async def main() -> None:
        async with contrada.connect(url) as watcher, watcher.subscribe("n >= 0") as sub:
            async with contrada.connect(url) as c:
                for i in range(500):
                    await c.publish({"n": i}, ack=False)
            assert [(await sub.get(timeout=10))["n"] for _ in range(500)] == list(range(500))

    run(main())


def test_after_closing_everything_says_so(url: str) -> None:
    async def main() -> None:
        client = await contrada.connect(url)
        await client.close()
        await client.close()
        with pytest.raises(contrada.Disconnected, match="closed"):
            await client.publish({"n": 1})
        with pytest.raises(contrada.Disconnected, match="closed"):
            await client.subscribe("n exists")
        with pytest.raises(contrada.Disconnected, match="not connected"):
            await contrada.connect(url).publish({"n": 1})

    run(main())


def test_nobody_there_is_a_clear_error_in_time() -> None:
    async def main() -> None:
        with make_broker() as broker:
            gone = broker.url
        with pytest.raises(contrada.Disconnected, match="no connection after"):
            await contrada.connect(gone, connect_timeout=0.3)
        for nonsense in (
            "localhost:7400",
            "",
            "http://x",
            "tcp://",
            "tcp://127.0.0.1:notaport",
            "tcp://127.0.0.1:99999",
            "tcp://[::1",
        ):
            with pytest.raises(contrada.InvalidValue, match="address"):
                contrada.connect(nonsense)
        with pytest.raises(contrada.Disconnected, match="cannot connect"):
            await contrada.connect("tcp://127.0.0.1:*")

    run(main())


def test_explain_tells_why(url: str) -> None:
    async def main() -> None:
        async with contrada.connect(url) as c, c.subscribe("hazard > 3") as sub:
            hit = await c.publish({"hazard": 4})
            miss = await c.publish({"hazard": 2})
            assert hit is not None
            assert miss is not None
            await sub.get(timeout=10)
            assert (await c.explain(hit, sub))["matched"]
            document = await c.explain(str(miss), sub.id)
            assert not document["matched"]
            assert document["fate"] == "no-match"
            with pytest.raises(contrada.Refused):
                await c.explain("nobody:1", sub)
            with pytest.raises(contrada.InvalidValue, match="notification id"):
                await c.explain("nonsense", sub)

    run(main())


def test_a_blocked_publisher_times_out_and_its_notification_is_not_lost() -> None:
    async def main() -> None:
        with make_broker() as broker:
            async with contrada.connect(broker.url) as c:
                async with c.subscribe("n >= 0", policy="block", window=1, queue=1, timeout=30) as sub:
                    published = 0

                    async def publish_all() -> None:
                        nonlocal published
                        while published < 10:  # nobody reads, so that some acknowledgement is withheld
                            await c.publish({"n": published}, timeout=0.3)
                            published += 1

                    with pytest.raises(TimeoutError, match=f"^{broker.url}: no answer in 0.3 s$"):
                        await publish_all()
                    got = [(await sub.get(timeout=30))["n"] for _ in range(published + 1)]
                    assert got == list(range(published + 1))
                    await sub.close(timeout=30)
                await c.flush(timeout=30)
                assert (await c.status(timeout=30))["subscriptions"] == 0

    run(main())


def test_a_timeout_of_the_application_s_own_iterator_stays_its_own(url: str) -> None:
    def notifications() -> Iterator[dict[str, object]]:
        yield {"n": 1}
        raise TimeoutError("the gauge is silent")

    async def main() -> None:
        async with contrada.connect(url) as c:
            with pytest.raises(TimeoutError, match="the gauge is silent"):
                await c.publish_many(notifications(), timeout=30.0)

    run(main())
