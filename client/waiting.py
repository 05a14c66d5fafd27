"""Waiting in an event loop: a set of futures that are woken together, each looking again at what it waits for."""

from __future__ import annotations

import asyncio


async def wait_in(waiters: set[asyncio.Future[None]]) -> None:
    """Wait to be woken with everybody else in the set."""
    waiter = asyncio.get_running_loop().create_future()
    waiters.add(waiter)
    try:
        await waiter
    finally:
        waiters.discard(waiter)


def wake(waiters: set[asyncio.Future[None]] | None) -> None:
    """Wake everybody in the set."""
    for waiter in waiters or ():
        if not waiter.done():
            waiter.set_result(None)
