"""Groups of filters that are placed together because one seems to cover the others (coverers.py).

A group is placed where its *root* is, by the root's ref. Coverers of coverers are followed a few steps, so that a
whole chain goes to one place. A group of more than a given size would make a segment too large: its members are
placed each by itself. Kept as one file of arrays, sorted by ref, which every task reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Self

import numpy as np

from contrada.spark_jobs.stores.shared_files import reading, writing

if TYPE_CHECKING:
    import pyarrow as pa

    from contrada.forwarding.kernels.memory.layout import Floats, Ints

COVERER_COLUMNS: Final = ("ref", "coverer", "kind", "group", "x", "y")
"""The columns of what `find_coverers` finds."""

_STEPS: Final = 3


class CoverGroups(NamedTuple):
    """Members by ref, ascending: the root of each, or -1 for one that is placed by itself; where the root is."""

    refs: Ints
    roots: Ints
    kinds: Ints
    groups: Ints
    x: Floats
    y: Floats

    @classmethod
    def of(cls, pairs: pa.Table, dead: Ints, most: int) -> Self:
        """From what `find_coverers` found, without those that are dead; no group has more than `most` members."""
        given = {name: pairs.column(name).to_numpy() for name in COVERER_COLUMNS}
        alive = ~(np.isin(given["ref"], dead) | np.isin(given["coverer"], dead))
        order = np.argsort(given["ref"][alive], kind="stable")
        given = {name: values[alive][order] for name, values in given.items()}
        refs, coverers = given["ref"], given["coverer"]
        tops, first = np.unique(coverers, return_index=True)
        roots = coverers
        for _ in range(_STEPS):
            at, found = _find(refs, roots)
            roots = np.where(found, coverers[at], roots) if len(refs) else roots
        named, sizes = np.unique(roots, return_counts=True)
        large = named[sizes > most]
        members = np.union1d(refs, tops)
        at, covered = _find(refs, members)
        root = np.where(covered, roots[at], members) if len(refs) else members
        place, _ = _find(tops, root)
        where = first[place] if len(tops) else place
        return cls(
            members,
            np.where(np.isin(root, large), -1, root),
            *(given[name][where] for name in ("kind", "group", "x", "y")),
        )

    def find(self, refs: Ints) -> tuple[Ints, np.ndarray]:
        """The places of refs among the members, and which are members."""
        return _find(self.refs, refs)

    def save(self, path: str) -> str:
        """Write to a file."""
        with writing(path) as file:
            np.savez(file, **self._asdict())
        return path

    @classmethod
    def load(cls, path: str) -> Self:
        """Read what `save` wrote."""
        with reading(path) as file, np.load(file) as arrays:
            return cls(**{name: arrays[name] for name in cls._fields})


def _find(among: Ints, wanted: Ints) -> tuple[Ints, np.ndarray]:
    if not len(among):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    at = np.minimum(np.searchsorted(among, wanted), len(among) - 1)
    return at, among[at] == wanted
