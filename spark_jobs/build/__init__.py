"""`build-index`: rows are read and parsed, brought together, counted, planned and packed into segments.

`build_index` is the job, `plan` what it is asked for. `first_pass` parses (`rows`) and stages (`staging`), and finds
what repeats or is covered (`cover`); `second_pass` counts (`statistics`), `partitioning` plans, `building` packs.
`messages` is what the tasks tell each other, `totals` what the driver makes of it, `hashing` what they compare by;
`side_tables` writes what lies beside the segments.
"""
