"""How far shapes are from one another: whether their nearest points are within a distance.

In the plane that is decided exactly: `comparing` is the arithmetic, `planar` the kernels over paths. On the Earth it is
right to a millimetre: `geodesic` and `earth`. `near` is the face of both for points and regions; `searching` and
`searching_earth` find the constraints that ask.
"""
