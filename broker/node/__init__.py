"""A broker as a process: sockets, files, threads and settings around the core.

Read server (a whole broker), node (the loop), listener (the socket that others connect to), dealers (connections to
peers); then settings, key_directory, worker (threads beside the loop), index_loader, recorder, metrics, http and logs
as needed.
"""
