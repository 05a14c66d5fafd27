"""How far shapes are from one another: whether the nearest points are within a distance, decided exactly.

`comparing` is the arithmetic, `planar` the kernels over paths, `near` their face for points and regions.
"""
