"""Refuse to build a distribution without code; everything else is in pyproject.toml.

The packages are links in src/contrada to the folders at the root. Git writes a link as a small text file where it has
been told that there are none (`core.symlinks = false`, the default on Windows), and setuptools then finds no package
there and says nothing.
"""

from pathlib import Path

from setuptools import setup

PACKAGES = ("broker", "client", "forwarding", "spark_jobs", "spatial")

here = Path(__file__).parent / "src" / "contrada"
missing = [name for name in PACKAGES if not (here / name / "__init__.py").is_file()]
if missing:
    raise SystemExit(
        f"contrada cannot be built: src/contrada/{missing[0]} is no link to ../../{missing[0]}, and the code is not "
        f"there ({', '.join(missing)}). This copy was made without symbolic links: clone again with "
        "`git clone -c core.symlinks=true` (on Windows with developer mode on), or unpack an archive that keeps them."
    )
setup()
