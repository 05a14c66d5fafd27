"""The papers' experiments and the peers, one script each: `make bench-regions`, `make bench-forwarding`, ..."""
