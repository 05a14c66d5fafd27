"""What the papers compare with: `iq_tree` (also RQ), `ir_tree`, `keyword_first`, `spatial_first`; and a `scan`."""
