"""MQTT 5 and 3.1.1: packets, topics as filters and one connection, without I/O, and asyncio around them."""
