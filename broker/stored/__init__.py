"""What a broker remembers on disk, and how: rows in a journal, and the state that they add up to.

Read rows (what is written), store (how it gets to the disk and back), disk_queue and subscription (what waits for a
durable subscription), link_cursor (what waits for a neighbour), state (what all rows say) and recovery (how it comes
back). keys, retained and limits are what they say. Knows no sessions but the one that a
subscription is delivered to, and neither files nor threads: the journal itself is in contrada.forwarding.
"""
