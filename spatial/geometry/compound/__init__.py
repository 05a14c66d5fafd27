"""Regions of several rings: parts apart from one another, and holes.

`rows` is how such a region lies in memory, in the place of a single ring's vertices; `survey` finds out how rings lie
to one another, and what is wrong with them; `assembly` makes the rows of loose rings, or says why not.
"""
