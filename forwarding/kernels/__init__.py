"""The table's compiled code: `memory` is what its arrays hold, `match` reads them, `change` writes them."""
