"""The broker on the network: sockets, threads, files, settings and metrics around the core."""
