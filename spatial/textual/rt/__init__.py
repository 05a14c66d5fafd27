"""The R^t-trees: `rtree` below them, `token_order`, `rt_tree` (`rt`, `rt+`) and `rt_plus_plus`."""
