"""What a set of subscriptions looks like: frequencies of keywords and of attributes, and where the places are.

Frequencies of keywords are document frequencies: in how many subscriptions each occurs. In descending order they are
the global order of tokens, of which the frequent end is where rule 3 had better not look (simplifying.py). Counts of
(attribute, operator) are the attributes' selectivities: the share of subscriptions that a notification with the
attribute may concern. The spatial histogram counts the centres of places on a grid, for partitioning.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

GRID: Final = 256
"""Cells of the histogram along each axis."""

NAMES: Final = 16
"""Groups of attributes in the histogram, so that places of different attributes part."""

_TAIL: Final = 0.001  # of centres, on each side, that may lie outside the grid and fall into its border cells
_PRECISION: Final = 10_000


class Grid(NamedTuple):
    """The rectangle that the histogram's grid covers."""

    x1: float
    y1: float
    x2: float
    y2: float


class Totals(NamedTuple):
    """Counts of parsed rows, and the rectangle that nearly all places' centres lie in."""

    rows: int
    bad: int
    unsatisfiable: int
    redundant_constraints: int
    interfaces: int  # about
    grid: Grid | None


def totals(parsed: DataFrame) -> Totals:
    """Count, in one pass."""
    row = parsed.agg(
        F.count("*").alias("rows"),
        F.count("reason").alias("bad"),
        F.count_if("unsatisfiable").alias("unsatisfiable"),
        F.coalesce(F.sum("redundant"), F.lit(0)).alias("redundant_constraints"),
        F.approx_count_distinct("interface").alias("interfaces"),
        *(F.percentile_approx(_centre(axis), [_TAIL, 1 - _TAIL], _PRECISION).alias(axis) for axis in ("x", "y")),
    ).first()
    assert row is not None
    x, y = row["x"], row["y"]
    grid = None if x is None or y is None else Grid(x[0], y[0], x[1], y[1])
    counts = {name: int(row[name]) for name in Totals._fields if name != "grid"}
    return Totals(**counts, grid=grid)


def token_frequencies(parsed: DataFrame) -> DataFrame:
    """(token, documents), the most frequent first."""
    words = parsed.select(F.explode("tokens").alias("token"))
    counted = words.groupBy("token").agg(F.count("*").alias("documents"))
    return counted.coalesce(1).sortWithinPartitions(F.desc("documents"), "token")


def attribute_frequencies(parsed: DataFrame, subscriptions: int) -> DataFrame:
    """(attribute, operator, subscriptions, share of all), the most frequent first."""
    uses = parsed.select(F.explode(F.array_distinct("attributes")).alias("use"))
    counted = uses.groupBy("use").agg(F.count("*").alias("subscriptions"))
    named = counted.select(
        F.expr("substring(use, locate(' ', use) + 1)").alias("attribute"),
        F.expr("substring_index(use, ' ', 1)").alias("operator"),
        "subscriptions",
        (F.col("subscriptions") / F.lit(max(1, subscriptions))).alias("share"),
    )
    return named.coalesce(1).sortWithinPartitions(F.desc("subscriptions"), "attribute", "operator")


def with_bucket(parsed: DataFrame, grid: Grid | None) -> DataFrame:
    """Add `bucket`, what partitioning counts and moves: kind, group of attributes, and cell of the grid."""
    group = F.pmod(F.crc32(F.col("name").cast("binary")), F.lit(NAMES))
    if grid is None:
        cell = F.lit(0)
    else:
        cell = F.coalesce(_axis("x", grid.x1, grid.x2) * GRID + _axis("y", grid.y1, grid.y2), F.lit(0))
    return parsed.withColumn("bucket", F.concat_ws(":", "kind", group, cell))


def _axis(axis: str, low: float, high: float) -> Column:
    width = (high - low) or 1.0
    cell = F.floor((_centre(axis) - low) / width * GRID)
    return F.least(F.lit(GRID - 1), F.greatest(F.lit(0), cell)).cast("int")


def _centre(axis: str) -> Column:
    return (F.col(f"{axis}1") + F.col(f"{axis}2")) / 2


def histogram(bucketed: DataFrame) -> dict[str, int]:
    """How many subscriptions each bucket has. At most a grid for each kind and group: a bounded dictionary."""
    counted = bucketed.groupBy("bucket").agg(F.count("*").alias("subscriptions")).toArrow()
    return dict(zip(counted["bucket"].to_pylist(), counted["subscriptions"].to_pylist(), strict=True))
