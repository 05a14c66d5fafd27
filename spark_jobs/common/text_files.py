"""Files of text as Spark reads them, and those that it would not read and not say so."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from contrada.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

_PATTERN: Final = re.compile(r"[*?\[\]{}\\:]")


def check_text_files(files: Sequence[Path]) -> None:
    """Refuse names that Spark passes over or takes for a pattern, and files that may not be read."""
    for file in files:
        if file.name.startswith(("_", ".")) or _PATTERN.search(str(file.absolute())):
            raise InvalidValue(
                f"{file}: Spark reads no text file whose name begins with _ or ., or with one of *?[]{{}}\\:, "
                "so give it another name"
            )
        if not os.access(file, os.R_OK):
            raise InvalidValue(f"{file}: may not be read")


def read_text_files(spark: SparkSession, files: Sequence[Path], *, whole: bool = False) -> DataFrame:
    """The lines of files, or each whole."""
    check_text_files(files)
    return spark.read.text([str(file.absolute()) for file in files], wholetext=whole)
