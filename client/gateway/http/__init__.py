"""HTTP and WebSocket: what a request becomes, without I/O, and aiohttp around it."""
