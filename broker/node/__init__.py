"""A broker as a process: sockets, files, threads and settings around the core.

Read server (a whole broker), node (the loop), listener (the socket that others connect to), dealers (connections to
peers); then settings, key_directory, worker (threads beside the loop), files/ (what is on disk), metrics, http and
logs as needed.
"""
