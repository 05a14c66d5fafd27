"""Commands for those who come by HTTP, WebSocket or MQTT: `contrada gateway`, `contrada token` and `contrada live`."""
