"""The table's compiled code: `memory` is what its arrays hold, `match` reads them, `change` writes them."""

from contrada.spatial.storage import jit as _jit  # noqa: F401  # before numba: it chooses the processor
