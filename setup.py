"""Refuse to build a distribution without code, and carry compiled kernels; everything else is in pyproject.toml.

The packages are links in src/contrada to the folders at the root. Git writes a link as a small text file where it has
been told that there are none (`core.symlinks = false`, the default on Windows), and setuptools then finds no package
there and says nothing.

With CONTRADA_CARRY_KERNELS=FOLDER (`make wheel`) the compiled kernels of that folder go into the wheel, as
contrada/_kernels, and the wheel is one for this platform and this version of Python. Kernels whose key is another's
where it is installed are not read, and compiled as without them.
"""

import os
import shutil
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

PACKAGES = ("broker", "client", "forwarding", "spark_jobs", "spatial")

here = Path(__file__).parent / "src" / "contrada"
missing = [name for name in PACKAGES if not (here / name / "__init__.py").is_file()]
if missing:
    raise SystemExit(
        f"contrada cannot be built: src/contrada/{missing[0]} is no link to ../../{missing[0]}, and the code is not "
        f"there ({', '.join(missing)}). This copy was made without symbolic links: clone again with "
        "`git clone -c core.symlinks=true` (on Windows with developer mode on), or unpack an archive that keeps them."
    )
carried = os.environ.get("CONTRADA_CARRY_KERNELS")


class BuildWithKernels(build_py):
    """Copy compiled kernels beside the modules."""

    def run(self) -> None:
        """Build, then copy."""
        super().run()
        if carried and not self.editable_mode:
            kernels = sorted(Path(carried).glob("*.kernel"))
            if not kernels:
                raise SystemExit(f"CONTRADA_CARRY_KERNELS={carried} has no compiled kernels: run `contrada warm` first")
            target = Path(self.build_lib) / "contrada" / "_kernels"
            target.mkdir(parents=True, exist_ok=True)
            for kernel in kernels:
                shutil.copy(kernel, target)


class PlatformDistribution(Distribution):
    """A distribution of machine code, if it carries any."""

    def has_ext_modules(self) -> bool:
        """Whether the wheel is for one platform."""
        return bool(carried)


setup(cmdclass={"build_py": BuildWithKernels}, distclass=PlatformDistribution)
