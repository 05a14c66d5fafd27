"""The forwarding table's index: flat arrays and the kernels over them. `layout` says what the arrays hold."""
