"""A broker as a process: sockets, files, threads and settings around the core.

Read server (a whole broker), node (the loop), dealers (connections to peers); then settings, key_directory,
index_loader, recorder, metrics, http and logs as needed.
"""
