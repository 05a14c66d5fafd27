"""A forwarding table in segments on disk.

`segmented_table` is the face. `loaded_segments` asks each `segment` about what its `gate` admits, which is read once
for all (`shared_batch`). `manifest` says what is valid, `index_directory` and `stored_index` are the files, on a disk
and in an object store; `subscription_ids` and `added_subscriptions` say whose filters are.
"""
