"""The routing state machine of one broker: what it knows of the overlay, and what its neighbours should know.

Read router (events in, actions out), topology (the tree), then interests (what is told to whom) with flow and
filter_set (one link's share of it), and seen (which notifications were here before).
"""
