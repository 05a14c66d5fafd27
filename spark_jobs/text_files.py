"""Files of text as Spark reads them, and those that it would not read and not say so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from contrada.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_PATTERN: Final = re.compile(r"[*?\[\]{}\\:]")


def read_text_files(spark: SparkSession, files: Sequence[Path], *, whole: bool = False) -> DataFrame:
    """The lines of files, or each whole; `InvalidValue` for names that Spark passes over or takes for a pattern."""
    for file in files:
        if file.name.startswith(("_", ".")) or _PATTERN.search(str(file.absolute())):
            raise InvalidValue(
                f"{file}: Spark reads no text file whose name begins with _ or ., or with one of *?[]{{}}\\:, "
                "so give it another name"
            )
    return spark.read.text([str(file) for file in files], wholetext=whole)
