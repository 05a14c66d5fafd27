"""A forwarding table in segments on disk.

`segmented_table` is the face: each `segment` is asked if its `gate` admits a notification, which is read once for all
(`shared_batch`). `index_directory` is the files; `subscription_ids` and `added_subscriptions` say whose filters are.
"""
