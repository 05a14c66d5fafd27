"""Road networks and the indexes of subscriptions on them ([ROADS]).

`network` is the face. `graph` is the network in kernels; `index` finds the subscriptions that a message is similar to.
"""
