"""Rows of subscriptions as they come, into checked ones.

`sources` reads files, `geojson` features; `parsing` makes subscriptions of rows, whose filters are texts
(`column_language`, `quick_rows`) or `fields`; `as_given` reads what was refused once more, for the quarantine.
"""
