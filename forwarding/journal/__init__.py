"""Records on disk, append-only, checksummed and chained: what a durable broker must not lose, and what it recorded.

Read `blocks` (the format), `disk` (every file operation there is), `scan` (one file, and what is wrong with it),
`recovery` (what a directory holds after a crash), `tail` (where it is written) and `journal` (the class around them).
"""
