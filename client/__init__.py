"""The client library, async and blocking, and the command line.

`engine` is the protocol without I/O; `async_client` and `blocking` drive it; `cli` and `demo` use them.
"""
