"""Commands about what a broker keeps on disk: `contrada subs`."""
