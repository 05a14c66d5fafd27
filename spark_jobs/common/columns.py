"""Columns of tables by their names: each is there, and there once, or a line says which is not."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from contrada.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pyspark.sql import DataFrame


def check_once(names: Iterable[str], what: str) -> None:
    """Refuse columns of which two have one name."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InvalidValue(f"{what}: two columns are called {' and '.join(twice)}; which is meant? Leave one of them")


def check_table(table: DataFrame, what: str, needed: Sequence[str] = (), among: Collection[str] | None = None) -> None:
    """Refuse a DataFrame that lacks a column that is needed, or has one twice, of those that matter (or of all).

    Spark tells capitals apart only if it was told to.
    """
    missing = [name for name in needed if name not in table.columns]
    if missing:
        raise InvalidValue(f"{what}: no column {' nor '.join(missing)}; there are {', '.join(table.columns)}")
    exact = table.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    names = table.columns if exact else [name.lower() for name in table.columns]
    check_once((name for name in names if among is None or name in among), what)


def quoted(name: str) -> str:
    """A name as Spark's expressions take it, whatever is in it."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"
