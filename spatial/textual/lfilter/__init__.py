"""LFilter: an `mbr_trie` and a `pt_quadtree`, made to take changes by `layered`, chosen by cost (`lfilter`).

`pt_quadtree_build` builds the quadtree that `pt_quadtree` searches.
"""
