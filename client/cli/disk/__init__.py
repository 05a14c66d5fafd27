"""Commands about what a broker keeps on disk: `contrada subs`, and `contrada journal` for the files themselves."""
