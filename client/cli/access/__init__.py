"""Commands for those who come by HTTP, WebSocket or MQTT: `contrada gateway` and `contrada token`."""
