"""Rule 3 across a whole set: which subscriptions of an interface are covered by another of the same interface.

A table finds covers among the filters it holds, so nothing is left out of the index here: covered subscriptions are
sent to the segment of their coverer, where the table then keeps them aside (answers by subscription still need them,
and the coverer may be removed one day). Rules 1 and 2 concern one filter, and are the table's too; parsing.py counts
them.

Candidates meet in buckets (candidates.py). The JVM counts the buckets by 64-bit hashes, and only those where an asker
meets someone else go through Python, each filter then asking `covers`. Buckets of more than `MOST` members are left
alone: one hot value must not bring all pairs back.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from contrada.forwarding.codec import Limits, decode_filter
from contrada.forwarding.quick_language import BoxMatch, filter_of_box_match

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from contrada.forwarding.filter import Filter, Predicate

MOST: Final = 2048
_BATCH: Final = 8192
_SINGLE: Final = "filters = 1 and not unsatisfiable"
_COVERERS: Final = 64  # that a filter is compared with, in each bucket
_HOT: Final = 256  # of the most frequent keywords are not asked for, where there is another
_LIMITS: Final = Limits(size=1 << 31, string_length=1 << 31, vertices=1 << 31, keywords=1 << 31, set_size=1 << 31)
_PAIRS: Final = "id string, root_id string, root_bucket string"
_COLUMNS: Final = ("id", "bucket", "filter", "name", "tokens", "x1", "y1", "x2", "y2")


def find_meetings(bucketed: DataFrame, frequent: list[str]) -> DataFrame:
    """(key) of the buckets, by hash, in which a filter asks and another gives itself; `frequent` are hot keywords."""
    asking, giving = _keys(frequent)
    single = bucketed.where(_SINGLE)
    number = F.xxhash64("id").alias("n")
    keyed = [
        single.select(number, F.explode(keys).alias("key"), F.lit(asker).alias("asker"), "interface")
        for keys, asker in ((asking, 1), (giving, 0))
    ]
    hashed = keyed[0].union(keyed[1]).select("n", "asker", F.xxhash64("interface", "key").alias("key"))
    counted = hashed.groupBy("key").agg(
        F.min("n").alias("low"), F.max("n").alias("high"), F.max("asker").alias("asked"), F.count("*").alias("members")
    )
    return counted.where(f"low <> high and asked = 1 and members <= {2 * MOST}").select("key")


def find_covered(bucketed: DataFrame, frequent: list[str], meetings: DataFrame) -> DataFrame:
    """(id, root_id, root_bucket) of subscriptions that another one of their interface covers."""
    asking, giving = _keys(frequent)
    keys = bucketed.where(_SINGLE).select(*_COLUMNS, "interface", asking.alias("asks"), giving.alias("gives"))
    candidates = (
        keys.withColumn("key", F.explode(F.array_distinct(F.concat("asks", "gives"))))
        .withColumn("asker", F.array_contains("asks", F.col("key")))
        .withColumn("giver", F.array_contains("gives", F.col("key")))
        .withColumn("key", F.xxhash64("interface", "key"))
        .join(meetings, "key", "leftsemi")
        .select("key", "interface", "asker", "giver", *_COLUMNS)
    )
    runs = candidates.repartition("key").sortWithinPartitions("key", "interface", "id")
    # A filter covered in several buckets follows one coverer, the same on every run.
    best = runs.mapInArrow(_covered, _PAIRS).groupBy("id").agg(F.min(F.struct("root_id", "root_bucket")).alias("best"))
    return best.select("id", "best.root_id", "best.root_bucket")


def beside_coverers(bucketed: DataFrame, covered: DataFrame | None, most: int) -> DataFrame:
    """Add `owner`, by whose id a row is placed, give covered rows their coverer's bucket, and mark both as `family`.

    Coverers of coverers are followed two steps, so that a whole chain goes to one place. A family of more than `most`
    would be a segment too large: its members are placed by their own ids.
    """
    if covered is None:
        return bucketed.withColumn("owner", F.col("id")).withColumn("family", F.lit(False))
    family = covered.select("id").union(covered.select("root_id")).distinct().withColumn("family", F.lit(True))
    for _ in range(2):
        above = covered.selectExpr("id as root_id", "root_id as top", "root_bucket as place")
        covered = covered.join(above, "root_id", "left").select(
            "id", F.coalesce("top", "root_id").alias("root_id"), F.coalesce("place", "root_bucket").alias("root_bucket")
        )
    large = covered.groupBy("root_id").agg(F.count("*").alias("n")).where(F.col("n") > most).select("root_id")
    small = covered.join(large, "root_id", "leftanti")
    moved = bucketed.join(small, "id", "left").join(family, "id", "left")
    return (
        moved.withColumn("bucket", F.coalesce("root_bucket", "bucket"))
        .withColumn("owner", F.coalesce("root_id", "id"))
        .withColumn("family", F.coalesce("family", F.lit(False)))
    )


def _keys(frequent: list[str]) -> tuple[Column, Column]:
    """What rows ask and give, as expressions: parsed for most; by keyword, off the hot ones, for box matches."""
    # A set of constants is looked up once for each word; the difference of two arrays would be built for each row.
    rare = F.filter("tokens", lambda word: ~word.isin(frequent[:_HOT])) if frequent else F.col("tokens")
    word = F.element_at(F.when(F.size(rare) > 0, rare).otherwise(F.col("tokens")), -1)

    def prefixed(word: Column) -> Column:
        return F.concat(F.lit("#"), F.col("name"), F.lit("\t"), word)

    asking = F.when(F.col("filter").isNull(), F.array(prefixed(word))).otherwise(F.col("asks"))
    giving = F.when(F.col("filter").isNull(), F.transform("tokens", prefixed)).otherwise(F.col("gives"))
    return asking, giving


def _covered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The covers within each bucket, rows of which follow one another."""
    import pyarrow as pa

    rows = (row for batch in batches for row in batch.to_pylist())
    found: list[tuple[str, str, str]] = []
    for _, bucket in groupby(rows, key=lambda row: (row["key"], row["interface"])):
        found += _covered_in(list(bucket))
        if len(found) >= _BATCH:
            yield _pairs(pa, found)
            found = []
    yield _pairs(pa, found)


def _pairs(pa: Any, found: list[tuple[str, str, str]]) -> pa.RecordBatch:
    columns = zip(*found, strict=True) if found else ((), (), ())
    names = [part.split()[0] for part in _PAIRS.split(", ")]
    return pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], names)


def _covered_in(rows: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """The covers within one bucket, its rows ascending by id."""
    filters = [filter_of_row(row).filters[0] for row in rows]
    askers = [i for i, row in enumerate(rows) if row["asker"]]
    askers.sort(key=lambda i: (len(filters[i].constraints), i))
    for j, row in enumerate(rows):
        if row["giver"]:
            for i in askers[:_COVERERS]:
                if i != j and filters[i].covers(filters[j]) and (i < j or not filters[j].covers(filters[i])):
                    yield row["id"], rows[i]["id"], rows[i]["bucket"]
                    break


def filter_of_row(row: dict[str, Any]) -> Filter | Predicate:
    """The filter of a parsed row: from its bytes, or a box match from its columns."""
    if row["filter"] is not None:
        return decode_filter(row["filter"], _LIMITS)
    return filter_of_box_match(BoxMatch(row["name"], row["tokens"], row["x1"], row["y1"], row["x2"], row["y2"]))
