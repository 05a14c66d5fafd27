"""Which filters say more than others (`covering`, over `domains`), within a `budget`, and what that saves."""
