"""A column of geotext: keywords as numbers, places as boxes, and no object for each.

    offsets     int64   (n + 1,)   the i-th has the words `offsets[i]` to `offsets[i + 1]`
    words       int32   (k,)       as places in `vocabulary`; a word may come twice
    vocabulary  strings            words as `tokenise` leaves them
    boxes       float64 (n, 4)     x1, y1, x2, y2; of a point, twice the point

An index is asked about all of them at once (spatial/textual/base.py, `search_many`). Whoever wants one as an object
takes it out: `texts[i]` is a `GeoText`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contrada.spatial.geometry.point import Point
from contrada.spatial.textual.geotext import GeoText

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from contrada.forwarding.kernels.memory.layout import Floats, Ints


@dataclass(frozen=True, slots=True)
class Texts:
    """Geotext side by side; see the module."""

    offsets: Ints
    words: NDArray[np.int32]
    vocabulary: Sequence[str]
    boxes: Floats

    @classmethod
    def of(cls, objects: Iterable[GeoText | None]) -> Texts:
        """Of objects; what stands for None has no words."""
        numbers: dict[str, int] = {}
        words: list[int] = []
        ends, boxes = [0], []
        for each in objects:
            if each is not None:
                words += [numbers.setdefault(word, len(numbers)) for word in each.keywords]
            ends.append(len(words))
            boxes.append((0.0, 0.0, 0.0, 0.0) if each is None else each.box)
        return cls(
            np.array(ends, np.int64), np.array(words, np.int32), list(numbers), np.array(boxes, float).reshape(-1, 4)
        )

    def __len__(self) -> int:
        return len(self.boxes)

    def __getitem__(self, place: int) -> GeoText:
        """One of them as an object."""
        from contrada.spatial.geometry.region import Box

        run = self.words[self.offsets[place] : self.offsets[place + 1]].tolist()
        keywords = [self.vocabulary[word] for word in run]
        x1, y1, x2, y2 = self.boxes[place].tolist()
        if x1 == x2 and y1 == y2:
            return GeoText(keywords, at=Point(x1, y1))
        return GeoText(keywords, within=Box(x1, y1, x2, y2))

    def take(self, places: Ints) -> Texts:
        """Those at some places."""
        starts, ends = self.offsets[:-1][places], self.offsets[1:][places]
        offsets = np.concatenate(([0], np.cumsum(ends - starts)))
        where = np.repeat(starts - offsets[:-1], ends - starts) + np.arange(offsets[-1])
        return Texts(offsets, self.words[where], self.vocabulary, self.boxes[places])
