"""What crosses into kernels in one piece: notifications from objects (`encode`), bytes (`bodies`) and `columns`.

`packed_columns` are filters column by column, for tables that are built in bulk.
"""
