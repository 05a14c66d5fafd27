"""Patterns found in a text in one pass: `tries` of hashed prefixes (`fingerprints`), and `searching` them."""
