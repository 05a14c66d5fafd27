"""The gateway: HTTP, WebSocket and MQTT for a broker, in a process of its own around the asyncio client.

What comes in and goes out is decided by modules without I/O (`forms`, `http.conversation`, `mqtt.session`); `gateway`,
`streaming`, `http.server` and `mqtt.server` are the shell. `docs/gateway.md` is the contract.
"""
