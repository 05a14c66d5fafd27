"""One module for each command of `contrada`, named for it: a function with its options, and EXAMPLES."""
