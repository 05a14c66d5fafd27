"""The MQTT door: the listening socket, its connections, and the sessions of those who are away."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from contrada.client.gateway.mqtt.connection import READ, MqttConnection
from contrada.client.gateway.mqtt.session import Done
from contrada.client.gateway.mqtt.sessions import Sessions
from contrada.client.gateway.problems import Problem
from contrada.client.gateway.settings import host_and_port
from contrada.errors import ContradaError

if TYPE_CHECKING:
    from contrada.client.gateway.gateway import Gateway
    from contrada.client.gateway.mqtt.sessions import Key

log = logging.getLogger("contrada.gateway")
_TOLD: Final = 100  # connections at a time, beyond the limit, that hear why they are refused


class MqttDoor:
    """The listening socket, and the connections by their visitors and client ids."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.by_key: dict[Key, MqttConnection] = {}
        self.sessions = Sessions(gateway)
        self._connections: set[MqttConnection] = set()
        self._server: asyncio.Server | None = None

    async def open(self, address: str) -> str:
        """Listen at HOST:PORT; the address of the door."""
        host, port = host_and_port(address, "MQTT")
        context = self.gateway.tls()
        if await self.gateway.stores():
            await self.sessions.open()
        try:
            self._server = await asyncio.start_server(self._serve, host, port, ssl=context, limit=READ)
        except OSError as error:
            raise ContradaError(f"MQTT cannot be served on {address}: {error}") from error
        bound = self._server.sockets[0].getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        return f"{'mqtt' if context is None else 'mqtts'}://{shown}:{bound}"

    async def close(self) -> None:
        """Accept nobody, and tell those inside."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.leave("the gateway is stopping", Done.SERVER_SHUTTING_DOWN)
        waiting = [connection.over.wait() for connection in self._connections]
        if waiting:
            await asyncio.wait([asyncio.ensure_future(each) for each in waiting], timeout=2.0)
        await self.sessions.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            stores = await self.gateway.stores()
        except (ContradaError, TimeoutError) as error:
            log.info("mqtt: %s", error)  # the broker is away: it will be asked again
            stores = False
        try:
            async with self.gateway.connection():
                await self._run(MqttConnection(self, reader, writer, stores=stores))
        except Problem as problem:
            log.warning("mqtt: %s", problem)
            if len(self._connections) < self.gateway.settings.connections + _TOLD:
                await self._run(MqttConnection(self, reader, writer, stores=stores, full=str(problem)))
        finally:
            writer.close()

    async def _run(self, connection: MqttConnection) -> None:
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)
            connection.over.set()
