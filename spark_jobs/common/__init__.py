"""What both jobs need.

Before Spark starts: `paths`, `session`, `preflight`. The stages of a job: `engine`, over `splits` of the input, read as
`text_lines` or `arrow`, with `instants` for times, `index_cache` for indexes and `garbage` for speed. At the end:
`commit`, or one of `errors`.
"""
