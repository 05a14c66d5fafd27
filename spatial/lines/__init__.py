"""Lines: routes, tracks, cables. `line` is what one is, `relating` how it lies to regions."""
