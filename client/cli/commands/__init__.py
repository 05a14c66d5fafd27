"""One module for each command of `contrada`, named for it: a function with its options, and EXAMPLES.

`broker`, `cluster` and `demo` start brokers; `pub`, `sub`, `status`, `explain`, `index` and `bench` talk to one;
`keygen` and `warm` need none. The commands that run on Spark are in `client/cli/jobs`.
"""
