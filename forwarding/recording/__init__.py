"""What a broker did, in files that survive a kill: `records` say what, `writer` and `reader` how."""
