"""The options of the tables of an index, as the command line has them."""

from __future__ import annotations

from typing import Annotated

import typer

GeotextIndex = Annotated[str, typer.Option("--geotext-index", help="The index behind matches: see docs/geotext.md.")]
Matching = Annotated[
    str, typer.Option("--matching", help="How tables match: auto, counting, selective. See docs/forwarding.md.")
]
Relations = Annotated[
    str, typer.Option("--discretization", help="How regions are related: exact, or uniform (sampled).")
]
Density = Annotated[float | None, typer.Option("--density", help="Of uniform: points per unit length, at least.")]
Halo = Annotated[bool, typer.Option("--halo", help="Of uniform: what is nearly on a boundary meets it.")]
Simplify = Annotated[
    bool, typer.Option("--simplify/--no-simplify", help="Set filters aside that others of their interface cover.")
]
Crs = Annotated[str, typer.Option("--crs", help="What coordinates are: plane, or lonlat for degrees.")]
