"""What crosses into kernels in one piece: from objects (`encode`), bytes (`bodies`) and columns."""
