"""What indexes lie in: compiled kernels and their cache, files of named arrays, and maps with room to grow."""
