"""What both jobs need.

Before Spark starts: `paths`, `session`, `preflight`. The stages of a job: `engine`, over `splits` of the input, read as
`text_lines`, `arrow` or `geometries`, with `instants` for times and `index_cache` for indexes. At the end, perhaps,
one of `errors`.
"""
