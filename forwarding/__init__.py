"""What filters are, and the table that finds those a notification satisfies. No sockets, no clocks.

Read `language` (values, constraints, filters), `covering` (which filters say more than others), `table` (the face),
`types` (regions and geotext in the table), `kernels` (its compiled code), `batches` and `codec` (what goes into them),
`segments` (tables on disk that answer as one), `journal` (records on disk), `recording` (what a broker did).
"""
