"""Brokers among brokers: links, and what goes over them.

Read overlay (the neighbours, and how the router's words become deeds; `broker/routing` has the router), links with dial
(how a link is made and lost), neighbour and forwarding (notifications over a link), advertisements. report is for
operators.
"""
