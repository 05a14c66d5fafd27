"""Shapes of the plane: points, regions, and rings in kernels.

`point` and `region` are values, made from what `shapes` and `wkt` read. A ring is made canonical (`canonical`), proved
simple (`simple`, `sweep`, on `predicates`) and lies with others in a `ring_arena`; `ring_reader` and `ring_loading` do
that for many at once.
"""
