"""What indexes lie in, and what their code is.

`jit`: compiled kernels; `compiler` how they are compiled, `kernel_cache` where they are kept, `processor` for which
machines. `arrays_file` (with `regular_file`, `file_lock`): files of named arrays, which `row_numbers` checks.
`hashing`: constants that hashes share. `roomy_map`, `growing`: memory that grows without being copied. `garbage`:
Python's collector of cycles, out of the way.
"""
