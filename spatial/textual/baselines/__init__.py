"""What the papers measure themselves against: `iq_tree` (also RQ), `ir_tree`, `keyword_first`, `spatial_first`; a `scan`."""
