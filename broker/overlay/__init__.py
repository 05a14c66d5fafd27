"""Brokers among brokers: who is linked with whom, what each wants of the other, and what is forwarded.

Read overlay (the neighbours, and how the router's words become deeds), links with dial (how a link is made and lost),
neighbour and forwarding (notifications over a link), advertisements. The router is a state machine of its own: router
with actions, then topology (the tree), flow and filter_set (what is told to whom), seen. report is for operators.
"""
