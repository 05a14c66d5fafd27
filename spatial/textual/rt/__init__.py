"""The R^t-trees: `rtree` and `token_rtree` below them, `token_order`, `rt_tree` (`rt`, `rt+`) and `rt_plus_plus`."""
