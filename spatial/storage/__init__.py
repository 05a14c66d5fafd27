"""What indexes lie in.

`jit` and `kernel_cache`: compiled kernels. `arrays_file` (with `regular_file`, `file_lock`): files of named arrays,
which `row_numbers` checks. `roomy_map`: memory that grows in place.
"""
